"""mart.rightsizing: one case for each way in which rightsizing goes wrong, and the verdicts that it should reach."""

from __future__ import annotations

from typing import Any

import pytest
from small_runs import GIB, Device, Runs, device, first

BUSY, IDLE = device(0.8, 60.0), device(0.0, 0.5)
LIGHT = device(0.04, 5.0, util=1.0, sm_occupancy_ratio=0.04)


def several(owner: str, devices: list[Device], runs: int = 3, given: Runs | None = None, **more: Any) -> Runs:
    found = given or Runs()
    for i in range(runs):
        found.add(f"{owner}-{i:05x}", devices, **more)
    return found


def verdict(row: dict[str, Any]) -> tuple[str, str, int | None]:
    return row["verdict"], row["reason"], row["suggested_devices"]


def test_eight_devices_for_ten_minutes_of_two_hours_stay_eight() -> None:
    row = several("burst", [first(10, IDLE, BUSY)] * 8).row()
    assert verdict(row) == ("keep", "all_devices_used", 8)
    assert (row["peak_busy_devices"], row["peak_busy_devices_p95"], row["template"]) == (8, 8, "burst")
    assert (row["runs"], row["judged_runs"], row["judged_hours"]) == (3, 3, pytest.approx(6.0))
    # a percentile over time would have said none
    assert row["active_ratio"] == pytest.approx(10 / 120)


def test_one_run_of_many_that_needs_all_keeps_all() -> None:
    runs = several("mixed", [BUSY] + [IDLE] * 7, 5)
    runs.add("mixed-0000a", [first(10, IDLE, BUSY)] * 8)
    row = runs.row()
    assert row["verdict"] == "keep"
    assert (row["peak_busy_devices"], row["peak_busy_devices_mean"]) == (8, pytest.approx(13 / 6))


def test_one_busy_of_eight_shrinks_to_one() -> None:
    row = several("lonely", [BUSY] + [IDLE] * 7).row()
    assert verdict(row) == ("shrink", "devices_never_busy", 1)
    assert row["suggested_memory_bytes"] == pytest.approx(1.15 * 60 * GIB)
    assert row["confidence"] == "low"


def test_a_gang_shrinks_to_whole_halves() -> None:
    assert verdict(several("three", [BUSY] * 3 + [IDLE] * 5).row()) == ("shrink", "devices_never_busy", 4)


def test_idle_devices_whose_memory_is_needed_stay() -> None:
    row = several("offload", [BUSY] + [device(0.0, 60.0)] * 7).row()
    assert row["verdict"] == "keep"


def test_devices_that_no_sample_shows_count_as_busy() -> None:
    row = several("dark", [BUSY] * 2 + [IDLE] * 6, observed=2).row()
    assert row["verdict"] != "shrink"
    assert (row["peak_busy_devices"], row["needed_devices"]) == (2, 8)


def test_residency_without_activity_is_shared_and_not_kept() -> None:
    row = several("kernels", [LIGHT]).row()
    assert verdict(row) == ("share", "mig_fits", 1)
    assert row["suggested_placement"] == "1g.10gb"
    assert (row["resident_mean"], row["occupancy_mean"]) == (pytest.approx(1.0), pytest.approx(0.04))


def test_residency_alone_tells_nothing() -> None:
    row = several("util-only", [device(None, 5.0, util=1.0)]).row()  # type: ignore[arg-type]
    assert verdict(row) == ("abstain", "activity_unknown", None)


def test_residency_beside_dead_activity_is_a_stuck_counter() -> None:
    assert several("stuck", [device(0.0, 5.0, util=1.0)]).row()["reason"] == "counters_disagree"


def test_tensor_work_beside_no_sm_activity_is_activity() -> None:
    assert several("tensor", [device(0.0, 5.0, tensor_ratio=0.3)]).row()["verdict"] != "stop"


def test_a_warm_up_peak_of_memory_is_never_cut() -> None:
    row = several("warm", [first(3, LIGHT, device(0.9, 60.0))]).row()
    assert verdict(row) == ("keep", "memory_needed", 1)
    assert row["memory_peak_bytes"] == 60 * GIB
    assert row["suggested_memory_bytes"] == pytest.approx(69 * GIB)


def test_a_warm_up_peak_of_activity_alone_does_not_hold_a_card() -> None:
    row = several("compile", [first(3, LIGHT, device(0.9, 5.0))]).row()
    assert (row["verdict"], row["suggested_placement"]) == ("share", "1g.10gb")
    assert (row["activity_peak"], row["over_1_of_7_ratio"]) == (0.9, pytest.approx(3 / 120))


def test_data_starved_by_its_shape() -> None:
    row = several("hungry", [device(0.25, 60.0)], shape="starved").row()
    assert verdict(row) == ("fix_input", "starved_shape", 1)


