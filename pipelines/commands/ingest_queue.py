"""`strandline ingest queue-events`: the event log of the queue service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands import options


def queue_events(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Event logs (default: the setting queue_log, DATA/queue/events.db).",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Whose queue it is (default: the setting queue_cluster).", show_default=False),
    ] = None,
    data: options.Data = None,
) -> None:
    """Take in what is new in event logs of the queue service, which may go on writing meanwhile.

    Events are known by log and position: the same log again brings nothing twice. Events that cannot be read are named
    after the others are in, and the exit code is then 2. A log that does not go on from what the lake has of it brings
    nothing.
    """
    from assets.queue_events import load_queue_events, messages
    from pipelines import collecting, console
    from warehouse.lake import Lake

    settings = options.settings(data=data)
    paths = files or [settings.queue_log_path()]
    report = load_queue_events(Lake(settings.data), paths, cluster or settings.queue_cluster)
    for message in messages(report):
        console.say(message)
    collecting.raise_for(report.refused, shown=50)
