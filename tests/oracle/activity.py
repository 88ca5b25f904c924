"""Activity of one sample: which field counts, and how GR_ENGINE_ACTIVE of a MIG instance is scaled.

Belongs here: rule 5's choice of field, frozen profiling counters, the scale of rule 6. Does not belong here: how long a
sample stands and who holds the device (ledger.py).
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

from .holders import Device
from .reader import Case, Row, Scrape

DAY = 86400 * 1_000_000
FROZEN = 600 * 1_000_000
PROFILING = ("sm", "gr", "tensor", "dram")
LEAST = {"2g": Fraction(1, 2), "3g": Fraction("0.333333"), "4g": Fraction("0.25")}  # after DCGM#138
Maxima = dict[tuple[str, str, int], Fraction]


def observed_maxima(case: Case) -> Maxima:
    """Highest GR_ENGINE_ACTIVE by model, MIG profile and day."""
    highest: Maxima = {}
    for scrape in case.scrapes:
        for (_, gi), row in scrape.rows.items():
            if gi is not None and "gr" in row.values:
                key = (row.model or "", row.profile or "", scrape.at // DAY)
                highest[key] = max(highest.get(key, Fraction(0)), row.values["gr"])
    return highest


def activity(row: Row, at: int, maxima: Maxima, frozen: bool) -> Fraction | None:
    """SM_ACTIVE, else GR_ENGINE_ACTIVE (scaled on MIG), else GPU_UTIL, else nothing."""
    if frozen:
        return row.values["util"]
    if "sm" in row.values:
        return row.values["sm"]
    if "gr" in row.values:
        return row.values["gr"] / (_divisor(row, at, maxima) if row.gi is not None else 1)
    return row.values.get("util")


def _divisor(row: Row, at: int, maxima: Maxima) -> Fraction:
    profile = row.profile or ""
    seen = [maxima.get((row.model or "", profile, at // DAY + step), Fraction(0)) for step in (-1, 0, 1)]
    return max(*seen, LEAST.get(profile.split(".")[0], Fraction(1)))


def frozen_samples(scrapes: list[Scrape]) -> set[tuple[Device, int]]:
    """Samples (device, instant) whose profiling fields are suspect: rule 23. Scrapes come in order of time."""
    runs: dict[Device, list[int]] = defaultdict(list)
    found: set[tuple[Device, int]] = set()

    def close(device: Device) -> None:
        run = runs.pop(device, [])
        if run and run[-1] - run[0] >= FROZEN:
            found.update((device, at) for at in run)

    last: dict[Device, int] = {}
    for scrape in scrapes:
        for device, row in scrape.rows.items():
            if last.get(device) == scrape.at:
                continue  # another target's sample of the same instant
            last[device] = scrape.at
            present = [row.values[what] for what in PROFILING if what in row.values]
            stuck = ("sm" in row.values or "gr" in row.values) and not any(present)
            if stuck and row.values.get("util", Fraction(0)) > Fraction(1, 2):
                runs[device].append(scrape.at)
            else:
                close(device)
    for device in list(runs):
        close(device)
    return found
