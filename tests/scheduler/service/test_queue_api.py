"""The API without a socket: rights of every role, idempotent submits, policy versions, bounded and odd requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from queue_service import queues, service, world

from scheduler.service.api import build_api
from scheduler.service.auth import Tokens, read_tokens
from scheduler.service.core import QueueService
from warehouse.errors import BadInput

TOKENS = {
    "admin": ("admin-token-0000000", "*", "admin"),
    "a": ("team-a-token-000000", "a", "team"),
    "b": ("team-b-token-000000", "b", "team"),
    "a-reads": ("read-a-token-000000", "a", "read"),
    "all-read": ("read-all-token-0000", "*", "read"),
}
JOB = {"name": "train", "roles": [{"gpus": 2}], "pod": {"annotations": {"strandline.io/run-seconds": "60"}}}


class Api:
    """A service, its world and a client."""

    def __init__(self, folder: Path) -> None:
        self.fleet = world(4)
        self.queue: QueueService = service(folder, self.fleet, queues(a=None, b=None))
        tokens = Tokens(list(TOKENS.values()))  # type: ignore[arg-type]
        app = build_api(self.queue, tokens, lambda snapshot: (repr(snapshot).encode(), "text/plain"))
        self.transport = httpx.ASGITransport(app, raise_app_exceptions=True)

    def __call__(self, who: str | None, method: str, path: str, body: Any = None, **headers: str) -> Any:
        if who is not None:
            headers["Authorization"] = f"Bearer {TOKENS[who][0]}"
        more = {} if body is None else {"json": body}
        return self.raw(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()}, **more)

    def raw(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One request as it is given."""

        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=self.transport, base_url="http://queue") as client:
                return await client.request(method, path, **more)

        return asyncio.run(ask())

    def submitted(self, who: str, **changes: Any) -> str:
        answer = self(who, "POST", "/v1/jobs", JOB | changes)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["job_id"])


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    made = Api(tmp_path)
    yield made
    made.queue.log.close()


def test_a_job_from_submit_to_its_end(api: Api) -> None:
    first, second = api.submitted("a", roles=[{"gpus": 4}]), api.submitted("a")
    seen = api("a", "GET", f"/v1/jobs/{second}").json()
    assert (seen["state"], seen["position"], seen["reason"]) == ("pending", None, "unseen")
    api.queue.tick()
    running, waiting = (api("a", "GET", f"/v1/jobs/{i}").json() for i in (first, second))
    assert (running["state"], running["nodes"], running["running_gpus"]) == ("running", ["n0"], 4.0)
    assert (waiting["state"], waiting["position"]) == ("pending", 1)
    assert waiting["start"]["p50_at"] is None
    assert "not estimated" in waiting["start"]["reason"]
    assert running["submitted_at"].endswith("Z")
    api.fleet.advance(61)
    api.queue.tick()
    assert api("a", "GET", f"/v1/jobs/{first}").json()["state"] == "succeeded"
    assert api("a", "DELETE", f"/v1/jobs/{second}").json()["state"] == "cancelled"
    assert api("a", "DELETE", f"/v1/jobs/{first}").json()["state"] == "succeeded"


READS = {"admin": 200, "a": 200, "b": 404, "a-reads": 200, "all-read": 200, None: 401}
CANCELS = {"admin": 200, "a": 200, "b": 404, "a-reads": 403, "all-read": 403, None: 401}
SUBMITS_TO_A = {"admin": 201, "a": 201, "b": 403, "a-reads": 403, "all-read": 403, None: 401}
SETS_POLICY = {"admin": 200, "a": 403, "b": 403, "a-reads": 403, "all-read": 403, None: 401}
METRICS = {"admin": 200, "a": 403, "b": 403, "a-reads": 403, "all-read": 200, None: 401}


@pytest.mark.parametrize("who", list(READS))
def test_rights(api: Api, who: str | None) -> None:
    mine = api.submitted("a")
    other = api.submitted("b")
    assert api(who, "GET", f"/v1/jobs/{mine}").status_code == READS[who]
    assert api(who, "POST", "/v1/what-if", {"job_id": mine, "gpus": 1}).status_code == READS[who]
    listed = api(who, "GET", "/v1/jobs")
    if who is None:
        assert listed.status_code == 401
        assert listed.headers["www-authenticate"] == "Bearer"
    else:
        ids = {j["job_id"] for j in listed.json()["jobs"]}
        wanted = {"admin": {mine, other}, "all-read": {mine, other}, "b": {other}}.get(who, {mine})
        assert ids == wanted
        allowed = who in ("admin", "all-read", "b")
        assert api(who, "GET", "/v1/jobs?team=b").status_code == (200 if allowed else 403)
        assert api(who, "GET", f"/v1/jobs?after={other}").status_code == (200 if allowed else 404)
    assert api(who, "DELETE", f"/v1/jobs/{mine}").status_code == CANCELS[who]
    assert api(who, "POST", "/v1/jobs", JOB | {"team": "a"}).status_code == SUBMITS_TO_A[who]
    put = api(who, "PUT", "/v1/policy", {"teams": {}}, If_Match='"policy-0"')
    assert put.status_code == SETS_POLICY[who]
    assert api(who, "GET", "/metrics").status_code == METRICS[who]
    assert api(who, "GET", "/healthz").status_code == 200