def test_data_starved_by_its_pcie_link() -> None:
    row = several("fed", [device(0.25, 20.0, pcie_rx_bytes_per_second=20e9)], shape="sweep").row()
    assert verdict(row) == ("fix_input", "pcie_bound", 1)
    assert row["pcie_rx_ratio"] == pytest.approx(0.4)


def test_an_idle_notebook_that_holds_memory_stops() -> None:
    runs = Runs()
    runs.add("ws-1", [device(0.0, 40.0)], 36, kind="StatefulSet", pod="ws-1-0", is_open=True, shape="notebook")
    row = runs.row()
    assert verdict(row) == ("stop", "idle", 0)
    assert (row["owner_kind"], row["template"], row["memory_peak_bytes"]) == ("StatefulSet", "ws-1", 40 * GIB)


def test_a_young_notebook_is_not_judged_yet() -> None:
    runs = Runs()
    runs.add("ws-1", [IDLE], 6, kind="StatefulSet", pod="ws-1-0", is_open=True, shape="notebook")
    assert verdict(runs.row()) == ("abstain", "few_runs", None)


def test_replicas_of_an_hour_are_an_hour() -> None:
    runs = Runs()
    for i in range(4):
        runs.add("svc-abc-7d9f8b6c5", [IDLE], 1, kind="ReplicaSet", pod=f"svc-abc-7d9f8b6c5-{i}", is_open=True)
    row = runs.row()
    assert (row["template"], row["runs"], row["judged_runs"], row["reason"]) == ("svc-abc", 4, 4, "few_runs")


def test_an_open_job_that_works_speaks_against_stopping_and_shrinking() -> None:
    runs = several("quiet", [IDLE] * 4)
    assert runs.row()["verdict"] == "stop"
    runs.add("quiet-000ff", [BUSY] * 4, is_open=True)
    row = runs.row()
    assert (row["judged_runs"], row["unjudged_runs"], row["verdict"]) == (3, 1, "keep")


def test_unlike_ranks_of_one_owner_are_rows_of_their_own() -> None:
    runs = Runs()
    for i in range(3):
        owner = f"train-{i:05x}"
        runs.add(owner, [LIGHT], pod=f"{owner}-launcher-x1y2z")
        for rank in range(2):
            runs.add(owner, [BUSY] * 4, pod=f"{owner}-worker-{rank}")
        runs.add(owner, [IDLE, BUSY, BUSY, BUSY], pod=f"{owner}-worker-2")
    launcher, worker = runs.rows()
    assert (launcher["role"], launcher["asked_devices"], launcher["verdict"]) == ("launcher", 1, "share")
    assert (worker["role"], worker["verdict"], worker["gang_pods"]) == ("worker", "keep", 3)
    # three pods of a run are one run, and the rank that needs most speaks for its role
    assert (worker["runs"], worker["pods"], worker["peak_busy_devices"]) == (3, 9, 4)


def test_an_operators_label_names_the_role() -> None:
    runs = Runs()
    for i in range(3):
        runs.add(f"j-{i:05x}", [LIGHT], labels={"training.kubeflow.org/replica-type": "Master"})
    assert runs.row()["role"] == "master"


def test_a_cron_job_with_few_runs_abstains() -> None:
    runs = Runs()
    for stamp in ("28391020", "28391080"):
        runs.add(f"nightly-{stamp}", [LIGHT], 0.5)
    row = runs.row()
    assert verdict(row) == ("abstain", "few_runs", None)
    assert (row["template"], row["runs"]) == ("nightly", 2)
    assert (row["suggested_memory_bytes"], row["confidence"]) == (None, None)


def test_failed_runs_count_for_memory() -> None:
    runs = several("grow", [LIGHT])
    runs.add("grow-000ff", [device(0.5, 50.0)], 0.2, failed=True)
    row = runs.row()
    assert (row["failed_runs"], row["judged_runs"], row["memory_peak_bytes"]) == (1, 3, 50 * GIB)
    assert verdict(row) == ("keep", "memory_needed", 1)


def test_runs_that_die_with_full_memory_are_told_to_keep_and_need_more() -> None:
    row = several("oom", [device(0.7, 79.0)], failed=True, hours=0.3).row()
    assert verdict(row) == ("keep", "memory_runs_out", 1)
    assert row["suggested_memory_bytes"] == pytest.approx(79 * 1.15 * 1.2 * GIB)
    assert row["suggested_memory_bytes"] > row["memory_total_bytes"]


def test_runs_that_only_fail_say_nothing_else() -> None:
    assert verdict(several("crash", [IDLE], failed=True).row()) == ("abstain", "only_failed_runs", None)


