"""Flags that several commands share, and the settings they resolve to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pipelines.settings import Settings

Data = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of the lake (default: STRANDLINE_DATA, else data/).", show_default=False),
]
Memory = Annotated[
    str | None, typer.Option("--memory-limit", help="Memory of the SQL engine, e.g. 4GB.", show_default=False)
]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads of the SQL engine.", show_default=False)]


def settings(**flags: Any) -> Settings:
    """Settings with these flags on top; flags that are None were not given."""
    from pipelines.settings import load
    from warehouse.errors import BadInput

    resolved = load(flags).settings
    if resolved.data.exists() and not resolved.data.is_dir():
        raise BadInput(f"{resolved.data} is no folder; --data names the folder of a lake")
    return resolved


def existing(resolved: Settings) -> Settings:
    """The same settings; `BadInput` where the data folder is not there, so that a typing error makes no lake."""
    from warehouse.errors import BadInput

    if not resolved.data.is_dir():
        raise BadInput(
            f"{resolved.data}: no such folder; run `strandline demo` or `strandline ingest` first, or give --data"
        )
    return resolved
