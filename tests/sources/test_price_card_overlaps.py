"""Rows of a rate card that contradict each other: held at the same time, said twice, or of one key and different."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from card_files import CREDIT, ENERGY, OWNED, PRICE, SOUND, document, read, rows_refused


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
