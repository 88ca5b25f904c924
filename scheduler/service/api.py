"""The queue's HTTP API as a FastAPI application: routes, rights, idempotency.

A job of another team is answered as if it were not there. Belongs here: what each operation checks and calls. Not here:
forms (`models.py`), errors (`problems.py`), tokens (`auth.py`), the queue itself (`core.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import Depends, FastAPI, Header, Query, Request
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel

from scheduler.model import JobState
from scheduler.service import views
from scheduler.service.auth import Caller, Tokens
from scheduler.service.core import QueueService, Reused, Stale
from scheduler.service.log import Key
from scheduler.service.models import (
    HealthAnswer,
    JobId,
    JobList,
    JobSpec,
    JobStatus,
    Name,
    PolicyAnswer,
    PolicyDocument,
    WhatIfAnswer,
    WhatIfRequest,
)
from scheduler.service.problems import ApiProblem, BoundedBody, documented, install

# A snapshot of the queue (`views.snapshot`) as the text of an exporter, and its content type.
Render = Callable[[dict[str, Any]], tuple[bytes, str]]
IdempotencyKey = Annotated[
    str | None,
    Header(pattern=r"^[!-~]{1,200}$", description="The same key and request again give the first answer again."),
]
_KNOWN = (400, 401, 403, 413, 422, 503)
_BEARER = HTTPBearer(auto_error=False, description="A token of the service's token file.")


def build_api(queue: QueueService, tokens: Tokens, render: Render | None = None) -> FastAPI:
    """The application over a queue. `render` gives what /metrics answers."""
    app = FastAPI(
        title="Strandline queue", version="1", docs_url=None, redoc_url=None,
        description="Submit jobs to the GPU queue, follow them, ask what would be.",
    )  # fmt: skip
    install(app)
    app.add_middleware(BoundedBody)

    app.state.tokens = tokens
    _jobs(app, queue)
    _questions(app, queue)
    _operations(app, queue, render)
    return app


def _caller(request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]) -> Caller:
    tokens: Tokens = request.app.state.tokens
    found = None if given is None else tokens.caller(given.credentials)
    if found is None:
        raise ApiProblem(401, "a bearer token that is known is needed", {"WWW-Authenticate": "Bearer"})
    return found


Asker = Annotated[Caller, Depends(_caller)]


def _own(queue: QueueService, asker: Caller, job_id: str) -> Any:
    entry = queue.records.entries.get(job_id)
    if entry is None or not asker.may_read(entry.job.team):
        raise ApiProblem(404, "no such job")
    return entry


def _key(asker: Caller, operation: str, key: str | None, request: BaseModel, more: str = "") -> Key | None:
    if key is None:
        return None
    digest = sha256((request.model_dump_json() + more).encode()).hexdigest()
    return Key(f"{operation}:{asker.ident}", key, digest)


def _whose(queue: QueueService, asker: Caller, spec: JobSpec) -> tuple[str, str]:
    """Team and queue of a job that is asked for, if the asker may have it there."""
    team = spec.team or asker.team
    if asker.role == "read" or not (asker.role == "admin" or team == asker.team):
        raise ApiProblem(403, "this token may not submit jobs of that team")
    name = spec.queue or team
    if name != team and asker.role != "admin":
        raise ApiProblem(403, "this token may not submit to that queue")
    if name not in queue.queues:
        raise ApiProblem(422, "there is no such queue")
    if spec.priority_class == "critical" and asker.role != "admin":
        raise ApiProblem(403, "only an admin may submit critical jobs")
    return team, name


def _jobs(app: FastAPI, queue: QueueService) -> None:
    @app.post(
        "/v1/jobs",
        status_code=201,
        response_model=JobStatus,
        operation_id="submitJob",
        responses={200: {"model": JobStatus, "description": "Submitted before"}, **documented(*_KNOWN)},
    )
    def submit(spec: JobSpec, asker: Asker, response: Response, idempotency_key: IdempotencyKey = None) -> JobStatus:
        """Submit a job. It is on disk when this answers."""
        team, name = _whose(queue, asker, spec)
        key = _key(asker, "submit", idempotency_key, spec)
        job, template = views.job_of(spec, f"j{uuid4().hex[:12]}", team, name, queue.now)
        policies = views.team_policies(queue)
        policy = policies.get(team)
        if policy is not None and policy.mode == "enforce" and (found := views.advice(policy, job)):
            raise ApiProblem(403, "the policy document forbids it: the job " + "; ".join(found))
        try:
            entry, is_new = queue.submit(job, template, spec.name, key)
        except Reused as error:
            raise ApiProblem(422, str(error)) from None
        response.status_code = 201 if is_new else 200
        with queue.lock:
            return views.status(queue, entry, policies)

    @app.get("/v1/jobs", response_model=JobList, operation_id="listJobs", responses=documented(*_KNOWN, 404))
    def jobs(
        asker: Asker,
        team: Annotated[Name | None, Query()] = None,
        state: Annotated[JobState | None, Query()] = None,
        after: Annotated[JobId | None, Query(description="Go on after this job.")] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> JobList:
        """Jobs of the own team, or of all for an admin, in the order of submission."""
        if team is not None and not asker.may_read(team):
            raise ApiProblem(403, "this token may not read jobs of that team")
        with queue.lock:
            policies = views.team_policies(queue)
            chosen = [
                e
                for e in queue.records.entries.values()
                if asker.may_read(e.job.team) and team in (None, e.job.team) and state in (None, e.life.state)
            ]
            if after is not None:
                at = _own(queue, asker, after).job
                chosen = [e for e in chosen if (e.job.submit_us, e.job.job_id) > (at.submit_us, at.job_id)]
            chosen.sort(key=lambda e: (e.job.submit_us, e.job.job_id))
            page = [views.status(queue, e, policies) for e in chosen[:limit]]
        return JobList(jobs=page, next_after=page[-1].job_id if len(chosen) > limit else None)

    @app.get(
        "/v1/jobs/{job_id}", response_model=JobStatus, operation_id="getJob", responses=documented(*_KNOWN, 404)
    )  # fmt: skip
    def job(asker: Asker, job_id: JobId) -> JobStatus:
        """Where a job is: state, place in the queue, expected start, or why there is none."""
        with queue.lock:
            return views.status(queue, _own(queue, asker, job_id), views.team_policies(queue))

    @app.delete(
        "/v1/jobs/{job_id}", response_model=JobStatus, operation_id="cancelJob", responses=documented(*_KNOWN, 404)
    )
    def cancel(asker: Asker, job_id: JobId) -> JobStatus:
        """Cancel a job; one that is over stays as it is."""
        with queue.lock:
            entry = _own(queue, asker, job_id)
            if not asker.may_write(entry.job.team):
                raise ApiProblem(403, "this token may not cancel jobs")
            return views.status(queue, queue.cancel(job_id, asker.team), views.team_policies(queue))


def _questions(app: FastAPI, queue: QueueService) -> None:
    @app.post(
        "/v1/what-if", response_model=WhatIfAnswer, operation_id="whatIf", responses=documented(*_KNOWN, 404)
    )  # fmt: skip
    def what_if(asked: WhatIfRequest, asker: Asker) -> WhatIfAnswer:
        """What would become of a job, or of one that is there if it were other; nothing is changed."""
        with queue.lock:
            if asked.job is not None:
                team, name = _whose(queue, asker, asked.job)
                job, _ = views.job_of(asked.job, "what-if", team, name, queue.now)
            else:
                job = _own(queue, asker, asked.job_id or "").job
            try:
                job = views.variant(job, asked, queue.now)
            except ValueError as error:
                raise ApiProblem(422, str(error)) from None
            found = queue.what_if(job)
        return WhatIfAnswer(
            would_start_now=found.starts_now, nodes=list(found.nodes), position=found.position, reason=found.reason,
            message=found.why or "",
        )  # fmt: skip

    @app.get("/v1/policy", response_model=PolicyAnswer, operation_id="getPolicy", responses=documented(*_KNOWN))
    def policy(asker: Asker, response: Response) -> PolicyAnswer:
        """The policy document; a team sees its own part."""
        answer = views.policy_answer(queue)
        response.headers["ETag"] = _etag(answer.version)
        if asker.sees_all:
            return answer
        own = {team: p for team, p in answer.document.teams.items() if team == asker.team}
        return answer.model_copy(update={"document": answer.document.model_copy(update={"teams": own})})

    @app.put(
        "/v1/policy",
        response_model=PolicyAnswer,
        operation_id="putPolicy",
        responses=documented(*_KNOWN, 412, 428),
    )
    def set_policy(
        document: PolicyDocument,
        asker: Asker,
        response: Response,
        if_match: Annotated[str | None, Header(max_length=100, description="ETag of what it replaces.")] = None,
        idempotency_key: IdempotencyKey = None,
    ) -> PolicyAnswer:
        """Replace the policy document, if it still is the one that `If-Match` names."""
        if asker.role != "admin":
            raise ApiProblem(403, "only an admin may set the policy document")
        if if_match is None:
            raise ApiProblem(428, "If-Match with the ETag of the document is needed")
        with queue.lock:
            current = queue.records.policy_version
            version = next((v for v in (current, *_versions(if_match)) if _etag(v) == if_match.strip()), -1)
            key = _key(asker, "policy", idempotency_key, document, if_match)
            try:
                queue.set_policy(document.model_dump(mode="json"), version, asker.team, key)
            except Stale as error:
                raise ApiProblem(412, str(error), {"ETag": _etag(error.version)}) from None
            except Reused as error:
                raise ApiProblem(422, str(error)) from None
            answer = views.policy_answer(queue)
        response.headers["ETag"] = _etag(answer.version)
        return answer


def _etag(version: int) -> str:
    return f'"policy-{version}"'


def _versions(if_match: str) -> list[int]:
    """The version that a tag of ours names."""
    digits = if_match.strip().removeprefix('"policy-').removesuffix('"')
    return [int(digits)] if digits.isascii() and digits.isdigit() and len(digits) < 19 else []


def _operations(app: FastAPI, queue: QueueService, render: Render | None) -> None:
    @app.get(
        "/healthz",
        response_model=HealthAnswer,
        operation_id="health",
        responses={503: {"model": HealthAnswer, "description": "The loop does not go on"}, **documented(400, 413)},
    )
    def health() -> Any:
        """Whether the queue goes on; needs no token and names no job."""
        with queue.lock:
            known = queue.health
            status: Literal["ok", "degraded", "starting"] = "ok"
            message = known.trouble()
            if message or known.seen_us is None:
                status = "degraded" if message else "starting"
            answer = HealthAnswer(
                status=status, message=message, seen_at=views.instant(known.seen_us),
                cycles=known.cycles, pending=len(queue.positions), running=len(queue.records.running),
            )  # fmt: skip
        return JSONResponse(answer.model_dump(mode="json"), 503 if status == "degraded" else 200)

    if render is None:
        return

    @app.get(
        "/metrics",
        operation_id="metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **documented(400, 401, 403, 413)},
    )
    def metrics(asker: Asker) -> Response:
        """Figures of all queues for Prometheus, for tokens that see all teams."""
        if not asker.sees_all:
            raise ApiProblem(403, "this token may not read figures of all teams")
        body, content_type = render(views.snapshot(queue))
        return Response(body, media_type=content_type)
