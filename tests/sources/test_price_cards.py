"""Rate cards as files: exact values, defaults, and everything that is refused, by file, line and field."""

from __future__ import annotations

import codecs
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.catalogue import ACCELERATORS
from fleet.topology import SITES
from sources.prices import KINDS, Cards, read_cards
from sources.prices.values import parse_decimal
from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput

TOP = {
    "provider": "nimbus",
    "billing_account_id": "nb-1",
    "currency": "USD",
    "as_of": "2026-01-01",
    "source": "price list",
}
PRICE = {"instance_type": "nb.h100.8x", "billing_model": "on_demand", "list_unit_price": "55.04"}
USAGE = {
    "commitment_id": "ri-1", "commitment_category": "Usage", "commitment_type": "Reserved Instance",
    "committed_quantity": "6", "payment_model": "No Upfront", "recurring_cost": "200",
    "starts_at": "2026-01-01", "ends_at": "2027-01-01",
}  # fmt: skip
SPEND = {
    "commitment_id": "sp-1", "commitment_category": "Spend", "commitment_type": "Savings Plan",
    "committed_spend": "100", "payment_model": "Partial Upfront", "upfront_cost": "438000", "recurring_cost": "50",
    "starts_at": "2026-01-01", "ends_at": "2027-01-01",
}  # fmt: skip
CREDIT = {"credit_id": "cr-1", "amount": "10", "charge_period_start_at": "2026-01-01"}
RATE = {"from_currency": "EUR", "to_currency": "USD", "exchange_rate": "1.08"}
OWNED = {
    "instance_type": "dgx-v100", "accelerator": "V100-SXM2-16GB", "gpu_count": "8", "capex": "149000", "years": "5",
    "power_kw": "3.5", "pue": "1.5", "tariff_per_kwh": "0.14",
}  # fmt: skip
ENERGY = {"pue": "1.5", "tariff_per_kwh": "0.14", "carbon_g_per_kwh": "269.8"}
SOUND = {
    "prices": PRICE,
    "commitments": USAGE,
    "credits": CREDIT,
    "exchange_rates": RATE,
    "owned_hardware": OWNED,
    "energy_factors": ENERGY,
}


def document(section: str, *rows: dict[str, Any], top: dict[str, str] = TOP) -> tuple[str, list[dict[str, int]]]:
    """YAML of one section, a column a line, and the line of each column of each row."""
    lines = [*(f"{k}: {v}" for k, v in top.items()), f"{section}:"]
    places = []
    for row in rows:
        place = {}
        for i, (column, value) in enumerate(row.items()):
            lines.append(f"{'  - ' if i == 0 else '    '}{column}: {value}")
            place[column] = len(lines)
        places.append(place)
    return "\n".join(lines) + "\n", places


def read(tmp_path: Path, text: str | bytes, name: str = "card.yaml", kind: str | None = None) -> Cards:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_cards(path, kind)


def test_a_price_and_its_defaults(tmp_path: Path) -> None:
    text, places = document("prices", PRICE)
    (row,) = read(tmp_path, text).rows["prices"]
    assert row == {
        "provider": "nimbus", "billing_account_id": "nb-1", "sku_id": "nb.h100.8x",
        "sku_price_id": "nb.h100.8x.on_demand", "price_description": None, "region": "*",
        "instance_type": "nb.h100.8x", "accelerator": None, "gpu_count": None,
            "billing_model": "on_demand", "commitment_type": None,
        "pricing_unit": "Hours", "currency": "USD", "list_unit_price": Decimal("55.04"),
        "contracted_unit_price": Decimal("55.04"), "metering_s": 1, "minimum_s": 0, "rounding": "up",
        "valid_from_at": datetime(2026, 1, 1), "valid_to_at": None, "as_of": date(2026, 1, 1),
        "source": "price list", "source_line": places[0]["instance_type"],
    }  # fmt: skip


