"""One node in one hour, as the attribution sees it: its size, its ledger rows, requests, energy and charges.

Belongs here: how such rows come into the tables in memory, and how the models run over them. Not here: what is to be
true of the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from money_rows import Money, at

GIB = 1024**3
MODELS = ("core.energy_shares", "core.cost_shares", "mart.cost_hourly", "mart.cost_daily")
METHODS = ("whole_node", "aws_weights", "opencost_ratios", "fixed:0.95:0.03:0.02")
CHECKS = (
    "cost_bounds", "cost_days", "cost_methods", "cost_of_holders", "cost_of_nodes", "cost_ratios", "cost_seconds",
    "cost_signs", "cost_sums",
)  # fmt: skip
SUMMED = (
    "list_cost", "contracted_cost", "billed_cost", "effective_cost", "pricing_quantity", "consumed_quantity",
    "commitment_quantity",
)  # fmt: skip


@dataclass(frozen=True)
class NodeHour:
    """A node and what happened on it in the hour that begins at `hour`.

    `ledger` rows name what they need (GPU-seconds by column, holder, pci_bus_id); `requests` are (pod, cpu_milli,
    memory GiB, share of the hour); `energy` is (pci_bus_id, joules, metered seconds).
    """

    node: str = "n"
    hour: str = "2026-06-03T10:00"
    gpus: int | None = 8
    vcpus: float | None = 192
    gib: float | None = 2048
    running_us: int = 3_600_000_000
    ledger: Sequence[Mapping[str, Any]] = ()
    requests: Sequence[tuple[str, int, float, float]] = ()
    energy: Sequence[tuple[str, Any, Any]] = ()
    charges: Sequence[Mapping[str, Any]] = ()
    accelerator: str | None = "H100"
    is_known: bool = True
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> dict[str, Any]:
        """Columns that every row of this node-hour has."""
        return {"date": date.fromisoformat(self.hour[:10]), "hour": at(self.hour), "cluster": "c", "node": self.node}


def held(holder: str, seconds: Any = 3600, utilized: Any = 0, unobserved: Any = 0, **more: Any) -> dict[str, Any]:
    """A ledger row of a device that a pod held for so long; what is neither utilized nor unobserved is stranded."""
    seconds, utilized, unobserved = (Decimal(str(n)) for n in (seconds, utilized, unobserved))
    return {
        "holder": holder, "namespace": f"ns-{holder}", "pod": holder, "team": f"team-{holder}", "workload_kind": "Job",
        "capacity_gpu_seconds": seconds, "allocated_gpu_seconds": seconds, "utilized_gpu_seconds": utilized,
        "unobserved_gpu_seconds": unobserved, "stranded_gpu_seconds": seconds - utilized - unobserved, **more,
    }  # fmt: skip


def free(seconds: Any = 3600, **more: Any) -> dict[str, Any]:
    """A ledger row of a device that nobody held."""
    return {"holder": None, "capacity_gpu_seconds": seconds, "unallocated_gpu_seconds": seconds, **more}


def broken(seconds: Any = 3600, **more: Any) -> dict[str, Any]:
    """A ledger row of a device that could not work."""
    return {"holder": None, "capacity_gpu_seconds": seconds, "unavailable_gpu_seconds": seconds, **more}


def usage(price: Any, hours: Any = 1, charge_id: str = "1", **more: Any) -> dict[str, Any]:
    """A charge for so many hours at this unit price, on demand."""
    price, hours = Decimal(str(price)), Decimal(str(hours))
    return {
        "charge_id": charge_id, "charge_origin": "computed", "charge_scope": "node", "charge_category": "Usage",
        "pricing_category": "Standard", "pricing_unit": "Hours", "billing_currency": "USD", "provider": "p1",
        "region": "r1", "pricing_quantity": hours, "consumed_quantity": hours, "list_unit_price": price,
        "contracted_unit_price": price, "list_cost": price * hours, "contracted_cost": price * hours,
        "billed_cost": round(price * hours, 10), "effective_cost": round(price * hours, 10), **more,
    }  # fmt: skip


def attribute(
    money: Money, hours: Sequence[NodeHour], method: str = "whole_node", policy: str = "central"
) -> list[dict[str, Any]]:
    """Fill the tables, run the attribution over them, and return the rows of mart.cost_hourly."""
    size, ledger, requests, energy, charges = [], [], [], [], []
    for n in hours:
        if n.is_known:
            size.append({
                **n.key, "node_uid": f"uid-{n.node}", "gpu_count": n.gpus, "running_us": n.running_us,
                "cpu_milli": None if n.vcpus is None else round(n.vcpus * 1000),
                "memory_bytes": None if n.gib is None else round(n.gib * GIB), **n.more,
            })  # fmt: skip
        for i, row in enumerate(n.ledger):
            ledger.append({**n.key, "pci_bus_id": f"{i:02}", "accelerator": n.accelerator, **row})
        for pod, milli, gib, share in n.requests:
            requests.append({
                **n.key, "pod_uid": pod, "namespace": f"ns-{pod}", "pod": pod, "team": f"team-{pod}",
                "workload_kind": "Pod", "cpu_milli_seconds": round(milli * 3600 * share),
                "memory_mib_seconds": round(gib * 1024 * 3600 * share),
            })  # fmt: skip
        for device, joules, seconds in n.energy:
            energy.append({**n.key, "pci_bus_id": device, "metered_energy_j": joules, "metered_gpu_seconds": seconds})
        charges += [{**n.key, "accelerator": n.accelerator, "resource_id": n.node, **c} for c in n.charges]
    money.put("core.node_hours", size)
    money.put("mart.gpu_ledger_hourly", ledger)
    money.put("core.pod_request_hours", requests)
    money.put("core.gpu_energy_hourly", energy)
    money.put("core.charges", charges)
    money.put(
        "raw.settings",
        [{"setting": "price_share_method", "value": method}, {"setting": "unused_policy", "value": policy}],
    )
    for model in MODELS:
        money.run(model)
    rows = money.con.sql("select * from mart.cost_hourly order by date, charge_id, cost_part, holder")
    return [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]


def failing(money: Money) -> list[str]:
    """Names of the checks that find something wrong."""
    return [name for name in CHECKS if money.check(name)]


def by_part(rows: Sequence[Mapping[str, Any]], column: str = "effective_cost") -> dict[str, Any]:
    """One column's sums, by holder or by kind of part."""
    found: dict[str, Any] = {}
    for row in rows:
        name = row["holder"] or row["cost_part"]
        found[name] = found.get(name, 0) + row[column]
    return found
