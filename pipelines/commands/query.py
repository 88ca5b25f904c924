"""`strandline query` and `strandline sql`: read-only SQL over the published tables."""

from __future__ import annotations

import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands import options


class Form(StrEnum):
    """Forms of a result."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def query(
    sql: Annotated[str, typer.Argument(help="One query; `-` reads it from standard input.")],
    form: Annotated[Form, typer.Option("--format", help="Form of the result.")] = Form.TABLE,
    out: Annotated[Path | None, typer.Option("--out", help="Write to this file instead of standard output.")] = None,
    raw_text: Annotated[
        bool, typer.Option("--raw-text", help="CSV: leave text alone that a spreadsheet would run as a formula.")
    ] = False,
    data: options.Data = None,
    memory_limit: options.Memory = None,
    threads: options.Threads = None,
) -> None:
    """Run one read-only query over the published tables (schemas raw, core, mart).

    All tables of one query belong to one build. Files outside the lake cannot be read and nothing can be
    written. Example: strandline query "select team, sum(stranded_gpu_seconds) from mart.stranding_hourly group by 1"
    """
    from pipelines import reading, results

    settings = options.existing(options.settings(data=data, memory_limit=memory_limit, threads=threads))
    # Fetching rows of a long query does not hear Ctrl-C. Nothing is lost by ending at once: spill files are swept by
    # whoever comes next.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with reading.open_reader(settings) as con:
        reading.run(con, reading.one_statement(con, sys.stdin.read() if sql == "-" else sql))
        results.write(con, form.value, out, escape_formulas=not raw_text)


def sql(
    form: Annotated[Form, typer.Option("--format", help="Form of the results.")] = Form.TABLE,
    data: options.Data = None,
    memory_limit: options.Memory = None,
    threads: options.Threads = None,
) -> None:
    """Type queries, each ended by a semicolon; or pipe a script in. Tables are those of the last build at the start.

    `.tables` lists the tables, `.schema TABLE` its columns, `.refresh` turns to the newest build, `.quit` leaves.
    """
    from pipelines import shell

    settings = options.existing(options.settings(data=data, memory_limit=memory_limit, threads=threads))
    raise typer.Exit(shell.run(settings, form.value))
