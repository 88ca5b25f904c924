"""`strandline close`: freeze what a billing month cost."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.commands import options


def close(
    month: Annotated[str, typer.Argument(help="Billing month, YYYY-MM.")],
    partial: Annotated[
        bool, typer.Option("--partial", help="Close a month that the lake does not know to its end; it says so.")
    ] = False,
    data: options.Data = None,
    memory_limit: options.Memory = None,
    threads: options.Threads = None,
) -> None:
    """Freeze the published costs of a month as a statement that never changes; print the statement's id.

    What changes later appears as Correction rows of the open month. Closing again writes nothing where nothing
    changed; else a new statement supersedes the old one, as long as no later month is closed. Refused for a month
    that is not over, not built since it changed, or whose checks fail.
    """
    from assets.closing import close as close_month
    from assets.computed import load_all_models
    from assets.sql_checks import load_checks
    from pipelines import console
    from pipelines.durations import parse_month
    from warehouse.lake import Lake
    from warehouse.models import SQL_DIRECTORY

    first = parse_month(month, "MONTH")
    settings = options.existing(options.settings(data=data, memory_limit=memory_limit, threads=threads))
    with console.steps("close", plain=False) as progress:
        report = close_month(
            Lake(settings.data), first, load_all_models(), load_checks(SQL_DIRECTORY / "check"),
            is_partial=partial, memory_limit=settings.memory_limit, threads=settings.threads, progress=progress,
        )  # fmt: skip
    statement = report.statement
    for warning in report.warnings:
        console.say(f"strandline: warning: {warning}")
    if report.is_new:
        instead = f", supersedes {statement.supersedes}" if statement.supersedes else ""
        console.say(f"closed {first:%Y-%m}: {report.rows:,} FOCUS rows, digest {statement.digest[:12]}{instead}")
    else:
        console.say(f"{first:%Y-%m} has not changed since {statement.statement_id} of {statement.issued_at:%Y-%m-%d}")
    print(statement.statement_id)
