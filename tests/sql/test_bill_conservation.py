"""Whatever a bill says arrives to the last digit, in the same rows whichever dates are built together."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from small_bills import BILLS, flat, line, put_bills
from small_cloud import Node, at, put_lists, rows, run, times

from assets.sql_checks import load_checks, run_check
from warehouse.engine import open_database
from warehouse.lake import Lake

CHECK = load_checks(Path(__file__).resolve().parents[2] / "sql" / "check")["bill_lines_in_full"]
NODES = [
    Node("a"), Node("b", created_at=at(1, 7, 13), gone_at=at(3, 4, 41)), Node("c", created_at=at(2, 23, 59)),
    Node("d", provider_id="aws:///eu-1a/i-e", gone_at=at(2, 11, 5)),
    Node("e", created_at=at(2, 11, 20)),
]  # fmt: skip


def money(random: Random, digits: int) -> Decimal:
    """From a billionth to millions, negative at times."""
    size = random.choice((3, digits // 2, digits + 6))
    return random.choice((1, 1, 1, -1)) * Decimal(random.randrange(10**size)).scaleb(-digits)


def any_line(random: Random) -> dict[str, Any]:
    """A line inside the first three days of March."""
    start = at(1) + timedelta(minutes=random.choice((1, 5, 60, 60, 60)) * random.randrange(72 * 60)) % timedelta(
        hours=71
    )
    longest = (at(4) - start) // timedelta(minutes=1)
    end: datetime = start + timedelta(minutes=min(longest, random.choice((0, 1, 60, 60, 90, 1440, 2000, 5000))))
    resource = random.choice((*(f"aws:///eu-1a/i-{n}" for n in "abce"), "i-a", "vol", None))
    if random.random() < 0.1:
        return flat(random.choice(("Tax", "Credit", "Purchase", "Adjustment")), start, end, str(money(random, 10)))
    quantity, price = money(random, 9), abs(money(random, 9))
    contracted = price * quantity
    more = {
        "pricing_quantity": quantity, "consumed_quantity": random.choice((quantity, None)),
        "commitment_quantity": random.choice((None, money(random, 9))), "list_unit_price": price,
        "contracted_unit_price": price, "list_cost": random.choice((price * quantity, money(random, 18))),
        "contracted_cost": random.choice((contracted, contracted + Decimal("1E-10"), None)),
        "billed_cost": money(random, 10), "effective_cost": money(random, 10),
        "service_category": random.choice(("Compute", "Storage")),
        "commitment_discount_status": random.choice((None, None, None, "Used", "Unused")),
    }  # fmt: skip
    return line(resource, start, end, **more)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_a_bill_says_arrives_in_full(tmp_path: Path, seed: int) -> None:
    random, lake = Random(seed), Lake(tmp_path)
    put_lists(lake, NODES, times(at(1), at(4), 20))
    put_bills(lake, [any_line(random) for _ in range(400)])
    run(lake, BILLS, 1, 3)
    with open_database(lake.root) as con:
        for layer in ("raw", "core"):
            con.execute(f"create schema {layer}")
        for name in CHECK.inputs:
            con.execute(f"create view {name} as {lake.relation(name)}")
        assert run_check(con, CHECK, date(2026, 3, 1), date(2026, 3, 4)).shown == []
    whole = rows(lake, "core.billed_charges")
    assert len({r["charge_id"].split("/")[2] for r in whole}) == 400
    for row in whole:
        assert row["charge_period_start_at"] >= row["hour"]
        assert row["hour"].date() == row["date"]
    run(lake, BILLS, 1, 3, chunk_days=1)
    assert rows(lake, "core.billed_charges") == whole
