"""The charge engine against a slow second account of the same rules, on random cases."""

from __future__ import annotations

from collections import Counter
from typing import Any

from charge_cases import DAYS, FIRST, cases
from charge_oracle import Oracle, as_oracle, in_order
from hypothesis import HealthCheck, given, settings
from small_card import charges


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_the_engine_charges_what_the_oracle_charges(tables: dict[str, Any]) -> None:
    found = [as_oracle(r) for r in charges(tables, FIRST, DAYS)]
    ours, theirs = Counter(in_order(found)), Counter(in_order(Oracle(tables).charges(FIRST, DAYS)))
    assert ours - theirs == theirs - ours == Counter()
