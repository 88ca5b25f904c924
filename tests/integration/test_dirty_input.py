"""A lake that got everything wrong at once still builds, and its ledger still adds up.

Belongs here: dirt through the whole pipeline. What single readers refuse stands in tests/sources.
"""

from __future__ import annotations

import gzip
import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from busy_lake import body, start, strandline

from warehouse.engine import connect

pytestmark = pytest.mark.integration

AT = datetime(2026, 3, 2)
GOOD = body(50)
OTHER = body(7)  # another card in the same slot, as where two machines go by one node name
DIRT = (
    GOOD + OTHER, gzip.compress(GOOD), b"<html><body>502 {bad=\"gateway\"} 5</body></html>\n", b"",
    bytes(range(256)) * 200,
    GOOD + b"\0" * 500 + b"\n", GOOD.decode().encode("utf-16"), GOOD + b'x{a="' + b"y" * 3_000_000 + b'"} 1\n',
    GOOD.replace(b'gpu="0"', b'gpu="0",pod="x\'; drop table mart.gpu_ledger_hourly; --",namespace="=1+1"'),
    *(GOOD.replace(b" 50", b" " + value) for value in (b"1e308", b"-5", b"NaN", b"9223372036854775807", b"ERROR - x")),
)  # fmt: skip
TIME = "2026-03-01T00:00:00Z"
GPU = "nvidia.com/gpu"


def _node(name: str, gpus: object) -> dict:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": TIME}
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": TIME},
        "status": {"capacity": {GPU: gpus}, "allocatable": {GPU: gpus}, "conditions": [ready]},
    }


def _pod(name: str, gpus: object, bound: str = TIME) -> dict:
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": bound}]
    return {
        "metadata": {"name": name, "namespace": "=1+1", "uid": name, "creationTimestamp": TIME},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {GPU: gpus}}}]},
        "status": {"phase": "Running", "conditions": conditions},
    }


def _manifest(folder: Path) -> Path:
    folder.mkdir()
    lines = []
    bodies = [("dcgm", b) for b in (GOOD, *DIRT, GOOD)]
    nodes = [_node("n1", "1"), _node("n';--", "99999999999999"), _node("n2", "1e99999999"), 5, _node("n3", [1])]
    pods = [
        _pod("p'; drop table x;--", "1"), _pod("q", "99999999999"), _pod("r", "1", "0001-01-01T00:00:00+14:00"),
        _pod("s", "1", "9999-12-31T23:59:59Z"), _pod("t", "1", "0001-01-01T00:00:00Z"), None,
    ]  # fmt: skip
    for kind, items in (("Node", nodes), ("Pod", pods)):
        bodies.append(("kubernetes", json.dumps({"kind": f"{kind}List", "metadata": {}, "items": items}).encode()))
    bodies.append(("kubernetes", json.dumps({"kind": "NodeList", "items": {"a": nodes[0]}}).encode()))
    for number, (kind, content) in enumerate(bodies):
        (folder / str(number)).write_bytes(content)
        at = AT + timedelta(minutes=number if kind == "dcgm" else 0)
        entry = {"kind": kind, "file": str(number), "at": at.isoformat(), "cluster": "c"}
        lines.append(json.dumps(entry | ({"node": "n1"} if kind == "dcgm" else {})))
    lines += ["nonsense", '{"kind": "dcgm", "file": "0", "node": "n1", "at": "9999-12-31T23:59:59Z"}']
    path = folder / "manifest.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_a_lake_of_dirt_builds_and_its_ledger_adds_up(tmp_path: Path) -> None:
    data = tmp_path / "it's a lake?"
    process = start("ingest", "manifest", _manifest(tmp_path / "captured"), data=data)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 2
    for told in ("items of NodeList is no list", "not JSON", "9999-12-31", "99999999999 is out of range"):
        assert told in said
    assert "Traceback" not in said
    strandline("build", data=data)
    with connect(data) as con:
        scrapes, failed = con.execute("select count(*), count(error) from raw.scrapes").fetchall()[0]
        assert (scrapes, failed) == (len(DIRT) + 2, 0)
        rows = con.execute("""
            select count(*), count(distinct pci_bus_id),
                sum(capacity_gpu_seconds - allocated_gpu_seconds - unallocated_gpu_seconds - unavailable_gpu_seconds),
                sum(allocated_gpu_seconds - utilized_gpu_seconds - stranded_gpu_seconds - unobserved_gpu_seconds)
            from mart.gpu_ledger_hourly
        """).fetchall()  # fmt: skip
    assert rows[0][0] > 0
    assert rows[0][1:] == (1, 0, 0)
