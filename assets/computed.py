"""Models that SQL cannot say, beside those of `sql/`: which tables functions of `analytics/` make, and from what.

Belongs here: the bridge from an analytics function to a model of the runner. Not here: the computing. No Dagster in it.
"""

from __future__ import annotations

from pathlib import Path

from analytics.charges import engine
from warehouse.models import Model, load_models, run_order


def load_all_models(directory: Path | None = None) -> dict[str, Model]:
    """The models of `directory` (default: the project's `sql/`) and the computed ones, in run order."""
    return run_order({**load_models(directory), **{m.name: m for m in computed_models()}})


def computed_models() -> tuple[Model, ...]:
    """One model for each table that a function makes."""
    return (
        Model(
            name="core.computed_charges",
            path=Path(engine.__file__),
            sql="",
            header=engine.HEADER,
            inputs=engine.INPUTS,
            parameters=(),
            compute=engine.compute,
        ),
    )
