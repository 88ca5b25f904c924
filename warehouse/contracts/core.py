"""Contracts of the core layer."""

from __future__ import annotations

from warehouse.contracts.model import Table

TABLES: tuple[Table, ...] = ()
