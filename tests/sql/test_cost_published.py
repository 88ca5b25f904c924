"""Attribution against numbers that others published, the source named at each.

Where a source's model is another than ours (it shares what is idle, or bills max(request, usage)), the part that both
have is compared. The fleet worked out by hand stands in `test_cost_by_hand.py`.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from money_rows import Money
from node_hour import NodeHour, attribute, by_part, failing, free, held, usage

D = Decimal
METHOD = Path(__file__).resolve().parents[2] / "docs/cost/method.md"


@pytest.fixture
def money() -> Money:
    return Money()


def cents(amounts: dict[str, Any], digits: int = 2) -> dict[str, Decimal]:
    return {k: round(v, digits) for k, v in amounts.items()}


def test_aws_split_cost_allocation_of_an_accelerated_instance(money: Money) -> None:
    # AWS Data Exports user guide, "Example of split cost allocation data for accelerated instances": p3.16xlarge with
    # 8 GPU, 64 vCPU, 488 GB at 10 USD an hour, four pods. Allocated is what the page calls so: max(reserved, used).
    gpus = {"pod1": 1, "pod2": 3, "pod3": 2, "pod4": 2}
    vcpus = {"pod1": 16, "pod2": 18, "pod3": 16, "pod4": 16}  # 66 of 64: more than there is
    memory = {"pod1": 100, "pod2": 140, "pod3": 100, "pod4": 100}
    hour = NodeHour(
        vcpus=64, gib=488, ledger=[held(pod) for pod, n in gpus.items() for _ in range(n)],
        requests=[(pod, vcpus[pod] * 1000, memory[pod], 1.0) for pod in gpus], charges=[usage(10)],
    )  # fmt: skip
    rows = attribute(money, [hour], "aws_weights")
    split = by_part(rows)
    unused = split.pop("node_overhead")
    assert cents(split) == {"pod1": D("1.85"), "pod2": D("3.18"), "pod3": D("2.35"), "pod4": D("2.35")}
    # cost per GPU-hour 0.504 with the page's unit cost rounded to 0.056; unrounded 90 / 178.4
    assert round(by_part(rows, "gpu_ratio")["pod1"] * 10, 6) == round(D(90) / D("178.4"), 6)
    # The page deals the 48 GB that nobody asked for by memory; here they are node_overhead.
    total = {pod: split[pod] + unused * memory[pod] / 440 for pod in split}
    assert cents(total) == {"pod1": D("1.91"), "pod2": D("3.26"), "pod3": D("2.41"), "pod4": D("2.41")}
    assert sum(total.values()) == 10
    assert failing(money) == []


def test_aws_split_cost_allocation_without_accelerators(money: Money) -> None:
    # AWS Data Exports user guide, "Example of split cost allocation data": m5.xlarge, 4 vCPU, 16 GB, 1 USD an hour;
    # 9 : 1 makes 0.17 a vCPU-hour and 0.02 a GB-hour.
    hour = NodeHour(
        gpus=0, vcpus=4, gib=16, requests=[("cpu", 1000, 0, 1.0), ("memory", 0, 1, 1.0)], charges=[usage(1)]
    )  # fmt: skip
    split = cents(by_part(attribute(money, [hour], "aws_weights")))
    assert (split["cpu"], split["memory"]) == (D("0.17"), D("0.02"))


@pytest.mark.parametrize(
    ("method", "per_gpu_hour"),
    [
        ("aws_weights", "1.102"),  # AWS split cost allocation: 9 : 0.9 : 0.1
        ("opencost_ratios", "2.340"),  # OpenCost's default prices 0.95 : 0.031611 : 0.004237
        ("fixed:0.70:0.20:0.10", "4.816"),  # grafana/cloudcost-exporter PR 1097: gpuCostRatio 0.70
        ("fixed:0.95:0.03:0.02", "6.536"),  # Datadog, container cost allocation
        ("whole_node", "6.880"),  # the node's price over its GPUs, as CoreWeave prices
    ],
)
def test_five_methods_on_one_node(money: Money, method: str, per_gpu_hour: str) -> None:
    # p5.48xlarge, 55.04 USD an hour, 8 GPUs, 192 vCPU, 2048 GiB
    rows = attribute(money, [NodeHour(ledger=[held(f"p{i}") for i in range(8)], charges=[usage("55.04")])], method)
    costs = {row["holder"]: row["effective_cost"] for row in rows if row["holder"]}
    assert {round(cost, 3) for cost in costs.values()} == {D(per_gpu_hour)}
    assert sum(row["effective_cost"] for row in rows) == D("55.04")
    assert len({row["method_id"] for row in rows}) == 1


@pytest.mark.parametrize(
    ("gpus", "vcpus", "gib", "aws", "opencost"),
    [(8, 96, 1152, "26.3", "49.0"), (8, 64, 488, "40.4", "65.0"), (1, 16, 64, "30.2", "55.0")],
    ids=["p4d", "p3.16xlarge", "g5.4xlarge"],
)
def test_shares_of_other_instances(money: Money, gpus: int, vcpus: int, gib: int, aws: str, opencost: str) -> None:
    hour = NodeHour(gpus=gpus, vcpus=vcpus, gib=gib, ledger=[held("p")] * gpus, charges=[usage(1)])
    for method, share in (("aws_weights", aws), ("opencost_ratios", opencost)):
        rows = attribute(money, [hour], method)
        assert round(sum(row["gpu_ratio"] for row in rows) * 100, 1) == D(share)


@pytest.mark.parametrize("gpus", [1, 0, None])
def test_a_gpu_count_read_as_zero_costs_no_more_than_the_node(money: Money, gpus: int | None) -> None:
    # opencost#2657: g5.2xlarge, 1.35296 an hour, 8 vCPU, 32 GiB, 1 GPU, came to 3.345 for the GPU; right is 0.960283.
    hour = NodeHour(gpus=gpus, vcpus=8, gib=32, ledger=[held("p")], charges=[usage("1.35296")])
    rows = attribute(money, [hour], "opencost_ratios")
    assert round(by_part(rows)["p"], 6) == D("0.960283")
    assert sum(row["effective_cost"] for row in rows) == D("1.35296")


def test_an_idle_node_costs_its_gpus_for_its_minutes(money: Money) -> None:
    # opencost PR 762: p2.8xlarge, 8 GPUs at 0.642627, 158 minutes: 13.538009 of GPU idle cost
    hours = [
        NodeHour(
            hour=f"2026-06-03T{10 + i}:00", running_us=minutes * 60_000_000,
            ledger=[free(60 * minutes, pci_bus_id=str(g)) for g in range(8)],
            charges=[usage("0.642627", round(D(8 * minutes) / 60, 9), f"h{i}", pricing_unit="GPU-Hours")],
        )
        for i, minutes in enumerate((60, 60, 38))
    ]  # fmt: skip
    idle = by_part(attribute(money, hours))
    assert cents(idle, 6) == {"unallocated": D("13.538009")}
    # and where a node has no GPU there is no idle GPU (kubecost#1389, opencost PR 1193)
    rows = attribute(money, [NodeHour(gpus=0, vcpus=4, gib=16, charges=[usage(1)])], "opencost_ratios")
    assert [(r["cost_part"], r["gpu_ratio"]) for r in rows] == [("node_overhead", 0)]


def test_opencost_normalizes_default_prices_to_the_node(money: Money) -> None:
    # OpenCost specification, appendix A: 1 GPU, 1 CPU, 1 GB at 35; base prices 30, 30, 10 become 15, 15, 5
    hour = NodeHour(
        gpus=1, vcpus=1, gib=1, ledger=[held("gpu")], requests=[("cpu", 1000, 0, 1.0), ("ram", 0, 1, 1.0)],
        charges=[usage(35)],
    )  # fmt: skip
    rows = attribute(money, [hour], "fixed:0.428571429:0.428571428:0.142857143")
    assert cents(by_part(rows), 6) == {"gpu": D("15.000000"), "cpu": D("15.000000"), "ram": D("5.000000")}


def test_opencost_idle_is_asset_less_workload(money: Money) -> None:
    # OpenCost specification, idle costs: idle cost = asset costs - workload costs, idle % = idle / allocation costs.
    # 8 cores and 32 GB at OpenCost's prices; the workloads ask for 6 cores and 8 GB.
    hour = NodeHour(
        gpus=0, vcpus=8, gib=32, requests=[("w1", 4000, 4, 1.0), ("w2", 2000, 4, 1.0)], charges=[usage("0.388472")]
    )  # fmt: skip
    split = by_part(attribute(money, [hour], "opencost_ratios"))
    assert cents(split, 6) == {"w1": D("0.143392"), "w2": D("0.080170"), "node_overhead": D("0.164910")}
    assert sum(split.values()) == D("0.388472")


@pytest.mark.parametrize(
    ("accelerators", "totals"),
    [
        # shared by node: w1 to w4 share the two idle units beside them, w5 has five
        (("A", "B"), {"w1": "1.5", "w2": "1.5", "w3": "1.5", "w4": "1.5", "w5": "6"}),
        # shared by cluster: five units bear twelve
        (("A", "A"), {"w1": "2.4", "w2": "2.4", "w3": "2.4", "w4": "2.4", "w5": "2.4"}),
    ],
    ids=["by pool", "over all"],
)
def test_kubecost_idle_of_twelve_units(money: Money, accelerators: tuple[str, str], totals: dict[str, str]) -> None:
    # Kubecost docs, "Efficiency and Idle": [(w1, w2, w3, w4, --, --), (w5, --, --, --, --, --)], 12 units, 7 idle
    holders = (["w1", "w2", "w3", "w4", None, None], ["w5", None, None, None, None, None])
    hours = [
        NodeHour(
            node=f"n{i}", gpus=6, accelerator=kind, charges=[usage(6, 1, f"n{i}")],
            ledger=[held(h) if h else free() for h in units],
        )
        for i, (kind, units) in enumerate(zip(accelerators, holders, strict=True))
    ]  # fmt: skip
    rows = attribute(money, hours, policy="proportional")
    assert by_part(rows) == {"w1": 1, "w2": 1, "w3": 1, "w4": 1, "w5": 1, "unallocated": 7}
    months = money.run("mart.cost_monthly")
    found = {r["team"]: r["total_effective_cost"] for r in months if r["team"]}
    assert found == {f"team-{w}": D(total) for w, total in totals.items()}


def test_opencost_shared_namespace_and_shared_idle(money: Money) -> None:
    # opencost#1124: namespaces of 28, 36 and 18, idle of 20 in one cluster and 10 in another, told per resource: what
    # is a resource there is a pool of GPUs at 1 here. Sharing idle gives 14.688, 10.312 and 5; ns1 is then shared by
    # the others' own cost: ns2 bears 18.667 of it and 9.792 of its idle, 20.104 of idle in all and not 25.
    pools = {
        "c1 cpu": ("ns1 ns2", (3, 3), 5), "c1 ram": ("ns1 ns2", (13, 3), 15), "c1 rest": ("ns1 ns2", (12, 12), 0),
        "c2 cpu": ("ns2 ns3", (3, 3), 5), "c2 ram": ("ns2 ns3", (3, 3), 5), "c2 rest": ("ns2 ns3", (12, 12), 0),
    }  # fmt: skip
    hours = []
    for pool, (names, counts, idle) in pools.items():
        units = [n for n, count in zip(names.split(), counts, strict=True) for _ in range(count)]
        hours.append(
            NodeHour(
                node=pool,
                gpus=len(units) + idle,
                accelerator=pool,
                charges=[usage(len(units) + idle, 1, pool)],
                ledger=[held(n) for n in units] + [free() for _ in range(idle)],
            )
        )
    attribute(money, hours, policy="proportional")
    idle: dict[str, Decimal] = {}
    for row in money.run("mart.cost_monthly"):
        if row["team"]:
            idle[row["team"]] = idle.get(row["team"], D(0)) + row["borne_waste_cost"]
    assert cents(idle, 3) == {"team-ns1": D("14.688"), "team-ns2": D("10.312"), "team-ns3": D("5.000")}
    query = (
        METHOD.read_text("utf-8").split("## A team that serves all", 1)[1].split("```sql\n", 1)[1].split("```", 1)[0]
    )
    found = {team: (round(D(cost), 3), round(D(waste), 3)) for team, cost, waste in money.con.sql(query).fetchall()}
    assert found == {"team-ns2": (D("54.667"), D("20.104")), "team-ns3": (D("27.333"), D("9.896"))}


def test_focus_draft_split_of_a_covered_node(money: Money) -> None:
    # FOCUS working draft, data generator-calculated split cost allocation: usage 60, 36, 24 of a covered node of 24 h
    covered = usage(
        12, 24, pricing_category="Committed", billed_cost=0, effective_cost=240, commitment_id="ri",
        commitment_quantity=24,
    )  # fmt: skip
    hour = NodeHour(ledger=[held("a", 60), held("b", 36), held("c", 24)], charges=[covered])
    rows = attribute(money, [hour])
    assert by_part(rows, "allocated_ratio") == {"a": D("0.5"), "b": D("0.3"), "c": D("0.2")}
    assert by_part(rows) == {"a": 120, "b": 72, "c": 48}
    assert by_part(rows, "list_cost") == {"a": 144, "b": D("86.4"), "c": D("57.6")}
    assert by_part(rows, "pricing_quantity") == {"a": 12, "b": D("7.2"), "c": D("4.8")}
    assert by_part(rows, "billed_cost") == {"a": 0, "b": 0, "c": 0}


def test_replicas_divide_the_price_of_a_physical_gpu(money: Money) -> None:
    # opencost PR 2862: g4dn.xlarge, 4 vCPU, 16 GiB, one T4 advertised as four. The ledger has quarters of its seconds.
    hour = NodeHour(
        gpus=1, vcpus=4, gib=16, accelerator="T4", charges=[usage("0.526")],
        ledger=[held("p1", 900, 450, pci_bus_id="0"), held("p2", 900, pci_bus_id="0"), free(1800, pci_bus_id="0")],
    )  # fmt: skip
    assert by_part(attribute(money, [hour])) == {"p1": D("0.1315"), "p2": D("0.1315"), "unallocated": D("0.263")}
    rows = attribute(money, [hour], "opencost_ratios")
    # one physical GPU: 0.95 / (0.95 + 4 x 0.031611 + 16 x 0.004237) of 0.526
    whole = D("0.526") * D("0.95") / D("1.144236")
    assert cents(by_part(rows), 9)["p1"] == round(whole / 4, 9)


def test_instances_of_a_cut_gpu_share_its_price_by_slices(money: Money) -> None:
    # An A100 of 7 slices: 3g held, 2g free, 2 slices uncarved; energy is the board's, by the same seconds
    hour = NodeHour(
        gpus=1, accelerator="A100", charges=[usage("3.5")], energy=[("0", 360_000, 3600)],
        ledger=[
            held("p", "1542.857142", "700", pci_bus_id="0", gi_id=1),
            free("1028.571429", pci_bus_id="0", gi_id=2), free("1028.571429", pci_bus_id="0"),
        ],
    )  # fmt: skip
    rows = attribute(money, [hour])
    assert cents(by_part(rows), 6) == {"p": D("1.500000"), "unallocated": D("2.000000")}
    assert cents(by_part(rows, "metered_energy_j"), 3) == {"p": D("154285.714"), "unallocated": D("205714.286")}
    assert sum(row["metered_energy_j"] for row in rows) == 360_000
    assert failing(money) == []
