"""What to simulate, from the flags of `strandline demo` and `strandline fleet serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fleet.model import FleetSpec
from pipelines.durations import parse_date, parse_duration, parse_instant
from warehouse.errors import BadInput


def fleet_spec(
    *,
    seed: int,
    end_at: str | None,
    days: int,
    interval: str,
    trace: Path | None,
    trace_from: str | None,
    faults: str,
    scale: float,
) -> FleetSpec:
    """The spec of these flags; `BadInput` names the flag that makes no sense."""
    interval_s = parse_duration(interval)
    if interval_s < 1 or interval_s != int(interval_s):
        raise BadInput(f"--interval: {interval} must be whole seconds, 1s or more")
    chosen: dict[str, Any] = {"seed": seed, "days": days, "interval_s": int(interval_s), "scale": scale}
    if end_at is not None:
        chosen["end_at"] = parse_instant(end_at, "--end-at")
    kinds = tuple(k.strip() for k in faults.split(",") if k.strip())
    chosen["faults"] = kinds[0] if len(kinds) == 1 and kinds[0] in ("none", "mild", "all") else kinds
    if trace is None:
        if trace_from is not None:
            raise BadInput("--trace-from needs --trace")
        return FleetSpec(**chosen)
    from pipelines.demo import jobs_of_trace

    first = None if trace_from is None else parse_date(trace_from, "--trace-from")
    jobs, start = jobs_of_trace(trace, days, first)
    return FleetSpec(**chosen, jobs=jobs, jobs_from_s=start)
