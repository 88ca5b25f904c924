"""Which metric filled which column, by what factor, and how that was decided (raw.field_maps).

Most factors come from the alias table. Four names mean percent from one version of DCGM and a ratio
from the next; for them the evidence of a whole hour of a target decides, never a single sample, and
the evidence can be merged: what was seen in an earlier batch counts with what comes later, so that the
outcome does not depend on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sources.dcgm.aliases import PERCENT, RATIO, Alias, resolve
from sources.dcgm.lines import Lines
from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput

_SENTINEL = 2147483632.0  # DCGM INT32 blank: no evidence of a unit


class Period(NamedTuple):
    """One UTC hour of one target: what a verdict is about."""

    cluster: str
    target: str
    hour: datetime


@dataclass
class Evidence:
    """What was seen of an ambiguous metric: any value above 1; any value written with a point."""

    above_one: bool = False
    pointed: bool = False

    def verdict(self) -> tuple[float, str]:
        """Factor and how it was decided. Above 1 can only be percent; whole numbers only are percent
        (DCGM prints integers without a point); a body of fractions is a ratio."""
        if self.above_one:
            return PERCENT, "range"
        return (RATIO if self.pointed else PERCENT), "format"


class _NameSet(NamedTuple):
    """The metrics of a period in table order, and their factors unless data decide (`is_open`)."""

    columns: list[str]
    names: list[str]
    is_open: bool
    decided: list[tuple[float, str]]

    @classmethod
    def of(cls, names: frozenset[str]) -> _NameSet:
        found = sorted((a.column, n, a.factor) for n in names if (a := resolve(n)))
        factors = [factor for _, _, factor in found]
        is_open = None in factors
        decided = [] if is_open else [(f or RATIO, "table") for f in factors]
        return cls([c for c, _, _ in found], [n for _, n, _ in found], is_open, decided)


class Verdicts:
    """Evidence over all periods; `overrides` maps a target (or `*`) to percent or ratio."""

    def __init__(self, overrides: Mapping[str, str] | None = None, known: pa.Table | None = None):
        for target, unit in (overrides or {}).items():
            if unit not in ("percent", "ratio"):
                raise BadInput(f"unit of target {target}: {unit!r} is neither percent nor ratio")
        self._overrides = dict(overrides or {})
        self._names: dict[Period, frozenset[str]] = {}
        self._evidence: dict[tuple[Period, str], Evidence] = {}
        self._known = known.to_pylist() if known is not None else []
        for row in self._known:
            self._recall(row)

    def _recall(self, row: dict[str, Any]) -> None:
        period, name = Period(row["cluster"], row["target"], row["hour"]), row["source_name"]
        alias = resolve(name)
        if alias is None:  # written by a version that knew more names; its rows are left alone
            return
        self._names[period] = self._names.get(period, frozenset()) | {name}
        if alias.factor is None:
            # An override hides what the data said: then only new evidence counts once it is lifted.
            evidence = self._evidence.setdefault((period, name), Evidence())
            evidence.above_one |= row["verdict"] == "range"
            evidence.pointed |= row["verdict"] == "format" and row["factor"] == RATIO

    def observe(self, periods: Sequence[Period], lines: Lines, stored: np.ndarray) -> None:
        """Take note of the stored lines; `periods` are those of the bodies, by index."""
        width = len(lines.names)
        codes = np.sort(pc.unique(pa.array(lines.body[stored] * width + lines.name[stored])).to_numpy())
        bodies, first = np.unique(codes // width, return_index=True) if width else (codes, codes)
        sets: dict[bytes, frozenset[str]] = {}  # most bodies have the same names
        for body, names in zip(bodies.tolist(), np.split(codes % width, first[1:]) if width else (), strict=False):
            found = sets.get(names.tobytes())
            if found is None:
                found = sets[names.tobytes()] = frozenset(lines.names[i] for i in names.tolist())
            known = self._names.get(periods[body])
            self._names[periods[body]] = found if known is None or known == found else known | found
        self._observe_ambiguous(periods, lines, stored)

    def _observe_ambiguous(self, periods: Sequence[Period], lines: Lines, stored: np.ndarray) -> None:
        aliases: list[Alias | None] = [resolve(n) for n in lines.names]
        ambiguous = np.array([a is not None and a.factor is None for a in aliases], bool)
        if not ambiguous.any():
            return
        rows = np.flatnonzero(stored & ambiguous[lines.name])
        pointed = pc.match_substring_regex(lines.text.take(pa.array(rows)), "[.eE]").to_pylist()
        for row, dot, value in zip(rows.tolist(), pointed, lines.value[rows].tolist(), strict=True):
            key = periods[lines.body[row]], lines.names[lines.name[row]]
            evidence = self._evidence.setdefault(key, Evidence())
            if value < _SENTINEL:
                evidence.above_one |= value > 1
                evidence.pointed |= dot

    def factor(self, period: Period, name: str) -> tuple[float, str]:
        """Factor of a stored metric and how it was decided: table, format, range or override."""
        alias = resolve(name)
        if alias is None:
            raise KeyError(name)
        if alias.factor is not None:
            return alias.factor, "table"
        unit = self._overrides.get(period.target, self._overrides.get("*"))
        if unit is not None:
            return (PERCENT if unit == "percent" else RATIO), "override"
        return self._evidence.get((period, name), Evidence()).verdict()

    def table(self) -> pa.Table:
        """raw.field_maps of everything known and seen, ordered by key."""
        schema = CONTRACTS["raw.field_maps"].arrow_schema
        periods = sorted(self._names)
        fixed: dict[frozenset[str], _NameSet] = {}
        start: dict[frozenset[str], int] = {}
        columns: list[str] = []
        names: list[str] = []
        decided: list[tuple[float, str]] = []
        parts: list[np.ndarray] = []  # positions in these lists, by period: most periods share one set
        for period in periods:
            found = self._names[period]
            group = fixed.get(found) or fixed.setdefault(found, _NameSet.of(found))
            if group.is_open or found not in start:
                start[found] = len(names)
                columns += group.columns
                names += group.names
                decided += [self.factor(period, n) for n in group.names] if group.is_open else group.decided
            parts.append(np.arange(start[found], start[found] + len(group.names)))
        rows = pa.array(np.concatenate(parts) if parts else np.zeros(0, np.int64))
        take = pa.array(np.repeat(np.arange(len(periods)), [len(part) for part in parts]))
        hours = pa.array([p.hour for p in periods], pa.timestamp("us")).take(take)
        by_name = {
            "cluster": pa.array([p.cluster for p in periods], pa.string()).take(take), "hour": hours,
            "target": pa.array([p.target for p in periods], pa.string()).take(take),
            "column_name": pa.array(columns, pa.string()).take(rows),
            "source_name": pa.array(names, pa.string()).take(rows),
            "factor": pa.array([f for f, _ in decided], pa.float64()).take(rows),
            "verdict": pa.array([v for _, v in decided], pa.string()).take(rows), "date": hours.cast(pa.date32()),
        }  # fmt: skip
        return pa.table([by_name[f.name] for f in schema], schema=schema)

    def changed(self) -> Iterator[tuple[Period, str, str, float, float, str]]:
        """Known metrics whose factor is now another: period, column, metric, old and new factor, verdict."""
        for row in self._known:
            name = row["source_name"]
            if resolve(name) is None:
                continue
            period = Period(row["cluster"], row["target"], row["hour"])
            factor, verdict = self.factor(period, name)
            if factor != row["factor"]:
                yield period, row["column_name"], name, row["factor"], factor, verdict
