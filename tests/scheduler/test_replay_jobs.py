"""Traces, fleets and queues from files: what a row becomes, and what is said of a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.model import Node, Quota, Role, Shape
from scheduler.replay.fleets import capacity, pool_nodes, queues_for, read_fleet, read_queues
from scheduler.replay.jobs import read_runs, roles, shake
from sources.traces import Job
from warehouse.errors import BadInput

EIGHT = [Node("a", "V100", 8), Node("b", "T4", 4)]


def test_pods_of_a_job() -> None:
    def pods(gpus: int, largest: int = 8) -> list[tuple[int, int]]:
        return [(r.shape.gpus, r.count) for r in roles(Job(0, 1, gpus), largest)]

    assert [pods(g) for g in (1, 8, 9, 32)] == [[(1, 1)], [(8, 1)], [(8, 1), (1, 1)], [(8, 4)]]
    assert pods(9, 4) == [(4, 2), (1, 1)]
    assert roles(Job(0, 1, 1, gpu_milli=460, cpu_milli=6000, memory_mib=7), 8) == (
        Role("worker", Shape(460, 6000, 7), 1),
    )
    # CPU and memory of the job are dealt by GPUs, so that no pod is short
    assert [r.shape.cpu_milli for r in roles(Job(0, 1, 9, cpu_milli=9001), 8)] == [8001, 1001]
    assert roles(Job(0, 1, 0, cpu_milli=5), 8) == (Role("worker", Shape(0, 5), 1),)


def test_jobs_of_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "submit_time,duration_s,num_gpus,vc,gpu_spec\n"
        "2017-09-04 10:30:42,2.5,8,b,\n2017-09-04 10:30:41,1,5,a,T4|P100\n2017-09-04 10:30:41,1,1,,\n"
    )
    runs = read_runs(path, EIGHT)
    assert [(r.job.job_id, r.job.queue, r.job.team) for r in runs] == [
        ("job#0", "a", "a"), ("job#1", "default", "default"), ("job#2", "b", "b"),
    ]  # fmt: skip
    assert runs[2].duration_us == 2_500_000
    assert runs[2].job.submit_us - runs[0].job.submit_us == 1_000_000
    # the largest node that has one of its models
    assert [r.count for r in runs[0].job.roles] == [1, 1]
    assert runs[0].job.accelerators == ("T4", "P100")
    assert [r.job.roles[0].count for r in read_runs(path, EIGHT, 1)] == [5, 1, 8]


def test_names_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("submit_s,duration_s,num_gpus,name\n0,1,1,x\n0,1,1,x\n1,1,1,y\n")
    assert [r.job.job_id for r in read_runs(path, EIGHT)] == ["x", "x#1", "y"]


def test_openb(shared_dir: Path) -> None:
    nodes = read_fleet(shared_dir / "traces/openb/openb_node_list_gpu_node.csv")
    assert (len(nodes), sum(n.gpus for n in nodes)) == (1213, 6212)
    assert nodes[0] == Node("openb-node-0000", "P100", 2, 64000, 262144)
    runs = read_runs(shared_dir / "traces/openb/openb_pod_list_gpuspec33.csv", nodes)
    assert len(runs) == 8152
    assert sum(r.job.gpu_milli % 1000 > 0 for r in runs) > 1000
    assert len(read_fleet(shared_dir / "traces/openb/openb_node_list_all_node.csv")) == 1523


def test_shaking_is_bounded_ordered_and_seeded(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("submit_s,duration_s,num_gpus\n" + "".join(f"{i},5,1\n" for i in range(200)))
    runs = read_runs(path, EIGHT)
    moved = shake(runs, 60_000_000, 1)
    assert moved == shake(runs, 60_000_000, 1) != shake(runs, 60_000_000, 2)
    assert [r.job.submit_us for r in moved] == sorted(r.job.submit_us for r in moved)
    before = {r.job.job_id: r.job.submit_us for r in runs}
    shifts = [r.job.submit_us - before[r.job.job_id] for r in moved]
    assert min(shifts) < 0 < max(shifts)
    assert max(map(abs, shifts)) <= 60_000_000
    assert shake(runs, 0, 1) == runs


def test_fleet_files(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(
        "nodes:\n- {count: 2, name: n, gpus: 8, flavor: A100, cpu_milli: 96000, labels: {rack: r1}}\n"
        "- {name: m, gpus: 4, schedulable: false}\n"
    )
    nodes = read_fleet(path)
    assert [n.name for n in nodes] == ["n-000", "n-001", "m"]
    assert (nodes[0].labels, nodes[0].cpu_milli, nodes[2].is_schedulable) == ({"rack": "r1"}, 96000, False)
    assert capacity(nodes) == {("gpu", "A100"): 16000, ("cpu", "A100"): 192000}
    table = tmp_path / "f.csv"
    table.write_text("count,gpus,flavor,labels\n1,2,T4,rack=r1;zone=z\n")
    assert read_fleet(table) == [Node("T4-000", "T4", 2, labels={"rack": "r1", "zone": "z"})]


def test_a_pool_as_nodes() -> None:
    assert [n.gpus for n in pool_nodes(20)] == [8, 8, 4]
    assert [n.gpus for n in pool_nodes(5)] == [5]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("f.csv", "name,gpus\na,8\nb,many\n", r"f\.csv:3: gpus: 'many' is no number"),
        ("f.csv", "name,gpus\na,8\na,8\n", r"f\.csv:3: name: a stands already in .*f\.csv:2"),
        ("f.csv", "name,gpus\n,8\n", r"f\.csv:2: name: is missing"),
        ("f.csv", "name,gpus\na,-1\n", r"f\.csv:2: gpus: '-1' is no whole number of 0 or more"),
        ("f.csv", "name,gpus\na,1.5\n", r"f\.csv:2: gpus: '1\.5' is no whole number"),
        ("f.csv", "name,gpus\na\n", r"f\.csv:2: not as many fields"),
        ("f.csv", "name,gpus,labels\na,1,rack\n", r"f\.csv:2: labels: 'rack' is no list of key=value"),
        ("f.csv", "name,gpus\n", r"f\.csv: no rows"),
        ("f.csv", "name,gpus\na,0\n", r"f\.csv: no node has a GPU"),
        ("f.yaml", "nodes:\n- name: a\n  gpus: 8\n- name: b\n  gpu_count: 8\n", r"f\.yaml:4: gpu_count: no such field"),
        ("f.yaml", "nodes: 5\n", r"f\.yaml:1: nodes: a list"),
        ("f.yaml", "- {name: a, gpus: 8, gpus: 4}\n", r"f\.yaml:1: no YAML: a key stands twice"),
        ("f.yaml", "- {name: a, gpus: [\n", r"f\.yaml:2: no YAML"),
        ("f.yaml", "- {count: 0, gpus: 8}\n", r"f\.yaml:1: count: 0 is not within"),
        ("f.yaml", "- {name: a, gpus: 8, schedulable: maybe}\n", r"f\.yaml:1: schedulable: 'maybe'"),
    ],
)
def test_bad_fleet_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=message):
        read_fleet(tmp_path / name)


def test_queues(tmp_path: Path, shared_dir: Path) -> None:
    path = tmp_path / "q.yaml"
    path.write_text(
        "- name: a\n  weight: 3\n  cohort: c\n  quotas:\n  - {flavor: T4, nominal: 4, borrowing_limit: 0.5}\n"
        "  - {flavor: T4, resource: cpu, nominal: 1000}\n- {name: '*', weight: 2}\n"
    )
    given = read_queues(path)
    assert given["a"].quotas == {("gpu", "T4"): Quota(4000, 500), ("cpu", "T4"): Quota(1000)}
    queues = queues_for(["b", "a"], given)
    assert {name: q.weight for name, q in queues.items()} == {"a": 3, "b": 2}
    philly = read_queues(shared_dir / "traces/philly/philly_vc_nodes.csv")
    assert {n: q.weight for n, q in queues_for(["23dbec", "6214e9"], philly).items()}["6214e9"] == 64
    assert queues_for(["23dbec"], philly)["23dbec"].weight == 0
    assert queues_for(["b", "a"]) == {n: type(queues["a"])(n) for n in ("a", "b")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {name: a}\n- {name: a}\n", r"q\.yaml:2: name: a stands twice"),
        ("- {name: a, wight: 1}\n", r"q\.yaml:1: wight: no such field; weight\?"),
        ("- name: a\n  quotas:\n  - {flavor: T4}\n", r"q\.yaml:3: nominal: is missing"),
        ("- name: a\n  quotas:\n  - {flavor: T4, nominal: 0.0001}\n", r"q\.yaml:3: nominal: 0\.0001 is no number with"),
        ("- name: a\n  quotas:\n  - {flavor: T4, nominal: 1, resource: tpu}\n", r"q\.yaml:3: resource: 'tpu'"),
        ("- name: a\n  quotas: 5\n", r"q\.yaml:1: quotas: is no list"),
    ],
)
def test_bad_queue_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "q.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        read_queues(path)
