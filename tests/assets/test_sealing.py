"""Sealing: any order and any repetition, old rows and new, death between the steps: equal raw tables."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from datetime import date, datetime, timedelta
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from assets.merging import DCGM_TABLES
from assets.sealing import seal
from sources.dcgm import Scrape
from sources.kubernetes import KubeList
from sources.kubernetes.parse import KUBE_TABLES
from warehouse.contracts import CONTRACTS
from warehouse.lake import Lake
from warehouse.landing import Landing, Record

AT = datetime(2026, 3, 2, 0, 30)
RATIO = "DCGM_FI_DEV_GPU_UTIL_RATIO"


def _scrape(minute: int, text: str, target: str = "t") -> Record:
    return Scrape("c", target, "n", AT + timedelta(minutes=minute), text.encode(), 200, 0.1).record()


def _temp(minute: int, value: float, pad: str = "", target: str = "t") -> Record:
    return _scrape(minute, f'DCGM_FI_DEV_GPU_TEMP{{UUID="GPU-a"}} {value}\n{pad}', target)


def _listed(minute: int, *names: str, nodes: bool = False) -> Record:
    items = [{"kind": "Pod", "metadata": {"name": n, "uid": n, "namespace": "ml"}} for n in names]
    items += [{"kind": "Node", "metadata": {"name": "n"}}] if nodes else []
    body = orjson.dumps({"kind": "List", "items": items})
    return KubeList("c", AT + timedelta(minutes=minute), body, "list.json").record()


def _records() -> list[Record]:
    """Scrapes over three hours with rivals, a gap, an unclear unit, a stamped sample; lists with rivals."""
    records = [_temp(m, 40 + m % 9) for m in range(0, 90, 3)]
    records += [_temp(6, 1, "# a longer body counts\n"), _temp(9, 2), _temp(12, 3)]
    records += [Scrape("c", "t", "n", AT + timedelta(minutes=m), None, None, 1.0, "refused").record() for m in (3, 91)]
    records += [_scrape(20, ""), _scrape(21, "broken\n"), _scrape(0, "x{} NaN\n", "other")]
    records += [_scrape(m, f'{RATIO}{{UUID="GPU-b"}} {v}\n', "u") for m, v in ((1, "0.500000"), (2, "0.25"), (3, "70"))]
    records += [_scrape(m, f'{RATIO}{{UUID="GPU-b"}} {v}\n', "v") for m, v in ((1, "0"), (2, "1"), (3, "0.5"))]
    stamp = (AT - datetime(1970, 1, 1)) // timedelta(milliseconds=1) + 29 * 60_000
    records += [_scrape(30, f'DCGM_FI_DEV_GPU_TEMP{{UUID="GPU-s"}} 40 {stamp}\n', "w")]
    records += [_listed(0, "p", nodes=True), _listed(0, "p"), _listed(0, nodes=True), _listed(60, "p", "q", "r"),
                _listed(60, "s"), _listed(61, nodes=True)]  # fmt: skip
    return records


def _tables(lake: Lake) -> dict[str, list[dict[str, object]]]:
    found = {}
    for name in (*DCGM_TABLES, *KUBE_TABLES):
        rows = lake.read(name).to_pylist()
        found[name] = sorted(rows, key=lambda r: str([r[c] for c in CONTRACTS[name].key]))
    return found


def _sealed(root: Path, *batches: list[Record]) -> Lake:
    lake = Lake(root)
    for batch in batches:
        Landing(lake.root).append(batch)
        seal(lake)
    return lake


def test_one_batch(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    Landing(lake.root).append(_records())
    report = seal(lake, run_id="r")
    tables = _tables(lake)
    temps = {r["sampled_at"]: r["gpu_temp_c"] for r in tables["raw.dcgm_samples"] if r["target"] == "t"}
    assert temps[AT + timedelta(minutes=6)] == 1.0
    assert temps[AT + timedelta(minutes=3)] == 43.0
    assert {r["sampled_at"] for r in tables["raw.dcgm_samples"] if r["target"] == "w"} == {AT + timedelta(minutes=29)}
    assert [r["error"] for r in tables["raw.scrapes"] if not r["is_up"]] == ["refused"]
    snapshots = {(r["snapshot_at"], r["kind"]): r["objects"] for r in tables["raw.kube_snapshots"]}
    assert snapshots[AT, "Pod"] == 1
    assert snapshots[AT + timedelta(minutes=60), "Pod"] == 3
    assert report.dates == {date(2026, 3, 1), date(2026, 3, 2)}
    assert {m.date for m in lake.marks()} == report.dates
    assert Landing(lake.root).files() == []
    assert (report.rejected_lines, report.damaged_files) == (1, 0)


@pytest.mark.parametrize("seed", range(3))
def test_order_and_repetition_change_nothing(tmp_path: Path, seed: int) -> None:
    expected = _tables(_sealed(tmp_path / "whole", _records()))
    rng = random.Random(seed)
    records = [*_records(), *rng.sample(_records(), 12)]
    rng.shuffle(records)
    cuts = sorted(rng.sample(range(len(records)), 3))
    batches = [records[a:b] for a, b in zip([0, *cuts], [*cuts, len(records)], strict=True)]
    assert _tables(_sealed(tmp_path / "parts", *batches)) == expected


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    lake = _sealed(tmp_path, _records())
    before = {t: lake.version(t) for t in CONTRACTS}
    lake.clear(lake.marks())
    Landing(lake.root).append(_records())
    assert seal(lake).versions == {}
    assert {t: lake.version(t) for t in CONTRACTS} == before
    assert lake.marks() == []


def test_a_wrong_verdict_is_redone_for_rows_already_sealed(tmp_path: Path) -> None:
    lake = _sealed(tmp_path, [_scrape(1, f'{RATIO}{{UUID="GPU-b"}} 0.500000\n')])
    assert lake.read("raw.dcgm_samples")["gpu_util_ratio"].to_pylist() == [0.5]
    _sealed(tmp_path, [_scrape(2, f'{RATIO}{{UUID="GPU-b"}} 70\n')])
    assert sorted(lake.read("raw.dcgm_samples")["gpu_util_ratio"].to_pylist()) == [0.005, 0.7000000000000001]
    assert lake.read("raw.field_maps")["verdict"].to_pylist() == ["range"]


def test_rows_of_other_origin_stay_and_a_body_counts_more(tmp_path: Path) -> None:
    schema = CONTRACTS["raw.scrapes"].arrow_schema
    base = {"cluster": "c", "target": "t", "is_up": True, "hour": AT.replace(minute=0), "date": AT.date()}
    history = [{**base, "scrape_at": AT + timedelta(minutes=m), "samples": 99} for m in (0, 1)]
    lake = Lake(tmp_path)
    start = AT.replace(minute=0)
    lake.replace("raw.scrapes", pa.Table.from_pylist(history, schema=schema), start, start + timedelta(hours=1))
    _sealed(tmp_path, [_temp(0, 40)])
    assert sorted(lake.read("raw.scrapes")["samples"].to_pylist()) == [1, 99]


def test_hours_not_over_yet_can_wait(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    Landing(lake.root).append([_temp(0, 40), _temp(31, 41)])
    seal(lake, until=datetime(2026, 3, 2, 1))
    assert lake.read("raw.dcgm_samples")["gpu_temp_c"].to_pylist() == [40.0]
    assert len(Landing(lake.root).files()) == 1


def test_a_damaged_file_does_not_stop_the_rest(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    Landing(lake.root).append([_temp(0, 40)])
    (landed,) = Landing(lake.root).files()
    landed.path.write_bytes(b"gone")
    Landing(lake.root).append([_temp(1, 41)])
    report = seal(lake)
    assert report.damaged_files == 1
    assert lake.read("raw.dcgm_samples")["gpu_temp_c"].to_pylist() == [41.0]


_DIE = """
import os, signal, sys
from assets.sealing import seal
from warehouse.lake import Lake
left = int(sys.argv[2])
def step(name):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
seal(Lake(sys.argv[1]), progress=step)
"""


@pytest.mark.integration
def test_killed_between_any_two_steps_then_again(tmp_path: Path, project_root: Path) -> None:
    first, second = _records()[::2], [*_records()[1::2], _listed(62, "z")]
    expected = _tables(_sealed(tmp_path / "whole", first, second))
    steps: list[str] = []
    probe = _sealed(tmp_path / "probe", first)
    Landing(probe.root).append(second)
    seal(probe, progress=steps.append)
    names = ("mark", "replace raw.dcgm_samples", "replace raw.field_maps", "forget", "replace raw.kube_pods", "delete")
    for step in (steps.index(name) for name in names):
        root = tmp_path / f"killed-{step}"
        lake = _sealed(root, first)
        Landing(lake.root).append(second)
        died = subprocess.run([sys.executable, "-c", _DIE, str(root), str(step)], cwd=project_root, check=False,
                              env={**os.environ, "PYTHONPATH": str(project_root)})  # fmt: skip
        assert died.returncode == -signal.SIGKILL
        seal(lake)
        assert _tables(lake) == expected, steps[step]
        assert {m.date for m in lake.marks()} == {date(2026, 3, 1), date(2026, 3, 2)}
