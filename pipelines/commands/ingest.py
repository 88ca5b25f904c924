"""`strandline ingest …`: what is read from outside, once or until stopped, into the landing zone and raw tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands import options

app = typer.Typer(
    help="Read exporters, Kubernetes, captured files and rate cards.", no_args_is_help=True, rich_markup_mode=None
)

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
def dcgm(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE|URL]...", help="Exporters, or one captured body.", show_default=False),
    ] = None,
    node: Annotated[
        str | None, typer.Option("--node", help="Kubernetes node of the exporter or file.", show_default=False)
    ] = None,
    cluster: Cluster = None,
    at: At = None,
    every: Every = None,
    discovery: Annotated[
        list[str] | None,
        typer.Option(
            "--sd", help="Service discovery: a file_sd JSON file or http_sd URL; may repeat.", show_default=False
        ),
    ] = None,
    timeout: Annotated[str, typer.Option("--timeout", help="Longest wait for one exporter.")] = "10s",
    ca_file: Annotated[
        Path | None, typer.Option("--ca-file", help="Authorities for https.", show_default=False)
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Do not verify https.")] = False,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File with a bearer token to send.", show_default=False)
    ] = None,
    data: options.Data = None,
) -> None:
    """Read DCGM exporters: once, or with --every until stopped; or take in a captured body.

    A file needs --node and --at. With --every bodies land and are sealed by the hour; otherwise at once.
    --at with a URL stamps the scrape with that time: for an exporter whose clock stands still.
    """
    from pipelines import collecting
    from pipelines.durations import parse_instant
    from warehouse.errors import BadInput

    settings = options.settings(data=data)
    name = cluster or collecting.DEFAULT_CLUSTER
    stamp = None if at is None else parse_instant(at, "--at")
    urls = [s for s in sources or () if not Path(s).is_file()]
    files = [Path(s) for s in sources or () if Path(s).is_file()]
    for url in urls:
        if "://" not in url and ":" not in url:
            raise BadInput(f"{url}: no such file, and no URL or host:port either")
    if files:
        if urls or discovery or every or len(files) > 1:
            raise BadInput("one captured file at a time, without URLs, --sd and --every; `ingest manifest` takes many")
        if node is None or stamp is None:
            raise BadInput(f"{files[0]}: a captured body needs --node and --at: it does not say whose and when it is")
        collecting.land_files(settings, [collecting.scrape_of_file(files[0], node, name, stamp).record()])
        return
    if not urls and not discovery:
        raise BadInput("nothing to read: give a FILE, a URL or --sd")
    if node is not None and len(urls) != 1:
        raise BadInput("--node names the node of one exporter; --sd can name many")
    client = collecting.client(timeout, ca_file, token_file, insecure)
    if every is None:
        exporters = collecting.targets(urls, discovery or (), name, node)
        if collecting.scrape_now(settings, exporters, client, stamp) == len(exporters):
            raise typer.Exit(1)
        return
    if stamp is not None:
        raise BadInput("--at and --every exclude each other")
    collecting.scrape_until_stopped(
        settings, lambda: collecting.targets(urls, discovery or (), name, node), client, _spacing(every)
    )


@app.command()
def kubernetes(
    kubeconfig: Annotated[
        Path | None,
        typer.Option("--kubeconfig", help="Kubeconfig (default: KUBECONFIG, else ~/.kube/config).", show_default=False),
    ] = None,
    context: Annotated[
        list[str] | None, typer.Option("--context", help="Context of the kubeconfig; may repeat.", show_default=False)
    ] = None,
    all_contexts: Annotated[bool, typer.Option("--all-contexts", help="Every context of the kubeconfig.")] = False,
    from_file: Annotated[
        list[Path] | None,
        typer.Option(
            "--from-file", help="Saved list (kubectl get -o json, or pod-resources); may repeat.", show_default=False
        ),
    ] = None,
    node: Annotated[
        str | None, typer.Option("--node", help="Node of a saved pod-resources list.", show_default=False)
    ] = None,
    cluster: Cluster = None,
    at: At = None,
    every: Every = None,
    data: options.Data = None,
) -> None:
    """Read nodes, pods, namespaces and device claims: once, with --every until stopped, or from saved lists.

    Files need --at. Reading needs list on nodes, pods and namespaces, nothing else. Contexts name the clusters.
    """
    from pipelines import collecting
    from pipelines.durations import parse_instant
    from warehouse.errors import BadInput

    settings = options.settings(data=data)
    stamp = None if at is None else parse_instant(at, "--at")
    if from_file:
        if kubeconfig or context or all_contexts or every:
            raise BadInput("--from-file goes without --kubeconfig, --context and --every")
        if stamp is None:
            raise BadInput(f"{from_file[0]}: a saved list needs --at: it does not say when it was taken")
        name = cluster or collecting.DEFAULT_CLUSTER
        collecting.land_files(settings, [collecting.list_of_file(f, node, name, stamp).record() for f in from_file])
        return
    if node is not None:
        raise BadInput("--node is for a saved pod-resources list (--from-file)")
    if kubeconfig is not None and not kubeconfig.is_file():
        raise BadInput(f"{kubeconfig}: no such kubeconfig")
    from pipelines import listing

    names = listing.contexts_of(kubeconfig) if all_contexts else list(context or ())
    servers = listing.clusters(kubeconfig, names, cluster)
    if every is None:
        if listing.list_now(settings, servers, stamp):
            raise typer.Exit(1)
        return
    if stamp is not None:
        raise BadInput("--at and --every exclude each other")
    listing.list_until_stopped(settings, servers, _spacing(every))


def _spacing(every: str) -> float:
    from pipelines.durations import parse_duration
    from warehouse.errors import BadInput

    seconds = parse_duration(every)
    if seconds < 1:
        raise BadInput(f"--every {every}: the spacing must be 1s or more")
    return seconds


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
