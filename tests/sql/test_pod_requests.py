"""core.pod_request_hours and core.pod_teams: what pods ask for over time, pods without accelerators too, and whose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from money_rows import Money, at

GIB = 1024**3
DAY, NEXT = date(2026, 6, 3), date(2026, 6, 4)


@pytest.fixture
def money() -> Money:
    made = Money()
    made.put("raw.team_rules", [
        {"rank": 1, "source": "pod_label", "key": "team"}, {"rank": 2, "source": "namespace_label", "key": "team"},
        {"rank": 3, "source": "namespace_annotation", "key": "owner"}, {"rank": 4, "source": "mapping", "key": ""},
    ])  # fmt: skip
    return made


def pod(
    name: str, phase: str = "Running", cpu: int | None = 1000, gib: float | None = 1, **more: Any
) -> dict[str, Any]:
    return {
        "cluster": "c", "pod_uid": name, "namespace": "ns", "pod": name, "node": "n", "phase": phase,
        "cpu_milli": cpu, "memory_bytes": None if gib is None else round(gib * GIB), **more,
    }  # fmt: skip


def lists(money: Money, given: Mapping[str, Sequence[Mapping[str, Any]]], incomplete: Sequence[str] = ()) -> None:
    """Pod lists by instant."""
    snapshots, pods = [], []
    for text, shown in given.items():
        when = at(text)
        place = {"snapshot_at": when, "date": when.date(), "hour": when.replace(minute=0, second=0)}
        snapshots.append({"cluster": "c", "kind": "Pod", "is_complete": text not in incomplete, **place})
        pods += [{**p, **place} for p in shown]
    money.put("raw.kube_snapshots", snapshots)
    money.put("raw.kube_pods", pods)


def asked(money: Money, start: date = DAY, end: date = NEXT) -> dict[tuple[str, str], tuple[int, int]]:
    """(milli-CPU-seconds, MiB-seconds) by pod and hour."""
    money.run("core.pod_teams", start - timedelta(days=2), end + timedelta(days=2))
    rows = money.run("core.pod_request_hours", start, end)
    return {
        (r["pod_uid"], f"{r['hour']:%dT%H}"): (r["cpu_milli_seconds"], r["memory_mib_seconds"]) for r in rows
    }  # fmt: skip


def minutes(money: Money, name: str) -> dict[str, float]:
    """Minutes for which a pod of one CPU was counted, by hour."""
    return {hour: cpu / 60_000 for (uid, hour), (cpu, _) in asked(money).items() if uid == name}


def every(start: str, count: int, shown: Sequence[Mapping[str, Any]], step: int = 5) -> dict[str, Any]:
    return {(at(start) + timedelta(minutes=step * i)).isoformat(): shown for i in range(count)}


def test_from_scheduled_to_the_end_of_the_last_container(money: Money) -> None:
    times = {"scheduled_at": at("2026-06-03T09:52:30"), "pod_started_at": at("2026-06-03T09:53")}
    over = pod("p", "Succeeded", **times, pod_finished_at=at("2026-06-03T11:20:30"))
    given = every("2026-06-03T09:50", 1, [pod("p", "Pending", node=None)])
    given |= every("2026-06-03T09:55", 17, [pod("p", **times)]) | every("2026-06-03T11:25", 3, [over])
    lists(money, given)
    assert minutes(money, "p") == {"03T09": 7.5, "03T10": 60, "03T11": 20.5}
    assert asked(money)["p", "03T10"] == (3_600_000, 3600 * 1024)


def test_a_pod_that_came_and_went_between_two_lists_counts(money: Money) -> None:
    over = pod("p", "Failed", scheduled_at=at("2026-06-03T10:01"), pod_finished_at=at("2026-06-03T10:03"))
    lists(money, every("2026-06-03T10:00", 1, []) | every("2026-06-03T10:05", 2, [over]))
    assert minutes(money, "p") == {"03T10": 2}


def test_gone_without_an_end_counts_to_the_next_complete_list(money: Money) -> None:
    given = every("2026-06-03T10:00", 3, [pod("p", scheduled_at=at("2026-06-03T10:00"))]) | every(
        "2026-06-03T10:15", 2, []
    )
    lists(money, given, incomplete=["2026-06-03T10:15:00"])
    assert minutes(money, "p") == {"03T10": 20}


def test_still_there_counts_one_usual_spacing_beyond_the_newest_list(money: Money) -> None:
    lists(money, every("2026-06-03T10:00", 4, [pod("p", scheduled_at=at("2026-06-03T10:00"))], step=10))
    assert minutes(money, "p") == {"03T10": 40}


def test_over_without_an_end_counts_to_the_list_that_says_so(money: Money) -> None:
    given = every("2026-06-03T10:00", 2, [pod("p", scheduled_at=at("2026-06-03T10:00"))])
    lists(money, given | every("2026-06-03T10:10", 2, [pod("p", "Succeeded")]))
    assert minutes(money, "p") == {"03T10": 10}


def test_a_container_that_restarts_does_not_end_its_pod(money: Money) -> None:
    down = pod("p", scheduled_at=at("2026-06-03T10:00"), pod_finished_at=at("2026-06-03T10:04"))
    up = pod("p", scheduled_at=at("2026-06-03T10:00"))
    lists(money, every("2026-06-03T10:00", 1, [up]) | every("2026-06-03T10:05", 1, [down])
          | every("2026-06-03T10:10", 2, [up]))  # fmt: skip
    assert minutes(money, "p") == {"03T10": 20}


def test_requests_changed_in_place_hold_from_the_list_that_shows_them(money: Money) -> None:
    begun = {"scheduled_at": at("2026-06-03T10:00")}
    lists(money, every("2026-06-03T10:00", 2, [pod("p", **begun)])
          | every("2026-06-03T10:10", 2, [pod("p", cpu=3000, gib=1.5, **begun)]))  # fmt: skip
    # 10 minutes of 1 CPU and 1 GiB, 10 of 3 CPU and 1.5 GiB
    assert asked(money) == {("p", "03T10"): (600 * 1000 + 600 * 3000, 600 * 1024 + 600 * 1536)}


def test_pods_that_ask_for_nothing_or_are_not_bound_have_no_row(money: Money) -> None:
    begun = {"scheduled_at": at("2026-06-03T10:00")}
    shown = [
        pod("nothing", cpu=None, gib=None, **begun), pod("waiting", "Pending", node=None),
        pod("bound", "Pending", cpu=None, gib=2, **begun),
    ]  # fmt: skip
    lists(money, every("2026-06-03T10:00", 2, shown))
    assert asked(money) == {("bound", "03T10"): (0, 600 * 2048)}


def test_midnight_belongs_to_both_days(money: Money) -> None:
    begun: dict[str, datetime] = {"scheduled_at": at("2026-06-03T23:58")}
    lists(money, every("2026-06-03T23:55", 1, []) | every("2026-06-04T00:00", 3, [pod("p", **begun)])
          | every("2026-06-04T00:15", 1, []))  # fmt: skip
    assert minutes(money, "p") == {"03T23": 2}
    both = asked(money, DAY, date(2026, 6, 5))
    assert {k: cpu / 60_000 for k, (cpu, _) in both.items()} == {("p", "03T23"): 2, ("p", "04T00"): 15}
    assert asked(money, NEXT, date(2026, 6, 5)) == {k: v for k, v in both.items() if k[1] == "04T00"}


def test_the_first_link_of_the_chain_names_the_team(money: Money) -> None:
    begun = {"scheduled_at": at("2026-06-03T10:00")}
    shown = [
        pod("own", labels=[("team", "one")], **begun), pod("empty", labels=[("team", "")], **begun),
        pod("annotated", namespace="noted", **begun), pod("mapped", namespace="known", owner_kind="Job", **begun),
        pod("nobody", namespace="other", **begun),
    ]  # fmt: skip
    lists(money, every("2026-06-03T10:00", 2, shown))
    money.put("core.namespace_states", [
        {"cluster": "c", "namespace": "ns", "date": date(2026, 6, 1), "labels": [("team", "two")], "annotations": []},
        {"cluster": "c", "namespace": "ns", "date": date(2026, 6, 5), "labels": [("team", "later")], "annotations": []},
        {"cluster": "c", "namespace": "noted", "date": date(2026, 6, 5), "labels": [],
         "annotations": [("owner", "three")]},
    ])  # fmt: skip
    money.put("raw.team_map", [
        {"cluster": "*", "namespace": "known", "team": "all"}, {"cluster": "c", "namespace": "known", "team": "four"},
    ])  # fmt: skip
    asked(money)
    rows = {r["pod_uid"]: r for r in money.run("core.pod_request_hours", DAY, NEXT)}
    assert {k: r["team"] for k, r in rows.items()} == {
        "own": "one", "empty": "two", "annotated": "three", "mapped": "four", "nobody": "(unmapped)"
    }  # fmt: skip
    assert (rows["mapped"]["workload_kind"], rows["own"]["workload_kind"]) == ("Job", "Pod")
    sources = {r["pod_uid"]: r["team_source"] for r in money.run("core.pod_teams", DAY, NEXT)}
    assert sources == {
        "own": "pod_label:team", "empty": "namespace_label:team", "annotated": "namespace_annotation:owner",
        "mapped": "mapping", "nobody": "none",
    }  # fmt: skip
