"""The usage of one hour while commitments take their parts of it.

Belongs here: what is left of each metered row and the pieces taken. Not here: which commitment takes what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from analytics.charges.pricing import Kind
from analytics.charges.records import Price


class Usage(NamedTuple):
    """What the rows of one class have in common: kind of node, price and accelerators a node."""

    kind: Kind
    price: Price
    gpu_count: int | None


class Row(NamedTuple):
    """A metered row: number (in the order of resources), class, quantity (1e-9), whether its node is labelled as
    reserved capacity."""

    row_id: int
    usage: int
    quantity: int
    is_reserved: bool


@dataclass
class Taken:
    """What one commitment took of an hour: rows, quantities of them, committed units used, all in 1e-9."""

    rows: list[int] = field(default_factory=list)
    quantities: list[int] = field(default_factory=list)
    used: list[int] = field(default_factory=list)

    def add(self, row: int, quantity: int, used: int) -> None:
        self.rows.append(row)
        self.quantities.append(quantity)
        self.used.append(used)


class Hour:
    """Rows of an hour and what is left of each, in 1e-9 of its pricing unit."""

    def __init__(self, number: int, rows: Sequence[Row]) -> None:
        self.number = number
        self.rows = rows
        self.left = [r.quantity for r in rows]

    def take(self, row: int, quantity: int) -> None:
        """Take `quantity` of the row at that place, which must be left."""
        if not 0 < quantity <= self.left[row]:
            raise ValueError(f"{quantity} of {self.left[row]} left")
        self.left[row] -= quantity
