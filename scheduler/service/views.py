"""From requests to jobs, and from the queue's records to answers.

Belongs here: translation in both directions, advice of the policy document. Not here: routes (`api.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from scheduler.model import MILLI, SECOND_US, Job, Role, Shape, Topology
from scheduler.service import estimating
from scheduler.service.codec import Template
from scheduler.service.core import QueueService
from scheduler.service.models import (
    JobSpec,
    JobStatus,
    PolicyAnswer,
    PolicyDocument,
    StartEstimate,
    TeamPolicy,
    WhatIfRequest,
)
from scheduler.service.records import Entry

# Values of the priority classes, as `contract.class_of` reads them.
PRIORITIES = {"low": -100, "normal": 0, "high": 100, "critical": 1000}
_LAST_US = round(datetime(9999, 1, 1, tzinfo=UTC).timestamp()) * SECOND_US
_MESSAGES = {
    "over_quota": "its queue holds what it may",
    "no_room": "no nodes have the room now",
    "behind_head": "jobs before it in the queue do not fit yet",
    "held": "room is held for it until others have left",
    "reserved": "room is reserved for it",
    "unseen": "no cycle has looked at it yet",
    "binding": "its pods are being bound",
    "backoff": "it was stopped and waits to be queued again",
    "degraded": "it waits for lost pods",
}


def instant(at_us: int | None) -> datetime | None:
    """Microseconds as a time in UTC; None where it lies beyond all calendars."""
    return None if at_us is None or not 0 <= at_us < _LAST_US else datetime.fromtimestamp(at_us / SECOND_US, UTC)


def _us(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * SECOND_US


def job_of(spec: JobSpec, job_id: str, team: str, queue: str, now: int) -> tuple[Job, Template]:
    """The job that a request asks for, submitted now."""
    roles = tuple(
        Role(r.name, Shape(r.gpus * MILLI, r.cpu_milli, r.memory_mib, tuple(r.accelerators)), r.count, r.min_count)
        for r in spec.roles
    )
    is_critical = spec.priority_class == "critical"
    deadline = None if spec.deadline_at is None else round(spec.deadline_at.timestamp() * SECOND_US)
    topology = None if spec.topology is None else Topology(spec.topology.key, spec.topology.required)
    job = Job(
        job_id, team, queue, roles, now, spec.priority_class, PRIORITIES[spec.priority_class], is_critical,
        spec.preemptible and not is_critical, _us(spec.estimate_s), _us(spec.limit_s), _us(spec.checkpoint_s), topology,
        deadline, spec.backoff_limit, _us(spec.save_s),
    )  # fmt: skip
    return job, Template(spec.pod.image, tuple(spec.pod.command), dict(spec.pod.annotations))


def variant(job: Job, asked: WhatIfRequest, now: int) -> Job:
    """A job as it would be with what a what-if changes, submitted now."""
    roles = []
    for role in job.roles:
        shape = role.shape
        if asked.gpus is not None:
            shape = replace(shape, gpu_milli=asked.gpus * MILLI)
        if asked.accelerators is not None:
            shape = replace(shape, accelerators=tuple(asked.accelerators))
        count = role.count if asked.count is None else asked.count
        least = None if role.min_count is None else min(role.min_count, count)
        roles.append(Role(role.name, shape, count, least))
    limit = job.limit_us if asked.limit_s is None else asked.limit_s * SECOND_US
    return replace(job, job_id="what-if", roles=tuple(roles), submit_us=now, limit_us=limit)


def advice(policy: TeamPolicy, job: Job) -> list[str]:
    """Where a job goes beyond what is recommended to its team."""
    found = []
    if policy.max_gpus_per_job is not None and job.gpu_milli > policy.max_gpus_per_job * MILLI:
        found.append(f"asks for {job.gpu_milli // MILLI} GPUs; {policy.max_gpus_per_job} are recommended at most")
    if policy.max_limit_s is not None and (job.limit_us is None or job.limit_us > policy.max_limit_s * SECOND_US):
        found.append(f"has no limit of at most {policy.max_limit_s} s")
    if policy.accelerators is not None and not set(job.accelerators or ("any",)) <= set(policy.accelerators):
        found.append(f"does not keep to {', '.join(policy.accelerators) or 'no accelerator'}")
    return found


def team_policies(queue: QueueService) -> Mapping[str, TeamPolicy]:
    """What the document says of every team, while it holds."""
    answer = policy_answer(queue)
    return {} if answer.is_expired else answer.document.teams


def policy_answer(queue: QueueService) -> PolicyAnswer:
    """The present document."""
    with queue.lock:
        version, given = queue.records.policy_version, queue.records.policy
    document = PolicyDocument() if given is None else PolicyDocument.model_validate(given)
    at = document.expires_at
    is_expired = at is not None and round(at.timestamp() * SECOND_US) <= queue.now
    return PolicyAnswer(version=version, is_expired=is_expired, document=document)


def status(queue: QueueService, entry: Entry, policies: Mapping[str, TeamPolicy]) -> JobStatus:
    """A job as its team sees it; call it under the queue's lock."""
    job, life, run = entry.job, entry.life, entry.run
    reason, message = _reason(queue, entry)
    position = queue.positions.get(job.job_id) if life.state == "pending" else None
    policy = policies.get(job.team)
    return JobStatus(
        job_id=job.job_id, name=entry.name, team=job.team, queue=job.queue, state=life.state, reason=reason,
        message=message, position=position, start=_start(queue, entry), gpus=job.gpu_milli / MILLI,
        running_gpus=(run.places.gpu_milli if run else 0) / MILLI, attempts=entry.attempts,
        nodes=sorted({p[2] for p in run.places.pods}) if run else [],
        submitted_at=_required(job.submit_us), started_at=instant(entry.started_us), ended_at=instant(entry.ended_us),
        advice=advice(policy, job) if policy is not None and not life.is_over else [],
    )  # fmt: skip


