"""FOCUS datasets as other tools read them: the columns of a version of the specification, ours after them.

1.4 is what the tables hold, without the storage column. 1.2 is the older form most tools still read: provider and
publisher named by the columns that 1.3 replaced, and what 1.3 and 1.4 added kept as `x_` columns.
In Parquet instants are marked UTC and JSON columns are text; a CSV has its decimals shortened (`export.py`).
Belongs here: which columns, and how a value is rendered. Does not: reading the lake and writing files (`export.py`).
Sources: FOCUS 1.2 (57 columns, https://focus.finops.org/focus-specification/v1-2/) and 1.4, attributes Numeric Format
and Date/Time Format.
"""

from __future__ import annotations

from collections.abc import Mapping

from warehouse.contracts.focus import COMMITMENT_1_4, FOCUS_1_4, OWN
from warehouse.errors import BadInput
from warehouse.sqltypes import quote

COST_AND_USAGE = "mart.focus_cost_and_usage"
CONTRACT_COMMITMENT = "mart.focus_contract_commitment"
VERSIONS = ("1.4", "1.2")
# the versions in which a table can be written
DATASETS = {COST_AND_USAGE: ("1.4", "1.2"), CONTRACT_COMMITMENT: ("1.4",)}

# Columns of 1.4 that 1.2 does not know, and the name under which they follow.
_NEWER = {
    "AllocatedMethodDetails": "x_allocated_method_details",
    "AllocatedMethodId": "x_allocated_method_id",
    "AllocatedResourceId": "x_allocated_resource_id",
    "AllocatedResourceName": "x_allocated_resource_name",
    "AllocatedTags": "x_allocated_tags",
    "CommitmentProgramEligibilityDetails": "x_commitment_program_eligibility_details",
    "ContractApplied": "x_contract_applied",
    "HostProviderName": "x_host_provider_name",
    "InvoiceDetailId": "x_invoice_detail_id",
    "ServiceProviderName": "x_service_provider_name",
}
# Keys of SkuPriceDetails that FOCUS defines (1.2 and 1.4); every other begins with x_, which bills do not always heed.
SKU_KEYS = (
    "CoreCount", "DiskMaxIops", "DiskSpace", "DiskType", "GpuCount", "InstanceType", "InstanceSeries", "MemorySize",
    "NetworkMaxIops", "NetworkMaxThroughput", "OperatingSystem", "Redundancy", "StorageClass",
)  # fmt: skip
# 1.2 says who provides and who publishes where 1.3 says who provides the service.
_OLDER = {"ProviderName": "ServiceProviderName", "PublisherName": "ServiceProviderName"}


def columns(table: str, version: str) -> list[tuple[str, str]]:
    """(name in the file, column of the table) of each column of a dataset, in the order of the file.

    `BadInput` where the table is no FOCUS dataset or the version does not have it.
    """
    if table not in DATASETS:
        raise BadInput(f"--focus: {table} is no FOCUS dataset; those are {', '.join(DATASETS)}")
    if version not in DATASETS[table]:
        known = ", ".join(DATASETS[table])
        raise BadInput(f"--focus {version}: {table} can be written for FOCUS {known}")
    if table == CONTRACT_COMMITMENT:
        return [(f.name, f.name) for f in COMMITMENT_1_4]
    own = [(f.name, f.name) for f in OWN]
    if version == "1.4":
        return [(f.name, f.name) for f in FOCUS_1_4] + own
    kept = [(f.name, f.name) for f in FOCUS_1_4 if f.name not in _NEWER]
    moved = [(new, old) for old, new in _NEWER.items()]
    return sorted([*kept, *_OLDER.items()]) + own + moved


def select(table: str, version: str, source: str, types: Mapping[str, str], *, zoned: bool) -> str:
    """A SELECT over `source` (a FROM clause and what follows) that yields the dataset.

    `types` are DuckDB's of the table's columns; `zoned` marks instants as UTC, for formats that can say so.
    """
    items = []
    for new, old in columns(table, version):
        # naive instants are UTC: where the connection's time zone is UTC the cast changes no value
        value = f"cast({quote(old)} as timestamptz)" if zoned and types[old] == "TIMESTAMP" else quote(old)
        if old == "SkuPriceDetails":
            # a quoted text before a colon is a key: quotes within texts are escaped
            value = f"""regexp_replace({value}, '"([^"\\\\]+)" *:', '"x_\\1":', 'g')"""
            value = f"""regexp_replace({value}, '"x_((x_[^"]*)|{"|".join(SKU_KEYS)})":', '"\\1":', 'g')"""
        items.append(f"{value} as {quote(new)}")
    return f"select {', '.join(items)} {source}"
