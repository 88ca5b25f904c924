"""Every pod that held an accelerator has one row of mart.job_efficiency, and its metrics tell what work it was."""

from __future__ import annotations

from datetime import datetime, time

import pytest
from simulated_lakes import SimulatedLake

pytestmark = pytest.mark.integration


@pytest.fixture(params=["clean", "broken"])
def lake(request: pytest.FixtureRequest) -> SimulatedLake:
    return request.getfixturevalue(f"{request.param}_lake")


def test_one_row_for_each_pod_that_held(lake: SimulatedLake) -> None:
    with lake.connect() as con:
        rows = con.execute(
            """
            select t.pod_uid is not null as held, coalesce(j.rows, 0), j.finished_at
            from (
                select cluster, pod_uid from raw.fleet_truth group by cluster, pod_uid having sum(held_gpu_seconds) > 0
            ) as t
            full join (
                select cluster, pod_uid, count(*) as rows, max(finished_at) as finished_at
                from mart.job_efficiency group by cluster, pod_uid
            ) as j using (cluster, pod_uid)
            """
        ).fetchall()
    assert sum(held for held, _, _ in rows) > 200
    assert {n for _, n, _ in rows} == {1}
    # A run that ended before telemetry began, and was still listed then, is one that the truth does not count.
    late = [end for held, _, end in rows if not held and (end is None or end > datetime.combine(lake.start, time()))]
    assert late == []


def test_shapes_are_told_from_metrics(lake: SimulatedLake) -> None:
    with lake.connect() as con:
        right, pods, shapes = con.execute(
            """
            select count(*) filter (j.shape = t.shape), count(*), count(distinct t.shape)
            from (
                select cluster, pod_uid, any_value(shape) as shape from raw.fleet_truth
                group by cluster, pod_uid having sum(held_gpu_seconds) > 0
            ) as t
            left join mart.job_efficiency as j using (cluster, pod_uid)
            """
        ).fetchone()
        told = con.execute("select list(distinct shape) from mart.job_efficiency").fetchone()[0]
    assert shapes == 6
    assert set(told) >= {"training", "inference", "notebook", "starved", "sweep", "batch"}
    assert right / pods >= 0.9


def test_commonest_shape_alone_is_not_enough(lake: SimulatedLake) -> None:
    """The 90 % are a test of something: one shape for all of them is right for fewer than half."""
    with lake.connect() as con:
        top, pods = con.execute(
            """
            select max(n), sum(n) from (
                select shape, count(distinct (cluster, pod_uid)) as n from raw.fleet_truth group by shape)
            """
        ).fetchone()
    assert top / pods < 0.6
