"""`strandline fleet serve`: the simulated fleet as live exporters and Kubernetes APIs on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands import options

app = typer.Typer(help="The simulated fleet.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """The simulated fleet."""


@app.command()
def serve(
    port: Annotated[int, typer.Option("--port", help="Port; 0 takes a free one.", min=0, max=65535)] = 9400,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            help="Simulated instant to start at (default: now, or the start of the telemetry).",
            show_default=False,
        ),
    ] = None,
    speed: Annotated[
        float, typer.Option("--speed", help="Simulated seconds per second; 0 stands still.", min=0.0)
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", help="Seed, as for the demo.")] = 7,
    end_at: Annotated[str | None, typer.Option("--end-at", help="As for the demo.", show_default=False)] = None,
    days: Annotated[int, typer.Option("--days", help="As for the demo.", min=1, max=366)] = 14,
    interval: Annotated[str, typer.Option("--interval", help="As for the demo.")] = "60s",
    trace: Annotated[Path | None, typer.Option("--trace", help="As for the demo.", show_default=False)] = None,
    trace_from: Annotated[str | None, typer.Option("--trace-from", help="As for the demo.", show_default=False)] = None,
    faults: Annotated[str, typer.Option("--faults", help="As for the demo.")] = "mild",
    scale: Annotated[float, typer.Option("--scale", help="As for the demo.")] = 1.0,
    pod_labels: Annotated[bool, typer.Option("--pod-labels/--no-pod-labels", help="Exporters name the pod.")] = True,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig", help="Write the kubeconfig here (default: DATA/fleet/kubeconfig).", show_default=False
        ),
    ] = None,
    data: options.Data = None,
) -> None:
    """Serve DCGM text per node, service discovery and a Kubernetes API per cluster, until stopped (Ctrl-C).

    Without --at and --end-at the fleet lives now, and what is collected from it is like that of a real one. With the
    demo's flags it is the demo's fleet: what is collected at an instant equals the demo's history. GET /clock tells
    the simulated time, POST /clock sets it. Everything served is simulated.
    """
    from datetime import UTC, datetime, timedelta

    from exporters.serve import build_app
    from exporters.server import run, write_kubeconfig
    from fleet.clock import Clock
    from fleet.world import World
    from pipelines import console
    from pipelines.commands.specs import fleet_spec
    from pipelines.durations import parse_instant
    from warehouse.errors import BadInput

    settings = options.settings(data=data)
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    if at is None and end_at is None:
        # Half of the telemetry lies ahead, for a server that is left running.
        end_at = (now.replace(hour=0, minute=0, second=0) + timedelta(days=1 + days // 2)).isoformat()
        at = now.isoformat()
    spec = fleet_spec(
        seed=seed,
        end_at=end_at,
        days=days,
        interval=interval,
        trace=trace,
        trace_from=trace_from,
        faults=faults,
        scale=scale,
    )
    console.say("inventing the fleet")
    world = World.build(spec)
    start = world.start_at if at is None else parse_instant(at, "--at")
    if not world.start_at <= start <= world.end_at:
        raise BadInput(f"--at {start}: the fleet's telemetry is {world.start_at} to {world.end_at}")
    path = kubeconfig or settings.data / "fleet" / "kubeconfig"

    def started(url: str) -> None:
        write_kubeconfig(path, sorted({n.cluster for n in world.nodes}), url)
        console.say(
            f"SIMULATED fleet of {len(world.nodes)} nodes on {url} at {start} (speed {speed:g}); Ctrl-C stops it"
        )
        console.say(f"  strandline ingest dcgm --sd {url}/sd/targets --every {spec.interval_s}s")
        console.say(f"  strandline ingest kubernetes --kubeconfig {path} --all-contexts --every {spec.snapshot_s}s")

    run(build_app(world, Clock(start, speed), pod_labels=pod_labels), host=host, port=port, started=started)
