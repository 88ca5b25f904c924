"""Rate cards in the lake: upserts, versions that do not move, days marked, rows refused beside those that landed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from assets.cards import CardReport, load_cards, messages
from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput
from warehouse.lake import Lake

TOP = "provider: nimbus\nbilling_account_id: nb-1\ncurrency: USD\nas_of: 2026-01-01\nsource: price list\n"
TABLES = [f"raw.{n}" for n in
          ("prices", "commitments", "credits", "exchange_rates", "owned_hardware", "energy_factors")]  # fmt: skip
DAYS = [date(2026, 3, 1) + timedelta(days=i) for i in range(10)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake that knows the first ten days of March."""
    lake = Lake(tmp_path / "lake")
    rows = [{"cluster": "c", "scrape_at": datetime(d.year, d.month, d.day, 1), "target": "t", "is_up": True,
             "hour": datetime(d.year, d.month, d.day, 1), "date": d} for d in DAYS]  # fmt: skip
    table = pa.Table.from_pylist(rows, schema=CONTRACTS["raw.scrapes"].arrow_schema)
    lake.replace("raw.scrapes", table, datetime(2026, 3, 1), datetime(2026, 3, 11), mark=False)
    return lake


def card(folder: Path, text: str, name: str = "card.yaml") -> Path:
    path = folder / name
    path.write_text(TOP + text, "utf-8")
    return path


def price(instance_type: str = "x", listed: str = "10", more: str = "") -> str:
    return f"  - {{instance_type: {instance_type}, billing_model: on_demand, list_unit_price: {listed}{more}}}\n"


def load(lake: Lake, *paths: Path) -> CardReport:
    return load_cards(lake, paths)


def marked(lake: Lake) -> list[date]:
    days = sorted({m.date for m in lake.marks()})
    lake.clear(lake.marks())
    return days


def prices_of(lake: Lake) -> dict[str, Decimal]:
    rows = lake.read("raw.prices").to_pylist()
    return {r["instance_type"]: r["list_unit_price"] for r in rows}


def test_every_example_loads_and_the_second_time_changes_nothing(lake: Lake, project_root: Path) -> None:
    paths = sorted((project_root / "docs" / "cost" / "cards").glob("*.yaml"))
    first = load(lake, *paths)
    assert first.refused == []
    assert sorted(first.rows) == sorted(first.changed) == sorted(first.versions) == sorted(TABLES)
    assert first.rows == first.changed
    assert {t: lake.read(t).num_rows for t in TABLES} == first.rows
    assert first.dates == set(DAYS) == set(marked(lake))
    versions = {t: lake.version(t) for t in TABLES}

    for order in (paths, paths[::-1]):
        again = load(lake, *order)
        assert again.refused == []
        assert again.rows == first.rows
        assert set(again.changed.values()) == {0}
        assert (again.versions, again.dates) == ({}, set())
    assert {t: lake.version(t) for t in TABLES} == versions
    assert not lake.marks()
    assert not any("build" in m for m in messages(again))


def test_a_row_replaces_the_one_of_its_key_and_leaves_the_others(lake: Lake, tmp_path: Path) -> None:
    load(lake, card(tmp_path, "prices:\n" + price("x") + price("y")))
    lake.clear(lake.marks())
    report = load(lake, card(tmp_path, "prices:\n" + price("x", "11")))
    assert (report.rows, report.changed) == ({"raw.prices": 1}, {"raw.prices": 1})
    assert prices_of(lake) == {"x": Decimal(11), "y": Decimal(10)}
    assert marked(lake) == DAYS


