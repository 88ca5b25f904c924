"""Many scrapes to raw.scrapes, raw.dcgm_samples, raw.rejected_lines and raw.field_maps.

Lines are read in `lines.py`, labels in `labels.py`, rows put together in `rows.py`, factors decided in
`verdicts.py`, tables built in `tables.py`; here it is decided which attempts and lines count. Values are stored as
`float(text) * factor`, sentinels and values out of range included: core judges them.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sources.dcgm.aliases import resolve
from sources.dcgm.lines import Lines, read_lines
from sources.dcgm.rows import Rows, assemble
from sources.dcgm.scrape import Scrape, naive_utc
from sources.dcgm.tables import METRICS, hour_of, rejected_table, sample_table, scrape_table
from sources.dcgm.verdicts import Period, Verdicts
from warehouse.contracts import CONTRACTS

_COLUMN = {name: i for i, name in enumerate(METRICS)}
_CHUNK_BYTES = 6 << 20  # what stays near the processor; measured best of 1 to 64 MB
_EPOCH = datetime(1970, 1, 1)


@dataclass
class _Chunk:
    """Some scrapes, read: the rows of their GPUs and what is counted per scrape."""

    scrapes: list[Scrape]
    lines: Lines
    rows: Rows
    accepted: np.ndarray
    duplicates: np.ndarray


def parse_scrapes(  # noqa: PLR0917  (settings with defaults, given by name)
    scrapes: Sequence[Scrape],
    overrides: Mapping[str, str] | None = None,
    known_maps: pa.Table | None = None,
    tolerance_s: float = 300.0,
    verdicts: Verdicts | None = None,
    beaten: Collection[tuple[str, str, datetime]] = (),
) -> dict[str, pa.Table]:
    """Raw tables of those scrapes, in the contracts' schemas, ordered by key.

    Of several attempts for one (cluster, target, instant) one counts (`scrape.rank`); the metric names
    of all of them reach raw.field_maps, so that the result does not depend on what was sealed first.
    `overrides` maps a target (or `*`) to `percent` or `ratio` for metrics whose name leaves it open;
    `known_maps` are earlier raw.field_maps rows of the same hours, merged into the verdicts. A line with
    a timestamp of its own is taken at that time if it lies within `tolerance_s` of the scrape (a time
    after the scrape counts as the scrape's), otherwise refused. `verdicts` (instead of overrides and known
    maps) is used and filled; `beaten` are instants (`Scrape.instant`) for which a better attempt is known:
    they give names, but no rows. Nothing in a body raises.
    """
    verdicts = verdicts or Verdicts(overrides, known_maps)
    ordered = _in_order(scrapes)
    instants = [s.instant for s in ordered]
    hashing = _hash_ahead(ordered)
    counts = [(i == 0 or at != instants[i - 1]) and at not in beaten for i, at in enumerate(instants)]
    chunks = []
    for start, end in _chunks(ordered):
        chunks.append(_read(ordered[start:end], counts[start:end], verdicts, tolerance_s))
    samples = [_samples(c, verdicts) for c in chunks]
    hashing.join()
    won_by_chunk = list(zip(chunks, _split(counts, chunks), strict=True))
    tables = {
        "raw.scrapes": [
            scrape_table(c.scrapes, won, c.lines, c.rows, c.accepted, c.duplicates) for c, won in won_by_chunk
        ],
        "raw.dcgm_samples": samples,
        "raw.rejected_lines": [rejected_table(c.scrapes, won, c.lines) for c, won in won_by_chunk],
    }
    result = {n: pa.concat_tables([CONTRACTS[n].arrow_schema.empty_table(), *t]) for n, t in tables.items()}
    result["raw.dcgm_samples"] = _one_per_key(result["raw.dcgm_samples"], chunks)
    result["raw.field_maps"] = verdicts.table()
    return result


def _in_order(scrapes: Sequence[Scrape]) -> list[Scrape]:
    """By cluster, time and target, the better attempt first; only rivals are ranked (that takes their hashes)."""
    ordered = sorted(scrapes, key=lambda s: (s.cluster, naive_utc(s.at), s.target))
    groups = groupby(ordered, key=lambda s: s.instant)
    return [s for _, group in groups for s in _ranked(list(group))]


def _ranked(rivals: list[Scrape]) -> list[Scrape]:
    return rivals if len(rivals) == 1 else sorted(rivals, key=lambda s: s.rank)


def _hash_ahead(scrapes: Sequence[Scrape]) -> threading.Thread:
    """Body hashes, computed (and kept by the scrapes) beside the parsing; hashing holds no interpreter lock."""
    thread = threading.Thread(target=lambda: [s.sha256 for s in scrapes if not s.digest], name="body hashes")
    thread.start()
    return thread


def _period(scrape: Scrape) -> Period:
    return Period(scrape.cluster, scrape.target, hour_of(scrape.at))


def _chunks(scrapes: Sequence[Scrape]) -> Iterator[tuple[int, int]]:
    """Index ranges of about equal size in bytes: what one pass holds in memory is bounded."""
    start = size = 0
    for i, scrape in enumerate(scrapes):
        size += len(scrape.body or b"")
        if size >= _CHUNK_BYTES:
            yield start, i + 1
            start, size = i + 1, 0
    if start < len(scrapes):
        yield start, len(scrapes)


def _split(counts: list[bool], chunks: list[_Chunk]) -> Iterator[list[bool]]:
    start = 0
    for chunk in chunks:
        yield counts[start : start + len(chunk.scrapes)]
        start += len(chunk.scrapes)


def _read(scrapes: list[Scrape], wins: list[bool], verdicts: Verdicts, tolerance_s: float) -> _Chunk:
    lines = read_lines([s.body if s.is_up and s.body else b"" for s in scrapes])
    at = np.array([_micros(s.at) for s in scrapes], np.int64)
    timely = _within(lines, at, int(tolerance_s * 1e6))
    duplicate = _repeated(lines, timely)
    accepted = timely & ~duplicate
    column = np.array([_COLUMN[a.column] if (a := resolve(n)) else -1 for n in lines.names], np.int64)
    about_gpu = np.array([label.row is not None for label in lines.labels], bool)
    stored = accepted & (column[lines.name] >= 0) & about_gpu[lines.block] if len(lines.body) else accepted
    verdicts.observe([_period(s) for s in scrapes], lines, stored)
    stored &= np.array(wins, bool)[lines.body]
    n = len(scrapes)
    counted, repeated = (np.bincount(lines.body[mask], minlength=n) for mask in (accepted, duplicate))
    return _Chunk(scrapes, lines, assemble(lines, stored, column, len(METRICS), at), counted, repeated)


def _micros(at: datetime) -> int:
    delta = naive_utc(at) - _EPOCH
    return (delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds


def _within(lines: Lines, at: np.ndarray, tolerance_us: int) -> np.ndarray:
    """Which lines are timely; the others join `lines.rejected`. A time after the scrape becomes the scrape's."""
    timely = np.ones(len(lines.body), bool)
    for i in np.flatnonzero(lines.time_us >= 0).tolist():
        body = int(lines.body[i])
        late = int(at[body] - lines.time_us[i])
        if abs(late) > tolerance_us:
            timely[i] = False
            lines.reject(i, f"timestamp {late / 1e6:.0f} s before the scrape, beyond the tolerance")
        elif late <= 0:
            lines.time_us[i] = -1
    return timely


