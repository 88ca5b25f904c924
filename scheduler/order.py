"""The one order of the queue, as a key: lower comes first.

Critical jobs, then aged ones in the order of submission, then by priority (higher first), share of the job's queue
(lower first), predicted run time (shorter first), submission, id. The id makes it total: two jobs never tie.
"""

from __future__ import annotations

from scheduler.model import Job
from scheduler.pending import Waiting
from scheduler.policy import Policy
from scheduler.usage import LAST, Usage

Key = tuple[int, int, int, int, int, int, str]


def key(waiting: Waiting, usage: Usage, policy: Policy, now: int) -> Key:
    """The place of a waiting job at `now` (us)."""
    job = waiting.job
    band = 0 if job.is_critical and policy.by_priority else 1
    if is_aged(job, policy, now):
        return (band, 0, 0, 0, 0, job.submit_us, job.job_id)
    share = step_of(usage.share_ppm(job.queue, now), policy.share_step_ppm) if policy.by_share else 0
    return (
        band,
        1 if policy.age_limit_us is not None else 0,
        -job.priority if policy.by_priority else 0,
        share,
        waiting.predicted_us if policy.by_duration else 0,
        job.submit_us,
        job.job_id,
    )


def is_aged(job: Job, policy: Policy, now: int) -> bool:
    """Whether a job has waited for its age limit."""
    limit = policy.age_us(job)
    return limit is not None and now - job.submit_us >= limit


def step_of(share_ppm: int, step_ppm: int) -> int:
    """The step of a queue's share in the order; those of weight 0 are counted among themselves, behind all others."""
    return share_ppm // step_ppm if share_ppm < LAST else LAST + (share_ppm - LAST) // step_ppm
