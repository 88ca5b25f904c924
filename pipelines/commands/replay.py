"""`strandline replay`: a job trace through the queue under a policy, and what came of it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class PolicyName(StrEnum):
    """Policies that a trace can be replayed under."""

    FIFO = "fifo"
    EASY = "easy"
    CONSERVATIVE = "conservative"
    STRANDLINE = "strandline"
    PODWISE = "podwise"


class Estimates(StrEnum):
    """Where predicted run times come from."""

    EXACT = "exact"
    HISTORY = "history"


class Form(StrEnum):
    """Forms of the result."""

    TABLE = "table"
    JSON = "json"


def replay(
    trace: Annotated[
        Path, typer.Argument(help="Trace of jobs, CSV or Parquet: submit_time, duration_s, num_gpus, vc.")
    ],
    policy: Annotated[PolicyName, typer.Option("--policy", help="Who starts when.")] = PolicyName.STRANDLINE,
    pool: Annotated[
        int | None,
        typer.Option(
            "--pool",
            min=1,
            max=10_000_000,
            help="GPUs of one pool; strandline and podwise cut it into nodes of 8.",
            show_default=False,
        ),
    ] = None,
    fleet: Annotated[
        Path | None,
        typer.Option("--fleet", help="Nodes, CSV or YAML: name or count, gpus, flavor.", show_default=False),
    ] = None,
    queues: Annotated[
        Path | None,
        typer.Option("--queues", help="Weights and quotas of queues, YAML or CSV.", show_default=False),
    ] = None,
    pod_gpus: Annotated[
        int | None,
        typer.Option(
            "--pod-gpus", min=1, help="GPUs of one pod at most (default: of the largest node).", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of ties and of shaken arrivals.")] = 1,
    shake: Annotated[
        float, typer.Option("--shake", min=0, max=86_400, help="Move each arrival by up to so many seconds.")
    ] = 0,
    seeds: Annotated[
        int,
        typer.Option("--seeds", min=0, max=1000, help="Mean of the trace as it is and this many shaken by --shake."),
    ] = 0,
    estimates: Annotated[
        Estimates | None,
        typer.Option(
            "--estimates",
            help="Run times that the policy believes (default: history for strandline, exact for the others).",
            show_default=False,
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without", help="Mechanism of strandline to switch off; may be given again.", show_default=False
        ),
    ] = None,
    against: Annotated[
        PolicyName | None,
        typer.Option("--against", help="Replay under this policy too, beside it.", show_default=False),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="Draw what was held and what waited over time, as SVG.", show_default=False),
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="Form of the result.")] = Form.TABLE,
) -> None:
    """Replay a job trace through the queue in simulated time: waits, idle and lost GPU-hours, fairness.

    `--pool` alone is one pool of equal GPUs for fifo, easy and conservative; with `--fleet` every policy places jobs on
    its nodes. JSON is one object. A replay that deadlocks says so and has no mean.
    """
    from pipelines import replaying

    replaying.run(
        trace,
        replaying.Wanted(
            policy.value, pool, fleet, queues, pod_gpus, seed, shake, seeds, estimates.value if estimates else None,
            tuple(without or ()), against.value if against else None, picture,
        ),
        form.value,
    )  # fmt: skip
