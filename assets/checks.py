"""Asset checks: contract, SQL and utilization blocking; freshness and Great Expectations not.

Thin: one op per table runs what `contract_checks`, `sql_checks` and `expectations` find, over the window of
the run. Not here: the rules themselves.
"""

# No `from __future__ import annotations` here: Dagster compares the annotation of `context` by identity (1.13).

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import dagster as dg

from assets import contract_checks, metadata, partitions
from assets.access import RESOURCE, LakeAccess, lake_of
from assets.sql_checks import SqlCheck, run_check
from warehouse.contracts import CONTRACTS, Table

CONTRACT, FRESHNESS, EXPECTATIONS = "contract", "freshness", "expectations"
# Checks that a hurried run may leave out: importing Great Expectations alone takes seconds.
SLOW = (EXPECTATIONS,)
# Tables of things that need not happen on a day, or in a fleet at all: there, no newer row is no sign of age.
EVENTS = (
    "raw.rejected_lines", "raw.kube_devices", "core.gpu_gaps", "core.gpu_outages", "core.node_outages",
    "core.mig_layouts", "core.commitment_terms_daily", "core.bill_resources", "core.bill_spreads",
    "core.billed_charges", "mart.bill_reconciliation", "raw.scheduler_events", "core.job_spells", "core.job_starts",
    "mart.queue_daily", "mart.slo_daily",
)  # fmt: skip


def build_checks(
    tables: Sequence[str], sql_checks: Mapping[str, SqlCheck], expected: Sequence[str], max_age: timedelta
) -> list[dg.AssetChecksDefinition]:
    """Checks of these tables: one op for each, and one op per table of `expected` for Great Expectations."""
    by_table: dict[str, list[SqlCheck]] = {t: [c for c in sql_checks.values() if c.table == t] for t in tables}
    return [
        *(_table_checks(t, by_table[t], max_age) for t in tables),
        *(_expectations(t) for t in expected),
    ]


def _window(context: Any, contract: Table) -> tuple[date | datetime | None, date | datetime | None]:
    if contract.window == "whole":
        return None, None
    window = partitions.hours_of(context) if contract.window == "hour" else partitions.days_of(context)
    return window or (None, None)


def _table_checks(table: str, sql_checks: Sequence[SqlCheck], max_age: timedelta) -> dg.AssetChecksDefinition:
    contract = CONTRACTS[table]
    key = metadata.asset_key(table)
    specs = [
        dg.AssetCheckSpec(
            CONTRACT, asset=key, blocking=True, description="Types, required columns, unique key and ranges hold."
        ),
        *(dg.AssetCheckSpec(c.name, asset=key, blocking=True, description=c.header) for c in sql_checks),
    ]
    if contract.window != "whole" and table not in EVENTS:
        specs.append(
            dg.AssetCheckSpec(FRESHNESS, asset=key, description="The newest partition is as new as it should be.")
        )

    @dg.multi_asset_check(
        name=f"check_{table.replace('.', '_')}", specs=specs, can_subset=True, required_resource_keys={RESOURCE}
    )
    def table_checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        access = lake_of(context)
        wanted = {k.name for k in context.selected_asset_check_keys}
        chosen = [c for c in sql_checks if c.name in wanted]
        with access.connect(sorted({table, *(t for c in chosen for t in c.inputs)})) as con:
            if CONTRACT in wanted:
                found = dict.fromkeys(contract_checks.schema_differences(access.stored_schema(table), contract), 1)
                found |= {} if found else contract_checks.violations(con, table, *_window(context, contract))
                yield dg.AssetCheckResult(
                    check_name=CONTRACT,
                    asset_key=key,
                    passed=not found,
                    description="; ".join(f"{rule}: {n} rows do not" for rule, n in found.items()) or None,
                    metadata={"rules": contract_checks.rule_count(table), "broken": len(found)},
                )
            for check in chosen:
                # a table that is replaced whole was replaced whole by this run too
                window = None if contract.window == "whole" else partitions.days_of(context)
                start, end = window or access.extent(table)
                finding = run_check(con, check, start, end)
                yield dg.AssetCheckResult(
                    check_name=check.name,
                    asset_key=key,
                    passed=finding.rows == 0,
                    metadata={"rows": finding.rows, "first": dg.MetadataValue.json(_plain(finding.shown))},
                )
        if FRESHNESS in wanted:
            yield _freshness(access, table, max_age)

    return table_checks


def _freshness(access: LakeAccess, table: str, max_age: timedelta) -> dg.AssetCheckResult:
    """Raw is compared with the clock; core and mart with raw, so that they are late only where they lag behind it."""
    days = access.lake.dates(table)
    newest = days[-1] if days else None
    if table.startswith("raw."):
        due = (access.now() - max_age).date()
    else:
        raw = access.lake.dates("raw.scrapes") or access.lake.dates("raw.kube_snapshots")
        # The newest raw day may still be going on: its partition comes a day later.
        due = raw[-1] - timedelta(days=1) if raw else date.min
    return dg.AssetCheckResult(
        check_name=FRESHNESS,
        asset_key=metadata.asset_key(table),
        passed=due == date.min or (newest is not None and newest >= due),
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"newest": str(newest), "due": "nothing" if due == date.min else str(due)},
    )


def _expectations(table: str) -> dg.AssetChecksDefinition:
    contract = CONTRACTS[table]

    @dg.asset_check(
        name=EXPECTATIONS,
        asset=metadata.asset_key(table),
        description="Great Expectations rendered from the contract, over a bounded sample of the window.",
        required_resource_keys={RESOURCE},
    )
    def expectations_check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        from assets import expectations

        with lake_of(context).connect([table]) as con:
            outcome = expectations.validate(con, table, *_window(context, contract))
        return dg.AssetCheckResult(
            passed=outcome.passed,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={
                "rows": outcome.rows,
                "rows_in_window": outcome.rows_in_window,
                "declared": outcome.declared,
                "evaluated": outcome.evaluated,
                "failures": dg.MetadataValue.json(_plain(outcome.failures)),
            },
        )

    return expectations_check


def _plain(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows as JSON can hold them."""
    simple = (str, int, float, bool, type(None))
    return [{k: v if isinstance(v, simple) else str(v) for k, v in row.items()} for row in rows]
