"""What jobs that came together tell of each other, and what the queue does when a prediction changes."""

from __future__ import annotations

import small_world as w

from scheduler.model import HOUR_US, SECOND_US, Job
from scheduler.predict import History

MINUTE_US = 60 * SECOND_US


def batch(n: int, at_s: int = 0, name: str = "j") -> list[Job]:
    """Jobs of one GPU, a second apart."""
    return [w.job(f"{name}{i}", at_s=at_s + i) for i in range(n)]


def told(jobs: list[Job]) -> History:
    history = History()
    for job in jobs:
        history.submitted(job)
    return history


def test_the_first_that_ends_tells_of_those_that_wait_and_run() -> None:
    jobs = batch(4)
    history = told(jobs)
    before = history.predict(jobs[3])
    for job in jobs[:2]:
        history.started(job, 10 * SECOND_US)
    assert history.revised(20 * SECOND_US) == {}
    history.ended(jobs[0], 5 * MINUTE_US)
    history.ended(jobs[1], 5 * MINUTE_US)
    assert before == HOUR_US
    assert history.revised(HOUR_US) == {"j2": 5 * MINUTE_US, "j3": 5 * MINUTE_US}
    assert history.predict(jobs[3]) == 5 * MINUTE_US
    assert history.revised(HOUR_US) == {}


def test_one_short_run_beside_many_that_go_on_is_not_the_median() -> None:
    jobs = batch(10)
    history = told(jobs)
    for job in jobs:
        history.started(job, 0)
    history.ended(jobs[0], MINUTE_US)
    # nine of ten last longer than a minute: the hour that was believed before stands
    assert history.revised(MINUTE_US) == {}
    # once that has passed they are believed to run as long again
    now = HOUR_US + 1
    assert history.revised(now) == {job.job_id: 2 * now for job in jobs[1:]}


def test_a_pause_parts_batches_and_so_do_team_and_size() -> None:
    first, later = batch(3), batch(1, at_s=100, name="later")
    other = [w.job("other", "b", at_s=2), w.job("wide", gpus=8, at_s=2)]
    history = told([*first, *other, *later])
    for job in first:
        history.started(job, 0)
        history.ended(job, MINUTE_US)
    assert history.revised(HOUR_US) == {}
    assert history.predict(other[0]) == history.predict(later[0]) == HOUR_US
    # a job of the same team and size that comes alone believes what has ended, as before
    assert history.predict(w.job("alone", at_s=5000)) == MINUTE_US


def test_who_was_stopped_or_has_left_tells_nothing() -> None:
    jobs = batch(3)
    history = told(jobs)
    history.started(jobs[0], 0)
    history.left(jobs[0])
    history.left(jobs[1])
    assert history.revised(10 * HOUR_US) == {}
    assert history.predict(jobs[2]) == HOUR_US


def test_a_new_prediction_moves_a_job_in_the_queue_and_the_end_of_a_run() -> None:
    queue = w.scheduler(w.nodes(4), w.queues(a=None))
    w.started(queue, w.job("runs", gpus=4))
    queue.submit(w.job("long", gpus=2), 5 * HOUR_US)
    queue.submit(w.job("short", gpus=2), 4 * HOUR_US)
    assert next(iter(queue.pending.buckets.values())).first.job.job_id == "short"
    queue.repredict({"long": HOUR_US, "runs": 2 * HOUR_US, "gone": 1})
    assert next(iter(queue.pending.buckets.values())).first.job.job_id == "long"
    assert queue.gangs["runs"].end_us == queue.running.believed(1)[2].max() == 2 * HOUR_US
    done = queue.cycle(SECOND_US)
    assert [(r.job.job_id, r.start_us) for r in done.reserved] == [("long", 2 * HOUR_US)]
    # a promise stands with the run time that it was made with
    queue.repredict({"long": 9 * HOUR_US})
    assert queue.pending.waiting["long"].predicted_us == HOUR_US