def _repeated(lines: Lines, among: np.ndarray) -> np.ndarray:
    """Lines whose series (name and label set) an earlier line of the body already gave."""
    repeated = np.zeros(len(lines.body), bool)
    rows = np.flatnonzero(among)
    home = np.zeros(len(lines.labels) + 1, np.int64)
    home[lines.block] = lines.body
    if (home[lines.block] == lines.body).all():  # label sets that occur in one body only: no need to sort
        cell = lines.block[rows] * len(lines.names) + lines.name[rows]
        if len(cell) == 0 or np.bincount(cell).max() == 1:
            return repeated
    series = (lines.body * len(lines.labels) + lines.block) * len(lines.names) + lines.name
    if pc.count_distinct(pa.array(series[rows])).as_py() < len(rows):
        _, first = np.unique(series[rows], return_index=True)
        again = np.ones(len(rows), bool)
        again[first] = False
        repeated[rows[again]] = True
    return repeated


def _samples(chunk: _Chunk, verdicts: Verdicts) -> pa.Table:
    """raw.dcgm_samples of a chunk."""
    rows, scrapes = chunk.rows, chunk.scrapes
    values = rows.values
    periods = [_period(s) for s in scrapes]
    factors = {}
    for name_code, name in enumerate(chunk.lines.names):
        alias = resolve(name)
        if alias is None:
            continue
        column = _COLUMN[alias.column]
        mine = rows.names[column] == name_code
        if alias.factor is not None:
            if alias.factor != 1.0:
                np.multiply(values[column], alias.factor, out=values[column], where=mine)
            continue
        for row in np.flatnonzero(mine).tolist():
            period = periods[int(rows.body[row])]
            if (period, name) not in factors:
                factors[period, name] = verdicts.factor(period, name)[0]
            values[column, row] *= factors[period, name]
    return sample_table(rows, scrapes)


def _one_per_key(samples: pa.Table, chunks: list[_Chunk]) -> pa.Table:
    """Two scrapes may repeat one sample with its timestamp: the first by scrape time stays."""
    if not any((c.rows.stamped).any() for c in chunks):
        return samples
    table = CONTRACTS["raw.dcgm_samples"]
    seen: set[tuple] = set()
    keep = []
    for i, key in enumerate(zip(*(samples[c].to_pylist() for c in table.key), strict=True)):
        if key not in seen:
            seen.add(key)
            keep.append(i)
    return samples.take(pa.array(keep, pa.int64()))
