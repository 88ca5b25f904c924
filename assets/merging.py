"""What has landed, merged with what raw already holds, so that order and repetition change nothing.

Rows of one instant come whole from one body; which one is decided by `rank` of the sources. A body
that is met again replaces its own rows, so a seal that was cut off is simply done again. Writing
stands in `sealing.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from assets.rescaling import Rescale, rescaled, wanted
from sources.dcgm import Scrape, parse_scrapes
from sources.dcgm.scrape import rank as scrape_rank
from sources.dcgm.verdicts import Verdicts
from sources.kubernetes import KubeList, parse_lists
from sources.kubernetes.parse import KUBE_TABLES, TABLES_OF_KIND
from sources.kubernetes.parse import rank as list_rank
from warehouse.contracts import CONTRACTS

Tables = dict[str, pa.Table]
DCGM_TABLES = ("raw.scrapes", "raw.dcgm_samples", "raw.rejected_lines", "raw.field_maps")
_ATTEMPT = ("cluster", "scrape_at", "target")
_SNAPSHOT = ("cluster", "snapshot_at", "kind")


def merge_scrapes(
    held: Mapping[str, pa.Table], scrapes: Sequence[Scrape], overrides: Mapping[str, str] | None = None,
    tolerance_s: float = 300.0,
) -> tuple[Tables, list[Rescale]]:  # fmt: skip
    """Raw tables of DCGM for the hours of `held` (all their rows) with these scrapes merged in, and which of
    the rows held changed their unit."""
    verdicts = Verdicts(overrides, held["raw.field_maps"])
    beaten = _beaten_scrapes(held["raw.scrapes"], scrapes)
    new = parse_scrapes(scrapes, tolerance_s=tolerance_s, verdicts=verdicts, beaten=beaten)
    taken = new["raw.scrapes"].select(list(_ATTEMPT))
    sampled = taken.rename_columns(["cluster", "sampled_at", "target"])
    rescales = wanted(verdicts, held["raw.dcgm_samples"])
    samples = _without(rescaled(held["raw.dcgm_samples"], rescales), sampled)
    samples = _without(samples, new["raw.dcgm_samples"].select(list(CONTRACTS["raw.dcgm_samples"].key)))
    # Samples before field maps: `rescaling.recover` counts on it.
    return {
        "raw.scrapes": _joined(_without(held["raw.scrapes"], taken), new["raw.scrapes"]),
        "raw.dcgm_samples": _joined(samples, new["raw.dcgm_samples"]),
        "raw.rejected_lines": _joined(_without(held["raw.rejected_lines"], taken), new["raw.rejected_lines"]),
        "raw.field_maps": new["raw.field_maps"],
    }, rescales


def _beaten_scrapes(held: pa.Table, scrapes: Sequence[Scrape]) -> set[tuple[Any, ...]]:
    """Attempts (cluster, target, instant) for which raw holds a better one than any of these."""
    best: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for scrape in scrapes:
        key = scrape.instant
        best[key] = min(best.get(key, scrape.rank), scrape.rank)
    beaten = set()
    instants = pa.array({at for _, _, at in best}, pa.timestamp("us"))
    for row in held.filter(pc.is_in(held["scrape_at"], instants)).to_pylist():
        key = (row["cluster"], row["target"], row["scrape_at"])
        held_rank = scrape_rank(row["is_up"], row["body_bytes"], row["body_sha256"], row["node"], row["http_status"],
                                row["duration_s"], row["error"])  # fmt: skip
        if key in best and held_rank < best[key]:
            beaten.add(key)
    return beaten


def merge_lists(held: Mapping[str, pa.Table], lists: Sequence[KubeList]) -> Tables:
    """Raw tables of Kubernetes for the hours of `held` (all their rows) with these lists merged in."""
    new = parse_lists(lists)
    standing = {tuple(r[c] for c in _SNAPSHOT): _list_rank(r) for r in held["raw.kube_snapshots"].to_pylist()}
    taken: list[tuple[Any, ...]] = []
    beaten: list[tuple[Any, ...]] = []
    for row in new["raw.kube_snapshots"].to_pylist():
        key = tuple(row[c] for c in _SNAPSHOT)
        (beaten if key in standing and standing[key] < _list_rank(row) else taken).append(key)
    result = {}
    for table in KUBE_TABLES:
        result[table] = _joined(_not_of(held[table], table, taken), _not_of(new[table], table, beaten))
    return result


def _list_rank(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return list_rank(row["objects"], row["body_bytes"], row["body_sha256"], row["error"])


def _not_of(rows: pa.Table, table: str, keys: Collection[tuple[Any, ...]]) -> pa.Table:
    """Rows that came from other lists than those."""
    if table == "raw.kube_snapshots":
        columns: tuple[str, ...] = _SNAPSHOT
        chosen = list(keys)
    elif table == "raw.kube_devices":
        columns = ("cluster", "snapshot_at", "method", "node")
        chosen = [(c, at, "pod_resources", k.split("/", 1)[1]) for c, at, k in keys if k.startswith("PodResources/")]
        claims = [(c, at) for c, at, k in keys if k == "ResourceClaim"]
        dra = pc.equal(rows["method"], "dra")
        kept = rows.filter(pc.invert(dra))
        rows = pa.concat_tables([kept, _without(rows.filter(dra), _keys(rows, ("cluster", "snapshot_at"), claims))])
    else:
        columns = ("cluster", "snapshot_at")
        chosen = [(c, at) for c, at, k in keys if table in TABLES_OF_KIND.get(k, ())]
    return _without(rows, _keys(rows, columns, chosen))


def _keys(like: pa.Table, columns: Sequence[str], keys: Sequence[tuple[Any, ...]]) -> pa.Table:
    schema = pa.schema([pa.field(c, like.schema.field(c).type) for c in columns])
    return pa.table([pa.array([k[i] for k in keys], f.type) for i, f in enumerate(schema)], schema=schema)


def _without(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """Rows whose values in the columns of `keys` are none of its rows (null equals null)."""
    if not rows.num_rows or not keys.num_rows:
        return rows
    names = keys.column_names
    left = pl.from_arrow(rows.select(names).append_column("#", pa.array(range(rows.num_rows), pa.int64())))
    right = pl.from_arrow(keys)
    assert isinstance(left, pl.DataFrame) and isinstance(right, pl.DataFrame)
    kept = left.join(right.unique(), on=names, how="anti", nulls_equal=True)["#"].sort()
    return rows if len(kept) == rows.num_rows else rows.take(kept.to_arrow())


def _joined(held: pa.Table, new: pa.Table) -> pa.Table:
    return pa.concat_tables([held.cast(new.schema), new]) if held.num_rows else new