def test_of_two_files_with_one_key_the_later_counts(lake: Lake, tmp_path: Path) -> None:
    one = card(tmp_path, "prices:\n" + price("x", "1"), "1.yaml")
    two = card(tmp_path, "prices:\n" + price("x", "2"), "2.yaml")
    load(lake, one, two)
    assert prices_of(lake) == {"x": Decimal(2)}
    load(lake, two, one)
    assert prices_of(lake) == {"x": Decimal(1)}


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("prices:\n" + price(more=", valid_from_at: 2026-03-04T22:00:00Z, valid_to_at: 2026-03-06"), DAYS[3:5]),
        ("prices:\n" + price(more=", valid_from_at: 2026-03-08T23:59:59Z"), DAYS[7:]),
        ("prices:\n" + price(more=", valid_from_at: 2026-04-01"), []),
        ("prices:\n" + price(more=", valid_from_at: 2026-03-05T00:30:00+02:00, valid_to_at: 2026-03-05"), DAYS[3:4]),
        ("commitments:\n  - {commitment_id: r, commitment_category: Usage, commitment_type: RI, committed_quantity: 1,"
         " payment_model: No Upfront, recurring_cost: 1, starts_at: 2026-02-01, ends_at: 2026-03-02T01:00:00Z}\n",
         DAYS[:2]),
        ("credits:\n  - {credit_id: c, amount: 1, charge_period_start_at: 2026-03-03}\n", DAYS[2:3]),
        ("exchange_rates:\n  - {from_currency: EUR, to_currency: USD, rate_date: 2026-03-09, exchange_rate: 1.1}\n",
         DAYS[8:]),
        ("owned_hardware:\n  - {instance_type: o, accelerator: L4, gpu_count: 1, capex: 1, years: 1,"
         " power_kw: 1, pue: 1, tariff_per_kwh: 0, valid_from_at: 2026-03-10}\n", DAYS[9:]),
        ("energy_factors:\n  - {pue: 1, tariff_per_kwh: 0, carbon_g_per_kwh: 0, valid_to_at: 2026-03-02}\n", DAYS[:1]),
    ],
)  # fmt: skip
def test_days_that_a_row_concerns_are_marked(lake: Lake, tmp_path: Path, text: str, days: Sequence[date]) -> None:
    report = load(lake, card(tmp_path, text))
    assert report.refused == []
    assert marked(lake) == list(days)
    assert report.dates == set(days)


def test_a_changed_row_marks_its_old_days_too(lake: Lake, tmp_path: Path) -> None:
    load(lake, card(tmp_path, "prices:\n" + price(more=", valid_from_at: 2026-03-02, valid_to_at: 2026-03-06")))
    lake.clear(lake.marks())
    load(lake, card(tmp_path, "prices:\n" + price(more=", valid_from_at: 2026-03-02, valid_to_at: 2026-03-04")))
    assert marked(lake) == DAYS[1:5]


def test_a_changed_rate_concerns_all_that_comes_after_it(lake: Lake, tmp_path: Path) -> None:
    def rates(*rows: tuple[str, str, str]) -> Path:
        lines = [
            f"  - {{from_currency: {c}, to_currency: USD, rate_date: {d}, exchange_rate: {r}}}\n" for c, d, r in rows
        ]
        return card(tmp_path, "exchange_rates:\n" + "".join(lines))

    load(lake, rates(("EUR", "2026-03-02", "1.1"), ("EUR", "2026-03-05", "1.2"), ("GBP", "2026-03-03", "1.3")))
    assert marked(lake) == DAYS[1:]
    # also beyond the next rate: what was paid ahead under the first keeps it
    load(lake, rates(("EUR", "2026-03-02", "1.15")))
    assert marked(lake) == DAYS[1:]
    load(lake, rates(("EUR", "2026-03-07", "1.25")))
    assert marked(lake) == DAYS[6:]


def test_a_newer_version_of_a_commitment_concerns_the_term_of_the_older(lake: Lake, tmp_path: Path) -> None:
    def term(end: str, as_of: str) -> Path:
        return card(tmp_path, "commitments:\n  - {commitment_id: r, commitment_category: Usage, commitment_type: RI,"
                    " committed_quantity: 1, payment_model: No Upfront, recurring_cost: 1, starts_at: 2026-03-02,"
                    f" ends_at: {end}, as_of: {as_of}}}\n")  # fmt: skip

    load(lake, term("2026-03-09", "2026-03-01"))
    lake.clear(lake.marks())
    load(lake, term("2026-03-05", "2026-03-02"))
    assert marked(lake) == DAYS[1:8]


def test_lines_that_moved_change_no_charge_and_mark_no_day(lake: Lake, tmp_path: Path) -> None:
    load(lake, card(tmp_path, "prices:\n" + price("x")))
    lake.clear(lake.marks())
    report = load(lake, card(tmp_path, "# a remark\nprices:\n" + price("x")))
    assert (report.changed, report.dates, lake.marks()) == ({"raw.prices": 0}, set(), [])
    assert lake.read("raw.prices")["source_line"].to_pylist() == [8]


