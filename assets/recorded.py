"""Writes the settings that models read to raw tables, so that a build says from what rules it came.

Belongs here: raw.settings, raw.team_rules and raw.team_map. Not here: resolving settings (floor 5). No
Dagster in it: `strandline build` calls it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput
from warehouse.lake import Lake

STATEMENTS = "mart.cost_statement"
TABLES = ("raw.settings", "raw.team_rules", "raw.team_map")


def record(
    lake: Lake,
    settings: Mapping[str, str | None],
    rules: Sequence[tuple[int, str, str | None]],
    team_rows: Iterable[tuple[str, str, str]],
    run_id: str = "",
) -> bool:
    """Replace the tables whose content differs; True where one did.

    A change concerns every day there is: all of them are marked for the next build. `BadInput` where another currency
    is asked for than the one that closed months were told in: corrections would subtract one from the other.
    """
    _check_currency(lake, settings.get("currency"))
    wanted: dict[str, list[dict[str, Any]]] = {
        "raw.settings": [{"setting": k, "value": v} for k, v in sorted(settings.items())],
        "raw.team_rules": [{"rank": r, "source": s, "key": k} for r, s, k in rules],
        "raw.team_map": [{"cluster": c, "namespace": n, "team": t} for c, n, t in sorted(team_rows)],
    }
    changed = []
    for name, rows in wanted.items():
        contract = CONTRACTS[name]
        stored = (
            lake.read(name).sort_by([(k, "ascending") for k in contract.key])
            if lake.version(name) is not None
            else None
        )
        if stored is None or stored.to_pylist() != rows:
            lake.replace(name, pa.Table.from_pylist(rows, schema=contract.arrow_schema), run_id=run_id)
            changed.append(name)
    if changed:
        lake.mark(known_dates(lake), f"{', '.join(changed)} changed")
    return bool(changed)


def _check_currency(lake: Lake, currency: str | None) -> None:
    if lake.version(STATEMENTS) is None or currency is None:
        return
    told = set(lake.read(STATEMENTS, ["billing_currency"]).column("billing_currency").to_pylist()) - {None}
    if other := sorted(told - {currency}):
        raise BadInput(
            f"currency: months of this lake were closed in {', '.join(other)}; a lake with closed months keeps its "
            f"currency. Set currency to {other[0]}, or begin another lake"
        )


def known_dates(lake: Lake) -> list[Any]:
    """Every date that telemetry, Kubernetes lists or charges exist for, ascending."""
    found = set()
    for name in ("raw.scrapes", "raw.kube_snapshots", "core.charges"):
        if lake.version(name) is not None:
            found |= set(lake.dates(name))
    return sorted(found)
