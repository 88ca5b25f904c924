"""Rate cards that are sound: exact values, times, defaults, and what follows from the kind of a row."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from card_files import PRICE, SOUND, SPEND, TOP, USAGE, document, read
from hypothesis import given
from hypothesis import strategies as st

from sources.prices import KINDS
from sources.prices.values import parse_decimal
from warehouse.contracts import CONTRACTS


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


@given(st.decimals(min_value=0, max_value=Decimal("99999999999.999999999"), places=9), st.sampled_from("feg"))
def test_a_number_is_what_it_says_in_any_spelling(number: Decimal, spelling: str) -> None:
    text = f"{number:{spelling}}"
    assert parse_decimal(text, 20, 9) == number


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
