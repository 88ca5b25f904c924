"""Rows that cannot stand beside each other: one row twice, and two that hold at the same time.

Belongs here: rules between rows of one kind, wherever the rows come from (a file, or the lake). Not here: what becomes
of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sources.prices.kinds import Kind
from sources.prices.values import LATEST

Row = dict[str, Any]
_PROVENANCE = ("source", "source_line")


def key_of(kind: Kind, row: Row) -> tuple[Any, ...]:
    """The row's key by its contract."""
    return tuple(row[c] for c in kind.table.key)


def content(row: Row) -> Row:
    """The row without where it was read: what a computation can see of it."""
    return {c: v for c, v in row.items() if c not in _PROVENANCE}


def repeated(kind: Kind, rows: Sequence[Row]) -> Iterator[tuple[Row, Row, bool]]:
    """(row, row that it repeats, whether they say the same) for rows with the key of an earlier one.

    Where they differ, nothing says which is right: the earlier one is yielded too.
    """
    first: dict[tuple[Any, ...], Row] = {}
    condemned = set()
    for row in rows:
        key = key_of(kind, row)
        other = first.setdefault(key, row)
        if other is row:
            continue
        same = content(other) == content(row)
        yield row, other, same
        if not same and key not in condemned:
            condemned.add(key)
            yield other, row, False


def clashes(kind: Kind, rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Pairs of rows that hold at the same time for the same thing, so that nothing says which counts.

    Of two with different as_of the newer counts: no clash. Energy factors have no as_of; one without an end holds until
    the next begins. Every row that clashes is in some pair.
    """
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        for subject in _subjects(kind.name, row):
            groups.setdefault(subject, []).append(row)
    for group in groups.values():
        ordered = sorted(group, key=lambda r: (r["valid_from_at"], r["valid_to_at"] or LATEST))
        longest: Row | None = None
        for row in ordered:
            if longest is not None and row["valid_from_at"] < _end(kind.name, longest, row):
                yield longest, row
            if longest is None or (row["valid_to_at"] or LATEST) > _end(kind.name, longest, row):
                longest = row


def _end(kind: str, row: Row, following: Row) -> datetime:
    """Until when `row` holds, seen from one that begins no earlier."""
    if row["valid_to_at"] is not None:
        return row["valid_to_at"]
    return max(following["valid_from_at"], row["valid_from_at"]) if kind == "energy_factors" else LATEST


def _subjects(kind: str, row: Row) -> Iterator[Hashable]:
    """What the row holds for: of each, one row at a time."""
    if kind == "prices":
        subject = row["instance_type"] or ("any of", row["accelerator"])
        yield ("id", row["provider"], row["sku_price_id"], row["region"], row["as_of"])
        # a node-hour takes one price for each unit, whatever its SKU
        yield ("use", row["provider"], row["region"], subject, row["billing_model"], row["commitment_type"],
               row["pricing_unit"], row["as_of"])  # fmt: skip
    elif kind == "owned_hardware":
        yield (row["provider"], row["region"], row["instance_type"], row["as_of"])
    elif kind == "energy_factors":
        yield (row["provider"], row["region"])
