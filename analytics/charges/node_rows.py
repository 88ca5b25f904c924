"""Charges of nodes: metered rows and their pieces as rows of core.computed_charges.

Used: billed 0, List and Contracted at the prices the usage would have had, Effective the commitment's amortized cost
(FOCUS appendix, commitment discount usage scenarios). What no commitment covers: billed and effective are the
contracted cost rounded half up at 1e-10.
Belongs here: columns of node charges. Not here: choosing prices, covering, rows of commitments themselves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from analytics.charges.pieces import Usage

METERS = {"Hours": "Compute Instance", "GPU-Hours": "GPU", "vCPU-Hours": "vCPU", "GiB-Hours": "Memory"}

_PRICE = "cast(cast({0} as decimal(20, 0)) * cast(0.000000001 as decimal(10, 9)) as decimal(20, 9))"
_AMOUNT = "cast(cast({0} as decimal(18, 0)) * cast(0.000000001 as decimal(10, 9)) as decimal(18, 9))"
_COST = "cast(cast({0} as decimal(28, 0)) * cast(0.0000000001 as decimal(10, 10)) as decimal(28, 10))"
# exact: a price (1e-9) times a quantity (1e-9)
_PRODUCT = f"coalesce({_PRICE} * {_AMOUNT.format('{1}')}, cast(0 as decimal(38, 18)))"
# a product in units of 1e-18 to a cost in 1e-10, half up
_ROUNDED = "coalesce((cast({0} as hugeint) * {1} + 50000000) // 100000000, 0)"

_SQL = f"""
with pieced as (
    select
        m.node_row, m.n, m.date, m.rate_id, m.usage, m.is_unmeasured, coalesce(p.piece, 0) as piece,
        coalesce(p.quantity, m.quantity) as part, coalesce(p.consumed, m.consumed) as part_consumed, p.plan, p.used,
        p.effective, p.effective_in_own, coalesce(p.is_unconverted, false) as is_unconverted
    from measured as m
    left join pieces as p on m.row_id = p.row_id
),
costed as (
    select
        p.*, r.* exclude (rate_id, rounding, unit_us, minimum_us), d.list_price, d.contracted_price, d.is_unpriced,
        d.is_unrated, u.details, c.* exclude (plan),
        row_number() over (partition by p.node_row order by p.n, p.piece) - 1 as number,
        case when p.plan is null then {_ROUNDED.format("d.contracted_price", "p.part")} else 0 end as billed,
        case when p.plan is null then {_ROUNDED.format("d.contracted_price", "p.part")} else p.effective end
            as amortized,
        case
            when p.plan is null then {_ROUNDED.format("r.own_contracted_price", "p.part")}
            when c.commitment_currency is not distinct from r.currency then p.effective_in_own
            when d.contracted_price > 0
                then (2 * cast(p.effective as hugeint) * r.own_contracted_price + d.contracted_price)
                    // (2 * d.contracted_price)
            else p.effective
        end as own_amortized
    from pieced as p
    inner join rates as r on p.rate_id = r.rate_id
    inner join rate_days as d on p.rate_id = d.rate_id and p.date = d.date
    inner join usages as u on p.usage = u.usage
    left join plans as c on p.plan = c.plan
),
-- one machine listed twice in an hour has two node objects under one resource id
repeated as (
    select hour, resource_id, count(*) > count(distinct node_uid) as is_object
    from node_hours group by hour, resource_id having count(*) > 1
)
select
    h.date, h.hour,
    'computed/' || h.resource_id || '/' || strftime(h.hour, '%Y%m%dT%H') || '/' || number
        || case when x.is_object then '/' || cluster || '/' || node || '/' || node_uid
            when x.hour is not null then '/' || node_uid else '' end as charge_id,
    'node' as charge_scope, cluster, node, h.resource_id, node as resource_name,
    case when billing_model = 'owned' then 'Server' else 'Virtual Machine' end as resource_type,
    provider, billing_account_id, cast(null as varchar) as sub_account_id, cast(null as varchar) as invoice_id,
    provider as invoice_issuer, provider as service_provider, provider as host_provider, region, zone, instance_type,
    accelerator, h.gpu_count, 'Usage' as charge_category, cast(null as varchar) as charge_class,
    coalesce(price_description, coalesce(instance_type, accelerator, 'node') || ' without a known price')
        || case when plan is null then '' else ', covered by ' || commitment_label end as charge_description,
    'Usage-Based' as charge_frequency, h.hour as charge_period_start_at,
    h.hour + interval 1 hour as charge_period_end_at,
    date_trunc('month', h.hour) as billing_period_start_at,
    date_trunc('month', h.hour) + interval 1 month as billing_period_end_at,
    'Compute' as service_category, 'Virtual Machines' as service_subcategory,
    case when billing_model = 'owned' then 'Owned Hardware' else 'Virtual Machines' end as service_name,
    -- FOCUS wants the SKU of everything committed to, so without a price it is the commitment's
    coalesce(sku_id, commitment_type, commitment_category) as sku_id,
    coalesce(sku_price_id, commitment_id || '/unit') as sku_price_id,
    case when coalesce(sku_id, commitment_id) is not null then sku_meter end as sku_meter,
    case when sku_price_id is not null then details end as sku_price_details,
    case when plan is not null then 'Committed' when billing_model = 'spot' then 'Dynamic' else 'Standard' end
        as pricing_category,
    {_AMOUNT.format("part")} as pricing_quantity, pricing_unit,
    {_AMOUNT.format("part_consumed")} as consumed_quantity, pricing_unit as consumed_unit,
    {_PRICE.format("list_price")} as list_unit_price, {_PRICE.format("contracted_price")} as contracted_unit_price,
    billing_currency, currency as pricing_currency,
    {_PRICE.format("own_list_price")} as pricing_currency_list_unit_price,
    {_PRICE.format("own_contracted_price")} as pricing_currency_contracted_unit_price,
    {_COST.format("own_amortized")} as pricing_currency_effective_cost,
    commitment_id, commitment_name, commitment_type, commitment_category,
    case when plan is not null then 'Used' end as commitment_discount_status,
    {_AMOUNT.format("used")} as commitment_quantity, commitment_unit, capacity_reservation_id,
    case when capacity_reservation_id is not null then 'Used' end as capacity_reservation_status, owner_team,
    cast(null as map(varchar, varchar)) as tags,
    {_PRODUCT.format("list_price", "part")} as list_cost,
    {_PRODUCT.format("contracted_price", "part")} as contracted_cost,
    {_COST.format("billed")} as billed_cost, {_COST.format("amortized")} as effective_cost,
    nullif(concat_ws(
        ',', case when is_unpriced then 'no_price' end, case when is_unrated or is_unconverted then 'no_rate' end,
        case when is_unmeasured then 'no_quantity' end
    ), '') as flags
