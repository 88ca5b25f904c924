"""`strandline ingest prices`: rate cards and what belongs to them, from YAML and CSV files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands import options


def prices(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Cards: .yaml with sections, or .csv.")],
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="Kind of CSV files whose header does not tell it: prices, commitments, credits, exchange_rates, "
            "owned_hardware or energy_factors.",
            show_default=False,
        ),
    ] = None,
    data: options.Data = None,
) -> None:
    """Take in rate cards, commitments, credits, exchange rates, owned hardware and energy factors.

    Rows replace those of the same key; the same file again changes nothing. Bad rows are named by file, line and field
    after the sound ones are in, and the exit code is then 2. A file that is no card as a whole brings nothing.
    """
    from assets.cards import load_cards, messages
    from pipelines import collecting, console
    from warehouse.lake import Lake

    report = load_cards(Lake(options.settings(data=data).data), files, kind)
    for message in messages(report):
        console.say(message)
    if report.refused:
        landed = sum(report.rows.values())
        console.say(f"{landed} row{'s' if landed != 1 else ''} landed, {len(report.refused)} refused:")
    collecting.raise_for(report.refused, shown=50)
