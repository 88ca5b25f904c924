"""`strandline report`: where GPU-hours are stranded and what they cost, as HTML pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands import options


def report(
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the pages (default: DATA/reports).", show_default=False)
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", help="First day, YYYY-MM-DD (default: the newest 30 days).", show_default=False),
    ] = None,
    to: Annotated[str | None, typer.Option("--to", help="Day after the last, YYYY-MM-DD.", show_default=False)] = None,
    data: options.Data = None,
    memory_limit: options.Memory = None,
    threads: options.Threads = None,
) -> None:
    """Write where GPU-hours are stranded and, with rate cards or bills, what they cost: HTML pages; print their paths.

    A page needs no network and no server. It shows the newest build, and says so where the data are simulated.
    """
    from pipelines import reporting
    from pipelines.durations import parse_window

    settings = options.existing(options.settings(data=data, memory_limit=memory_limit, threads=threads))
    start, end = parse_window(from_, to)
    print(reporting.write_stranding(settings, out, start, end))
    priced = reporting.write_cost(settings, out, start, end)
    if priced is not None:
        print(priced)
