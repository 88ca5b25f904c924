"""The tables of docs/scheduler/eviction-contract.md, made from the contract. Only text is made here."""

from __future__ import annotations

from scheduler import contract
from scheduler.contract import Rule
from scheduler.model import HOUR_US, SECOND_US, Job, Role, Shape

_MINUTE_US = 60 * SECOND_US
# (heading, checkpoint interval, time to save when told to)
_RUNS: tuple[tuple[str, int | None, int | None], ...] = (
    ("saves every 30 min", 30 * _MINUTE_US, None),
    ("every 2 h", 120 * _MINUTE_US, None),
    ("every 2 h, and in 20 s when told", 120 * _MINUTE_US, 20 * SECOND_US),
    ("never", None, None),
)


def rules() -> str:
    """The table of rules as Markdown."""
    rows = [
        "| class | kind | stopped for | notice | told to save | grace, then kill | minimum run | budgets | counts |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(rows + [_row(r) for r in contract.TABLE])


def _row(r: Rule) -> str:
    if r.kind != "loss" and not r.by:
        return f"| {r.victim} | {r.kind} | nobody, never | - | - | - | - | - | - |"
    by = "a pod or node that is lost" if r.kind == "loss" else ", ".join(r.by)
    cells = [
        r.victim,
        r.kind,
        by,
        f"{r.notice_us // SECOND_US} s",
        _yes(r.is_signalled),
        f"{r.grace_us // SECOND_US} s",
    ]
    return f"| {' | '.join(cells)} | {_yes(r.has_min_run)} | {_yes(r.in_budget)} | {_yes(r.counts)} |"


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def losses() -> str:
    """What a run of 12 hours loses at most, by class and kind, as Markdown."""
    rows = ["| class | kind | " + " | ".join(h for h, _, _ in _RUNS) + " |", "|---|---|" + "---|" * len(_RUNS)]
    for r in contract.TABLE:
        name = "normal" if r.victim == "any" else r.victim
        lost = [contract.most_lost_us(_job(name, every, save), r.kind, 12 * HOUR_US) for _, every, save in _RUNS]
        rows.append(f"| {r.victim} | {r.kind} | " + " | ".join(map(_hours, lost)) + " |")
    return "\n".join(rows)


def _job(name: str, every_us: int | None, save_us: int | None) -> Job:
    roles = (Role("worker", Shape(1000), 1),)
    return Job("x", "t", "q", roles, 0, priority_class=name, checkpoint_us=every_us, save_us=save_us)


def _hours(us: int) -> str:
    hours, rest = divmod(us // SECOND_US, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [f"{n} {unit}" for n, unit in ((hours, "h"), (minutes, "min"), (seconds, "s")) if n]
    return " ".join(parts) or "nothing"
