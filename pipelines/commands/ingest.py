"""`strandline ingest …`: what is read from outside, once or until stopped, into the landing zone and raw tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands import options

app = typer.Typer(help="Read exporters, Kubernetes and captured files.", no_args_is_help=True, rich_markup_mode=None)

At = Annotated[
    str | None,
    typer.Option("--at", help="When files were captured, ISO 8601 (UTC without a zone).", show_default=False),
]
Every = Annotated[
    str | None,
    typer.Option("--every", help="Repeat at this spacing, e.g. 60s, until stopped (Ctrl-C).", show_default=False),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", help="Name of the cluster (default: default, or the context's).", show_default=False),
]


@app.command()
def manifest(
    path: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="One JSON object a line; see below.")],
    cluster: Cluster = None,
    data: options.Data = None,
) -> None:
    """Import captured files in bulk, in any order, again or not.

    A line of the manifest has kind (dcgm, kubernetes or pod_resources), file (relative to the manifest), at, node,
    and where it differs target and cluster. Of two bodies for one target and instant the longer one counts, then
    the smaller hash. Bad lines are named after the good ones are in.
    """
    from pipelines import collecting

    settings = options.settings(data=data)
    collecting.import_manifest(settings, path, cluster or collecting.DEFAULT_CLUSTER)


@app.command()
def seal(data: options.Data = None) -> None:
    """Turn what the collectors landed into raw tables; the hourly Dagster asset and `strandline build` do it too."""
    from pipelines import collecting, console

    for message in collecting.seal(options.existing(options.settings(data=data))):
        console.say(message)