def _required(at_us: int) -> datetime:
    return instant(at_us) or datetime.fromtimestamp(0, UTC)


def _reason(queue: QueueService, entry: Entry) -> tuple[str, str]:
    life, job_id = entry.life, entry.job.job_id
    reason: str = life.reason
    if life.state == "impossible":
        return "impossible", entry.why
    if life.state == "pending" and life.reason == "queued":
        reason = queue.reasons.get(job_id, "behind_head") if job_id in queue.positions else "unseen"
        if queue.room is not None and job_id in queue.room.scheduler.book.reservations:
            reason = "reserved"
    elif entry.run is not None and not entry.run.is_bound:
        reason = "binding"
    return reason, _MESSAGES.get(reason, entry.why if life.state in ("pending", "failed") else "")


def _start(queue: QueueService, entry: Entry) -> StartEstimate:
    if entry.life.state != "pending":
        return StartEstimate(p50_at=None, p90_at=None, reason=f"it is {entry.life.state}")
    found = estimating.AWAY if entry.life.reason == "backoff" else queue.start_of(entry.job.job_id)
    return StartEstimate(p50_at=instant(found.p50_us), p90_at=instant(found.p90_us), reason=found.reason)


def snapshot(queue: QueueService) -> dict[str, Any]:
    """Figures of the queue for an exporter: jobs by queue and state, GPUs held and waited for, cycles and events.

    `jobs` {(queue, state): n}, `waiting_gpus` and `held_gpus` {queue: GPUs}, `oldest_wait_s` {queue: s} where
    anybody waits, `events` {kind: n}, `cycles`, `cycle_s`, `is_well`.
    """
    with queue.lock:
        now = queue.now
        jobs: dict[tuple[str, str], int] = {}
        waiting: dict[str, float] = dict.fromkeys(queue.queues, 0.0)
        held: dict[str, float] = dict.fromkeys(queue.queues, 0.0)
        oldest: dict[str, float] = {}
        for entry in queue.records.entries.values():
            job = entry.job
            jobs[job.queue, entry.life.state] = jobs.get((job.queue, entry.life.state), 0) + 1
            if entry.life.state == "pending":
                waiting[job.queue] += job.gpu_milli / MILLI
                oldest[job.queue] = max(oldest.get(job.queue, 0.0), (now - job.submit_us) / SECOND_US)
            elif entry.run is not None:
                held[job.queue] += entry.run.places.gpu_milli / MILLI
        return {
            "jobs": jobs, "waiting_gpus": waiting, "held_gpus": held, "oldest_wait_s": oldest,
            "events": dict(queue.records.counts), "cycles": queue.health.cycles, "cycle_s": queue.health.cycle_s,
            "is_well": not queue.health.trouble(),
        }  # fmt: skip
