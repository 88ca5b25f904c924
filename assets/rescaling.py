"""Rows already sealed whose unit turned out to be another: percent taken for a ratio, or the reverse.

Samples and raw.field_maps then change together, in two commits. The journal written before says what
is about to happen to which rows, so that after a death between the two the second is made up for, and
nothing is scaled twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from sources.dcgm.verdicts import Verdicts
from warehouse.durable import write_atomically
from warehouse.lake import Lake

_SAMPLES, _MAPS = "raw.dcgm_samples", "raw.field_maps"
_IDENTITY = ("sampled_at", "gpu_uuid", "gi_id", "copy")


@dataclass(frozen=True)
class Rescale:
    """A metric of one target and hour that goes from factor `old` to `new`; `before` is the fingerprint of its rows."""

    cluster: str
    target: str
    hour: datetime
    column: str
    source: str
    old: float
    new: float
    verdict: str
    before: str


def wanted(verdicts: Verdicts, samples: pa.Table) -> list[Rescale]:
    """What the verdicts now say otherwise than the samples held were scaled by."""
    return [
        Rescale(p.cluster, p.target, p.hour, column, source, old, new, verdict,
                _fingerprint(samples, p.cluster, p.target, p.hour, column))
        for p, column, source, old, new, verdict in verdicts.changed()
    ]  # fmt: skip


def rescaled(samples: pa.Table, rescales: Sequence[Rescale]) -> pa.Table:
    """The samples in the new unit. The exporter's figure, which has at most six decimals, is found first."""
    for r in rescales:
        mine = _mine(samples, r.cluster, r.target, r.hour)
        held = samples[r.column]
        exported = held if r.old == 1.0 else pc.round(pc.divide(held, r.old), 6)
        values = pc.if_else(mine, pc.multiply(exported, r.new), held)
        index = samples.schema.get_field_index(r.column)
        samples = samples.set_column(index, samples.schema.field(index), values)
    return samples


def journal(lake: Lake, rescales: Sequence[Rescale]) -> None:
    """Note durably what is about to be scaled; call it before the samples are replaced."""
    write_atomically(_path(lake), orjson.dumps([asdict(r) for r in rescales]))


def forget(lake: Lake) -> None:
    """Both tables are written: drop the note."""
    _path(lake).unlink(missing_ok=True)


def recover(lake: Lake, run_id: str = "") -> None:
    """Make up for what a death between the two commits left undone. Call it before reading either table."""
    path = _path(lake)
    if not path.exists():
        return
    for entry in orjson.loads(path.read_bytes()):
        r = Rescale(**{**entry, "hour": datetime.fromisoformat(entry["hour"])})
        end = r.hour + timedelta(hours=1)
        samples = lake.read(_SAMPLES, start=r.hour, end=end)
        if _fingerprint(samples, r.cluster, r.target, r.hour, r.column) == r.before:
            continue  # the samples were not touched yet
        maps = lake.read(_MAPS, start=r.hour, end=end)
        mine = pc.and_(pc.and_(pc.equal(maps["cluster"], r.cluster), pc.equal(maps["target"], r.target)),
                       pc.equal(maps["source_name"], r.source))  # fmt: skip
        for column, value in (("factor", r.new), ("verdict", r.verdict)):
            index = maps.schema.get_field_index(column)
            maps = maps.set_column(index, maps.schema.field(index), pc.if_else(mine, value, maps[column]))
        lake.replace(_MAPS, maps, r.hour, end, run_id)
    forget(lake)


def _path(lake: Lake) -> Path:
    return lake.state / "rescaling.json"


def _mine(samples: pa.Table, cluster: str, target: str, hour: datetime) -> pa.ChunkedArray:
    same = pc.and_(pc.equal(samples["cluster"], cluster), pc.equal(samples["target"], target))
    return pc.and_(same, pc.equal(samples["hour"], pa.scalar(hour, pa.timestamp("us"))))


def _fingerprint(samples: pa.Table, cluster: str, target: str, hour: datetime, column: str) -> str:
    rows = samples.select([*_IDENTITY, column]).filter(_mine(samples, cluster, target, hour))
    rows = rows.filter(pc.is_valid(rows[column]))
    return hashlib.sha256(repr(sorted(map(repr, rows.to_pylist()))).encode()).hexdigest()
