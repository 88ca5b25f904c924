"""`strandline export` and `strandline catalog`: tables as files, and what tables there are."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands import options


class FileForm(StrEnum):
    """Forms of an exported table."""

    CSV = "csv"
    PARQUET = "parquet"


class FocusVersion(StrEnum):
    """Versions of FOCUS that a dataset can be written in."""

    V1_4 = "1.4"
    V1_2 = "1.2"


class CatalogForm(StrEnum):
    """Forms of the catalogue."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def export(
    table: Annotated[str, typer.Argument(help="Table, such as mart.stranding_hourly.")],
    form: Annotated[FileForm, typer.Option("--format", help="Form of the file.")] = FileForm.CSV,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write (default: DATA/exports/TABLE.FORMAT).", show_default=False),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            help="As published at the end of this UTC day, YYYY-MM-DD; costs: by the statements in force then.",
            show_default=False,
        ),
    ] = None,
    from_: Annotated[str | None, typer.Option("--from", help="First day, YYYY-MM-DD.", show_default=False)] = None,
    to: Annotated[str | None, typer.Option("--to", help="Day after the last, YYYY-MM-DD.", show_default=False)] = None,
    focus: Annotated[
        FocusVersion | None,
        typer.Option("--focus", help="Write a FOCUS dataset in the form of this version.", show_default=False),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read the FOCUS file back and check it; exit 1 where something is wrong.")
    ] = False,
    raw_text: Annotated[
        bool, typer.Option("--raw-text", help="CSV: leave text alone that a spreadsheet would run as a formula.")
    ] = False,
    data: options.Data = None,
) -> None:
    """Write a published table to a file, ordered by its key, whole or not at all; print the path.

    CSV has ISO 8601 instants in UTC with Z; an empty cell is null, "" an empty text.
    """
    from pipelines import console
    from pipelines.durations import parse_date, parse_window
    from warehouse.errors import BadInput
    from warehouse.export import export_table, find_contract
    from warehouse.focus import COST_AND_USAGE
    from warehouse.statements import FROZEN

    settings = options.existing(options.settings(data=data))
    find_contract(table)
    start, end = parse_window(from_, to)
    path = out or settings.data / "exports" / f"{table}.{form.value}"
    day = None if as_of is None else parse_date(as_of, "--as-of")
    version = None if focus is None else focus.value
    if verify and (version is None or table != COST_AND_USAGE):
        raise BadInput(f"--verify checks {COST_AND_USAGE} written with --focus")
    if day is not None and table in FROZEN:
        _statements(settings.data, table, form.value, path, day, (start, end), not raw_text, version)
    else:
        report = export_table(
            settings.data, table, form.value, path,
            as_of=day,
            start=start,
            end=end,
            escape_formulas=not raw_text,
            focus_version=version,
        )  # fmt: skip
        console.say(f"{table}: {report.rows:,} rows of build {report.build_id}")
    print(path)
    if verify and version is not None:
        _verify(path, version)


def _verify(path: Path, version: str) -> None:
    from assets.focus_files import check_file
    from assets.sql_checks import load_checks
    from pipelines import console
    from warehouse.models import SQL_DIRECTORY

    findings = check_file(path, version, load_checks(SQL_DIRECTORY / "check"))
    for finding in findings:
        console.say(f"strandline: {path}: {finding}")
    if findings:
        raise typer.Exit(1)
    console.say(f"{path}: sound by every rule of FOCUS that is checked")


def _statements(
    root: Path,
    table: str,
    form: str,
    path: Path,
    as_of: date,
    window: tuple[date | None, date | None],
    is_escaped: bool,
    version: str | None,
) -> None:
    """The rows of statements instead of those of an old publication, whose files need not be there any more."""
    from pipelines import console
    from warehouse.statements import export_statements

    report = export_statements(
        root, table, form, path, as_of, start=window[0], end=window[1], escape_formulas=is_escaped,
        focus_version=version,
    )  # fmt: skip
    console.say(f"{table}: {report.rows:,} rows of statements {', '.join(report.statements)}")
    if report.open_months:
        months = ", ".join(f"{m:%Y-%m}" for m in report.open_months)
        console.say(f"strandline: not closed by the end of {as_of} and left out: {months}")


def catalog(
    tables: Annotated[list[str] | None, typer.Argument(help="Tables; default: all.", show_default=False)] = None,
    form: Annotated[CatalogForm, typer.Option("--format", help="Form of the catalogue.")] = CatalogForm.TEXT,
    data: options.Data = None,
) -> None:
    """Print every table with its grain, key and columns; with rows and version where a lake has published it."""
    from warehouse.catalog import render
    from warehouse.lake import Lake

    settings = options.settings(data=data)
    lake = Lake(settings.data) if settings.data.is_dir() else None
    print(render(form.value, tables or (), lake=lake), end="" if form is not CatalogForm.JSON else "\n")