@pytest.mark.parametrize("kind", SOUND)
def test_every_kind_becomes_a_table_of_its_contract(kind: str, tmp_path: Path) -> None:
    cards = read(tmp_path, document(kind, SOUND[kind])[0])
    assert cards.refused == []
    assert list(cards.tables) == [f"raw.{kind}"]
    assert cards.tables[f"raw.{kind}"].schema == CONTRACTS[f"raw.{kind}"].arrow_schema
    assert cards.tables[f"raw.{kind}"].num_rows == 1


@pytest.mark.parametrize("kind", SOUND)
def test_csv_tells_its_kind_and_says_the_same(kind: str, tmp_path: Path) -> None:
    columns = {c: v for c, v in TOP.items() if c in KINDS[kind].columns} | SOUND[kind]
    columns |= {"rate_date": "2026-01-01"} if kind == "exchange_rates" else {}
    columns |= {"valid_from_at": "2026-01-01"} if kind == "energy_factors" else {}
    text = ",".join(columns) + "\n" + ",".join(columns.values()) + "\n"
    (row,) = read(tmp_path, text, "card.csv").rows[kind]
    (same,) = read(tmp_path, document(kind, SOUND[kind])[0]).rows[kind]
    assert row | {"source_line": 0} == same | {"source_line": 0}
    assert row["source_line"] == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("55.04", "55.04"),
        ("27.44705", "27.44705"),
        ("0.1", "0.1"),
        ("010", "10"),
        ("1e-9", "0.000000001"),
        ("12345678901.123456789", "12345678901.123456789"),
        ("1.5000000000000000000000", "1.5"),
        ('"7"', "7"),
        (".5", "0.5"),
        ("0", "0"),
    ],
)
def test_prices_are_exact_as_written(text: str, value: str, tmp_path: Path) -> None:
    cards = read(tmp_path, document("prices", PRICE | {"list_unit_price": text})[0])
    assert cards.refused == []
    assert str(cards.tables["raw.prices"]["list_unit_price"][0].as_py()) == str(
        Decimal(value).quantize(Decimal("1e-9"))
    )


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-01", datetime(2026, 3, 1)),
        ("2026-03-01T10:00", datetime(2026, 3, 1, 10)),
        ("2026-03-01T10:00:00Z", datetime(2026, 3, 1, 10)),
        ("2026-03-29T03:00:00+02:00", datetime(2026, 3, 29, 1)),
        ("2026-03-01 00:00:00.250-0500", datetime(2026, 3, 1, 5, 0, 0, 250_000)),
    ],
)
def test_times_become_utc(text: str, instant: datetime, tmp_path: Path) -> None:
    (row,) = read(tmp_path, document("prices", PRICE | {"valid_from_at": text})[0]).rows["prices"]
    assert row["valid_from_at"] == instant


def test_slices_are_rows(tmp_path: Path) -> None:
    slices = (
        "[{from: 2026-01-01, to: 2026-01-04T06:00:00Z, price: 1.31},\n      {from: 2026-01-04T06:00:00Z, price: 1.08}]"
    )
    spot = {"instance_type": "cr-gpu-l4-4", "billing_model": "spot", "metering_s": "60", "slices": slices}
    first, last = read(tmp_path, document("prices", spot)[0]).rows["prices"]
    assert (first["valid_from_at"], first["valid_to_at"]) == (datetime(2026, 1, 1), datetime(2026, 1, 4, 6))
    assert (last["valid_from_at"], last["valid_to_at"]) == (datetime(2026, 1, 4, 6), None)
    assert [r["list_unit_price"] for r in (first, last)] == [Decimal("1.31"), Decimal("1.08")]
    assert last["contracted_unit_price"] == Decimal("1.08")
    assert {r["metering_s"] for r in (first, last)} == {60}
    assert last["source_line"] == first["source_line"] + 1


