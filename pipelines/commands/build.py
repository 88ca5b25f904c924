"""`strandline build`: run the models over a window of days and publish."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.commands import options


def build(
    select: Annotated[
        list[str] | None,
        typer.Argument(help="Tables to build, such as mart.gpu_ledger_hourly; default: all.", show_default=False),
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="First day, YYYY-MM-DD (default: what changed).", show_default=False)
    ] = None,
    to: Annotated[str | None, typer.Option("--to", help="Day after the last, YYYY-MM-DD.", show_default=False)] = None,
    data: options.Data = None,
    memory_limit: options.Memory = None,
    threads: options.Threads = None,
) -> None:
    """Seal what was collected, run the SQL models over the window and publish the result as one build.

    Without --from and --to it computes the days that changed and a look-back of 48 hours. A window is
    replaced whole: running twice gives the same tables.
    """
    from pipelines import building, console
    from pipelines.durations import parse_window

    start, end = parse_window(from_, to)
    settings = options.existing(options.settings(data=data, memory_limit=memory_limit, threads=threads))
    with console.steps("build") as progress:
        report = building.build(settings, start, end, tuple(select or ()), progress)
    console.say(building.summary(report))
