"""Models that SQL cannot say, beside those of `sql/`: which tables functions of `analytics/` make, and from what.

Belongs here: the bridge from an analytics function to a model of the runner. Not here: the computing. No Dagster in it.
"""

from __future__ import annotations

from pathlib import Path

from analytics.charges import balance, engine
from warehouse.models import Compute, Model, load_models, run_order


def load_all_models(directory: Path | None = None) -> dict[str, Model]:
    """The models of `directory` (default: the project's `sql/`) and the computed ones, in run order."""
    return run_order({**load_models(directory), **{m.name: m for m in computed_models()}})


def computed_models() -> tuple[Model, ...]:
    """One model for each table that a function makes."""
    return (
        _model("core.computed_charges", engine.__file__, engine.HEADER, engine.INPUTS, engine.compute),
        _model(balance.TABLE, balance.__file__, balance.HEADER, balance.INPUTS, balance.compute),
    )


def _model(name: str, file: str, header: str, inputs: tuple[str, ...], compute: Compute) -> Model:
    return Model(
        name=name, path=Path(file), sql="", header=header, inputs=inputs, parameters=(), compute=compute
    )  # fmt: skip
