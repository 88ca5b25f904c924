"""What `strandline replay` does: reads its files, replays, and writes the figures as a table or one JSON object.

Belongs here: files in, figures out. Not here: flags (`commands/replay.py`), the replay itself (`scheduler/replay/`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pipelines import console
from scheduler.replay import fleets, jobs, picture
from scheduler.replay.outcome import TraceRun
from scheduler.replay.picture import Replayed
from scheduler.replay.run import Setting, check, mean_of, run_once, spread_of
from warehouse.errors import BadInput

_RATIOS = (
    "mean_wait_s",
    "p95_wait_s",
    "max_wait_s",
    "first_start_wait_s",
    "share_error",
    "idle_while_waiting_gpu_hours",
)
# Jobs named in a cell of the table.
_SHOWN = 4


@dataclass(frozen=True)
class Wanted:
    """The flags."""

    policy: str
    pool: int | None
    fleet: Path | None
    queues: Path | None
    pod_gpus: int | None
    seed: int
    shake_s: float
    seeds: int
    estimates: Literal["exact", "history"] | None
    without: tuple[str, ...]
    against: str | None
    picture: Path | None = None


def run(trace: Path, wanted: Wanted, form: str) -> None:
    """Replay and write the result to stdout; progress and remarks to stderr. `BadInput` as the files are read."""
    settings = _settings(wanted)
    runs = jobs.read_runs(trace, settings[0].fleet, wanted.pod_gpus)
    given = None if wanted.queues is None else fleets.read_queues(wanted.queues)
    queues = fleets.queues_for({r.job.queue for r in runs}, given)
    replayed = [_replayed(runs, replace(s, queues=queues), wanted) for s in settings]
    found = [figures for _, figures in replayed]
    if wanted.picture is not None:
        _draw(wanted.picture, [shown for shown, _ in replayed])
    for result in found:
        if result["is_deadlocked"]:
            console.say(f"strandline: {result['policy']} deadlocked; it has no mean")
    result = found[0]
    if len(found) > 1:
        result = {**result, "against": found[1], "ratio_to_against": _ratios(*found)}
    if form == "json":
        print(json.dumps(result, ensure_ascii=False))
    else:
        print("\n".join(_table(found)))


def _settings(wanted: Wanted) -> list[Setting]:
    """What to replay: the policy, and the one beside it. `BadInput` where flags do not go together."""
    if wanted.pool is None and wanted.fleet is None:
        raise BadInput("--pool N or --fleet FILE says what to replay on")
    if wanted.picture is not None and wanted.picture.suffix.lower() != ".svg":
        raise BadInput(f"--picture {wanted.picture}: an SVG file is drawn; its name ends in .svg")
    if wanted.picture is not None and not wanted.picture.absolute().parent.is_dir():
        raise BadInput(f"--picture {wanted.picture}: no such folder")
    if wanted.seeds and not wanted.shake_s:
        raise BadInput("--seeds goes with --shake: how many seconds arrivals are moved by at most")
    nodes = None if wanted.fleet is None else tuple(fleets.read_fleet(wanted.fleet))
    if nodes is not None and wanted.pool not in (None, total := sum(n.gpus for n in nodes)):
        console.say(f"strandline: --fleet has {total} GPUs; --pool {wanted.pool} is not used")
    setting = Setting(
        wanted.policy, wanted.pool or 0, nodes, {}, wanted.estimates, wanted.without, wanted.seed,
        round(wanted.shake_s * 1e6),
    )  # fmt: skip
    check(setting)
    return [setting] + ([replace(setting, policy=wanted.against, without=())] if wanted.against else [])


def _replayed(runs: list[TraceRun], setting: Setting, wanted: Wanted) -> tuple[Replayed, dict[str, Any]]:
    """One replay and its figures, or means over the trace as it is and so many shaken; the trace as it is is drawn."""
    if not wanted.seeds:
        shown = _once(runs, setting, "")
        return shown, dict(shown.found)
    shown = _once(runs, replace(setting, shake_us=0), f"1 of {wanted.seeds + 1}, ")
    replays = [shown.found]
    for k in range(wanted.seeds):
        moved = replace(setting, seed=setting.seed + k)
        replays.append(_once(runs, moved, f"{k + 2} of {wanted.seeds + 1}, ").found)
    mean = mean_of(replays)
    return shown, {**mean, "shake_s": wanted.shake_s, "replays": len(replays), "spread": spread_of(replays)}


def _once(runs: list[TraceRun], setting: Setting, prefix: str) -> Replayed:
    with console.steps(f"replay {setting.policy}", plain=False) as step:
        begun = datetime.now(UTC)

        def progress(ended: int) -> None:
            step(f"{prefix}{ended:,} of {len(runs):,} jobs")

        out, found = run_once(runs, setting, progress)
    seconds = (datetime.now(UTC) - begun).total_seconds()
    console.say(f"strandline: replay {setting.policy}: {prefix}{len(runs):,} jobs in {seconds:.1f} s")
    return Replayed(jobs.shake(runs, setting.shake_us, setting.seed), out, found)


def _draw(path: Path, shown: list[Replayed]) -> None:
    try:
        path.write_text(picture.draw(shown), "utf-8")
    except OSError as error:
        raise BadInput(f"--picture {path}: not writable: {error.strerror}") from None
    console.say(f"strandline: picture in {path}")


def _ratios(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float | None]:
    """Figures of the one over those of the other; null where either has none or the other is 0."""
    return {n: round(one[n] / other[n], 4) if one[n] is not None and other[n] else None for n in _RATIOS}


def _table(results: list[dict[str, Any]]) -> list[str]:
    """A line a figure, a column a replay; then waits by class and team."""
    rows = [[name, *(_shown(r[name]) for r in results)] for name, v in results[0].items() if not isinstance(v, dict)]
    rows = [row for row in rows if any(row[1:])]
    for part in ("by_class", "by_team"):
        for name in sorted({k for r in results for k in r[part]}):
            for figure in ("jobs", "mean_wait_s", "p95_wait_s", "max_wait_s"):
                rows.append([f"{part} {name} {figure}", *(_shown(r[part].get(name, {}).get(figure)) for r in results)])
    rows += [[f"impossible: {why}", str(n)] for why, n in results[0]["impossible"].items()]
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(len(results) + 1)]
    return [
        f"{row[0]:<{widths[0]}}  " + "  ".join(f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=False))
        for row in rows
    ]


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value[:_SHOWN])) + (", ..." if len(value) > _SHOWN else "")
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