@pytest.mark.parametrize(
    ("accelerator", "gib", "sm", "placement"),
    [
        ("H100-80GB-HBM3", 7.0, 0.1, "1g.10gb"),
        ("H100-80GB-HBM3", 9.0, 0.1, "2g.20gb"),
        ("H100-80GB-HBM3", 7.0, 0.4, "3g.40gb"),
        ("A100-SXM4-40GB", 4.0, 0.1, "1g.5gb"),
        ("L4", 4.0, 0.1, "time-slice/4"),
        ("L4", 6.0, 0.1, "time-slice/3"),
    ],
)
def test_the_smallest_share_with_the_memory_and_the_work(
    accelerator: str, gib: float, sm: float, placement: str
) -> None:
    given = Runs(accelerator)
    row = several("small", [device(sm, gib)], given=given).row()
    assert (row["verdict"], row["suggested_placement"]) == ("share", placement)


def test_an_instance_is_shared_as_a_smaller_instance() -> None:
    row = several("mig", [device(0.2, 3.0)], given=Runs("A100-SXM4-40GB"), profile="3g.20gb").row()
    assert (row["verdict"], row["suggested_placement"]) == ("share", "1g.5gb")
    row = several("mig", [device(0.05, 3.0)], given=Runs("A100-SXM4-40GB"), profile="1g.5gb").row()
    assert verdict(row) == ("keep", "smallest_instance", 1)


@pytest.mark.parametrize(
    ("gib", "dram", "expected"),
    [(30.0, 0.2, "L40S"), (42.0, 0.2, None), (30.0, 0.9, None), (30.0, None, None)],
)
def test_a_smaller_card_only_where_memory_and_bandwidth_fit(
    gib: float, dram: float | None, expected: str | None
) -> None:
    runs = Runs()
    # too busy for the largest MIG share and for two clients
    several("model", [device(0.5, gib)], given=runs, accelerator="A100-SXM4-80GB", dram=dram)
    several("other", [device(0.9, 40.0)], given=runs, accelerator="L40S")
    row = next(r for r in runs.rows() if r["template"] == "model")
    assert row["suggested_placement"] == expected
    assert row["verdict"] == ("smaller_model" if expected else "keep")


def test_sampling_that_can_miss_peaks_widens_the_answer() -> None:
    def turns(slot: int) -> Device:
        return lambda minute: BUSY(0) if int(minute // 2) % 4 == slot else IDLE(0)

    fine = several("turns", [turns(s) for s in range(4)] + [IDLE] * 4).row()
    assert (fine["peak_busy_devices"], fine["ever_busy_devices"]) == (1, 4)
    coarse = several("turns", [turns(s) for s in range(4)] + [IDLE] * 4, given=Runs(interval_s=120)).row()
    assert coarse["suggested_devices"] >= 4
    light = several("light", [LIGHT], given=Runs(interval_s=120)).row()
    assert verdict(light) == ("keep", "peaks_may_be_missed", 1)
    assert light["suggested_memory_bytes"] == pytest.approx(1.3 * 5 * GIB)


def test_samples_too_far_apart_are_no_evidence() -> None:
    row = several("far", [LIGHT], given=Runs(interval_s=600), hours=4).row()
    assert verdict(row) == ("abstain", "sampled_too_seldom", None)


def test_runs_too_short_for_their_sampling_abstain() -> None:
    row = several("blink", [LIGHT], hours=0.1).row()
    assert verdict(row) == ("abstain", "sampled_too_seldom", None)
    assert row["unjudged_runs"] == 3


def test_nothing_observed_is_unknown_and_not_zero() -> None:
    row = several("unseen", [BUSY] * 2, observed=0).row()
    assert verdict(row) == ("abstain", "not_observed", None)
    assert (row["peak_busy_devices"], row["active_ratio"], row["memory_peak_bytes"]) == (None, None, None)


def test_mostly_unseen_runs_are_not_judged_by_the_few_seen() -> None:
    runs = several("half", [BUSY] + [IDLE] * 7)
    for i in range(4):
        runs.add(f"half-{i:05x}f", [BUSY] * 8, observed=0)
    assert verdict(runs.row()) == ("abstain", "not_observed", None)


def test_a_client_of_a_shared_device_is_not_judged() -> None:
    assert several("client", [LIGHT], share=0.25).row()["reason"] == "device_shared"


def test_other_requests_are_other_templates() -> None:
    runs = several("sweep", [BUSY])
    several("sweep", [BUSY] * 4, given=runs)
    assert [r["asked_devices"] for r in runs.rows()] == [1, 4]


def test_the_checks_see_what_is_wrong() -> None:
    runs = several("lonely", [BUSY] + [IDLE] * 7)
    runs.row()
    money = runs.money
    assert money is not None
    for damage, check in (
        ("suggested_devices = 9", "rightsizing_bounds"),
        ("suggested_devices = 0", "rightsizing_bounds"),
        ("runs = 0", "rightsizing_runs"),
        ("pods = pods + 1", "rightsizing_runs"),
    ):
        money.con.execute("create or replace table kept as select * from mart.rightsizing")
        money.con.execute(f"update mart.rightsizing set {damage}")
        assert money.check(check) != [], damage
        money.con.execute("create or replace table mart.rightsizing as select * from kept")
