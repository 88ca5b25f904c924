"""The ledger against the simulator's own account of what was done, which no model reads.

What the truth knows and telemetry cannot is set aside where it is compared: pods on nodes without an exporter (TPU) are
hidden for all of their time (`hidden_gpu_seconds`), and the last second before telemetry ends, when the last list is
taken, has no evidence: it is part of the tolerance for what pods hold, one second for each device.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from simulated_lakes import SimulatedLake

pytestmark = pytest.mark.integration

INTERVAL_S = 60
LONG_S = 6 * 3600
# The evidence ends with the last list, a second before telemetry does.
UNSEEN_END_S = 1
# Kinds of fault that hide nothing: work goes on and is seen.
HARMLESS = ("label_flap", "cordon", "failing_gpu")

PODS = """
    with truth as (
        select cluster, pod_uid, any_value(team) as team, any_value(node) as node, max(devices) as devices,
            min(started_at) as started_at, max(finished_at) as finished_at,
            sum(held_gpu_seconds)::double as held, sum(true_utilized_gpu_seconds)::double as used,
            sum(hidden_gpu_seconds)::double as hidden
        from {db}.fleet_truth group by cluster, pod_uid
    ),
    ledger as (
        select cluster, holder as pod_uid, any_value(team) as told_team,
            sum(allocated_gpu_seconds)::double as allocated, sum(utilized_gpu_seconds)::double as measured,
            sum(stranded_gpu_seconds)::double as stranded, sum(unobserved_gpu_seconds)::double as unobserved,
            sum(unavailable_gpu_seconds)::double as unavailable
        from {db}.gpu_ledger_hourly where holder is not null group by cluster, holder
    )
    select coalesce(t.cluster, l.cluster) as cluster, coalesce(t.pod_uid, l.pod_uid) as pod_uid,
        t.* exclude (cluster, pod_uid), l.* exclude (cluster, pod_uid),
        -- devices it holds, a MIG instance being part of one
        held / epoch(least(finished_at, {end}) - greatest(started_at, {start})) as size
    from truth as t full join ledger as l on l.cluster = t.cluster and l.pod_uid = t.pod_uid
"""


@pytest.fixture(scope="module")
def con(
    clean_lake: SimulatedLake, coarse_lake: SimulatedLake, broken_lake: SimulatedLake
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Tables clean, coarse and broken (a row for each pod that the truth or the ledger knows) and the faults."""
    with duckdb.connect() as con:
        for name, lake in (("clean", clean_lake), ("coarse", coarse_lake), ("broken", broken_lake)):
            con.execute(f"create schema {name}_lake")
            with lake.connect() as source:
                for table in ("raw.fleet_truth", "mart.gpu_ledger_hourly", "raw.fleet_faults"):
                    rows = source.sql(f"from {table}").to_arrow_table()
                    con.register("rows", rows)
                    con.execute(f"create table {name}_lake.{table.split('.')[1]} as from rows")
            bounds = {"start": f"timestamp '{lake.start}'", "end": f"timestamp '{lake.end}'"}
            con.execute(f"create table {name} as " + PODS.format(db=f"{name}_lake", **bounds))
        yield con


@pytest.fixture(scope="module")
def moved(con: duckdb.DuckDBPyConnection) -> str:
    """A row for each pod: what faults did to it (`hid`, by the truth), and by how much its parts moved."""
    con.execute(
        """
        create table moved as
        with hit as (
            select c.cluster, c.pod_uid, count(f.fault_id) as faults,
                list(distinct f.fault) filter (f.fault is not null) as kinds
            from clean as c
            left join broken_lake.fleet_faults as f
                on f.cluster = c.cluster and f.node = c.node and coalesce(f.pod_uid, c.pod_uid) = c.pod_uid
                and f.started_at < c.finished_at and f.finished_at > c.started_at
            group by c.cluster, c.pod_uid
        )
        select b.cluster, b.pod_uid, h.faults, coalesce(h.kinds, []) as kinds, c.size,
            b.hidden - c.hidden as hid, c.held - b.held as ended_earlier,
            b.unobserved + b.unavailable - c.unobserved - c.unavailable as shown_hidden,
            b.measured - c.measured as measured, b.stranded - c.stranded as stranded, b.used - c.used as used
        from broken as b
        inner join clean as c on c.cluster = b.cluster and c.pod_uid = b.pod_uid
        inner join hit as h on h.cluster = b.cluster and h.pod_uid = b.pod_uid
        """
    )
    return "moved"


@pytest.mark.parametrize("world", ["clean", "coarse", "broken"])
def test_every_pod_holds_what_it_held(con: duckdb.DuckDBPyConnection, world: str) -> None:
    """The same pods in both, each with its team, and held for as long as it was bound.

    A pod that vanished without an end (the fault pod_deleted) is held to its last evidence, a sample before that.
    """
    pods, both, teams = con.execute(
        f"select count(*), count(held + allocated), count(*) filter (team is distinct from told_team) from {world}"
    ).fetchone()
    assert pods == both > 200
    assert teams == 0
    end = con.execute(f"select max(date) + 1 from {world}_lake.gpu_ledger_hourly").fetchone()[0]
    off = con.execute(
        f"""
        select pod_uid, held, allocated + unavailable from {world}
        where held - allocated - unavailable < -0.001 or held - allocated - unavailable > 0.001 + size * case
            when pod_uid in (select pod_uid from {world}_lake.fleet_faults) then {INTERVAL_S}
            when finished_at >= $end then {UNSEEN_END_S} else 0 end
        """,
        {"end": end},
    ).fetchall()
    assert off == []


