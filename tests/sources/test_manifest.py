"""Bulk import: what lands, and what is said about lines that cannot be used."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from sources.manifest import import_manifest
from warehouse.errors import BadInput
from warehouse.landing import Landing, Record


def _write(folder: Path, *lines: Any) -> Path:
    (folder / "a.prom").write_text('DCGM_FI_DEV_GPU_TEMP{UUID="GPU-a"} 40\n')
    (folder / "l.json").write_text('{"kind": "PodList", "items": []}')
    (folder / "bad.json").write_text('{"kind": "PodList",\n "items": [,]}')
    path = folder / "m.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def _landed(landing: Landing) -> list[Record]:
    return [r for f in landing.files() for r in landing.read(f) or ()]


GOOD = {"kind": "dcgm", "file": "a.prom", "node": "n", "cluster": "c", "at": "2026-03-02T01:00:00+01:00"}


def test_lines_become_records(tmp_path: Path) -> None:
    listed = {"kind": "kubernetes", "file": "l.json", "at": "2026-03-02T00:00:00"}
    landing = Landing(tmp_path / "lake")
    report = import_manifest(_write(tmp_path, listed, "", GOOD, {**GOOD, "target": "t"}), landing, cluster="mine")
    report.check()
    records = _landed(landing)
    assert {(r.kind, r.cluster, r.target) for r in records} == {
        ("dcgm", "c", "n"), ("dcgm", "c", "t"), ("kubernetes", "mine", "l.json")}  # fmt: skip
    assert {r.at for r in records} == {datetime(2026, 3, 2)}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON at column"),
        ("[]", "a JSON object is expected"),
        ({**GOOD, "kind": "nvml"}, "kind 'nvml' is none of dcgm, kubernetes, pod_resources"),
        ({**GOOD, "file": None}, "file is missing"),
        ({**GOOD, "file": "none.prom"}, "file none.prom: No such file or directory"),
        ({**GOOD, "file": "../m.jsonl"}, "file ../m.jsonl: must stand in the folder of the manifest"),
        ({**GOOD, "file": "/etc/hostname"}, "file /etc/hostname: must stand in the folder of the manifest"),
        ({**GOOD, "file": "."}, "file .: Is a directory"),
        ({**GOOD, "at": "noon"}, "at: 'noon' is no time"),
        ({**GOOD, "at": None}, "at is missing"),
        ({**GOOD, "at": "0001-01-01T00:00:00Z"}, "out of range"),
        ({**GOOD, "node": 5}, "node: 5 is no text"),
        ({**GOOD, "node": ""}, "node is missing"),
        ({"kind": "kubernetes", "file": "bad.json", "at": GOOD["at"]}, "bad.json: not JSON at line 2 column 12"),
        ({"kind": "pod_resources", "file": "l.json", "at": GOOD["at"], "node": "n"}, "l.json: no list podResources"),
    ],
)
def test_a_bad_line_is_named_and_costs_no_other(tmp_path: Path, line: Any, message: str) -> None:
    landing = Landing(tmp_path / "lake")
    path = _write(tmp_path, GOOD, line, {**GOOD, "node": "m"})
    report = import_manifest(path, landing)
    assert len(_landed(landing)) == 2
    with pytest.raises(BadInput) as error:
        report.check()
    assert str(error.value).startswith(f"{path}:2: ")
    assert message in str(error.value)


def test_a_missing_manifest(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.jsonl: No such file"):
        import_manifest(tmp_path / "none.jsonl", Landing(tmp_path))


def test_a_link_out_of_the_folder(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "secret").write_text("x")
    (inside / "link").symlink_to(tmp_path / "secret")
    report = import_manifest(_write(inside, {**GOOD, "file": "link"}), Landing(tmp_path / "lake"))
    assert "must stand in the folder" in report.errors[0]