def test_sound_rows_land_beside_bad_ones(lake: Lake, tmp_path: Path) -> None:
    path = card(tmp_path, "prices:\n" + price("x") + price("y", "-1") + price("z"))
    report = load(lake, path)
    assert report.rows == {"raw.prices": 2}
    assert report.refused == [f"{path}:8: list_unit_price: '-1' must not be negative"]
    assert sorted(prices_of(lake)) == ["x", "z"]


def test_a_broken_file_costs_no_other(lake: Lake, tmp_path: Path) -> None:
    broken = card(tmp_path, "prices: [\n", "broken.yaml")
    report = load(lake, broken, tmp_path / "nowhere.csv", card(tmp_path, "prices:\n" + price("x")))
    assert report.rows == {"raw.prices": 1}
    assert [m.split(":")[0] for m in report.refused] == [str(broken), str(tmp_path / "nowhere.csv")]


def test_nothing_sound_makes_no_lake(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "none")
    report = load_cards(lake, [card(tmp_path, "prices:\n" + price("x", "-1")), card(tmp_path, "[", "b.yaml")])
    assert (report.rows, len(report.refused)) == ({}, 2)
    assert not lake.root.exists()
    with pytest.raises(BadInput, match="--kind nothing"):
        load_cards(lake, [], "nothing")


def test_a_price_that_clashes_with_the_lake_is_refused_and_a_newer_card_is_not(lake: Lake, tmp_path: Path) -> None:
    load(lake, card(tmp_path, "prices:\n" + price("x"), "old.yaml"))
    path = card(tmp_path, "prices:\n" + price("x", "12", ", valid_from_at: 2026-03-05") + price("y"), "new.yaml")
    report = load(lake, path)
    assert report.refused == [
        f"{path}:7: valid_from_at: holds at the same time as a row of price list, line 7, in the lake with the same "
        "as_of 2026-01-01: [2026-03-05T00:00:00, without end) and [2026-01-01T00:00:00, without end); a newer "
        "as_of would count instead of it"
    ]
    assert prices_of(lake) == {"x": Decimal(10), "y": Decimal(10)}
    newer = card(tmp_path, "prices:\n" + price("x", "12", ", valid_from_at: 2026-03-05, as_of: 2026-03-05"))
    assert load(lake, newer).refused == []
    assert lake.read("raw.prices").num_rows == 3


def test_a_row_may_be_shortened_to_make_room(lake: Lake, tmp_path: Path) -> None:
    load(lake, card(tmp_path, "prices:\n" + price("x")))
    report = load(
        lake,
        card(tmp_path, "prices:\n" + price("x", more=", valid_to_at: 2026-03-05")
             + price("x", "12", ", valid_from_at: 2026-03-05")),
    )  # fmt: skip
    assert report.refused == []
    assert lake.read("raw.prices").num_rows == 2


def test_csv_and_yaml_of_one_row_are_one_row(lake: Lake, tmp_path: Path) -> None:
    load(lake, card(tmp_path, "prices:\n" + price("x")))
    lake.clear(lake.marks())
    path = tmp_path / "card.csv"
    path.write_text(
        "provider,billing_account_id,billing_model,currency,list_unit_price,as_of,instance_type\n"
        "nimbus,nb-1,on_demand,USD,10.00,2026-01-01,x\n"
    )
    report = load(lake, path)
    assert (report.rows, report.changed) == ({"raw.prices": 1}, {"raw.prices": 0})
    assert lake.read("raw.prices").num_rows == 1
    assert not lake.marks()


def test_the_simulated_price_book_loads(lake: Lake, tmp_path: Path) -> None:
    from fleet.billing.calendar import Window
    from fleet.billing.cards import write_cards
    from fleet.billing.pricebook import price_book
    from fleet.topology import SITES, build_nodes

    window = Window(datetime(2026, 3, 1), datetime(2026, 3, 15))
    book = price_book(build_nodes(7, SITES, 0.5, window.start_at), window)
    report = load(lake, *write_cards(book, window, tmp_path / "cards"))
    assert report.refused == []
    assert report.rows["raw.prices"] == len(book.prices)
    assert sorted(report.rows) == sorted(TABLES)