def test_tokens_are_compared_whole(api: Api) -> None:
    token = TOKENS["a"][0]
    for header in (f"Bearer {token}x", f"Bearer {token[:-1]}", f"Basic {token}", "Bearer", "Bearer é", token):
        answer = api.raw("GET", "/v1/jobs", headers={"Authorization": header.encode("latin-1")})
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
        assert token not in answer.text
    assert api.raw("GET", "/v1/jobs", headers={"Authorization": f"bearer {token}"}).status_code == 200


def test_submits_with_one_key_are_one_job(api: Api) -> None:
    first = api("a", "POST", "/v1/jobs", JOB, Idempotency_Key="k1")
    again = api("a", "POST", "/v1/jobs", JOB, Idempotency_Key="k1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["job_id"] == again.json()["job_id"]
    other = api("a", "POST", "/v1/jobs", JOB | {"name": "other"}, Idempotency_Key="k1")
    assert other.status_code == 422
    assert "another request" in other.json()["detail"]
    assert api("b", "POST", "/v1/jobs", JOB, Idempotency_Key="k1").status_code == 201
    assert len(api("admin", "GET", "/v1/jobs").json()["jobs"]) == 2


def test_lists_go_on_where_they_ended(api: Api) -> None:
    ids = {api.submitted("a") for _ in range(5)}
    found: list[str] = []
    after = ""
    while True:
        page = api("a", "GET", f"/v1/jobs?limit=2{after}").json()
        found += [j["job_id"] for j in page["jobs"]]
        if page["next_after"] is None:
            break
        after = f"&after={page['next_after']}"
    assert (set(found), len(found)) == (ids, 5)
    assert api("a", "GET", "/v1/jobs?state=running").json()["jobs"] == []


def test_the_policy_document_has_versions(api: Api) -> None:
    empty = api("admin", "GET", "/v1/policy")
    assert (empty.json()["version"], empty.headers["etag"]) == (0, '"policy-0"')
    document = {"teams": {"a": {"mode": "advise", "max_gpus_per_job": 1}, "b": {"mode": "enforce", "accelerators": []}}}
    assert api("admin", "PUT", "/v1/policy", document).status_code == 428
    put = api("admin", "PUT", "/v1/policy", document, If_Match='"policy-0"', Idempotency_Key="p1")
    assert (put.status_code, put.json()["version"], put.headers["etag"]) == (200, 1, '"policy-1"')
    again = api("admin", "PUT", "/v1/policy", document, If_Match='"policy-0"', Idempotency_Key="p1")
    assert (again.status_code, again.json()["version"]) == (200, 1)
    stale = api("admin", "PUT", "/v1/policy", {"teams": {}}, If_Match='"policy-0"')
    assert (stale.status_code, stale.headers["etag"]) == (412, '"policy-1"')
    for odd in ("*", "policy-1", '"policy-01"', 'W/"policy-1"'):
        assert api("admin", "PUT", "/v1/policy", {"teams": {}}, If_Match=odd).status_code == 412
    assert set(api("a", "GET", "/v1/policy").json()["document"]["teams"]) == {"a"}


def test_a_policy_advises_or_enforces_until_it_expires(api: Api) -> None:
    team = {"max_gpus_per_job": 1}
    far = {"teams": {"a": team, "b": team | {"mode": "enforce"}}, "expires_at": "2099-01-01T00:00:00Z"}
    assert api("admin", "PUT", "/v1/policy", far, If_Match='"policy-0"').status_code == 200
    assert "2 GPUs" in api("a", "POST", "/v1/jobs", JOB).json()["advice"][0]
    refused = api("b", "POST", "/v1/jobs", JOB)
    assert (refused.status_code, "policy document" in refused.json()["detail"]) == (403, True)
    api.fleet.advance(100 * 366 * 86_400)
    assert api("b", "POST", "/v1/jobs", JOB).status_code == 201
    assert api("b", "GET", "/v1/policy").json()["is_expired"]


def test_what_if(api: Api) -> None:
    api.queue.tick()
    api.submitted("a", roles=[{"gpus": 3}])
    waiting = api.submitted("a", roles=[{"gpus": 4}])
    api.queue.tick()
    smaller = api("a", "POST", "/v1/what-if", {"job_id": waiting, "gpus": 1, "limit_s": 10}).json()
    assert (smaller["would_start_now"], smaller["nodes"]) == (True, ["n0"])
    same = api("a", "POST", "/v1/what-if", {"job_id": waiting}).json()
    assert (same["would_start_now"], same["position"], same["reason"]) == (False, 2, "no_room")
    never = api("a", "POST", "/v1/what-if", {"job": JOB | {"roles": [{"gpus": 9}]}}).json()
    assert (never["reason"], "even empty" in never["message"]) == ("impossible", True)
    assert api("a", "POST", "/v1/what-if", {"job": JOB, "job_id": waiting}).status_code == 422
    assert api("a", "POST", "/v1/what-if", {}).status_code == 422


def test_only_admins_submit_critical_jobs_or_to_other_queues(api: Api) -> None:
    assert api("a", "POST", "/v1/jobs", JOB | {"priority_class": "critical"}).status_code == 403
    assert api("a", "POST", "/v1/jobs", JOB | {"queue": "b"}).status_code == 403
    assert api("admin", "POST", "/v1/jobs", JOB | {"team": "a", "priority_class": "critical"}).status_code == 201
    assert api("admin", "POST", "/v1/jobs", JOB | {"team": "nobody"}).status_code == 422


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 64}, "name"),
        ({}, "name"),
        ({"name": "x", "unknown": 1}, "unknown"),
        ({"name": "x", "roles": []}, "roles"),
        ({"name": "x", "roles": [{"gpus": -1}]}, "gpus"),
        ({"name": "x", "roles": [{"gpus": 1.5}]}, "gpus"),
        ({"name": "x", "roles": [{"gpus": 10**30}]}, "gpus"),
        ({"name": "x", "roles": [{"count": 2, "min_count": 3}]}, "roles"),
        ({"name": "x", "roles": [{"name": "w"}, {"name": "w"}]}, ""),
        ({"name": "x", "roles": [{"name": f"r{i}", "count": 1024} for i in range(2)]}, ""),
        ({"name": "x", "pod": {"command": ["\u0000"]}}, "command"),
        ({"name": "x", "pod": {"annotations": {"a b": "c"}}}, "annotations"),
        ({"name": "x", "limit_s": 0}, "limit_s"),
        ({"name": "x", "deadline_at": "2026-01-01T00:00:00"}, "deadline_at"),
        ([], ""),
    ],
)
def test_bad_requests_name_the_field(api: Api, body: Any, field: str) -> None:
    answer = api("a", "POST", "/v1/jobs", body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert any(field in e["field"] for e in answer.json()["errors"])


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 422),
        (b'{"name": "\\ud800"}', 422),
        (b'{"name": "x", "pod": {"command": ["\\ud800"]}}', 422),
        (b'{"\\ud800": 1, "name": "x"}', 422),
        (b'{"name": "x", "limit_s": NaN}', 422),
        (b'{"name": "x", "limit_s": 1e999}', 422),
        (b'{"name": "x", "limit_s": ' + b"9" * 5000 + b"}", (400, 422)),
        (b"[" * 50_000, (400, 422)),
        (b"\xff\xfe", (400, 422)),
        (b'{"name": "' + b"x" * 300_000 + b'"}', 413),
    ],
)
def test_no_body_breaks_it(api: Api, content: bytes, status: int | tuple[int, ...]) -> None:
    headers = {"Authorization": f"Bearer {TOKENS['a'][0]}", "Content-Type": "application/json"}

    async def parts() -> AsyncIterator[bytes]:
        yield content

    for body in (content, parts()):
        answer = api.raw("POST", "/v1/jobs", content=body, headers=headers)
        assert answer.status_code in (status if isinstance(status, tuple) else (status,)), answer.text
        assert answer.headers["content-type"] == "application/problem+json"