from costed as c
inner join node_hours as h on c.node_row = h.node_row
left join repeated as x on h.hour = x.hour and h.resource_id = x.resource_id
"""


def details(usage: Usage) -> str | None:
    """FOCUS SkuPriceDetails of a class of usage, for a single pricing unit, as JSON.

    Only what every charge at this price shares: an instance type's figures where the price is of an instance type.
    GpuModel is no key of FOCUS, hence x_GpuModel.
    """
    price, found = usage.price, dict[str, Any]()
    if price.instance_type is not None:
        found["InstanceType"] = price.instance_type
    if price.pricing_unit == "GPU-Hours":
        found["GpuCount"] = 1
    elif price.pricing_unit == "vCPU-Hours":
        found["CoreCount"] = 1
    elif price.pricing_unit == "GiB-Hours":
        found["MemorySize"] = 1
    elif price.instance_type is not None and usage.gpu_count is not None:
        found["GpuCount"] = usage.gpu_count
    if usage.kind.accelerator is not None and price.pricing_unit in ("Hours", "GPU-Hours"):
        found["x_GpuModel"] = usage.kind.accelerator
    return json.dumps(found, sort_keys=True) if found else None


def node_charges(connection: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> pa.Table:
    """Rows of core.computed_charges in the given columns.

    Reads the relations node_hours, measured (metered with its class of usage), pieces, rates, rate_days, usages, plans.
    """
    return connection.sql(f"select {', '.join(columns)} from ({_SQL})").to_arrow_table()
