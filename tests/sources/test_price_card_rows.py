"""Rows of rate cards that are refused: by file, line and field, and at no cost to the rows beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from card_files import PRICE, SOUND, TOP, document, read

# what is wrong: section, columns changed (None: left out), column that must be named, words that must be said
BAD_ROWS: list[tuple[str, dict[str, str | None], str, str]] = [
    ("prices", {"list_unit_price": "1.1234567891"}, "list_unit_price", "10 digits after the point"),
    ("prices", {"list_unit_price": "123456789012"}, "list_unit_price", "too large"),
    ("prices", {"list_unit_price": '"1,234.50"'}, "list_unit_price", "thousands marks"),
    ("prices", {"list_unit_price": "1_000"}, "list_unit_price", "thousands marks"),
    ("prices", {"list_unit_price": '"12,5"'}, "list_unit_price", "decimal commas"),
    ("prices", {"list_unit_price": "$12"}, "list_unit_price", "units are not read"),
    ("prices", {"list_unit_price": "-1"}, "list_unit_price", "must not be negative"),
    ("prices", {"list_unit_price": ".nan"}, "list_unit_price", "not finite"),
    ("prices", {"list_unit_price": "-Infinity"}, "list_unit_price", "not finite"),
    ("prices", {"list_unit_price": "1e99"}, "list_unit_price", "too large"),
    ("prices", {"list_unit_price": "٣"}, "list_unit_price", "no decimal number"),
    ("prices", {"list_unit_price": "free"}, "list_unit_price", "no decimal number"),
    ("prices", {"list_unit_price": "1:30"}, "list_unit_price", "no decimal number"),
    ("prices", {"list_unit_price": "[1, 2]"}, "list_unit_price", "a list, where a single value"),
    ("prices", {"list_unit_price": None}, "list_unit_price", "missing"),
    ("prices", {"contracted_unit_price": "-0.5"}, "contracted_unit_price", "must not be negative"),
    ("prices", {"currency": "US$"}, "currency", "no currency code"),
    ("prices", {"currency": "usd"}, "currency", "USD is one"),
    ("prices", {"billing_model": "on-demand"}, "billing_model", "none of on_demand, spot, committed"),
    ("prices", {"billing_model": "committed"}, "commitment_type", "missing"),
    ("prices", {"commitment_type": "Savings Plan"}, "commitment_type", "only committed prices"),
    ("prices", {"pricing_unit": "Hrs"}, "pricing_unit", "none of Hours"),
    ("prices", {"rounding": "down"}, "rounding", "none of up, nearest, none"),
    ("prices", {"metering_s": "0"}, "metering_s", "must be 1 or more"),
    ("prices", {"metering_s": "0.5"}, "metering_s", "whole numbers"),
    ("prices", {"metering_s": "90000"}, "metering_s", "must be 86400 or less"),
    ("prices", {"minimum_s": "-60"}, "minimum_s", "must not be negative"),
    ("prices", {"instance_type": None}, "instance_type", "nothing says what the price is for"),
    ("prices", {"valid_to_at": "2026-01-01"}, "valid_to_at", "must be after valid_from_at 2026-01-01"),
    ("prices", {"valid_from_at": "2026-03-01", "valid_to_at": "2026-02-01"}, "valid_to_at", "must be after"),
    ("prices", {"valid_from_at": "01/02/2026"}, "valid_from_at", "no ISO 8601 time"),
    ("prices", {"valid_from_at": "2026-02-29"}, "valid_from_at", "no time that exists"),
    ("prices", {"valid_to_at": "9999-12-31"}, "valid_to_at", "leave out an end"),
    ("prices", {"as_of": "2026-01-01T10:00:00Z"}, "as_of", "no date"),
    ("prices", {"sku_id": '"=cmd|calc!A1"'}, "sku_id", "begins as a formula"),
    ("prices", {"price_description": '"@SUM(A1)"'}, "price_description", "begins as a formula"),
    ("prices", {"price_description": '"two\\nlines"'}, "price_description", "line breaks"),
    ("prices", {"price_description": '"\\e[2J"'}, "price_description", "control characters"),
    ("prices", {"price": "12"}, "price", "no such column"),
    ("prices", {"source_line": "12"}, "source_line", "no such column"),
    ("commitments", {"commitment_category": "usage"}, "commitment_category", "none of Usage, Spend"),
    ("commitments", {"payment_model": "Monthly"}, "payment_model", "none of No Upfront"),
    ("commitments", {"payment_interval": "Weekly"}, "payment_interval", "none of Hourly, Monthly"),
    ("commitments", {"committed_quantity": None}, "committed_quantity", "missing: a Usage commitment"),
    ("commitments", {"committed_quantity": "0"}, "committed_quantity", "must be above 0"),
    ("commitments", {"committed_spend": "5"}, "committed_spend", "has committed_quantity instead"),
    (
        "commitments",
        {"commitment_category": "Spend", "committed_quantity": None, "commitment_unit": "USD"},
        "committed_spend",
        "missing: a Spend commitment",
    ),
    ("commitments", {"upfront_cost": "5"}, "upfront_cost", "contradicts payment_model No Upfront"),
    ("commitments", {"payment_model": "All Upfront", "upfront_cost": "5"}, "recurring_cost", "contradicts"),
    ("commitments", {"payment_model": "Partial Upfront"}, "upfront_cost", "missing or 0"),
    ("commitments", {"recurring_cost": None}, "recurring_cost", "missing with payment_model No Upfront"),
    ("commitments", {"commitment_unit": "EUR"}, "commitment_unit", "must be Hours or GPU-Hours or"),
    ("commitments", {"recurring_cost": "1.0000000001"}, "recurring_cost", "9 digits after the point are kept"),
    ("commitments", {"committed_quantity": "114156"}, "committed_quantity", "a term of 8760 hours is more than"),
    ("commitments", {"ends_at": "2026-01-01"}, "ends_at", "must be after starts_at"),
    ("commitments", {"is_capacity_reservation": "maybe"}, "is_capacity_reservation", "neither true nor false"),
    ("commitments", {"eligible_instance_types": "a,a"}, "eligible_instance_types", "twice"),
    ("credits", {"amount": "0"}, "amount", "must be above 0"),
    ("credits", {"amount": "-5"}, "amount", "must not be negative"),
    ("credits", {"charge_period_end_at": "2025-12-31"}, "charge_period_end_at", "must be after"),
    ("exchange_rates", {"exchange_rate": "0"}, "exchange_rate", "must be above 0"),
    ("exchange_rates", {"to_currency": "EUR"}, "to_currency", "from_currency itself"),
    ("exchange_rates", {"from_currency": "XXX"}, "from_currency", "no currency code"),
    ("owned_hardware", {"years": "0"}, "years", "must be above 0"),
    ("owned_hardware", {"years": "-4"}, "years", "must not be negative"),
    ("owned_hardware", {"residual": "149000.01"}, "residual", "above capex 149000"),
    ("owned_hardware", {"pue": "0.9"}, "pue", "must be 1 or more"),
    ("owned_hardware", {"gpu_count": "8.5"}, "gpu_count", "whole numbers"),
    ("energy_factors", {"pue": "0.99"}, "pue", "must be 1 or more"),
    ("energy_factors", {"carbon_g_per_kwh": None, "carbon": "5"}, "carbon", "did you mean carbon_g_per_kwh?"),
]


@pytest.mark.parametrize(("section", "changes", "column", "words"), BAD_ROWS)
def test_a_bad_row_is_named_and_costs_only_itself(
    section: str, changes: dict[str, str | None], column: str, words: str, tmp_path: Path
) -> None:
    sound = SOUND[section]
    bad = {c: v for c, v in (sound | changes).items() if v is not None}
    other = (
        sound
        | {
            "prices": {"instance_type": "nb.l4.4x"},
            "commitments": {"commitment_id": "ri-2"},
            "credits": {"credit_id": "cr-2"},
            "exchange_rates": {"from_currency": "GBP"},
            "owned_hardware": {"instance_type": "other"},
            "energy_factors": {"region": "elsewhere"},
        }[section]
    )
    text, places = document(section, bad, other)
    cards = read(tmp_path, text)
    (message,) = cards.refused
    line = places[0].get(column, min(places[0].values()))
    assert message.startswith(f"{tmp_path / 'card.yaml'}:{line}: {column}: ")
    assert words in message
    if changes.get(column) is not None and '"' not in changes[column] and "such column" not in message:  # type: ignore[operator]
        assert changes[column] in message.replace("'", "") or "single value" in message
    assert len(cards.rows[section]) == 1
    assert cards.rows[section][0]["source_line"] == min(places[1].values())


def test_all_that_is_wrong_with_a_row_is_said_at_once(tmp_path: Path) -> None:
    text, _ = document("prices", PRICE | {"list_unit_price": "x", "rounding": "y", "currency": "z"})
    assert [m.split(": ")[1] for m in read(tmp_path, text).refused] == ["list_unit_price", "rounding", "currency"]


def test_a_bad_default_is_said_once(tmp_path: Path) -> None:
    text, _ = document("prices", PRICE, PRICE | {"instance_type": "x"}, top=TOP | {"currency": "dollars"})
    cards = read(tmp_path, text)
    assert len(cards.refused) == 1
    assert cards.refused[0].startswith(f"{tmp_path / 'card.yaml'}:3: currency: 'dollars' is no currency code")
    assert not cards.tables


@pytest.mark.parametrize(
    ("slices", "words"),
    [
        ("[{from: 2026-01-01, to: 2026-01-02}]", "slices.price: is missing"),
        ("[{price: 1}]", "slices.from: is missing"),
        ("[{from: 2026-01-01, price: -1}]", "slices.price: '-1' must not be negative"),
        ("[{from: 2026-01-02, to: 2026-01-01, price: 1}]", "slices.to: '2026-01-01' must be after"),
        ("[{from: 2026-01-01, price: 1, until: 2026-02-01}]", "slices.until: a slice has from, to, price"),
        ("[{from: 2026-01-01, price: 1}, 7]", "slices: a mapping is expected, not a single value"),
        ("{}", "slices: a list of mappings"),
        ("[{from: 2026-01-01, price: 1, price: 2}]", "slices.price: stands twice"),
    ],
)
def test_bad_slices(slices: str, words: str, tmp_path: Path) -> None:
    text, places = document("prices", {"instance_type": "x", "billing_model": "spot", "slices": slices})
    (message,) = read(tmp_path, text).refused
    assert f": {words}" in message
    assert message.startswith(f"{tmp_path / 'card.yaml'}:{places[0]['slices']}: ")


def test_slices_beside_a_price_of_their_row(tmp_path: Path) -> None:
    text, places = document("prices", PRICE | {"slices": "[{from: 2026-01-01, price: 1}]"})
    (message,) = read(tmp_path, text).refused
    assert f":{places[0]['list_unit_price']}: list_unit_price: '55.04' stands beside slices" in message


def test_names_from_a_file_cannot_steer_a_terminal(tmp_path: Path) -> None:
    text, _ = document("prices", PRICE | {'"\\e[2J"': "1", "list_unit_price": '"\\e[1m"'})
    assert all(m.isprintable() for m in read(tmp_path, text).refused)
