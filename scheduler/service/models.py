"""Requests and answers of the queue's API, with limits on every size. Instants are RFC 3339 in UTC.

Belongs here: what may be said. Not here: what it does (`api.py`, `core.py`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from scheduler.model import JobState

MOST_GPUS, MOST_PODS = 1024, 1024
_MOST_SECONDS = 366 * 86_400
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")]
JobId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")]
# Of any script, without control characters.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f-\x9f]*$", max_length=1024)]
Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,125}[A-Za-z0-9])?$")]
Seconds = Annotated[int, Field(ge=1, le=_MOST_SECONDS)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RoleSpec(_Strict):
    """Pods of one shape: `count` wanted, at least `min_count` for the gang to run; sizes are of one pod."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9-]{0,29}[a-z0-9])?$")] = "worker"
    count: int = Field(default=1, ge=1, le=MOST_PODS)
    min_count: int | None = Field(default=None, ge=1, le=MOST_PODS)
    gpus: int = Field(default=1, ge=0, le=MOST_GPUS)
    cpu_milli: int = Field(default=0, ge=0, le=1 << 30)
    memory_mib: int = Field(default=0, ge=0, le=1 << 30)
    accelerators: list[Label] = Field(default=[], max_length=16, description="Models it may run on, best liked first.")

    @model_validator(mode="after")
    def _fits(self) -> RoleSpec:
        if self.min_count is not None and self.min_count > self.count:
            raise ValueError("min_count is more than count")
        return self


class TopologySpec(_Strict):
    """A label of nodes whose value all pods should share, or must where it is required."""

    key: Label
    required: bool = False


class PodSpec(_Strict):
    """What every pod runs."""

    image: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._/:@-]*$", max_length=512)] = ""
    command: list[Text] = Field(default=[], max_length=64)
    annotations: dict[Label, Text] = Field(default={}, max_length=32)


class JobSpec(_Strict):
    """A job: a gang of pods that starts whole or not at all. `queue` is the team's own where none is given."""

    name: Name
    team: Name | None = Field(default=None, description="Whose job it is; only an admin may name another team.")
    queue: Name | None = None
    roles: list[RoleSpec] = Field(default=[RoleSpec()], min_length=1, max_length=16)
    priority_class: Literal["low", "normal", "high", "critical"] = "normal"
    preemptible: bool = True
    estimate_s: Seconds | None = None
    limit_s: Seconds | None = None
    checkpoint_s: Seconds | None = Field(default=None, description="Interval in which it saves its work.")
    save_s: Seconds | None = Field(default=None, description="How long it takes to save when told to.")
    backoff_limit: int = Field(default=6, ge=0, le=100)
    deadline_at: AwareDatetime | None = None
    topology: TopologySpec | None = None
    pod: PodSpec = PodSpec()

    @model_validator(mode="after")
    def _is_whole(self) -> JobSpec:
        if len({r.name for r in self.roles}) != len(self.roles):
            raise ValueError("two roles have the same name")
        if sum(r.count for r in self.roles) > MOST_PODS:
            raise ValueError(f"more than {MOST_PODS} pods")
        return self


class StartEstimate(BaseModel):
    """When it is expected to start: by `p50_at` in half of such cases, by `p90_at` in nine of ten; else why no time."""

    p50_at: datetime | None
    p90_at: datetime | None
    reason: str = ""


class JobStatus(BaseModel):
    """A job and where it is. `position` counts from 1 and is null for what does not wait, or no cycle has seen yet."""

    job_id: str
    name: str
    team: str
    queue: str
    state: JobState
    reason: str
    message: str = ""
    position: int | None = None
    start: StartEstimate
    gpus: float
    running_gpus: float
    attempts: int
    nodes: list[str]
    submitted_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    advice: list[str] = []


class JobList(BaseModel):
    """Jobs in the order of submission; `next_after` is the id to go on after, null at the end."""

    jobs: list[JobStatus]
    next_after: str | None = None


class WhatIfRequest(_Strict):
    """Either a whole job, or the id of one with what would be different."""

    job: JobSpec | None = None
    job_id: JobId | None = None
    gpus: int | None = Field(default=None, ge=0, le=MOST_GPUS, description="GPUs of each pod.")
    count: int | None = Field(default=None, ge=1, le=MOST_PODS, description="Pods of each role.")
    accelerators: list[Label] | None = Field(default=None, max_length=16)
    limit_s: Seconds | None = None

    @model_validator(mode="after")
    def _is_one(self) -> WhatIfRequest:
        if (self.job is None) == (self.job_id is None):
            raise ValueError("either job or job_id is given")
        return self


class WhatIfAnswer(BaseModel):
    """Whether it would start now; else its place in the queue and why, or why it never could."""

    would_start_now: bool
    nodes: list[str]
    position: int | None
    reason: str
    message: str


class TeamPolicy(_Strict):
    """What is recommended to a team: `advise` tells on submission, `enforce` refuses what goes beyond it."""

    mode: Literal["advise", "enforce"] = "advise"
    max_gpus_per_job: int | None = Field(default=None, ge=0, le=MOST_GPUS * MOST_PODS)
    max_limit_s: Seconds | None = None
    accelerators: list[Label] | None = Field(
        None, max_length=16, description="Models that jobs of the team should use."
    )
    note: Text = ""


class PolicyDocument(_Strict):
    """Recommendations by team; after `expires_at` none of them holds."""

    expires_at: AwareDatetime | None = None
    teams: dict[Name, TeamPolicy] = Field(default={}, max_length=1000)


class PolicyAnswer(BaseModel):
    """The document with its version (0: none was ever set), also in the ETag."""

    version: int
    is_expired: bool
    document: PolicyDocument


class HealthAnswer(BaseModel):
    """Whether the loop goes on: `degraded` while the world or the log does not answer."""

    status: Literal["ok", "degraded", "starting"]
    message: str
    seen_at: datetime | None
    cycles: int
    pending: int
    running: int


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    errors: list[dict[str, str]] = []
