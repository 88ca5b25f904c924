"""Runs of pods on GPUs, minute by minute, for tests of rightsizing: samples in, the template's row out.

Belongs here: rows of the tables that the three models read. Not here: cases and what is expected of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from money_rows import Money

DAY = datetime(2026, 6, 1)
START, END = date(2026, 6, 1), date(2026, 6, 15)
GIB = 1024.0**3
CARDS = {"H100-80GB-HBM3": 80, "A100-SXM4-80GB": 80, "A100-SXM4-40GB": 40, "L40S": 45, "L4": 22.5, "V100-SXM2-16GB": 16}
# A device: what a sample shows, by minutes since the run began.
Device = Callable[[float], dict[str, Any]]


def device(sm: float, gib: float = 1.0, util: float | None = None, **more: Any) -> Device:
    """One that shows the same at every minute; GPU_UTIL is 1 where it is active and nothing else is said."""
    resident = util if util is not None else (1.0 if sm > 0 else 0.0)
    return lambda minute: {"sm": sm, "gib": gib, "gpu_util_ratio": resident, **more}


def first(minutes: float, then: Device, start: Device) -> Device:
    """One that does `start` in its first minutes and `then` after."""
    return lambda minute: start(minute) if minute < minutes else then(minute)


@dataclass
class Runs:
    """Collects runs; `row` and `rows` run the models over all of them."""

    accelerator: str = "H100-80GB-HBM3"
    interval_s: float = 60.0
    count: int = 0
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    money: Money | None = None

    def add(
        self, owner: str, devices: Sequence[Device], hours: float = 2.0, *, kind: str = "Job", pod: str | None = None,
        failed: bool = False, is_open: bool = False, shape: str = "training", labels: dict[str, str] | None = None,
        accelerator: str | None = None, observed: int | None = None, profile: str | None = None, share: float = 1.0,
        dram: float | None = 0.2,
    ) -> None:  # fmt: skip
        """One pod run of `devices`, of which samples show the first `observed` (all)."""
        self.count += 1
        card, uid, node = accelerator or self.accelerator, f"uid-{self.count}", f"node-{self.count}"
        begin = DAY + timedelta(hours=self.count % 20)
        end, seconds = begin + timedelta(hours=hours), hours * 3600 * len(devices)
        name = pod or f"{owner}-{self.count % 10}-abcd{self.count % 10}"
        facts = {"cluster": "c", "pod_uid": uid}
        sums = {"n": 0, "total": 0.0}
        moment = begin
        while moment < end:
            for slot, one in enumerate(devices[: observed if observed is not None else len(devices)]):
                self._sample(facts, node, slot, moment, one((moment - begin).total_seconds() / 60), card, profile, sums)
            moment += timedelta(seconds=self.interval_s)
        days = sorted({(begin + timedelta(minutes=m)).date() for m in range(0, int(hours * 60) + 1, 60)})
        for day in days:
            for slot in range(len(devices) if (observed is None or observed > 0) else 0):
                self._put("core.device_assignments", {
                    **facts, "date": day, "node": node, "pci_bus_id": f"{slot:02}", "gi_id": 1 if profile else None,
                    "interval_start_at": begin, "interval_end_at": end, "share_ratio": share,
                })  # fmt: skip
        seen = {**facts, "namespace": "ns", "pod": name, "owner_name": owner, "date": days[-1]}
        self._put("core.pod_states", {
            **seen, "resource": "nvidia.com/gpu", "owner_kind": kind, "phase": "Failed" if failed else "Succeeded",
            "labels": list((labels or {}).items()),
        })  # fmt: skip
        unseen = 0 if sums["n"] else 1
        self._put("mart.job_efficiency", {
            **seen, "team": "t", "workload_kind": kind, "accelerator": card, "resource": "nvidia.com/gpu",
            "devices": len(devices), "started_at": begin, "finished_at": None if is_open else end,
            "allocated_gpu_seconds": seconds, "stranded_gpu_seconds": 0, "unobserved_gpu_seconds": seconds * unseen,
            "dram_p95": dram, "shape": shape, "activity_mean": sums["total"] / sums["n"] if sums["n"] else None,
        })  # fmt: skip

    def _sample(
        self, facts: dict[str, Any], node: str, slot: int, moment: datetime, shown: dict[str, Any], card: str,
        profile: str | None, sums: dict[str, Any],
    ) -> None:  # fmt: skip
        shown = dict(shown)
        sm, gib = shown.pop("sm"), shown.pop("gib")
        total = float(profile.split(".")[1].removesuffix("gb")) if profile else CARDS[card]
        source = "sm_active"
        if sm is None:
            source = "gpu_util" if shown.get("gpu_util_ratio") is not None else None  # type: ignore[assignment]
        else:
            sums["n"] += 1
            sums["total"] += sm
        self._put("core.gpu_samples", {
            "cluster": "c", "node": node, "pci_bus_id": f"{slot:02}", "gi_id": 1 if profile else None,
            "mig_profile": profile, "date": moment.date(), "sampled_at": moment,
            "covers_until_at": moment + timedelta(seconds=self.interval_s), "util_source": source,
            "util_ratio": sm if sm is not None else shown.get("gpu_util_ratio"), "sm_active_ratio": sm,
            "fb_used_bytes": gib * GIB, "fb_free_bytes": (total - gib) * GIB, **shown,
        })  # fmt: skip

    def _put(self, table: str, row: dict[str, Any]) -> None:
        self.tables.setdefault(table, []).append(row)

    def rows(self) -> list[dict[str, Any]]:
        """Every row of mart.rightsizing, after its checks have passed."""
        self.money = money = Money()
        for table, given in self.tables.items():
            money.put(table, given)
        for table in ("core.pod_unit_days", "core.run_peaks"):
            money.run(table, START, END)
        found = money.run("mart.rightsizing", START, END)
        for check in ("rightsizing_runs", "rightsizing_bounds"):
            assert money.check(check, START, END) == [], check
        return found

    def row(self) -> dict[str, Any]:
        """The row of the only template."""
        (found,) = self.rows()
        return found
