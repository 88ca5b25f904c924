"""What `strandline doctor` checks: versions, the data folder, the lake, the engine.

Each check says what it saw; none changes anything.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from pipelines.settings import Settings

PACKAGES = ("duckdb", "deltalake", "polars", "pyarrow", "dagster", "great-expectations", "kubernetes", "sqlglot")
LOW_DISK_BYTES = 2 * 1024**3


class Check(NamedTuple):
    """One line of the doctor: result is `ok`, `note` or `fails`."""

    name: str
    result: str
    detail: str


def check(settings: Settings) -> list[Check]:
    """All checks in order; a check that raises fails with the error as its detail."""
    checks: tuple[tuple[str, Callable[[Settings], tuple[str, str]]], ...] = (
        ("python", _python),
        ("packages", _packages),
        ("data folder", _folder),
        ("free disk", _disk),
        ("models", _models),
        ("lake", _lake),
        ("engine", _engine),
        ("waiting", _waiting),
    )
    out = []
    for name, run in checks:
        try:
            result, detail = run(settings)
        except Exception as e:  # a doctor reports what is wrong, whatever it is
            result, detail = "fails", f"{type(e).__name__}: {e}"
        out.append(Check(name, result, detail))
    return out


def _python(_: Settings) -> tuple[str, str]:
    return ("ok" if sys.version_info >= (3, 11) else "fails"), sys.version.split()[0]


def _packages(_: Settings) -> tuple[str, str]:
    found, missing = [], []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    return ("fails", f"missing: {', '.join(missing)}") if missing else ("ok", ", ".join(found))


def _nearest(path: Path) -> Path:
    path = path.resolve()
    while not path.exists():
        path = path.parent
    return path


def _folder(settings: Settings) -> tuple[str, str]:
    place = _nearest(settings.data)
    if not os.access(place, os.W_OK):
        return "fails", f"{place} cannot be written"
    if not settings.data.exists():
        return "note", f"{settings.data.resolve()} does not exist yet"
    return ("ok" if settings.data.is_dir() else "fails"), str(settings.data.resolve())


def _disk(settings: Settings) -> tuple[str, str]:
    free = shutil.disk_usage(_nearest(settings.data)).free
    return ("ok" if free > LOW_DISK_BYTES else "note"), f"{free / 1024**3:.1f} GiB"


def _models(_: Settings) -> tuple[str, str]:
    from assets.computed import load_all_models

    models = load_all_models()
    return ("ok" if models else "fails"), f"{len(models)} models"


def _lake(settings: Settings) -> tuple[str, str]:
    from warehouse.lake import Lake

    manifest = Lake(settings.data).published() if settings.data.is_dir() else None
    if manifest is None:
        return "note", "nothing published yet: run `strandline demo`, or `ingest` and `build`"
    return "ok", f"build {manifest.build_id}, {len(manifest.tables)} tables"


def _engine(settings: Settings) -> tuple[str, str]:
    from pipelines.reading import open_reader

    if not settings.data.is_dir():
        return "note", "no lake to open"
    with open_reader(settings) as con:
        row = con.execute("select count(*), max(hour) from mart.gpu_ledger_hourly").fetchall()[0]
    return "ok", f"ledger has {row[0]} rows, newest hour {row[1]}"


def _waiting(settings: Settings) -> tuple[str, str]:
    from warehouse.lake import Lake
    from warehouse.landing import Landing

    if not settings.data.is_dir():
        return "ok", "nothing"
    landed = Landing(settings.data).files()
    days = sorted({mark.date for mark in Lake(settings.data).marks()})
    notes = []
    if landed:
        notes.append(
            f"{len(landed)} landed files are not sealed yet: `strandline build` or `ingest seal` brings them in"
        )
    if days:
        notes.append(f"{len(days)} days changed since their last build: {days[0]} to {days[-1]}")
    return ("note", "; ".join(notes)) if notes else ("ok", "nothing")
