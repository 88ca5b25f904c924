"""Rate cards, commitments, credits, exchange rates, owned hardware and energy factors, from YAML and CSV files.

Belongs here: reading them, exactly, and saying what is wrong by file, line and field. Not here: writing tables, and
what the prices mean for a node-hour.
"""

from __future__ import annotations

from sources.prices.cards import Cards, read_cards
from sources.prices.kinds import KINDS, Kind

__all__ = ["KINDS", "Cards", "Kind", "read_cards"]
