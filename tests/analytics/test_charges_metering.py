"""Metering by worked numbers: per second, per minute, per quarter of an hour, minimums, days of 23 and 25 hours."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from small_card import DAY, HOUR, START, charges, columns, dec, only, pick, price, run, total

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


def life(lasts: timedelta, rate: str = "5.50", begin: datetime = START + 10 * MINUTE, **metering: Any) -> list[Any]:
    """Charges of one node that lives so long, at this price."""
    node = {k: metering.pop(k) for k in ("gpu_count", "cpu_milli", "memory_bytes", "is_open") if k in metering}
    tables = {
        "core.node_hours": run("a", begin, begin + lasts, **node),
        "raw.prices": [price(rate, **metering)],
    }
    return charges(tables, begin.date(), (begin + lasts).date().toordinal() - begin.date().toordinal() + 1)


def test_fpt_a_begun_quarter_of_an_hour_counts_whole() -> None:
    """FPT Cloud billing page: rounded up to 15 minutes, so 8 minutes x 5.50/h are 0.25 h = 1.375."""
    row = only(life(8 * MINUTE, metering_s=900))
    assert columns(row, ("pricing_quantity", "billed_cost", "effective_cost", "list_cost")) == (
        dec("0.25"), *[dec("1.375")] * 3
    )  # fmt: skip
    assert row["consumed_quantity"] == dec("0.133333333")


def test_fpt_by_the_minute_is_what_it_lasted() -> None:
    """FPT Cloud billing page, per-minute products: 8 minutes are 8 / 60 h."""
    assert only(life(8 * MINUTE, metering_s=60, minimum_s=60))["billed_cost"] == dec("0.7333333315")


@pytest.mark.parametrize(("seconds", "charged"), [(1, 60), (59, 60), (60, 60), (61, 61), (3599, 3599)])
def test_aws_per_second_with_a_minimum_of_a_minute(seconds: int, charged: int) -> None:
    """Amazon EC2 On-Demand pricing: Linux instances are billed per second with a minimum of 60 seconds."""
    row = only(life(seconds * SECOND, metering_s=1, minimum_s=60, begin=START))
    assert row["pricing_quantity"] == round(Decimal(charged) / 3600, 9)


def test_opencost_p2_8xlarge_for_158_minutes() -> None:
    """opencost PR 762: 8 GPUs at 0.642627 for 158 minutes are 13.538009."""
    rows = life(158 * MINUTE, "0.642627", metering_s=60, pricing_unit="GPU-Hours", gpu_count=8)
    assert total(rows, "pricing_quantity") == dec("21.066666667")
    assert round(total(rows, "billed_cost"), 6) == dec("13.538009")


def test_by_the_second_against_by_the_hour() -> None:
    """61 minutes: 1.0167 h by the second, 2 h by the hour, 1 h to the nearest hour."""
    assert total(life(61 * MINUTE), "pricing_quantity") == dec("1.016666667")
    assert total(life(61 * MINUTE, metering_s=3600), "pricing_quantity") == 2
    assert total(life(61 * MINUTE, metering_s=3600, rounding="nearest"), "pricing_quantity") == 1
    assert total(life(91 * MINUTE, metering_s=3600, rounding="nearest"), "pricing_quantity") == 2


def test_a_unit_is_charged_in_the_hour_it_begins_in() -> None:
    """Hours from 00:10: begun 00:10 and 01:10; nothing is charged in the hour of the end, 02:05."""
    rows = life(115 * MINUTE, metering_s=3600)
    assert [r["pricing_quantity"] for r in rows] == [1, 1, 0]
    assert [r["consumed_quantity"] for r in rows] == [dec("0.833333333"), 1, dec("0.083333334")]


def test_what_the_minimum_adds_is_charged_in_the_hour_of_the_end() -> None:
    """An hour at least, by the second: 55 minutes from 00:30 end in 01, which has 25 minutes and the 5 added."""
    rows = life(55 * MINUTE, metering_s=1, minimum_s=3600, begin=START + 30 * MINUTE)
    assert [r["pricing_quantity"] for r in rows] == [dec("0.5"), dec("0.5")]
    exact = life(55 * MINUTE, metering_s=1, minimum_s=3600, rounding="none", begin=START + 30 * MINUTE)
    assert [r["pricing_quantity"] for r in exact] == [dec("0.5"), dec("0.5")]


def test_to_the_nearest_hour_nothing_is_charged_for_a_short_run() -> None:
    """25 minutes over the hour's end: the begun unit is not half used when the run ends in the next hour."""
    rows = life(25 * MINUTE, metering_s=3600, rounding="nearest", begin=START + 50 * MINUTE)
    assert [r["pricing_quantity"] for r in rows] == [0, 0]
    assert total(rows, "billed_cost") == 0


