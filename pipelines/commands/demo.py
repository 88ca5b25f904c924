"""`strandline demo`: the whole thread on a simulated fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands import options


def demo(
    seed: Annotated[int, typer.Option("--seed", help="Seed of fleet and work; one seed gives identical tables.")] = 7,
    end_at: Annotated[
        str | None,
        typer.Option(
            "--end-at", help="End of the simulated time, ISO 8601 UTC (default: a fixed day).", show_default=False
        ),
    ] = None,
    days: Annotated[int, typer.Option("--days", help="Days of telemetry.", min=1, max=366)] = 14,
    interval: Annotated[str, typer.Option("--interval", help="Spacing of scrapes, e.g. 60s.")] = "60s",
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            help="Take the work from this job trace (CSV or Parquet) and size the fleet to it.",
            show_default=False,
        ),
    ] = None,
    trace_from: Annotated[
        str | None,
        typer.Option(
            "--trace-from", help="Day of the trace to start at (default: its first busy Monday).", show_default=False
        ),
    ] = None,
    faults: Annotated[
        str, typer.Option("--faults", help="none, mild, all, or kinds of fault separated by commas.")
    ] = "mild",
    scale: Annotated[float, typer.Option("--scale", help="Size of the fleet, 1 is about 400 accelerators.")] = 1.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the exports (default: DATA/exports).", show_default=False)
    ] = None,
    data: options.Data = None,
    memory_limit: options.Memory = None,
    threads: options.Threads = None,
) -> None:
    """Simulate a GPU fleet, build every table over it, and print where its GPU-hours are stranded.

    All of it is simulated and says so. An earlier demo in the data folder is replaced; real data never are.
    """
    from pipelines import console
    from pipelines.commands.specs import fleet_spec

    settings = options.settings(data=data, memory_limit=memory_limit, threads=threads)
    with console.steps("demo") as progress:
        progress("reading the trace" if trace else "starting")
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
        from pipelines.demo import run

        run(settings, spec, out, progress)