def test_commitments_take_what_follows_from_their_kind(tmp_path: Path) -> None:
    block = USAGE | {
        "commitment_id": "b-1", "payment_model": "All Upfront", "recurring_cost": "0", "upfront_cost": "14700",
        "is_capacity_reservation": "True", "eligible_instance_types": "[cr-gpu-l40s-8, cr-gpu-l4-4]",
    }  # fmt: skip
    usage, spend, held = read(tmp_path, document("commitments", USAGE, SPEND, block)[0]).rows["commitments"]
    assert (usage["precedence"], usage["commitment_unit"], usage["payment_interval"]) == (10, "Hours", "Monthly")
    assert (usage["upfront_cost"], usage["eligible_instance_types"], usage["region"]) == (0, None, "*")
    assert (spend["precedence"], spend["commitment_unit"]) == (20, "USD")
    assert (held["precedence"], held["is_capacity_reservation"], held["payment_interval"]) == (5, True, None)
    assert held["eligible_instance_types"] == "cr-gpu-l40s-8,cr-gpu-l4-4"


def test_a_row_says_otherwise_than_the_document_and_null_says_nothing(tmp_path: Path) -> None:
    (row,) = read(tmp_path, document("prices", PRICE | {"currency": "EUR", "as_of": "~", "region": "null"})[0]).rows[
        "prices"
    ]
    assert (row["currency"], row["as_of"], row["region"]) == ("EUR", date(2026, 1, 1), "*")


def test_a_committed_price_and_parts_of_a_node_have_ids_of_their_own(tmp_path: Path) -> None:
    committed = PRICE | {"billing_model": "committed", "commitment_type": "Savings Plan"}
    parts = [PRICE | {"pricing_unit": unit} for unit in ("GPU-Hours", "vCPU-Hours", "GiB-Hours")]
    cards = read(tmp_path, document("prices", PRICE, committed, *parts)[0])
    assert cards.refused == []
    assert [r["sku_price_id"].removeprefix("nb.h100.8x.") for r in cards.rows["prices"]] == [
        "on_demand", "committed.Savings Plan", "on_demand.GPU-Hours", "on_demand.vCPU-Hours", "on_demand.GiB-Hours",
    ]  # fmt: skip


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


def rows_refused(cards: Cards) -> list[int]:
    return [int(m.split(":")[1]) for m in cards.refused]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({}, {"valid_from_at": "2026-02-01"}),
        ({"valid_to_at": "2026-03-01"}, {"valid_from_at": "2026-02-28T23:59:59Z"}),
        ({"sku_id": "s", "sku_price_id": "a"}, {"sku_id": "t", "sku_price_id": "b"}),
        ({"sku_price_id": "a"}, {"sku_price_id": "a", "instance_type": "other", "valid_from_at": "2026-02-01"}),
    ],
)
def test_prices_that_hold_at_the_same_time_are_both_refused(
    one: dict[str, str], two: dict[str, str], tmp_path: Path
) -> None:
    text, places = document("prices", PRICE | one, PRICE | two, PRICE | {"instance_type": "untouched"})
    cards = read(tmp_path, text)
    assert rows_refused(cards) == [min(p.values()) for p in places[:2]]
    assert all(": valid_from_at: holds at the same time as line" in m for m in cards.refused)
    assert [r["instance_type"] for r in cards.rows["prices"]] == ["untouched"]


@pytest.mark.parametrize(
    "two",
    [
        {"as_of": "2026-01-02"},
        {"region": "nb-east-1"},
        {"billing_model": "spot"},
        {"pricing_unit": "GPU-Hours"},
        {"provider": "cirrus"},
    ],
)
def test_prices_of_different_things_may_hold_at_the_same_time(two: dict[str, str], tmp_path: Path) -> None:
    cards = read(tmp_path, document("prices", PRICE, PRICE | two)[0])
    assert cards.refused == []
    assert len(cards.rows["prices"]) == 2


def test_one_may_end_where_the_next_begins(tmp_path: Path) -> None:
    cards = read(
        tmp_path, document("prices", PRICE | {"valid_to_at": "2026-02-01"}, PRICE | {"valid_from_at": "2026-02-01"})[0]
    )
    assert cards.refused == []


