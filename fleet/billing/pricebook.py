"""The price book of the invented providers, fitted to a fleet: whose nodes there are decides how much is committed.

Belongs here: putting the providers' parts together. Their prices and contracts stand in a file each (`nimbus.py`,
`cirrus.py`, `onprem.py`); rendering the book as rate cards in `cards.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fleet.billing import cirrus, nimbus, onprem
from fleet.billing.calendar import Window
from fleet.billing.records import PriceBook
from fleet.model import Node

BOOKS = (nimbus, cirrus, onprem)


def price_book(nodes: Sequence[Node], window: Window) -> PriceBook:
    """The book of the providers whose nodes are in the fleet.

    Contracts began some months before the window. How much is committed follows the number of nodes, so that at any
    scale of the fleet one commitment is used up, one is used in full by part of its nodes and two are too large.
    """
    parts = []
    for book in BOOKS:
        mine = [n for n in nodes if n.provider == book.PROVIDER]
        if mine:
            parts.append(book.book(Counter(n.instance_type for n in mine), window))
    return PriceBook(
        prices=tuple(x for p in parts for x in p.prices),
        commitments=tuple(x for p in parts for x in p.commitments),
        credits=tuple(x for p in parts for x in p.credits),
        exchange_rates=tuple(x for p in parts for x in p.exchange_rates),
        owned_hardware=tuple(x for p in parts for x in p.owned_hardware),
        energy_factors=tuple(x for p in parts for x in p.energy_factors),
    )
