"""`strandline ingest bills`: FOCUS exports of cost and usage, as CSV or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands import options


def bills(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="FOCUS 1.0 to 1.4: .csv, .csv.gz or .parquet.")
    ],
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            help="Whose bills these are, as nodes name their provider (default: what each line says).",
            show_default=False,
        ),
    ] = None,
    data: options.Data = None,
) -> None:
    """Take in bills: each replaces the one before it of the same provider, account and billing period, whole.

    Files given together that concern one account and period are its parts. The same files again change nothing. Lines
    that cannot be trusted are named by file, line and field after the sound ones are in, and the exit code is then 2.
    A file that is no bill as a whole brings nothing; a header without a line is warned of.
    """
    from assets.bills import load_bills
    from pipelines import console
    from warehouse.lake import Lake

    report = load_bills(Lake(options.settings(data=data).data), files, provider=provider)
    what = [f"rows: {report.rows} in {report.bills} bill{'' if report.bills == 1 else 's'}"]
    what += [f"replacing an earlier import: {report.replaced}"] if report.replaced else []
    what += [f"unchanged: {report.unchanged}"] if report.unchanged else []
    if report.parts:
        what.append(f"files that are parts of a bill: {report.parts}")
    if report.dates:
        what.append(f"days to build: {len(report.dates)}")
    console.say("; ".join(what))
    for source in report.empty:
        console.say(f"strandline: warning: {source}: a header and no line of a bill: nothing of it was taken in, and no"
                    " earlier import was replaced; if lines are due, the file is cut off")  # fmt: skip
    if report.refused:
        for refusal in report.refusals:
            console.say(str(refusal))
        more = report.refused - len({(r.source, r.line) for r in report.refusals})
        console.say(f"strandline: {report.refused} lines refused" + (f", {more} more than shown" if more > 0 else "")
                    + "; all of them are in raw.rejected_bill_lines")  # fmt: skip
        raise typer.Exit(2)
