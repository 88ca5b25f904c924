"""`strandline queue serve|submit|list|status|cancel|what-if`: the GPU job queue and its users."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipelines.commands import options

if TYPE_CHECKING:
    from pipelines.queueclient import QueueClient

app = typer.Typer(help="The GPU job queue.", no_args_is_help=True)


class Form(StrEnum):
    """Forms of an answer."""

    TABLE = "table"
    JSON = "json"


class PolicyName(StrEnum):
    """Policies that the queue can run under."""

    FIFO = "fifo"
    EASY = "easy"
    CONSERVATIVE = "conservative"
    STRANDLINE = "strandline"


class Priority(StrEnum):
    """Priority classes."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    CRITICAL = "critical"


Url = Annotated[
    str, typer.Option("--url", help="Address of the queue service.", envvar="STRANDLINE_QUEUE_URL", show_envvar=True)
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        help="Bearer token (default: the first of DATA/queue/tokens.csv).",
        envvar="STRANDLINE_QUEUE_TOKEN",
        show_envvar=True,
        show_default=False,
    ),
]
Format = Annotated[Form, typer.Option("--format", help="Form of the answer.")]
JobId = Annotated[str, typer.Argument(help="Id of the job, as submit told it.")]
_URL = "http://127.0.0.1:9410"


@app.command()
def serve(
    port: Annotated[int, typer.Option("--port", help="Port; 0 takes a free one.", min=0, max=65535)] = 9410,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            help="Cluster to run in (default: DATA/fleet/kubeconfig, the simulated fleet).",
            show_default=False,
        ),
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", help="Context of the kubeconfig.", show_default=False)
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", help="Namespace of the queue's pods.")] = "strandline",
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            help="Who may ask: rows of token, team, role (default: DATA/queue/tokens.csv).",
            show_default=False,
        ),
    ] = None,
    queues: Annotated[
        Path | None, typer.Option("--queues", help="Weights and quotas of queues, YAML or CSV.", show_default=False)
    ] = None,
    policy: Annotated[PolicyName, typer.Option("--policy", help="Who starts when.")] = PolicyName.STRANDLINE,
    every: Annotated[str, typer.Option("--every", help="How often the cluster is looked at.")] = "1s",
    estimates_every: Annotated[
        str, typer.Option("--estimates-every", help="How often start times are estimated, at most.")
    ] = "15s",
    data: options.Data = None,
) -> None:
    """Serve the queue over a cluster until stopped (Ctrl-C): HTTP API, durable log, scheduling cycle.

    Jobs belong to teams, and each team has a queue of its name. State is in DATA/queue/events.db and survives any end.
    """
    from pipelines import console, queueing
    from pipelines.durations import parse_duration
    from warehouse.errors import BadInput

    folder = options.settings(data=data).data
    every_s = parse_duration(every)
    if every_s < 0.1:
        raise BadInput(f"--every {every}: 100ms is the least")
    wanted = queueing.Served(
        folder / "queue", kubeconfig or folder / "fleet" / "kubeconfig", host, port, tokens, queues, policy.value,
        context, namespace, every_s, parse_duration(estimates_every),
    )  # fmt: skip
    queueing.serve(wanted, lambda url: console.say(f"queue service on {url}; Ctrl-C stops it"))


@app.command()
def submit(
    name: Annotated[str, typer.Argument(help="Name of the job.")],
    command: Annotated[
        list[str] | None, typer.Argument(help="What its pods run, after --.", show_default=False)
    ] = None,
    gpus: Annotated[int, typer.Option("--gpus", help="GPUs of each pod.", min=0)] = 1,
    pods: Annotated[int, typer.Option("--pods", help="Pods of the gang.", min=1)] = 1,
    min_pods: Annotated[
        int | None, typer.Option("--min-pods", help="Pods it can do with.", min=1, show_default=False)
    ] = None,
    accelerator: Annotated[
        list[str] | None, typer.Option("--accelerator", help="Model it may run on; may be given again, best first.")
    ] = None,
    team: Annotated[str | None, typer.Option("--team", help="Whose job it is (admins).", show_default=False)] = None,
    priority: Annotated[Priority, typer.Option("--priority", help="Priority class.")] = Priority.NORMAL,
    estimate: Annotated[
        str | None, typer.Option("--estimate", help="How long it will run.", show_default=False)
    ] = None,
    limit: Annotated[str | None, typer.Option("--limit", help="When it is to be stopped.", show_default=False)] = None,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", help="How often it saves its work.", show_default=False)
    ] = None,
    image: Annotated[str, typer.Option("--image", help="Image of its pods.", show_default=False)] = "",
    run_for: Annotated[
        str | None,
        typer.Option("--run-for", help="How long its pods run in the simulated fleet.", show_default=False),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="Idempotency key: the same again is the same job.", show_default=False),
    ] = None,
    url: Url = _URL,
    token: Token = None,
    form: Format = Form.TABLE,
    data: options.Data = None,
) -> None:
    """Submit a job: a gang of equal pods that starts whole or not at all."""
    from uuid import uuid4

    role = {"gpus": gpus, "count": pods, "min_count": min_pods, "accelerators": accelerator or []}
    annotations = {} if run_for is None else {"strandline.io/run-seconds": str(_seconds(run_for))}
    body = {
        "name": name,
        "team": team,
        "roles": [role],
        "priority_class": priority.value,
        "estimate_s": _seconds(estimate),
        "limit_s": _seconds(limit),
        "checkpoint_s": _seconds(checkpoint),
        "pod": {"image": image, "command": command or [], "annotations": annotations},
    }
    found = _client(url, token, data).ask("POST", "/v1/jobs", body, key=key or uuid4().hex)
    _show([found], form, is_one=True)
    if found["state"] == "impossible":
        from pipelines import console

        console.say(f"job {found['job_id']} can never start: {found['message']}")
        raise typer.Exit(1)


