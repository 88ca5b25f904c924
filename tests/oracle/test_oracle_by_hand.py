"""Small cases worked out by hand, for the rules the golden cases leave out: shares, lost by a second, gone pods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from oracle.ledger import expected

Rows = list[tuple[str, str, str]]  # metric, labels beside address and model, value


def _stamp(second: int) -> str:
    return f"2026-03-02T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"


def _pod(uid: str, ask: dict[str, str], start: int, end: int | None = None) -> dict[str, Any]:
    status: dict[str, Any] = {
        "phase": "Running" if end is None else "Succeeded",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": _stamp(start)}],
    }
    if end is not None:
        status["containerStatuses"] = [{"name": "main", "state": {"terminated": {"finishedAt": _stamp(end)}}}]
    spec = {"nodeName": "n", "containers": [{"name": "main", "resources": {"requests": ask}}]}
    meta = {"name": uid, "namespace": "ml", "uid": uid, "labels": {"team": uid}}
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def _case(
    folder: Path,
    capacity: dict[str, str],
    scrapes: dict[int, dict[str, Rows]],
    pods: dict[int, list[dict[str, Any]]],
    labels: dict[str, str] | None = None,
    model: str = "NVIDIA A30",
) -> dict[str, float]:
    """Totals of a one-node, one-hour case; ``scrapes`` is second -> address -> rows, ``pods`` second -> pods listed."""
    spec = {"scrape_interval_s": 60, "staleness_s": 180, "from": _stamp(0), "to": _stamp(3600)}
    (folder / "case.json").write_text(json.dumps(spec))
    manifest = []
    for at, gpus in scrapes.items():
        body = "".join(
            f'{metric}{{UUID="GPU-{pci}",pci_bus_id="{pci}",modelName="{model}"{more}}} {value}\n'
            for pci, rows in gpus.items()
            for metric, more, value in rows
        )
        (folder / f"{at}.prom").write_text(body)
        manifest.append({"kind": "dcgm", "file": f"{at}.prom", "node": "n", "cluster": "c", "at": _stamp(at)})
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": _stamp(0)}
    node = {
        "kind": "Node",
        "metadata": {"name": "n", "labels": labels or {}},
        "spec": {},
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]},
    }
    for at, listed in pods.items():
        (folder / f"{at}.json").write_text(json.dumps({"kind": "List", "items": [node, *listed]}))
        manifest.append({"kind": "kubernetes", "file": f"{at}.json", "cluster": "c", "at": _stamp(at)})
    (folder / "manifest.jsonl").write_text("".join(json.dumps(m) + "\n" for m in manifest))
    return {k.removesuffix("_gpu_seconds"): v for k, v in expected(folder)["total"].items()}


SM, GR, UTIL = "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"
EVERY = range(0, 3601, 60)


def test_one_of_two_replicas_held(tmp_path: Path) -> None:
    held = ',namespace="ml",pod="u1",vgpu="0"'
    total = _case(
        tmp_path,
        {"nvidia.com/gpu": "2"},
        {at: {"10": [(SM, held, "0.5"), (UTIL, held, "80")]} for at in EVERY},
        {at: [_pod("u1", {"nvidia.com/gpu": "1"}, 0)] for at in (0, 3600)},
        {"nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "2"},
    )
    assert (total["capacity"], total["allocated"], total["utilized"]) == (3600, 1800, 900)
    assert (total["resident"], total["rogue"]) == (1440, 900)


def test_a30_instance_by_engine_activity_alone(tmp_path: Path) -> None:
    one, two = ',GPU_I_ID="1",GPU_I_PROFILE="2g.12gb"', ',GPU_I_ID="2",GPU_I_PROFILE="1g.6gb"'
    values = {at: "0.5" if at < 1800 else "0.25" for at in EVERY}
    total = _case(
        tmp_path,
        {"nvidia.com/gpu": "0", "nvidia.com/mig-2g.12gb": "1", "nvidia.com/mig-1g.6gb": "1"},
        {at: {"10": [(GR, one, values[at]), (GR, two, "0"), (GR, "", "0.9")]} for at in EVERY},
        {at: [_pod("u1", {"nvidia.com/mig-2g.12gb": "1"}, 0)] for at in (0, 3600)},
        {"nvidia.com/gpu.count": "1"},
    )
    assert (total["capacity"], total["allocated"], total["unallocated"]) == (3600, 1800, 1800)
    assert total["utilized"] == 900 * 1 + 900 * 0.5  # half the device; the profile's maximum is 0.5
    assert total["rogue"] == 0


@pytest.mark.parametrize(("back", "unavailable"), [(900, 0), (960, 360)])
def test_lost_after_more_than_five_minutes(tmp_path: Path, back: int, unavailable: int) -> None:
    """First scrape without the GPU at 600; back at 900 is exactly five minutes."""
    both = {"10": [(SM, "", "0")], "11": [(SM, "", "0")]}
    scrapes = {at: {"10": both["10"]} if 600 <= at < back else both for at in EVERY}
    total = _case(tmp_path, {"nvidia.com/gpu": "2"}, scrapes, {0: [], 3600: []})
    assert (total["capacity"], total["unavailable"]) == (7200, unavailable)


def test_gone_pod_is_held_to_its_last_label(tmp_path: Path) -> None:
    scrapes = {at: {"10": [(SM, ',namespace="ml",pod="u1"' if at <= 900 else "", "1")]} for at in EVERY}
    lists = {0: [], 600: [_pod("u1", {"nvidia.com/gpu": "1"}, 300)], 1200: [], 3600: []}
    total = _case(tmp_path, {"nvidia.com/gpu": "1"}, scrapes, lists)
    assert (total["allocated"], total["utilized"], total["rogue"]) == (600, 600, 3000)


@pytest.mark.parametrize(("gap", "covered"), [(180, 3600), (181, 3600 - 121)])
def test_staleness_limit_is_inclusive(tmp_path: Path, gap: int, covered: int) -> None:
    times = [*range(0, 1801, 60), *range(1800 + gap, 3700, 60)]
    pods = {at: [_pod("u1", {"nvidia.com/gpu": "1"}, 0)] for at in (0, 3600)}
    total = _case(tmp_path, {"nvidia.com/gpu": "1"}, {at: {"10": [(SM, "", "0.5")]} for at in times}, pods)
    assert (total["allocated"], total["unobserved"]) == (3600, 3600 - covered)
    assert total["utilized"] == covered / 2


def test_node_share_is_the_mean_of_the_free_devices(tmp_path: Path) -> None:
    scrapes = {at: {"10": [(SM, "", "0.25")], "11": [(SM, "", "0.5")]} for at in EVERY}
    listed = [_pod("u1", {"nvidia.com/gpu": "1"}, 0), _pod("u2", {"nvidia.com/gpu": "2"}, 600, 1200)]
    total = _case(tmp_path, {"nvidia.com/gpu": "2"}, scrapes, {0: [listed[0]], 1500: listed, 3600: listed})
    assert (total["allocated"], total["utilized"]) == (4200, 225 + 450 + 900)
