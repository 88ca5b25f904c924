"""Which metric filled which column, by what factor, and how that was decided (raw.field_maps).

Most factors come from the alias table. Four names mean percent from one version of DCGM and a ratio
from the next; for them the evidence of a whole hour of a target decides, never a single sample, and
the evidence can be merged: what was seen in an earlier batch counts with what comes later, so that the
outcome does not depend on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


class Source(NamedTuple):
    """One metric of one target in one UTC hour."""

    cluster: str
    target: str
    hour: datetime
    name: str


def _source(scrape: tuple[str, str, datetime], name: str) -> Source:
    cluster, target, hour = scrape
    return Source(cluster, target, hour, name)


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


class Verdicts:
    """Evidence over all sources; `overrides` maps a target (or `*`) to percent or ratio."""

    def __init__(self, overrides: Mapping[str, str] | None = None, known: pa.Table | None = None):
        for target, unit in (overrides or {}).items():
            if unit not in ("percent", "ratio"):
                raise BadInput(f"unit of target {target}: {unit!r} is neither percent nor ratio")
        self._overrides = dict(overrides or {})
        self._columns: dict[Source, str] = {}
        self._evidence: dict[Source, Evidence] = {}
        self._factor: dict[Source, tuple[float, str]] = {}
        self._known = known.to_pylist() if known is not None else []
        for row in self._known:
            self._recall(row)

    def _recall(self, row: dict[str, Any]) -> None:
        source = Source(row["cluster"], row["target"], row["hour"], row["source_name"])
        self._columns[source] = row["column_name"]
        alias = resolve(source.name)
        if alias is None or alias.factor is not None:
            self._factor[source] = (row["factor"], row["verdict"])
            return
        # An override hides what the data said: then only new evidence counts once it is lifted.
        evidence = self._evidence.setdefault(source, Evidence())
        evidence.above_one |= row["verdict"] == "range"
        evidence.pointed |= row["verdict"] == "format" and row["factor"] == RATIO

    def observe(self, scrapes: list[tuple[str, str, datetime]], lines: Lines, stored: np.ndarray) -> None:
        """Take note of the stored lines; `scrapes` gives cluster, target and hour by body index."""
        width = len(lines.names)
        for code in np.unique(lines.body[stored] * width + lines.name[stored]).tolist():
            body, name = divmod(code, width)
            source = _source(scrapes[body], lines.names[name])
            alias = resolve(source.name)
            if alias is not None and source not in self._columns:
                self._columns[source] = alias.column
        self._observe_ambiguous(scrapes, lines, stored)

    def _observe_ambiguous(self, scrapes: list[tuple[str, str, datetime]], lines: Lines, stored: np.ndarray) -> None:
        aliases: list[Alias | None] = [resolve(n) for n in lines.names]
        ambiguous = np.array([a is not None and a.factor is None for a in aliases], bool)
        rows = np.flatnonzero(stored & ambiguous[lines.name]) if ambiguous.any() else np.zeros(0, np.int64)
        if not len(rows):
            return
        texts = lines.text.take(pa.array(rows))
        pointed = pc.match_substring_regex(texts, "[.eE]").to_numpy(zero_copy_only=False)
        above = (lines.value[rows] > 1) & (lines.value[rows] < _SENTINEL)
        sentinel = lines.value[rows] >= _SENTINEL
        for row, dot, over, blank in zip(
            rows.tolist(), pointed.tolist(), above.tolist(), sentinel.tolist(), strict=True
        ):
            source = _source(scrapes[lines.body[row]], lines.names[lines.name[row]])
            evidence = self._evidence.setdefault(source, Evidence())
            evidence.above_one |= over
            evidence.pointed |= dot and not blank

    def factor(self, source: Source) -> tuple[float, str]:
        """Factor of a source and how it was decided: table, format, range or override."""
        alias = resolve(source.name)
        if alias is None or alias.factor is not None:
            return (alias.factor or RATIO, "table") if alias else self._factor[source]
        unit = self._overrides.get(source.target, self._overrides.get("*"))
        if unit is not None:
            return (PERCENT if unit == "percent" else RATIO), "override"
        return self._evidence.get(source, Evidence()).verdict()

    def table(self) -> pa.Table:
        """raw.field_maps of everything known and seen."""
        rows = []
        for source, column in sorted(self._columns.items()):
            factor, verdict = self.factor(source)
            rows.append({
                "cluster": source.cluster, "hour": source.hour, "target": source.target, "column_name": column,
                "source_name": source.name, "factor": factor, "verdict": verdict, "date": source.hour.date(),
            })  # fmt: skip
        return pa.Table.from_pylist(rows, schema=CONTRACTS["raw.field_maps"].arrow_schema)

    def changed(self) -> Iterable[tuple[Source, str, float, float]]:
        """Known sources whose factor is now another: source, column, old and new factor."""
        for row in self._known:
            source = Source(row["cluster"], row["target"], row["hour"], row["source_name"])
            factor, _ = self.factor(source)
            if factor != row["factor"]:
                yield source, row["column_name"], row["factor"], factor