def test_many_overlaps_are_all_found(tmp_path: Path) -> None:
    spans = [("2026-01-01", "2026-12-01"), ("2026-02-01", "2026-03-01"), ("2026-02-10", "2026-02-20"),
             ("2026-12-01", "2026-12-05"), ("2026-11-01", "2026-11-02")]  # fmt: skip
    rows = [PRICE | {"valid_from_at": a, "valid_to_at": b} for a, b in spans]
    cards = read(tmp_path, document("prices", *rows)[0])
    assert [r["valid_from_at"] for r in cards.rows["prices"]] == [datetime(2026, 12, 1)]
    assert len(cards.refused) == 4


def test_owned_hardware_and_energy_factors_overlap_too(tmp_path: Path) -> None:
    assert (
        len(read(tmp_path, document("owned_hardware", OWNED, OWNED | {"valid_from_at": "2026-02-01"})[0]).refused) == 2
    )
    # without as_of an open end gives way to the next
    later = ENERGY | {"valid_from_at": "2026-06-01"}
    assert read(tmp_path, document("energy_factors", ENERGY, later)[0]).refused == []
    closed = ENERGY | {"valid_to_at": "2026-06-02"}
    assert len(read(tmp_path, document("energy_factors", closed, later)[0]).refused) == 2


@pytest.mark.parametrize("kind", SOUND)
def test_a_row_that_stands_twice_counts_once(kind: str, tmp_path: Path) -> None:
    text, places = document(kind, SOUND[kind], SOUND[kind])
    cards = read(tmp_path, text)
    assert rows_refused(cards) == [min(places[1].values())]
    assert f"line {min(places[0].values())} is the same row" in cards.refused[0]
    assert len(cards.rows[kind]) == 1


def test_two_rows_of_one_key_that_differ_are_both_refused(tmp_path: Path) -> None:
    text, places = document("credits", CREDIT, CREDIT | {"amount": "11"}, CREDIT | {"credit_id": "cr-2"})
    cards = read(tmp_path, text)
    assert rows_refused(cards) == [min(p.values()) for p in places[:2]]
    assert all("provider, credit_id: nimbus, cr-1: line" in m for m in cards.refused)
    assert len(cards.rows["credits"]) == 1


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