def test_unknown_paths_and_methods_are_problems(api: Api) -> None:
    for method, path, status in (("GET", "/v2", 404), ("PATCH", "/v1/jobs", 405), ("GET", "/v1/jobs/%00", 422)):
        answer = api("a", method, path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


def test_health_says_when_the_world_is_away(api: Api) -> None:
    assert api(None, "GET", "/healthz").json()["status"] == "starting"
    api.queue.tick()
    assert api(None, "GET", "/healthz").json()["status"] == "ok"
    api.fleet.is_reachable = False
    api.queue.tick()
    assert api(None, "GET", "/healthz").status_code == 503
    assert api("a", "POST", "/v1/jobs", JOB).status_code == 201


def test_a_log_that_takes_nothing_is_no_answer_of_success(api: Api) -> None:
    api.queue.log._db.execute("pragma query_only=on")
    answer = api("a", "POST", "/v1/jobs", JOB)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    api.queue.log._db.execute("pragma query_only=off")
    assert api("a", "GET", "/v1/jobs").json()["jobs"] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("token,team,role\nshort,a,team\n", ":2: token"),
        ("token,team,role\n0123456789abcdef,a,king\n", ":2: role"),
        ("token,team,role\n0123456789abcdef,*,team\n", ":2: team"),
        ("token,team,role\n0123456789abcdef,a,team\n0123456789abcdef,b,team\n", ":3: token"),
        ("token,team,role\n", "no"),
    ],
)
def test_a_token_file_that_is_wrong_says_where_and_no_token(tmp_path: Path, text: str, wrong: str) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(text)
    with pytest.raises(BadInput) as error:
        read_tokens(path)
    assert wrong in str(error.value)
    assert "0123456789abcdef" not in str(error.value)