def test_a_run_that_goes_on_has_no_minimum_yet() -> None:
    rows = life(10 * SECOND, metering_s=1, minimum_s=60, is_open=True)
    assert only(rows)["pricing_quantity"] == dec("0.002777778")


def test_hours_of_a_run_add_up_to_the_rounded_run() -> None:
    """Thirds of hours: each hour is rounded so that the sum of the run is."""
    begin = START + timedelta(minutes=20)
    rows = life(timedelta(hours=5, minutes=20, seconds=1), metering_s=1, begin=begin)
    assert total(rows, "pricing_quantity") == round(Decimal(5 * 3600 + 1201) / 3600, 9)


@pytest.mark.parametrize(
    ("unit", "quantity"), [("Hours", 1), ("GPU-Hours", 8), ("vCPU-Hours", 192), ("GiB-Hours", 2048)]
)
def test_units_of_a_node_hour(unit: str, quantity: int) -> None:
    row = only(life(HOUR, begin=START, pricing_unit=unit))
    assert columns(row, ("pricing_quantity", "pricing_unit", "consumed_quantity", "consumed_unit")) == (
        quantity, unit, quantity, unit
    )  # fmt: skip


def test_unknown_counts_are_flagged_and_not_free() -> None:
    row = only(life(HOUR, begin=START, pricing_unit="GPU-Hours", gpu_count=None))
    assert columns(row, ("pricing_quantity", "flags")) == (0, "no_quantity")


@pytest.mark.parametrize(("day", "hours"), [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25)])
def test_local_days_of_23_and_25_hours(day: date, hours: int) -> None:
    """Berlin's days on which clocks change have 23 and 25 hours; each is one UTC hour, none twice, none missing."""
    zone = ZoneInfo("Europe/Berlin")
    begin, end = (
        datetime(d.year, d.month, d.day, tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
        for d in (day, day + timedelta(days=1))
    )
    rows = life(end - begin, "1", metering_s=3600, begin=begin)
    assert len({r["hour"] for r in rows}) == len(rows) == hours
    assert total(rows, "billed_cost") == hours


@pytest.mark.parametrize(("month", "hours"), [((2026, 3), 743), ((2026, 10), 745), ((2028, 2), 696), ((2027, 2), 672)])
def test_local_months(month: tuple[int, int], hours: int) -> None:
    """Months of local time: March has 743 hours in Berlin, October 745, February 696 in a leap year."""
    zone = ZoneInfo("Europe/Berlin")
    begin = datetime(*month, 1, tzinfo=zone)
    end = (begin + timedelta(days=32)).replace(day=1)
    lasts = end.astimezone(UTC) - begin.astimezone(UTC)
    rows = life(lasts, "1", metering_s=1, begin=begin.astimezone(UTC).replace(tzinfo=None))
    assert total(rows, "billed_cost") == hours
    # the billing period is the calendar month of UTC
    assert {r["billing_period_start_at"].day for r in rows} == {1}
    assert all(r["billing_period_start_at"] <= r["hour"] < r["billing_period_end_at"] for r in rows)


def test_dates_apart_or_together() -> None:
    begin = START + timedelta(hours=22, minutes=50)
    tables = {
        "core.node_hours": run("a", begin, begin + timedelta(hours=27)),
        "raw.prices": [price("3", metering_s=3600, minimum_s=60)],
    }
    together = charges(tables, DAY, 3)
    assert together == charges(tables, DAY, 3, step=1)
    assert total(together, "pricing_quantity") == 27
    assert [r["pricing_quantity"] for r in pick(together, date=DAY)] == [1, 1]
