"""mart.buy_or_rent: the worked examples of owning against renting, components, currencies, verdicts and unknowns."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from money_rows import Money, at

TABLE = "mart.buy_or_rent"
NOW = datetime(2026, 6, 14, 23)
# 320 k over 4 years and 25 k a year, 8 accelerators: 105 k a year
OWNED = {
    "provider": "hall", "region": "dc", "instance_type": "hgx", "accelerator": "H100", "gpu_count": 8, "capex": 320000,
    "residual": 0, "years": 4, "opex_per_year": 25000, "power_kw": 0, "pue": 1, "tariff_per_kwh": 0, "currency": "USD",
    "valid_from_at": at("2024-01-01"), "as_of": date(2024, 1, 1),
}  # fmt: skip
OFFER = {
    "provider": "lambda", "region": "*", "instance_type": "8xh100", "accelerator": "H100", "billing_model": "on_demand",
    "sku_price_id": "x", "pricing_unit": "Hours", "contracted_unit_price": "31.92", "list_unit_price": 40,
    "currency": "USD", "valid_from_at": at("2026-01-01"), "as_of": date(2026, 1, 1),
}  # fmt: skip


@pytest.fixture
def money() -> Money:
    found = Money()
    node = {"date": NOW.date(), "hour": NOW, "cluster": "c", "running_us": 3600000000}
    found.put("core.node_hours", [
        {**node, "node": "r", "node_uid": "r", "provider": "lambda", "instance_type": "8xh100", "accelerator": "H100",
         "gpu_count": 8, "cpu_milli": 208000, "memory_bytes": 1800 * 2**30},
        {**node, "node": "o", "node_uid": "o", "provider": "hall", "instance_type": "hgx", "accelerator": "H100",
         "gpu_count": 8, "cpu_milli": 1000, "memory_bytes": 2**30},
    ])  # fmt: skip
    return found


def compare(money: Money, offers: list[dict[str, Any]], *, allocated: float | None = None, **owned: Any) -> list[dict]:
    money.put("raw.owned_hardware", [{**OWNED, **owned}])
    money.put("raw.prices", offers)
    if allocated is not None:
        money.put("mart.gpu_ledger_hourly", [{
            "provider": "hall", "region": "dc", "instance_type": "hgx", "capacity_gpu_seconds": 1000,
            "allocated_gpu_seconds": allocated * 1000, "utilized_gpu_seconds": allocated * 500,
        }])  # fmt: skip
    return money.run(TABLE)


def test_the_worked_examples(money: Money) -> None:
    """320 k / 4 y + 25 k over 8 GPUs at 60 % is 2.50 a GPU-hour; against rent at 3.99 owning pays from 37.6 %."""
    (row,) = compare(money, [OFFER], allocated=0.6)
    assert row["owned_cost_per_year"] == 105000
    assert row["owned_cost_per_gpu_hour"] == Decimal("1.498287671")
    assert round(row["owned_cost_per_gpu_hour"] / Decimal("0.6"), 2) == Decimal("2.50")
    assert row["rental_cost_per_gpu_hour"] == Decimal("3.99")
    assert row["break_even_ratio"] == pytest.approx(105000 / (70080 * 3.99))
    assert f"{row['break_even_ratio']:.1%}" == "37.6%"
    assert (row["utilization_measured_ratio"], row["allocation_measured_ratio"]) == pytest.approx((0.3, 0.6))
    assert row["verdict"] == "own"


@pytest.mark.parametrize(
    ("allocated", "verdict"),
    [(0.2, "rent"), (0.337, "rent"), (0.338, "too close to call"), (0.413, "too close to call"), (0.414, "own"),
     (None, "unknown")],
)  # fmt: skip
def test_what_is_held_decides(money: Money, allocated: float | None, verdict: str) -> None:
    (row,) = compare(money, [OFFER], allocated=allocated)
    assert row["verdict"] == verdict


def test_power_is_part_of_owning(money: Money) -> None:
    (row,) = compare(money, [OFFER], residual=80000, power_kw="10.2", pue="1.5", tariff_per_kwh="0.12")
    assert row["owned_cost_per_year"] == 60000 + 25000 + Decimal("10.2") * Decimal("1.5") * Decimal("0.12") * 8760


def test_every_offer_of_the_accelerator_and_no_other(money: Money) -> None:
    offers = [
        OFFER,
        {**OFFER, "billing_model": "spot", "contracted_unit_price": 16, "sku_price_id": "s"},
        {**OFFER, "billing_model": "committed", "commitment_type": "Plan", "contracted_unit_price": 24},
        {**OFFER, "billing_model": "committed", "commitment_type": "Plan 3", "contracted_unit_price": 8,
         "sku_price_id": "c3"},
        {**OFFER, "region": "eu", "contracted_unit_price": 48},
        {**OFFER, "accelerator": "A100", "instance_type": "8xa100", "sku_price_id": "a"},
        {**OFFER, "provider": "hall", "sku_price_id": "own"},
    ]  # fmt: skip
    found = compare(money, offers)
    told = {(r["rental_region"], r["rental_billing_model"], r["commitment_type"]): r for r in found}
    assert {k: r["rental_cost_per_gpu_hour"] for k, r in told.items()} == {
        ("*", "on_demand", None): Decimal("3.99"), ("*", "spot", None): 2, ("*", "committed", "Plan"): 3,
        ("*", "committed", "Plan 3"): 1, ("eu", "on_demand", None): 6,
    }  # fmt: skip
    assert told["*", "committed", "Plan 3"]["break_even_ratio"] > 1  # cheaper to rent even in full use


def test_the_price_that_holds_now_counts(money: Money) -> None:
    offers = [
        {**OFFER, "valid_from_at": at("2025-01-01"), "valid_to_at": at("2026-01-01"), "contracted_unit_price": 98},
        {**OFFER, "valid_from_at": at("2026-01-02"), "as_of": date(2025, 12, 1), "contracted_unit_price": 60},
        {**OFFER, "valid_from_at": at("2026-07-01"), "contracted_unit_price": 8},
        OFFER,
    ]
    (row,) = compare(money, offers)
    assert row["rental_cost_per_gpu_hour"] == Decimal("3.99")


def test_a_price_by_components_is_their_sum(money: Money) -> None:
    parts = [("GPU-Hours", "2.5"), ("vCPU-Hours", "0.024"), ("GiB-Hours", "0.003")]
    offers = [{**OFFER, "pricing_unit": unit, "contracted_unit_price": price} for unit, price in parts]
    (row,) = compare(money, offers)
    assert row["rental_cost_per_gpu_hour"] == Decimal("2.5") + Decimal("0.024") * 26 + Decimal("0.003") * 225


def test_a_type_nobody_has_seen_and_a_price_by_accelerator(money: Money) -> None:
    offers = [
        {**OFFER, "instance_type": "unseen"},
        {**OFFER, "instance_type": "unseen-4", "gpu_count": 4},
        {**OFFER, "instance_type": None, "pricing_unit": "GPU-Hours", "contracted_unit_price": "2.69"},
    ]
    found = {r["rental_instance_type"]: r for r in compare(money, offers, allocated=0.6)}
    assert found["unseen"]["rental_cost_per_gpu_hour"] is found["unseen"]["break_even_ratio"] is None
    assert found["unseen"]["verdict"] == "unknown"
    assert found["unseen-4"]["rental_cost_per_gpu_hour"] == Decimal("7.98")
    assert found[None]["rental_cost_per_gpu_hour"] == Decimal("2.69")


def test_currencies_are_converted_at_the_newest_rate(money: Money) -> None:
    rate = {"from_currency": "EUR", "to_currency": "USD", "exchange_rate": "1.25"}
    money.put("raw.exchange_rates", [
        {**rate, "rate_date": date(2026, 1, 1), "exchange_rate": 9}, {**rate, "rate_date": date(2026, 6, 1)},
        {**rate, "rate_date": date(2026, 7, 1), "exchange_rate": 9},
        {"from_currency": "USD", "to_currency": "GBP", "rate_date": date(2026, 6, 1), "exchange_rate": "0.8"},
    ])  # fmt: skip
    offers = [{**OFFER, "currency": "GBP"}, {**OFFER, "currency": "CHF", "region": "ch"}]
    found = {r["rental_region"]: r for r in compare(money, offers, currency="EUR")}
    assert found["*"]["owned_cost_per_year"] == 105000 * Decimal("1.25")
    assert found["*"]["rental_cost_per_gpu_hour"] == Decimal("3.99") / Decimal("0.8")
    assert found["ch"]["rental_cost_per_gpu_hour"] is None
    assert {r["currency"] for r in found.values()} == {"USD"}
