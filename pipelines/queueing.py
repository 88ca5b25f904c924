"""What `strandline queue serve` puts together: log, world, policy, tokens, exporter and the HTTP server.

Belongs here: composition, and files made at the first start. Not here: flags (`commands/queue.py`), the queue itself
(`scheduler/service/`).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from exporters import queue as exporter
from exporters import server
from pipelines import console
from scheduler.placement.bestfit import place
from scheduler.policy import POLICIES
from scheduler.replay import fleets
from scheduler.service.api import build_api
from scheduler.service.auth import read_tokens
from scheduler.service.core import QueueService
from scheduler.service.estimating import Background
from scheduler.service.kubeworld import KubeWorld
from scheduler.service.log import EventLog
from scheduler.service.loop import Loop
from scheduler.service.worlds import World
from sources.kubernetes.read import connect
from warehouse.errors import BadInput

PORT = 9410
# Gangs bound at the same time: requests to an API server wait for it most of the time.
BINDERS = 8


@dataclass(frozen=True)
class Served:
    """The flags. `wrap` may put something around the world, as tests of crashes do."""

    folder: Path
    kubeconfig: Path
    host: str = "127.0.0.1"
    port: int = PORT
    tokens: Path | None = None
    queues: Path | None = None
    policy: str = "strandline"
    context: str | None = None
    namespace: str = "strandline"
    every_s: float = 1.0
    estimates_every_s: float = 15.0
    wrap: Callable[[World], World] = lambda world: world


def tokens_path(folder: Path) -> Path:
    """The token file of a data folder's queue."""
    return folder / "tokens.csv"


def first_tokens(path: Path) -> None:
    """A token file with one new admin token, readable for its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(made, "w", encoding="utf-8") as file:
        file.write(f"token,team,role\n{secrets.token_urlsafe(32)},*,admin\n")
    console.say(f"made {path} with one admin token; add rows of token, team, role (admin, team, read)")


def serve(wanted: Served, started: Callable[[str], None] | None = None) -> None:
    """Serve until stopped. `BadInput` names the file that is wrong; `LakeBusy` where the log is in use."""
    if not wanted.kubeconfig.is_file():
        raise BadInput(
            f"{wanted.kubeconfig}: no such file; `strandline fleet serve` writes one for the simulated fleet, or give "
            "--kubeconfig"
        )
    path = wanted.tokens or tokens_path(wanted.folder)
    if wanted.tokens is None and not path.exists():
        first_tokens(path)
    tokens = read_tokens(path)
    given = None if wanted.queues is None else fleets.read_queues(wanted.queues)
    queues = fleets.queues_for(tokens.teams, given)
    cluster = connect(str(wanted.kubeconfig), wanted.context)
    world = wanted.wrap(KubeWorld(cluster.api, wanted.namespace))
    log = EventLog(wanted.folder / "events.db")
    try:
        queue = QueueService(
            log, world, POLICIES[wanted.policy], queues, placer=place, binders=BINDERS,
            runner=Background(wanted.estimates_every_s),
        )  # fmt: skip
        with Loop(queue, wanted.every_s):
            server.run(
                build_api(queue, tokens, exporter.render), host=wanted.host, port=wanted.port, started=started
            )  # fmt: skip
    finally:
        log.close()
