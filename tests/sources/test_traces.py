"""Trace readers: the published files, the generic form, and rows that cannot be read."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from sources.traces import Job, read_trace
from warehouse.errors import BadInput


def test_philly(shared_dir: Path) -> None:
    jobs = read_trace(shared_dir / "traces/philly/philly_jobs_2017-09_10.parquet")
    assert len(jobs) == 52849
    assert round(sum(j.duration_s * j.num_gpus for j in jobs) / 3600) == 642409
    assert jobs[0].submit_s == (datetime(2017, 9, 4, 10, 30, 41) - datetime(1970, 1, 1)).total_seconds()
    assert len({j.group for j in jobs}) > 5


def test_openb(shared_dir: Path) -> None:
    jobs = read_trace(shared_dir / "traces/openb/openb_pod_list_default.csv")
    assert len(jobs) == 8152
    assert jobs[0] == Job(0.0, 12537496.0, 1, "LS", "openb-pod-0000", 1000, 12000, 16384)
    assert any(j.gpu_milli < 1000 for j in jobs)


def test_openb_models(shared_dir: Path) -> None:
    jobs = read_trace(shared_dir / "traces/openb/openb_pod_list_gpuspec33.csv")
    assert sum(bool(j.models) for j in jobs) == 2388
    assert ("V100M16", "V100M32") in {j.models for j in jobs}


def test_openb_lists_without_times_are_refused(shared_dir: Path) -> None:
    with pytest.raises(BadInput, match=r"multigpu20\.csv: no column duration_s"):
        read_trace(shared_dir / "traces/openb/openb_pod_list_multigpu20.csv")


def test_generic_forms(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "submit_time,duration_s,num_gpus,team\n1970-01-01T01:00:10+01:00,5,1,b\n1970-01-01 00:00:05,6.5,2,a\n"
    )
    assert read_trace(path) == [Job(5.0, 6.5, 2, "a"), Job(10.0, 5.0, 1, "b")]
    pl.DataFrame({"submit_s": [3, 1], "duration_s": [1, 2], "num_gpus": [8, 0]}).write_parquet(tmp_path / "t.parquet")
    assert read_trace(tmp_path / "t.parquet") == [Job(1.0, 2.0, 0), Job(3.0, 1.0, 8)]


def test_bad_rows_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("submit_time,duration_s,num_gpus\n2020-01-01,5,1\nsoon,x,1\n2020-01-01,-5,1.5\n2020-01-01,nan,\n")
    with pytest.raises(BadInput) as error:
        read_trace(path)
    assert str(error.value).splitlines() == [
        f"{path}: row 2: duration_s: 'x' is no valid number",
        f"{path}: row 2: submit_time: 'soon' is no time",
        f"{path}: row 3: duration_s: '-5' is no valid number",
        f"{path}: row 3: num_gpus: '1.5' is no valid number",
        f"{path}: row 4: duration_s: 'nan' is no valid number",
        f"{path}: row 4: num_gpus: None is no valid number",
    ]


@pytest.mark.parametrize(("name", "content"), [("t.parquet", b"no"), ("t.csv", b""), ("t.csv", b"a,b\n1,2,3\n")])
def test_unreadable_files(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=name.replace(".", r"\.")):
        read_trace(tmp_path / name)
    with pytest.raises(BadInput, match="no such file"):
        read_trace(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ("0,1e300,1,a", "duration_s"),
        ("0,99999999999999,1,a", "duration_s"),
        ("1e18,60,1,a", "submit_s"),
        ("-10,60,1,a", "submit_s"),
    ],
)
def test_times_that_no_clock_holds_are_refused_by_row_and_field(tmp_path: Path, row: str, field: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"submit_s,duration_s,num_gpus,team\n{row}\n")
    with pytest.raises(BadInput, match=rf"row 1: {field}"):
        read_trace(path)


@pytest.mark.parametrize(
    "values",
    [
        pl.Series("duration_s", [60_000_000], dtype=pl.Duration("us")),
        pl.Series("duration_s", [[60]]),
        pl.Series("duration_s", [b"60"]),
        pl.Series("num_gpus", [True]),
    ],
)
def test_columns_of_other_types_are_refused_by_name(tmp_path: Path, values: pl.Series) -> None:
    path = tmp_path / "trace.parquet"
    table = pl.DataFrame({"submit_s": [0.0], "duration_s": [60.0], "num_gpus": [1], "team": ["a"]})
    table.with_columns(values).write_parquet(path)
    with pytest.raises(BadInput, match=f"column {values.name}"):
        read_trace(path)
