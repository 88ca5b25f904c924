"""Dagster's home under the data folder: its dagster.yaml and the environment its processes need.

Not here: the definitions (`definitions.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from warehouse.errors import BadInput

# In a checkout the file is at the root; the wheel carries it inside this package.
_SOURCES = (Path(__file__).resolve().parent.parent / "dagster.yaml", Path(__file__).resolve().parent / "dagster.yaml")


def prepare_home(data: Path) -> Path:
    """Write `<data>/dagster/dagster.yaml` with absolute folders and return that folder, Dagster's home."""
    source = next((p for p in _SOURCES if p.is_file()), None)
    if source is None:
        raise BadInput(f"dagster.yaml is missing: looked for {' and '.join(map(str, _SOURCES))}")
    home = data.resolve() / "dagster"
    home.mkdir(parents=True, exist_ok=True)
    text = source.read_text("utf-8").replace("base_dir: data/dagster/", f"base_dir: {home}/")
    target = home / "dagster.yaml"
    if not target.is_file() or target.read_text("utf-8") != text:
        target.write_text(text, "utf-8")
    return home


def environment(data: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of Dagster's processes: its home, this lake, and no telemetry."""
    home = data.resolve() / "dagster"
    return {
        **environ,
        "DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "STRANDLINE_DATA": str(data.resolve()),
    }
