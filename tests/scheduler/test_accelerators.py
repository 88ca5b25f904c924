"""Which accelerators a gang of several roles may run on."""

from __future__ import annotations

import small_world as w

from scheduler.model import MILLI, Job, Role, Shape


def gang(name: str, *models: str) -> Job:
    """A role of one GPU for each model."""
    return Job(name, "a", "a", tuple(Role(m, Shape(MILLI, accelerators=(m,)), 1) for m in models), 0)


def test_roles_with_no_accelerator_in_common_are_impossible_together() -> None:
    queue = w.scheduler(w.nodes(4), w.queues(a=None))
    assert "no accelerator in common" in (queue.impossible(gang("torn", w.FLAVOR, "H100")) or "")
    assert queue.impossible(gang("alike", w.FLAVOR, w.FLAVOR)) is None