def test_utilized_time_is_near_the_truth(con: duckdb.DuckDBPyConnection) -> None:
    teams = con.execute(
        "select team, sum(measured) / sum(used) - 1 as error from clean where hidden = 0 group by team"
    ).fetchall()
    assert len(teams) >= 6
    assert {team: error for team, error in teams if abs(error) >= 0.005} == {}
    long, worst = con.execute(
        f"""select count(*), max(abs(measured / nullif(used, 0) - 1)) from clean
        where hidden = 0 and held > size * {LONG_S}"""
    ).fetchone()
    assert long > 30
    assert worst < 0.02
    short, worst = con.execute(
        f"select count(*), max(abs(measured - used) / size) from clean where hidden = 0 and held <= size * {LONG_S}"
    ).fetchone()
    assert short > 100
    assert worst < INTERVAL_S


def test_nothing_is_seen_where_there_is_no_exporter(con: duckdb.DuckDBPyConnection) -> None:
    dark, measured, unobserved, allocated = con.execute(
        "select count(*), sum(measured), sum(unobserved), sum(allocated) from clean where hidden > 0"
    ).fetchone()
    assert dark > 0
    assert measured == 0
    assert unobserved == allocated


def test_coarser_scrapes_are_further_off(con: duckdb.DuckDBPyConnection) -> None:
    """The truth can disagree: five times the spacing makes the error of pods more than five times as large."""
    fine, coarse = (
        con.execute(f"select sum(abs(measured - used)) / sum(used) from {world} where hidden = 0").fetchone()[0]
        for world in ("clean", "coarse")
    )
    assert 0 < fine < 0.002
    assert coarse > 4 * fine
    beyond = con.execute(
        f"""select count(*) from coarse
        where hidden = 0 and held <= size * {LONG_S} and abs(measured - used) > size * {INTERVAL_S}"""
    ).fetchone()[0]
    assert beyond > 0  # what holds at 60 s does not at 300 s


def test_what_faults_hide_is_unobserved_or_unavailable(con: duckdb.DuckDBPyConnection, moved: str) -> None:
    """To one scrape interval for each fault that meets the pod and each device it holds."""
    hidden, kinds = con.execute(
        f"select count(*) filter (hid > 0), list_distinct(flatten(list(kinds) filter (hid > 0))) from {moved}"
    ).fetchone()
    assert hidden > 15
    assert set(kinds) >= {"exporter_down", "empty_body", "slow_scrape", "sentinels", "node_reboot", "gpu_lost"}
    off = con.execute(
        f"""select pod_uid, kinds, hid, shown_hidden from {moved}
        where abs(shown_hidden - hid) > faults * size * {INTERVAL_S} + 0.001"""
    ).fetchall()
    assert off == []
    total, shown = con.execute(f"select sum(hid), sum(shown_hidden) from {moved}").fetchone()
    assert abs(shown / total - 1) < 0.05


def test_no_pod_moves_by_more_than_its_hidden_time(con: duckdb.DuckDBPyConnection, moved: str) -> None:
    """To one scrape interval for each fault, as above; a pod that ends early loses the rest of its time too."""
    for part in ("measured", "stranded"):
        off = con.execute(
            f"""
            select pod_uid, kinds, hid, ended_earlier, {part} from {moved}
            where abs({part}) > hid + abs(ended_earlier) + faults * size * {INTERVAL_S} + 0.001
            """
        ).fetchall()
        assert off == [], part
    # Faults only take away, and no more than they are seen to hide. Two may do otherwise within an interval: a skewed
    # clock moves samples in time, and a pod that vanishes is held to its last evidence.
    off = con.execute(
        f"""
        select pod_uid, kinds, hid, shown_hidden, measured, stranded from {moved}
        where not list_has_any(kinds, ['clock_skew', 'pod_deleted']) and (
            measured > 0.001 or stranded > 0.001 or -measured - stranded > shown_hidden + ended_earlier + 0.001)
        """
    ).fetchall()
    assert off == []


def test_pods_that_no_fault_hides_do_not_move(con: duckdb.DuckDBPyConnection, moved: str) -> None:
    still, worst, met = con.execute(
        f"""
        select count(*), max(greatest(abs(measured), abs(stranded), abs(shown_hidden), abs(used))),
            list_distinct(flatten(list(kinds) filter (len(kinds) > 0)))
        from {moved} where len(list_filter(kinds, lambda k: k not in {HARMLESS})) = 0
        """
    ).fetchone()
    assert still > 100
    assert worst <= 0.00001
    assert {"label_flap", "failing_gpu"} <= set(met)  # a node is cordoned while nothing is scheduled to it


def test_hidden_work_is_missed(con: duckdb.DuckDBPyConnection, moved: str) -> None:
    """Faults cost something: work that was done and not seen is in the truth and not in the ledger."""
    missed = con.execute(f"select count(*) from {moved} where hid > 0 and used = 0 and measured < -1").fetchone()[0]
    assert missed > 5