SOUND_CSV = "provider,billing_account_id,billing_model,currency,list_unit_price,as_of,instance_type\n"
LINE = "nimbus,nb-1,on_demand,USD,55.04,2026-01-01,nb.h100.8x\n"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("card.yaml", "", ": is empty"),
        ("card.yaml", "\n \n", ": is empty"),
        ("card.yaml", "# nothing but a comment\n", ": is empty"),
        ("card.yaml", "- a\n- b\n", ":1: a list is no card"),
        ("card.yaml", "just text\n", ":1: a single value is no card"),
        ("card.yaml", "provider: x\nprices: []\n", ": holds no rows"),
        ("card.yaml", "provider: x\nprice:\n  - a: 1\n", ":2: price: no such section or default; did you mean prices?"),
        ("card.yaml", "prices: 5\n", ":1: prices: a single value, where a list of rows is expected"),
        ("card.yaml", "prices:\n  a: 1\n", ":1: prices: a mapping, where a list of rows is expected"),
        ("card.yaml", "provider: [x]\nprices: []\n", ":1: provider: a list, where a single value is expected"),
        ("card.yaml", "provider: x\nprovider: y\nprices: []\n", ":2: provider: stands twice"),
        ("card.yaml", "prices:\n  - a: [1\n", ":3: not YAML"),
        ("card.yaml", "a: 1\n\tb: 2\n", ":2: not YAML"),
        ("card.yaml", "provider: &p x\nprices: []\n", ":1: anchors and aliases are not read"),
        ("card.yaml", "provider: !!python/name:os.system x\n", ":1: tag"),
        ("card.yaml", "provider: x\n---\nprovider: y\n", ":2: a second document"),
        ("card.yaml", "prices:\n - " + "[" * 20 + "]" * 20, ":2: nested deeper than any card"),
        ("card.yaml", "prices:\n - " + "[" * 200_000, ":2: n"),
        ("card.yaml", "provider: x\nprices: \x07\n", ":2: not YAML"),
        ("card.yaml", b"provider: caf\xe9\n", ":1: byte 0xe9 is not UTF-8"),
        ("card.yaml", codecs.BOM_UTF16_LE + "provider: x".encode("utf-16-le"), ":1: is UTF-16 text"),
        ("card.yaml", b"provider: x\nprices: \0\n", ":2: a null character"),
        ("card.yaml", b"[1]: x\n", ":1: a name is expected"),
        ("card.csv", "", ": is empty"),
        ("card.csv", SOUND_CSV, ": holds no rows below its header"),
        ("card.csv", "a,b\n1,2\n", ":1: the header tells no kind of card"),
        ("card.csv", SOUND_CSV.replace(",", ";") + LINE, "separated by commas"),
        ("card.csv", SOUND_CSV.strip() + ",credit_id\n", ":1: the header tells no kind of card"),
        ("card.csv", SOUND_CSV.strip() + ",colour\n" + LINE, ":1: colour: prices has no such column"),
        ("card.csv", SOUND_CSV.strip() + ",regoin\n" + LINE, ":1: regoin: prices has no such column; did you mean re"),
        ("card.csv", SOUND_CSV.strip() + ",\n" + LINE, ":1: a column without a name"),
        ("card.csv", SOUND_CSV.strip() + ",currency\n" + LINE, ":1: currency: stands twice in the header"),
        ("card.csv", SOUND_CSV.replace("currency,", "").replace(",as_of", ""), ":1: currency, as_of: missing"),
        ("card.csv", SOUND_CSV + '"nimbus"x,nb-1\n', ":2: not CSV"),
        ("card.csv", SOUND_CSV + LINE + 'nimbus,"nb-1\n', ":3: not CSV"),
        ("card.csv", codecs.BOM_UTF16_BE + SOUND_CSV.encode("utf-16-be"), ":1: is UTF-16 text"),
        ("card.json", "{}", ": neither .yaml nor .csv"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_card_brings_nothing(name: str, text: str | bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        read(tmp_path, text, name)
    assert str(error.value).startswith(str(tmp_path / name))
    assert words in str(error.value)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name in ("nowhere.yaml", "folder.csv"):
        with pytest.raises(BadInput, match=name):
            read_cards(tmp_path / name)


def test_bad_lines_of_a_csv_cost_themselves(tmp_path: Path) -> None:
    lines = [
        LINE,
        "\n",
        LINE.replace("55.04", "-1").replace("h100", "a"),
        '"nimbus",nb-1,on_demand,USD,"6.68",2026-01-01,"nb.l4.4x"\n',
        "nimbus,nb-1\n",
        LINE.replace("h100", "b").strip() + ",more\n",
        LINE.replace("nb.h100.8x", "=1+1"),
        LINE.replace("nb.h100.8x", '"two\nlines"'),
        LINE.replace("h100", "c").replace("USD", ""),
    ]
    cards = read(tmp_path, codecs.BOM_UTF8 + (SOUND_CSV + "".join(lines)).encode(), "card.csv")
    assert [r["instance_type"] for r in cards.rows["prices"]] == ["nb.h100.8x", "nb.l4.4x"]
    assert [r["source_line"] for r in cards.rows["prices"]] == [2, 5]
    assert [m.removeprefix(f"{tmp_path / 'card.csv'}:").split(":")[:2] for m in cards.refused] == [
        ["4", " list_unit_price"],
        ["6", " billing_model"],
        ["7", " instance_type"],
        ["8", " instance_type"],
        ["9", " instance_type"],
        ["11", " currency"],
    ]


def test_a_csv_of_windows_and_of_crlf_reads_the_same(tmp_path: Path) -> None:
    plain = read(tmp_path, SOUND_CSV + LINE, "card.csv").rows
    assert read(tmp_path, (SOUND_CSV + LINE).replace("\n", "\r\n"), "card.csv").rows == plain


def test_kind_of_a_csv_can_be_given_and_of_a_yaml_not(tmp_path: Path) -> None:
    assert read(tmp_path, SOUND_CSV + LINE, "card.csv", "raw.prices").rows["prices"]
    with pytest.raises(BadInput, match=r"card\.csv:1: billing_model: credits has no such column"):
        read(tmp_path, SOUND_CSV + LINE, "card.csv", "credits")
    with pytest.raises(BadInput, match=r"--kind price: none of prices, commitments"):
        read(tmp_path, SOUND_CSV + LINE, "card.csv", "price")
    with pytest.raises(BadInput, match="--kind is for CSV"):
        read(tmp_path, document("prices", PRICE)[0], "card.yaml", "prices")


def test_names_from_a_file_cannot_steer_a_terminal(tmp_path: Path) -> None:
    text, _ = document("prices", PRICE | {'"\\e[2J"': "1", "list_unit_price": '"\\e[1m"'})
    assert all(m.isprintable() for m in read(tmp_path, text).refused)


@given(st.decimals(min_value=0, max_value=Decimal("99999999999.999999999"), places=9), st.sampled_from("feg"))
def test_a_number_is_what_it_says_in_any_spelling(number: Decimal, spelling: str) -> None:
    text = f"{number:{spelling}}"
    assert parse_decimal(text, 20, 9) == number


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(["cirrus.yaml", "onprem.yaml", "prices.csv"]))
def test_no_damage_does_worse_than_being_refused(
    tmp_path: Path, project_root: Path, data: st.DataObject, name: str
) -> None:
    folder = project_root / "docs" / "cost" / "cards"
    text = (SOUND_CSV + LINE * 3).encode() if name.endswith(".csv") else (folder / name).read_bytes()
    cut = data.draw(st.integers(0, len(text)))
    junk = data.draw(
        st.binary(max_size=6) | st.sampled_from([b"[", b"- ", b": ", b'"', b"\n", b"\t", b"{", b"*a", b"&a "])
    )
    skipped = data.draw(st.integers(0, 40))
    try:
        cards = read(tmp_path, text[:cut] + junk + text[cut + skipped :], name)
    except BadInput as error:
        assert str(tmp_path / name) in str(error)
    else:
        assert cards.tables or cards.refused


@pytest.mark.parametrize("name", ["nimbus", "cirrus", "onprem"])
def test_the_examples_load_and_name_what_the_fleet_has(name: str, project_root: Path) -> None:
    cards = read_cards(project_root / "docs" / "cost" / "cards" / f"{name}.yaml")
    assert cards.refused == []
    (site,) = (s for s in SITES if s.provider == name)
    hosts = {host.instance_type for host, _ in site.pools}
    names = {ACCELERATORS[host.accelerator].plain_name for host, _ in site.pools}
    priced = cards.rows.get("prices", []) + cards.rows.get("owned_hardware", [])
    assert {r["provider"] for rows in cards.rows.values() for r in rows if "provider" in r} == {name}
    assert {r["instance_type"] for r in priced} - {None} <= hosts
    assert {r["accelerator"] for r in priced} - {None} <= names
    assert {r["region"] for rows in cards.rows.values() for r in rows if "region" in r} <= {site.region, "*"}
    wanted = {
        "nimbus": {"prices", "commitments", "credits", "energy_factors"},
        "cirrus": {"prices", "commitments", "exchange_rates", "energy_factors"},
        "onprem": {"owned_hardware", "energy_factors"},
    }
    assert set(cards.rows) == wanted[name]


def test_the_guide_names_every_column(project_root: Path) -> None:
    text = (project_root / "docs" / "cost" / "cards" / "README.md").read_text("utf-8")
    for kind in KINDS.values():
        (line,) = (row for row in text.splitlines() if row.startswith(f"| `{kind.name}` |"))
        for column in kind.columns:
            assert f"`{column}`" in line or column == "source", (kind.name, column)
