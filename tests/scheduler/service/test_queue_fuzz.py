"""The API fuzzed from its own OpenAPI document: no 500, nothing undocumented, no job of another team; and every
operation also answers a 2xx that fits its schema. `QUEUE_FUZZ` sets the examples of each operation (20 by default)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from test_queue_api import JOB, TOKENS, Api

from scheduler.service.api import build_api
from scheduler.service.auth import Tokens

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Using `httpx` with `starlette.testclient`"),
]
EXAMPLES = int(os.environ.get("QUEUE_FUZZ", "20"))
CHECKS: list[Any] = [
    checks.not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
]  # fmt: skip
SECRET = "secret-of-team-b"
OPERATIONS = {
    "submitJob", "listJobs", "getJob", "cancelJob", "whatIf", "getPolicy", "putPolicy", "health", "metrics",
}  # fmt: skip


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A service with a job of each team, one that runs and one that waits."""
    api = Api(tmp_path_factory.mktemp("fuzz"))
    for who, name in (("a", "mine"), ("b", SECRET)):
        api.submitted(who, name=name, roles=[{"gpus": 4}])
    api.queue.tick()
    yield api
    api.queue.log.close()


@pytest.fixture(scope="module")
def document(fuzzed: Api) -> Any:
    """The OpenAPI document over the running application."""
    tokens = Tokens(list(TOKENS.values()))  # type: ignore[arg-type]
    app = build_api(fuzzed.queue, tokens, lambda snapshot: (b"up 1\n", "text/plain"))
    return schemathesis.openapi.from_asgi("/openapi.json", app)


def job_of_b(api: Api) -> str:
    return next(e.job.job_id for e in api.queue.records.entries.values() if e.name == SECRET)


def fuzz(document: Any, operation_id: str, examples: int, one: Callable[[Any], None]) -> None:
    """Cases of an operation that fit its schema, and cases that break it."""
    operation = operations_of(document)[operation_id]
    for mode in GenerationMode:

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy(generation_mode=mode))
        def run(case: Any) -> None:
            one(case)

        with contextlib.suppress(Unsatisfiable):  # nothing can be wrong with an operation that takes nothing
            run()


def operations_of(document: Any) -> dict[str, Any]:
    return {o.ok().definition.raw["operationId"]: o.ok() for o in document.get_all_operations()}


def asked(case: Any, token: str) -> Any:
    """The answer to a case with a token, which fits the document."""
    return case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=CHECKS)


@pytest.mark.parametrize("operation_id", sorted(OPERATIONS))
def test_team_a_breaks_nothing_and_sees_nothing_of_b(operation_id: str, document: Any, fuzzed: Api) -> None:
    secret_id = job_of_b(fuzzed)

    def one(case: Any) -> None:
        parameters = case.path_parameters or {}
        if "job_id" in parameters and len(str(parameters["job_id"])) % 2:
            parameters["job_id"] = secret_id
        answer = asked(case, TOKENS["a"][0])
        assert SECRET not in answer.text
        assert secret_id not in answer.text
        if parameters.get("job_id") == secret_id:
            assert not 200 <= answer.status_code < 300
        assert fuzzed.queue.records.entries[secret_id].life.state == "pending"

    fuzz(document, operation_id, EXAMPLES, one)


@pytest.mark.parametrize("operation_id", sorted(OPERATIONS - {"health"}))
def test_nobody_gets_nothing(operation_id: str, document: Any) -> None:
    def one(case: Any) -> None:
        assert asked(case, "nobodys-token-00000").status_code >= 400

    fuzz(document, operation_id, max(EXAMPLES // 4, 5), one)


@pytest.mark.parametrize("operation_id", sorted(OPERATIONS))
def test_an_admin_breaks_nothing(operation_id: str, document: Any, fuzzed: Api) -> None:
    def one(case: Any) -> None:
        if "job_id" in (case.path_parameters or {}) and case.method == "GET":
            case.path_parameters["job_id"] = job_of_b(fuzzed)
        asked(case, TOKENS["admin"][0])

    fuzz(document, operation_id, EXAMPLES, one)


def test_every_operation_answers_2xx_that_fits(document: Any, tmp_path: Path) -> None:
    api = Api(tmp_path)
    job = api.submitted("a")
    answers = {
        "submitJob": api("a", "POST", "/v1/jobs", JOB),
        "listJobs": api("a", "GET", "/v1/jobs?limit=1"),
        "getJob": api("a", "GET", f"/v1/jobs/{job}"),
        "whatIf": api("a", "POST", "/v1/what-if", {"job_id": job, "gpus": 1}),
        "cancelJob": api("a", "DELETE", f"/v1/jobs/{job}"),
        "getPolicy": api("a", "GET", "/v1/policy"),
        "putPolicy": api("admin", "PUT", "/v1/policy", {"teams": {"a": {"note": "x"}}}, If_Match='"policy-0"'),
        "health": api(None, "GET", "/healthz"),
        "metrics": api("admin", "GET", "/metrics"),
    }
    operations = operations_of(document)
    assert set(operations) == set(answers) == OPERATIONS
    for name, answer in answers.items():
        assert 200 <= answer.status_code < 300, (name, answer.text)
        assert operations[name].is_valid_response(answer), name
    api.queue.log.close()
