"""A small fleet's cost worked out by hand: three nodes, one hour, every kind of part.

The published examples of others stand in `test_cost_published.py`, random ones in `test_cost_conservation.py`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from money_rows import Money
from node_hour import METHODS, SUMMED, NodeHour, attribute, broken, by_part, failing, free, held, usage

D = Decimal

# Node a: 4 GPUs, 32 vCPU, 256 GiB, 12.34567890 an hour, half of it covered by a reservation at 3.6 (effective).
#   GPU 0: x the whole hour, 1200 s active, 600 s unobserved    GPU 1: x 1800 s (all active), then nobody
#   GPU 2: y 3600 s idle                                        GPU 3: cordoned and empty: unavailable
#   capacity 14400 s = x 5400 + y 3600 + free 1800 + broken 3600
A = NodeHour(
    node="a", gpus=4, vcpus=32, gib=256,
    ledger=[
        held("x", 3600, 1200, 600), held("x", 1800, 1800, pci_bus_id="01"), free(1800, pci_bus_id="01"),
        held("y", 3600, pci_bus_id="02"), broken(3600, pci_bus_id="03"),
    ],
    requests=[("x", 8000, 64, 1.0), ("z", 4000, 16, 0.5)],
    energy=[("00", D("1800000"), 3600), ("01", D("900000.000001"), 3000), ("02", D("250000"), 3600)],
    charges=[
        usage("12.3456789", "0.5", "a/1", owner_team="infra", pricing_category="Committed", billed_cost=0,
              effective_cost=D("3.6"), commitment_id="ri", commitment_quantity=D("0.5")),
        usage("12.3456789", "0.5", "a/2", owner_team="infra"),
    ],
)  # fmt: skip
# Node b: no accelerators, 16 vCPU, 64 GiB, 0.8 an hour; there for a quarter of an hour.
B = NodeHour(
    node="b", gpus=0, vcpus=16, gib=64, running_us=900_000_000, accelerator=None,
    requests=[("z", 8000, 16, 0.25)], charges=[usage("0.8", "0.25", "b/1")],
)  # fmt: skip
# Node c: 2 GPUs that the ledger does not know in this hour, 2.00000001 an hour, nothing on it.
C = NodeHour(node="c", gpus=2, vcpus=8, gib=32, charges=[usage("2.00000001", 1, "c/1")])
REST = NodeHour(
    node="a", is_known=False,
    charges=[
        {**usage(1, 1, "o/1"), "node": None, "cluster": None, "charge_scope": "commitment", "effective_cost": D("3.6"),
         "billed_cost": 0, "list_cost": 0, "contracted_cost": 0, "list_unit_price": None, "consumed_quantity": None,
         "contracted_unit_price": None, "commitment_quantity": D("0.5"), "commitment_id": "ri", "owner_team": "infra"},
        {**usage(7, 1, "o/2"), "node": None, "cluster": None, "charge_scope": "commitment",
         "charge_category": "Purchase", "effective_cost": 0},
        {**usage(1, 1, "o/3"), "node": None, "cluster": None, "charge_scope": "credit", "charge_category": "Credit",
         "list_cost": D("-2.5"), "contracted_cost": D("-2.5"), "billed_cost": D("-2.5"), "effective_cost": D("-2.5"),
         "pricing_quantity": None, "consumed_quantity": None, "list_unit_price": None, "contracted_unit_price": None},
        {**usage("0.3", 1, "o/4"), "node": None, "cluster": None, "charge_scope": "not_in_cluster"},
        {**usage("0.2", 1, "o/5"), "node": None, "cluster": None, "charge_scope": "other_services"},
        {**usage("0.19", 1, "o/6"), "node": None, "cluster": None, "charge_scope": "tax", "charge_category": "Tax"},
    ],
)  # fmt: skip
FLEET = (A, B, C, REST)


@pytest.fixture
def money() -> Money:
    return Money()


def of(rows: list[dict[str, Any]], charge_id: str) -> list[dict[str, Any]]:
    return [r for r in rows if r["charge_id"] == charge_id]


def test_the_covered_half_of_node_a(money: Money) -> None:
    rows = {r["holder"] or r["cost_part"]: r for r in of(attribute(money, FLEET), "a/1")}
    assert rows.keys() == {"x", "y", "unallocated", "unavailable"}
    # 5400, 3600, 1800 and 3600 of 14400 s
    assert {k: str(r["allocated_ratio"]) for k, r in rows.items()} == {
        "x": "0.375000000000", "y": "0.250000000000", "unallocated": "0.125000000000", "unavailable": "0.250000000000"
    }  # fmt: skip
    assert {k: r["pricing_quantity"] for k, r in rows.items()} == {
        "x": D("0.1875"), "y": D("0.125"), "unallocated": D("0.0625"), "unavailable": D("0.125")
    }  # fmt: skip
    assert {k: r["commitment_quantity"] for k, r in rows.items()} == {
        "x": D("0.1875"), "y": D("0.125"), "unallocated": D("0.0625"), "unavailable": D("0.125")
    }  # fmt: skip
    # list = 12.3456789 x quantity: 0.1875 -> 2.31481479375
    assert rows["x"]["list_cost"] == D("2.314814793750000000")
    assert rows["y"]["list_cost"] == D("1.543209862500000000")
    assert {k: r["billed_cost"] for k, r in rows.items()} == dict.fromkeys(rows, 0)
    # effective 3.6: 1.35, 0.9, 0.45, 0.9; x's 5400 s are 3000 active, 1800 idle, 600 unobserved -> 0.75, 0.45, 0.15
    assert {k: r["effective_cost"] for k, r in rows.items()} == {
        "x": D("1.35"), "y": D("0.9"), "unallocated": D("0.45"), "unavailable": D("0.9")
    }  # fmt: skip
    assert (rows["x"]["utilized_cost"], rows["x"]["stranded_cost"], rows["x"]["unobserved_cost"]) == (
        D("0.75"), D("0.45"), D("0.15")
    )  # fmt: skip
    assert (rows["y"]["utilized_cost"], rows["y"]["stranded_cost"], rows["y"]["unobserved_cost"]) == (0, D("0.9"), 0)
    assert (rows["unallocated"]["team"], rows["unallocated"]["stranded_cost"]) == (None, 0)
    assert (rows["x"]["team"], rows["x"]["workload_kind"], rows["x"]["accelerator"]) == ("team-x", "Job", "H100")


def test_the_rest_of_node_a_is_dealt_alike_and_carries_no_seconds(money: Money) -> None:
    rows = attribute(money, FLEET)
    second = {r["holder"] or r["cost_part"]: r for r in of(rows, "a/2")}
    # 6.17283945: 2.31481479375 and 1.5432098625 end in half a unit of 1e-10 or more; one unit is missing after flooring
    #   x .31481479375 -> 2.3148147937 rest .5   y 1.5432098625 rest 0   free 0.77160493125 -> 0.7716049312 rest .5
    #   two halves, one unit: the tie goes to holder before unallocated
    assert second["x"]["effective_cost"] == D("2.3148147938")
    assert second["unallocated"]["effective_cost"] == D("0.7716049312")
    assert second["unavailable"]["effective_cost"] == D("1.5432098625")
    first = {r["holder"] or r["cost_part"]: r for r in of(rows, "a/1")}
    assert (first["x"]["allocated_gpu_seconds"], first["x"]["utilized_gpu_seconds"]) == (5400, 3000)
    assert (first["x"]["stranded_gpu_seconds"], first["x"]["unobserved_gpu_seconds"]) == (1800, 600)
    assert first["unallocated"]["unallocated_gpu_seconds"] == 1800
    assert first["unavailable"]["unavailable_gpu_seconds"] == 3600
    # GPU 1's 900000.000001 J by halves: the odd millionth goes to the holder; GPU 3 was never metered
    assert first["x"]["metered_energy_j"] == D("2250000.000001")
    assert first["unallocated"]["metered_energy_j"] == D("450000")
    assert first["unavailable"]["metered_gpu_seconds"] == 0
    assert (first["x"]["metered_gpu_seconds"], first["unallocated"]["metered_gpu_seconds"]) == (5100, 1500)
    assert {r["allocated_gpu_seconds"] + r["unallocated_gpu_seconds"] for r in second.values()} == {0}
    assert {r["metered_energy_j"] for r in second.values()} == {0}


def test_a_node_without_accelerators_follows_requests(money: Money) -> None:
    rows = by_part(of(attribute(money, FLEET), "b/1"))
    # OpenCost: 16 x 0.031611 = 0.505776 for CPU, 64 x 0.004237 = 0.271168 for memory, of 0.776944; z asks for a half of
    # the CPU and a quarter of the memory: (0.252888 + 0.067792) / 0.776944 = 0.412745320126 of 0.2
    assert rows == {"z": D("0.0825490640"), "node_overhead": D("0.1174509360")}


def test_what_the_ledger_does_not_know_is_said(money: Money) -> None:
    rows = of(attribute(money, FLEET), "c/1")
    assert by_part(rows) == {"unledgered": D("2.00000001")}
    assert rows[0]["gpu_ratio"] == 1
    # and by weights, the GPUs' part is unledgered, and what nobody asked of CPU and memory is overhead
    rows = of(attribute(money, FLEET, "fixed:0.95:0.03:0.02"), "c/1")
    assert by_part(rows) == {"unledgered": D("1.9000000095"), "node_overhead": D("0.1000000005")}
    # a node that no list shows has one part under every method
    unknown = NodeHour(node="d", is_known=False, charges=[usage(3)])
    for method in METHODS:
        assert by_part(attribute(money, [unknown], method)) == {"unledgered": 3}


def test_what_is_not_a_node_is_one_part(money: Money) -> None:
    rows = {r["charge_id"]: r for r in attribute(money, FLEET) if r["charge_id"].startswith("o/")}
    assert {k: r["cost_part"] for k, r in rows.items()} == {
        "o/1": "committed_unused", "o/2": "commitment_purchase", "o/3": "credit", "o/4": "not_in_cluster",
        "o/5": "other_services", "o/6": "tax",
    }  # fmt: skip
    assert {(r["allocated_ratio"], r["team"], r["holder"]) for r in rows.values()} == {(1, None, None)}
    assert (rows["o/1"]["list_cost"], rows["o/1"]["consumed_quantity"], rows["o/1"]["flags"]) == (0, None, None)
    # a credit has no price: its cost is dealt as it is, and says so
    assert (rows["o/3"]["list_cost"], rows["o/3"]["effective_cost"]) == (D("-2.5"), D("-2.5"))
    assert rows["o/3"]["flags"] == "cost_not_price_times_quantity"


@pytest.mark.parametrize(
    ("policy", "of_node", "of_other_node", "of_commitment"),
    [("central", "central", "central", "central"), ("owner", "owner", "central", "owner"),
     ("proportional", "team", "team", "team")],
)  # fmt: skip
def test_the_policy_names_who_bears(
    money: Money, policy: str, of_node: str, of_other_node: str, of_commitment: str
) -> None:
    rows = attribute(money, FLEET, policy=policy)
    bearers = {(r["charge_id"], r["cost_part"]): r["bearer"] for r in rows}
    assert bearers["a/1", "holder"] == "team"
    assert bearers["a/1", "unallocated"] == of_node
    assert bearers["c/1", "unledgered"] == of_other_node
    assert bearers["o/1", "committed_unused"] == of_commitment
    assert {bearers[k] for k in bearers if k[0] in ("o/2", "o/3", "o/4", "o/5", "o/6")} == {"central"}


@pytest.mark.parametrize("policy", ["central", "owner", "proportional"])
@pytest.mark.parametrize("method", METHODS)
def test_totals_are_the_same_under_every_method_and_policy(money: Money, method: str, policy: str) -> None:
    rows = attribute(money, FLEET, method, policy)
    # 3.6 + 6.17283945 + 0.2 + 2.00000001 + 3.6 + 0 - 2.5 + 0.3 + 0.2 + 0.19
    assert sum(r["effective_cost"] for r in rows) == D("13.7628394600")
    # 0 + 6.17283945 + 0.2 + 2.00000001 + 0 + 7 - 2.5 + 0.3 + 0.2 + 0.19
    assert sum(r["billed_cost"] for r in rows) == D("13.5628394600")
    charges = [c for n in FLEET for c in n.charges]
    for metric in SUMMED:
        assert sum(r[metric] or 0 for r in rows) == sum(c.get(metric) or 0 for c in charges), metric
    assert failing(money) == []


def test_a_broken_list_cost_is_dealt_directly_and_flagged(money: Money) -> None:
    hours = [
        NodeHour(ledger=[held("x"), held("y"), free()], charges=[usage(3, 1, list_cost=D("10"), flags="no_rate")]),
    ]
    rows = attribute(money, hours)
    # the ratios are thirds at 1e-12, the odd unit with the first holder
    assert by_part(rows, "list_cost") == {
        "x": D("3.33333333334"), "y": D("3.33333333333"), "unallocated": D("3.33333333333")
    }  # fmt: skip
    assert {r["flags"] for r in rows} == {"no_rate,cost_not_price_times_quantity"}
    # contracted is sound and stays price x quantity
    assert all(r["contracted_cost"] == 3 * r["pricing_quantity"] for r in rows)


def test_a_list_cost_rounded_by_the_provider_stays_price_times_quantity(money: Money) -> None:
    # 0.123456789 x 0.777777777 = 0.096021946...; the bill says it at ten digits
    exact = D("0.123456789") * D("0.777777777")
    hours = [
        NodeHour(
            ledger=[held("x"), held("y"), free()],
            charges=[usage("0.123456789", "0.777777777", list_cost=round(exact, 10))],
        )
    ]
    rows = attribute(money, hours)
    assert sum(r["list_cost"] for r in rows) == round(exact, 10)
    assert {r["flags"] for r in rows} == {None}
    off = [abs(r["list_cost"] - D("0.123456789") * r["pricing_quantity"]) for r in rows]
    assert sorted(off)[:2] == [0, 0] and max(off) < D("0.0000000001")


def test_a_negative_correction_is_dealt_by_its_amount(money: Money) -> None:
    correction = usage(3, -1, charge_class="Correction", effective_cost=D("-3.0000000001"))
    rows = attribute(money, [NodeHour(ledger=[held("x", 3600, 1800), held("y"), free()], charges=[correction])])
    # thirds of 3.0000000001: floors 1, 1, 1 and one unit over, to x by name
    assert by_part(rows) == {"x": D("-1.0000000001"), "y": D("-1.0000000000"), "unallocated": D("-1.0000000000")}
    assert rows[0]["utilized_cost"] + rows[0]["stranded_cost"] == D("-1.0000000001")
    assert rows[0]["pricing_quantity"] == D("-0.333333334")
    assert failing(money) == []


def test_two_objects_of_one_name_in_an_hour_share_its_ledger(money: Money) -> None:
    # the node was made anew at half past: two objects, two charges, one ledger
    n = NodeHour(
        gpus=2, running_us=1_800_000_000, ledger=[held("x"), free()],
        charges=[usage(4, "0.5", "1", resource_id="i-1"), usage(4, "0.5", "2", resource_id="i-2")],
    )  # fmt: skip
    attribute(money, [n])
    money.con.execute("insert into core.node_hours select * replace ('other' as node_uid) from core.node_hours")
    money.run("core.cost_shares")
    rows = money.run("mart.cost_hourly")
    assert by_part(rows) == {"x": 2, "unallocated": 2}
    assert sum(r["allocated_gpu_seconds"] for r in rows) == 3600
    money.run("mart.cost_daily")
    assert failing(money) == []
