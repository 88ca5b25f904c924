"""Node hours: creation, end, names used again, lists that are missing, and what a node is."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from small_cloud import MINUTE, Node, at, models, put, put_lists, rows, run, times

from warehouse.lake import Lake
from warehouse.runner import build

HOURS = ("core.node_lives", "core.node_hours")
FULL = 60.0


def minutes(lake: Lake, node: str = "n", day: int = 1, **wanted: object) -> dict[int, float]:
    """Minutes that the node ran, by hour of the day."""
    found: dict[int, float] = {}
    for row in rows(lake, "core.node_hours", node=node, **wanted):
        if row["date"].day == day and row["date"].month == 3:
            found[row["hour"].hour] = found.get(row["hour"].hour, 0) + row["running_us"] / 60_000_000
    return found


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_a_day_of_lists_is_a_day(lake: Lake) -> None:
    put_lists(lake, [Node("n")], times(at(1), at(2)))
    run(lake, HOURS)
    assert minutes(lake) == dict.fromkeys(range(24), FULL)
    assert {r["node_finished_at"] for r in rows(lake, "core.node_hours")} == {None}


def test_the_open_end_is_one_usual_spacing_after_the_last_list(lake: Lake) -> None:
    put_lists(lake, [Node("n")], times(at(1), at(1, 10, 25), 10))
    run(lake, HOURS)
    assert minutes(lake) == {**dict.fromkeys(range(10), FULL), 10: 30}
    put_lists(lake, [Node("n")], [at(1, 10)])
    run(lake, HOURS)
    assert minutes(lake) == {**dict.fromkeys(range(10), FULL), 10: 5}


def test_from_its_creation_to_the_first_complete_list_without_it(lake: Lake) -> None:
    node = Node("n", created_at=at(1, 3, 17), gone_at=at(1, 10, 20))
    put_lists(lake, [node, Node("other")], times(at(1), at(2)), incomplete=[at(1, 10, 20)])
    run(lake, HOURS)
    assert minutes(lake) == {3: 43, **dict.fromkeys(range(4, 10), FULL), 10: 25}
    assert {r["node_finished_at"] for r in rows(lake, "core.node_hours", node="n")} == {at(1, 10, 25)}


def test_created_between_lists_and_over_midnight(lake: Lake) -> None:
    node = Node(
        "n",
        created_at=at(
            1,
            23,
            58,
        ),
        gone_at=at(2, 1),
    )
    put_lists(lake, [node], times(at(1), at(4)))
    run(lake, HOURS, 1, 3)
    assert minutes(lake) == {23: 2}
    assert minutes(lake, day=2) == {0: FULL}
    # the end is told on its date and the one before
    assert {r["node_finished_at"] for r in rows(lake, "core.node_hours")} == {at(2, 1)}


def test_first_listed_late(lake: Lake) -> None:
    # another node's lists begin on the first; n is first listed on the second at 14:00, created on the first at 18:30
    early, late = times(at(1), at(2, 12)), times(at(2, 14), at(3))
    put_lists(lake, [Node("m"), replace(Node("n"), created_at=at(1, 18, 30))], [*late, *early])
    run(lake, HOURS, 1, 2)
    assert minutes(lake) == {18: 30, **dict.fromkeys(range(19, 24), FULL)}
    assert minutes(lake, day=2) == dict.fromkeys(range(24), FULL)


def test_hours_before_the_first_list_of_a_date_count_and_dates_before_it_do_not(lake: Lake) -> None:
    put_lists(lake, [Node("n")], times(at(2, 14), at(3)))
    run(lake, HOURS, 1, 2)
    assert minutes(lake) == {}
    assert minutes(lake, day=2) == dict.fromkeys(range(24), FULL)


@pytest.mark.parametrize(("back", "there"), [(at(2, 9), True), (at(3, 10), True), (at(3, 11), False)])
def test_lists_may_be_missing_for_two_days(lake: Lake, back: datetime, there: bool) -> None:
    put_lists(lake, [Node("n")], [*times(at(1), at(1, 10, 1)), *times(back, at(4))])
    run(lake, HOURS, 1, 3)
    first = minutes(lake)
    assert first[10] == (FULL if there else 5)
    assert (first.get(23) == FULL) is there
    assert (minutes(lake, day=2).get(3) == FULL) is there
    assert minutes(lake, day=3)[12] == FULL


def test_gone_while_lists_were_missing(lake: Lake) -> None:
    # the first complete list after the gap lacks it
    put_lists(
        lake, [Node("n", gone_at=at(1, 11)), Node("m")], [*times(at(1), at(1, 10, 1)), *times(at(2, 9, 30), at(3))]
    )
    run(lake, HOURS, 1, 2)
    assert minutes(lake)[23] == FULL
    assert minutes(lake, day=2) == {**dict.fromkeys(range(9), FULL), 9: 30}


def test_a_name_used_again_is_another_object(lake: Lake) -> None:
    old, new = Node("n", uid="a", gone_at=at(1, 10, 1)), Node("n", uid="b", created_at=at(1, 10, 2))
    put_lists(lake, [old, new], times(at(1), at(2)))
    run(lake, HOURS)
    # the old one is there until the new one is created, not until the list that shows the new one
    assert minutes(lake, node_uid="a")[10] == 2
    assert minutes(lake, node_uid="b")[10] == 58
    assert {r["node_finished_at"] for r in rows(lake, "core.node_hours", node_uid="a")} == {at(1, 10, 2)}


def test_without_uid_the_creation_tells_objects_apart(lake: Lake) -> None:
    old, new = Node("n", uid=None, gone_at=at(1, 10)), Node("n", uid=None, created_at=at(1, 12))
    put_lists(lake, [old, new], times(at(1), at(2)))
    run(lake, HOURS)
    assert len({r["node_uid"] for r in rows(lake, "core.node_hours")}) == 2
    assert minutes(lake) == {h: FULL for h in range(24) if h not in (10, 11)}


def test_two_machines_that_go_by_one_name_are_one_at_a_time(lake: Lake) -> None:
    # as where two clusters are listed under one name
    nodes = [Node("n", uid=u) for u in "ab"]
    put_lists(lake, nodes[:1], times(at(1), at(3)))
    put(lake, "raw.kube_nodes", [
        {**r, "node_uid": "ab"[i % 2]} for i, r in enumerate(rows(lake, "raw.kube_nodes"))
    ])  # fmt: skip
    run(lake, HOURS, 1, 2)
    assert minutes(lake) == minutes(lake, day=2) == dict.fromkeys(range(24), FULL)


def test_same_node_name_in_two_clusters(lake: Lake) -> None:
    put_lists(
        lake, [Node("n"), Node("n", cluster="d", created_at=at(1, 12)), Node("m", cluster="d")], times(at(1), at(2))
    )
    run(lake, HOURS)
    assert minutes(lake, cluster="c") == dict.fromkeys(range(24), FULL)
    assert minutes(lake, cluster="d") == dict.fromkeys(range(12, 24), FULL)


@pytest.mark.parametrize(
    ("labels", "resources", "count", "accelerator"),
    [
        ({}, {}, 0, None),
        ({}, {"vpc.amazonaws.com/efa": 32}, 0, None),
        ({}, {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}, 8, None),
        ({"nvidia.com/gpu.count": "4", "nvidia.com/gpu.product": "Tesla-T4"}, {"nvidia.com/gpu": 4}, 4, "T4"),
        ({"nvidia.com/gpu.replicas": "5", "nvidia.com/gpu.product": "L4-SHARED"}, {"nvidia.com/gpu": 10}, 2, "L4"),
        (
            {"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.count": "14",
             "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},
            {"nvidia.com/gpu": 14}, 2, "A100-SXM4-40GB",
        ),
        ({"nvidia.com/mig.strategy": "mixed"}, {"nvidia.com/mig-3g.20gb": 2, "nvidia.com/mig-1g.5gb": 8}, 2, None),
        ({"nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.count": "8"}, {"nvidia.com/mig-3g.20gb": 2}, 8, None),
        ({"nvidia.com/gpu.count": "9223372036854775807"}, {"nvidia.com/mig-9223372036854775807g.5gb": 1}, 0, None),
        ({"cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice"}, {"google.com/tpu": 4}, 4, "TPU-v5p-slice"),
    ],
)  # fmt: skip
def test_accelerators_are_counted_as_devices(
    lake: Lake, labels: dict[str, str], resources: dict[str, int], count: int, accelerator: str | None
) -> None:
    put_lists(lake, [Node("n", labels=labels, resources=resources)], [at(1)])
    run(lake, HOURS)
    row = rows(lake, "core.node_hours")[0]
    assert (row["gpu_count"], row["accelerator"]) == (count, accelerator)


@pytest.mark.parametrize(
    ("labels", "capacity_type"),
    [
        ({}, "on-demand"),
        ({"karpenter.sh/capacity-type": "spot"}, "spot"),
        ({"karpenter.sh/capacity-type": "reserved"}, "reserved"),
        ({"eks.amazonaws.com/capacityType": "SPOT"}, "spot"),
        ({"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"}, "reserved"),
        ({"cloud.google.com/gke-spot": "true"}, "spot"),
        ({"kubernetes.azure.com/scalesetpriority": "spot"}, "spot"),
    ],
)
def test_capacity_types(lake: Lake, labels: dict[str, str], capacity_type: str) -> None:
    put_lists(lake, [Node("n", labels=labels)], [at(1)])
    run(lake, HOURS)
    assert rows(lake, "core.node_hours")[0]["capacity_type"] == capacity_type


def test_what_a_node_is_comes_from_its_newest_list_of_the_date(lake: Lake) -> None:
    place = {"topology.kubernetes.io/region": "eu-1", "node.kubernetes.io/instance-type": "p5"}
    first = Node("n", gone_at=at(1, 12), labels={**place, "strandline.io/owner": "vision"})
    second = replace(
        first, created_at=first.created_at, gone_at=datetime.max, labels={**place, "strandline.io/owner": "speech"}
    )
    put_lists(lake, [first], times(at(1), at(1, 12)))
    run(lake, HOURS)
    row = rows(lake, "core.node_hours")[0]
    assert (row["provider"], row["resource_id"], row["region"]) == ("aws", "aws:///eu-1a/i-n", "eu-1")
    assert (row["instance_type"], row["owner_team"]) == ("p5", "vision")
    put_lists(lake, [second], times(at(2), at(3)))
    run(lake, HOURS, 1, 2)
    assert [r["owner_team"] for r in rows(lake, "core.node_hours") if r["hour"].hour == 12] == ["vision", "speech"]
    put_lists(lake, [replace(first, provider_id=None)], [at(1)])
    run(lake, HOURS)
    assert {r["resource_id"] for r in rows(lake, "core.node_hours") if r["date"].day == 1} == {"c/n"}


def test_day_by_day_or_all_at_once(tmp_path: Path) -> None:
    """A date's rows do not depend on the window, nor on what was known when it was first built."""
    nodes = [
        Node("m"), Node("n", created_at=at(1, 18, 30), gone_at=at(4, 7, 3)), Node("o", gone_at=at(3, 2)),
        Node("p", uid="1", gone_at=at(2, 9)), Node("p", uid="2", created_at=at(2, 9)),
    ]  # fmt: skip
    instants = [*times(at(1), at(1, 20)), *times(at(2, 6), at(3, 1)), *times(at(3, 22), at(6))]
    whole, single, grown = (Lake(tmp_path / name) for name in ("whole", "single", "grown"))
    for lake in (whole, single):
        put_lists(lake, nodes, instants)
    run(whole, HOURS, 1, 5)
    run(single, HOURS, 1, 5, chunk_days=1)
    for day in range(1, 6):
        put_lists(grown, nodes, [t for t in instants if t.day == day])
        build(grown, models=models(HOURS))
    expected = rows(whole, "core.node_hours")
    assert expected == rows(single, "core.node_hours")
    assert expected == rows(grown, "core.node_hours")
    assert minutes(whole, "n", 1) == {18: 30, **dict.fromkeys(range(19, 24), FULL)}
    assert minutes(whole, "o", 3) == dict.fromkeys(range(22), FULL)
    assert sum(minutes(whole, "p", 2).values()) == 24 * FULL


def test_hours_of_a_day_of_many_nodes_are_within_bounds(lake: Lake) -> None:
    nodes = [Node(f"n{i}", created_at=at(1) + 7 * i * MINUTE, gone_at=at(1, 12) + 11 * i * MINUTE) for i in range(40)]
    put_lists(lake, nodes, times(at(1), at(2)))
    run(lake, HOURS)
    found = rows(lake, "core.node_hours")
    assert all(0 < r["running_us"] <= 3_600_000_000 for r in found)
