"""core.gpu_energy_hourly: power readings times the time they cover, hour by hour, each board once."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from money_rows import Money, at

D = Decimal


@pytest.fixture
def money() -> Money:
    return Money()


def sample(start: str, end: str, power: float | None, **more: Any) -> dict[str, Any]:
    return {
        "cluster": "c", "node": "n", "pci_bus_id": "0", "sampled_at": at(f"2026-06-{start}"),
        "covers_until_at": at(f"2026-06-{end}"), "power_w": power, "date": date(2026, 6, int(start[:2])), **more,
    }  # fmt: skip


def energy(money: Money, *samples: dict[str, Any], days: int = 1) -> dict[str, tuple[Decimal, Decimal]]:
    """(joules, metered seconds) by hour."""
    money.put("core.gpu_samples", samples)
    rows = money.run("core.gpu_energy_hourly", date(2026, 6, 3), date(2026, 6, 3 + days))
    return {f"{r['hour']:%dT%H}": (r["metered_energy_j"], r["metered_gpu_seconds"]) for r in rows}


def test_a_reading_over_the_turn_of_an_hour_counts_in_both(money: Money) -> None:
    found = energy(money, sample("03T10:59", "03T11:01", 700.25), sample("03T11:01", "03T11:02", 100))
    assert found == {"03T10": (D("42015"), 60), "03T11": (D("48015"), 120)}


def test_eight_boards_of_700_w_for_an_hour_are_5_6_kwh(money: Money) -> None:
    samples = [
        sample(f"03T10:{m:02}", f"03T10:{m + 1:02}" if m < 59 else "03T11:00", 700.0, pci_bus_id=str(g))
        for g in range(8)
        for m in range(60)
    ]
    money.put("core.gpu_samples", samples)
    rows = money.run("core.gpu_energy_hourly", date(2026, 6, 3), date(2026, 6, 4))
    assert sum(r["metered_energy_j"] for r in rows) / D("3.6e6") == D("5.6")
    assert {r["metered_gpu_seconds"] for r in rows} == {3600}


def test_the_day_before_stands_into_the_window_and_the_window_ends(money: Money) -> None:
    samples = (sample("02T23:59", "03T00:01", 100), sample("03T23:59:30", "04T00:00:30", 200))
    assert energy(money, *samples) == {"03T00": (D(6000), 60), "03T23": (D(6000), 30)}
    assert energy(money, *samples, days=2) == {"03T00": (D(6000), 60), "03T23": (D(6000), 30), "04T00": (D(6000), 30)}


def test_time_without_a_reading_is_not_filled_up(money: Money) -> None:
    found = energy(
        money, sample("03T10:00", "03T10:01", 100), sample("03T10:01", "03T10:02", None),
        sample("03T10:30", "03T10:31", 300),
    )  # fmt: skip
    assert found == {"03T10": (D(24000), 120)}


def test_the_instances_of_a_cut_board_repeat_its_power(money: Money) -> None:
    parent = sample("03T10:00", "03T10:01", 250)
    instances = [sample("03T10:00", "03T10:01", 400, gi_id=i) for i in (1, 2, 3)]
    assert energy(money, parent, *instances) == {"03T10": (D(15000), 60)}
    assert energy(money, *instances) == {"03T10": (D(24000), 60)}
    # instances read at other instants do not add up either: the next reading ends the one before
    apart = [sample("03T10:00", "03T10:01", 400, gi_id=1), sample("03T10:00:30", "03T10:01:30", 400, gi_id=2)]
    assert energy(money, *apart) == {"03T10": (D(36000), 90)}


def test_an_older_reading_that_resumes_counts_again(money: Money) -> None:
    # one exporter stands for five minutes, another's newer sample for one: the first resumes after it
    first = sample(
        "03T10:00", "03T10:02", 100, resumes_at=at("2026-06-03T10:03"), resumes_until_at=at("2026-06-03T10:05")
    )
    assert energy(money, first, sample("03T10:02", "03T10:03", 200)) == {"03T10": (D(36000), 300)}


def test_readings_are_summed_in_whole_milliwatts(money: Money) -> None:
    # 0.1 W for a tenth of a second, 600 times: sixty tenths add up exactly
    samples = [sample(f"03T10:{i // 60:02}:{i % 60:02}", f"03T10:{i // 60:02}:{i % 60:02}.1", 0.1) for i in range(600)]
    assert energy(money, *samples) == {"03T10": (D(6), 60)}