@app.command("list")
def list_jobs(
    team: Annotated[str | None, typer.Option("--team", help="Of this team only.", show_default=False)] = None,
    state: Annotated[str | None, typer.Option("--state", help="In this state only.", show_default=False)] = None,
    url: Url = _URL,
    token: Token = None,
    form: Format = Form.TABLE,
    data: options.Data = None,
) -> None:
    """List jobs of the own team, or of all for an admin, in the order of submission."""
    client, jobs, after = _client(url, token, data), [], None
    while True:
        page = client.ask("GET", "/v1/jobs", query={"team": team, "state": state, "after": after, "limit": 1000})
        jobs += page["jobs"]
        if (after := page["next_after"]) is None:
            break
    _show(jobs, form)


@app.command()
def status(
    job_id: JobId, url: Url = _URL, token: Token = None, form: Format = Form.TABLE, data: options.Data = None
) -> None:
    """Tell where a job is: state, place in the queue, expected start, reason."""
    _show([_client(url, token, data).ask("GET", f"/v1/jobs/{_quoted(job_id)}")], form, is_one=True)


@app.command()
def cancel(
    job_id: JobId, url: Url = _URL, token: Token = None, form: Format = Form.TABLE, data: options.Data = None
) -> None:
    """Cancel a job, whether it waits or runs."""
    _show([_client(url, token, data).ask("DELETE", f"/v1/jobs/{_quoted(job_id)}")], form, is_one=True)


@app.command("what-if")
def what_if(
    job_id: JobId,
    gpus: Annotated[int | None, typer.Option("--gpus", help="GPUs of each pod.", min=0, show_default=False)] = None,
    pods: Annotated[int | None, typer.Option("--pods", help="Pods of each role.", min=1, show_default=False)] = None,
    accelerator: Annotated[
        list[str] | None, typer.Option("--accelerator", help="Model it may run on; may be given again, best first.")
    ] = None,
    limit: Annotated[str | None, typer.Option("--limit", help="When it is to be stopped.", show_default=False)] = None,
    url: Url = _URL,
    token: Token = None,
    form: Format = Form.TABLE,
    data: options.Data = None,
) -> None:
    """Ask whether a job would start now if it asked for other things; nothing is changed."""
    asked = {
        "job_id": job_id, "gpus": gpus, "count": pods, "accelerators": accelerator or None, "limit_s": _seconds(limit),
    }  # fmt: skip
    found = _client(url, token, data).ask("POST", "/v1/what-if", asked)
    if form == Form.TABLE:
        from pipelines import console

        console.table(tuple(found), [[", ".join(v) if isinstance(v, list) else v for v in found.values()]])
        return
    _show([found], form, is_one=True)


def _client(url: str, token: str | None, data: Path | None) -> QueueClient:
    from pipelines import queueing
    from pipelines.queueclient import QueueClient, checked_token, checked_url, first_token

    if token is None:
        token = first_token(queueing.tokens_path(options.settings(data=data).data / "queue"))
    return QueueClient(checked_url(url), checked_token(token))


def _quoted(job_id: str) -> str:
    from urllib.parse import quote

    return quote(job_id, safe="")


def _seconds(text: str | None) -> int | None:
    from pipelines.durations import parse_duration

    return None if text is None else round(parse_duration(text))


_COLUMNS = ("job_id", "name", "team", "state", "position", "reason", "gpus", "nodes", "submitted_at", "message")


def _show(jobs: list[dict[str, Any]], form: Form, *, is_one: bool = False) -> None:
    import json

    from pipelines import console

    if form == Form.JSON:
        print(json.dumps(jobs[0] if is_one else jobs, ensure_ascii=False))
        return
    rows = [[", ".join(j[c]) if isinstance(j[c], list) else j[c] for c in _COLUMNS] for j in jobs]
    console.table(_COLUMNS, rows)
    for job in jobs if is_one else ():
        start = job["start"]
        if start["p50_at"] is not None:
            console.say(f"starts by {start['p50_at']} in half of such cases, by {start['p90_at']} in nine of ten")
        elif job["state"] == "pending":
            console.say(f"no time of its start: {start['reason']}")
        for line in job["advice"]:
            console.say(f"advice: the job {line}")
