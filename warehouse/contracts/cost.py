"""Contracts of money: rate cards and bills as received, charges, and what they say about teams and commitments.

The FOCUS datasets, whose column names are those of the specification, stand in `focus.py`.
"""

from __future__ import annotations

from warehouse.contracts.fields import pick
from warehouse.contracts.model import Table

# Columns of one charge, in the order of FOCUS, without the costs.
CHARGE = """
charge_scope cluster node resource_id resource_name resource_type provider billing_account_id sub_account_id
invoice_id invoice_issuer service_provider host_provider region zone instance_type accelerator gpu_count
charge_category charge_class charge_description charge_frequency charge_period_start_at charge_period_end_at
billing_period_start_at billing_period_end_at service_category service_subcategory service_name sku_id sku_price_id
sku_meter sku_price_details pricing_category pricing_quantity pricing_unit consumed_quantity consumed_unit
list_unit_price contracted_unit_price billing_currency pricing_currency pricing_currency_list_unit_price
pricing_currency_contracted_unit_price pricing_currency_effective_cost commitment_id commitment_name commitment_type
commitment_category commitment_discount_status commitment_quantity commitment_unit capacity_reservation_id
capacity_reservation_status owner_team tags
"""
COSTS = "list_cost contracted_cost billed_cost effective_cost"
# What a bill says of a charge: FOCUS columns in snake case; node, cluster and the like are found later.
BILLED = """
resource_id resource_name resource_type provider billing_account_id sub_account_id invoice_id invoice_issuer
service_provider host_provider region zone charge_category charge_class charge_description charge_frequency
charge_period_start_at charge_period_end_at billing_period_start_at billing_period_end_at service_category
service_subcategory service_name sku_id sku_price_id sku_meter sku_price_details pricing_category pricing_quantity
pricing_unit consumed_quantity consumed_unit list_unit_price contracted_unit_price list_cost contracted_cost
billed_cost effective_cost billing_currency pricing_currency pricing_currency_list_unit_price
pricing_currency_contracted_unit_price pricing_currency_effective_cost commitment_id commitment_name commitment_type
commitment_category commitment_discount_status commitment_quantity commitment_unit capacity_reservation_id
capacity_reservation_status tags extra
"""
SHARES = """
allocated_gpu_seconds utilized_gpu_seconds stranded_gpu_seconds unobserved_gpu_seconds unallocated_gpu_seconds
unavailable_gpu_seconds
"""
ATTRIBUTED = "list_cost contracted_cost billed_cost effective_cost utilized_cost stranded_cost unobserved_cost"
MONTHLY = (
    "month team accelerator provider billing_currency " + ATTRIBUTED + SHARES + " own_effective_cost borne_waste_cost "
    "total_effective_cost cost_per_utilized_gpu_hour energy_kwh facility_kwh carbon_kg metered_gpu_seconds"
)

RAW = (
    Table(
        "raw.prices", "provider, price, region, validity, as_of",
        ("provider", "sku_price_id", "region", "valid_from_at", "as_of"),
        pick("provider billing_account_id sku_id sku_price_id price_description region instance_type accelerator "
             "gpu_count billing_model commitment_type pricing_unit currency list_unit_price contracted_unit_price "
             "metering_s minimum_s rounding valid_from_at valid_to_at as_of source source_line"),
        "whole", "Rate cards. region * holds everywhere; commitment_type names what a committed rate belongs to.",
    ),
    Table(
        "raw.commitments", "provider, commitment, as_of", ("provider", "commitment_id", "as_of"),
        pick("provider billing_account_id commitment_id commitment_name commitment_category commitment_type precedence "
             "region eligible_instance_types committed_quantity committed_spend commitment_unit currency payment_model "
             "upfront_cost recurring_cost payment_interval starts_at ends_at is_capacity_reservation owner_team as_of "
             "source source_line"),
        "whole", "Reservations, resource CUDs, savings plans, flexible CUDs, capacity reservations, prepaid blocks.",
    ),
    Table(
        "raw.credits", "provider, credit", ("provider", "credit_id"),
        pick("provider billing_account_id credit_id credit_description amount currency charge_period_start_at "
             "charge_period_end_at as_of source source_line"),
        "whole", "Credits granted, charged as rows of their own at the start of their period.",
    ),
    Table(
        "raw.exchange_rates", "from, to, date", ("from_currency", "to_currency", "rate_date"),
        pick("from_currency to_currency rate_date exchange_rate source source_line"),
        "whole", "Dated conversion rates; a date without one takes the newest before it.",
    ),
    Table(
        "raw.owned_hardware", "provider, region, instance type, validity, as_of",
        ("provider", "region", "instance_type", "valid_from_at", "as_of"),
        pick("provider billing_account_id region instance_type accelerator gpu_count capex residual years "
             "opex_per_year power_kw pue tariff_per_kwh currency valid_from_at valid_to_at as_of source source_line"),
        "whole", "What owned nodes cost: purchase, residual value, running cost and power.",
    ),
    Table(
        "raw.energy_factors", "provider, region, validity", ("provider", "region", "valid_from_at"),
        pick("provider region pue tariff_per_kwh carbon_g_per_kwh currency valid_from_at valid_to_at source "
             "source_line"),
        "whole", "Power usage effectiveness, tariff and carbon intensity of each site.",
    ),
    Table(
        "raw.bills", "billing month, account, line of the file", ("date", "bill_id", "source_line"),
        pick("date bill_id source_line " + BILLED + " source source_sha256 focus_version"),
        "date", "FOCUS bills as imported; date is the first day of the billing period. The newest import of an account "
        "and period replaces the one before it.",
    ),
    Table(
        "raw.rejected_bill_lines", "billing month, file, line, field",
        ("date", "source_sha256", "source_line", "field"),
        pick("date source_sha256 source source_line field reason line"),
        "date", "Bill lines that could not be read, with the field and why.",
    ),
    Table(
        "raw.fleet_invoices", "month, provider, kind", ("date", "provider", "kind"),
        pick("date provider billing_account_id kind billed_cost effective_cost billing_currency invoiced_currency "
             "invoiced_billed_cost invoiced_effective_cost"),
        "date", "What the simulated providers invoice, by their own account; tests compare with it, no model reads it.",
    ),
)  # fmt: skip

CORE = (
    Table(
        "core.node_lives", "date, node object", ("date", "cluster", "node", "node_uid"),
        pick("date cluster node node_uid started_at finished_at interval_start_at interval_end_at created_at "
             "node_finished_at resource_id provider region zone instance_type accelerator gpu_count capacity_type "
             "cpu_milli memory_bytes owner_team"),
        "date", "When each node object was there; started_at and finished_at reach two dates beyond the row's at most, "
        "as far as lists of one date bear on another.",
        spans=True,
    ),
    Table(
        "core.node_hours", "hour, node object", ("date", "hour", "cluster", "node", "node_uid"),
        pick("date hour cluster node node_uid resource_id provider region zone instance_type accelerator gpu_count "
             "capacity_type cpu_milli memory_bytes created_at node_finished_at running_us owner_team"),
        "date", "Which nodes there were in each hour and for how long, as the API server showed them.",
    ),
    Table(
        "core.computed_charges", "charge", ("date", "charge_id"),
        pick("date hour charge_id " + CHARGE + COSTS + " flags"),
        "date", "Charges computed from node-hours, rate cards, commitments and credits.",
    ),
    Table(
        "core.commitment_terms_daily", "date, commitment", ("date", "provider", "commitment_id"),
        pick("date provider billing_account_id commitment_id commitment_name commitment_category commitment_type "
             "owner_team region eligible_instance_types billing_currency commitment_unit "
             "committed_quantity starts_at ends_at scheduled_opening_balance scheduled_balance"),
        "date",
        "What the terms of each commitment say of each date: units committed, what is paid and not yet amortized.",
    ),
    Table(
        "core.bill_resources", "date, resource of a bill", ("date", "bill_id", "billed_resource_id"),
        pick("date bill_id billed_resource_id resource_id is_named"),
        "date", "Which resources of bills are which nodes of the date.",
    ),
    Table(
        "core.bill_spreads", "date, line of a bill", ("date", "bill_id", "source_line"),
        pick("date bill_id source_line started_at finished_at weight_us weight_before_us weight_total_us"),
        "date", "Charges of bills that are longer than a date: what part of each belongs to which date.",
        spans=True,
    ),
    Table(
        "core.billed_charges", "charge of a bill, hour", ("date", "charge_id"),
        pick("date hour charge_id " + CHARGE + COSTS + " flags bill_id"),
        "date", "Charges of imported bills, matched to nodes and spread over node-hours.",
    ),
    Table(
        "core.charges", "charge", ("date", "charge_id"),
        pick("date hour charge_id charge_origin " + CHARGE + COSTS + " flags"),
        "date", "The charges that count: a bill's where it covers the hour, computed ones elsewhere.",
    ),
    Table(
        "core.pod_request_hours", "hour, node, pod", ("date", "hour", "cluster", "node", "pod_uid"),
        pick("date hour cluster node pod_uid namespace pod team workload_kind cpu_milli_seconds memory_mib_seconds"),
        "date", "What pods asked of CPU and memory of each node, over time.",
    ),
    Table(
        "core.gpu_energy_hourly", "hour, slot", ("date", "hour", "cluster", "node", "pci_bus_id"),
        pick("date hour cluster node pci_bus_id metered_energy_j metered_gpu_seconds"),
        "date", "Energy of every accelerator, from its power readings over the time they cover.",
    ),
    Table(
        "core.energy_shares", "hour, node, part, holder", ("date", "hour", "cluster", "node", "cost_part", "holder"),
        pick("date hour cluster node cost_part holder metered_energy_j metered_gpu_seconds"),
        "date", "Who drew the energy of each node's accelerators.",
        nullable_key=("holder",),
    ),
    Table(
        "core.cost_shares", "hour, node, part, holder", ("date", "hour", "cluster", "node", "cost_part", "holder"),
        pick("date hour cluster node cost_part holder namespace pod team workload_kind accelerator method_id "
             "allocated_ratio gpu_ratio " + SHARES + " metered_energy_j metered_gpu_seconds"),
        "date", "How each node-hour divides among who held it and what nobody used; every charge of it is split so.",
        nullable_key=("holder",),
    ),
)  # fmt: skip

MART = (
    Table(
        "mart.cost_hourly", "hour, origin charge, part, holder", ("date", "charge_id", "cost_part", "holder"),
        pick("date hour charge_id cost_part holder namespace pod team workload_kind charge_origin charge_scope cluster "
             "node resource_id provider billing_account_id region instance_type accelerator charge_category "
             "pricing_category commitment_id owner_team bearer method_id allocated_ratio gpu_ratio pricing_quantity "
             "pricing_unit consumed_quantity commitment_quantity billing_currency " + ATTRIBUTED + SHARES +
             " metered_energy_j metered_gpu_seconds flags"),
        "date", "Every charge divided among who held what it paid for, and what nobody used.",
        nullable_key=("holder",),
    ),
    Table(
        "mart.cost_daily", "date, team, namespace, accelerator, provider, part",
        ("date", "team", "namespace", "accelerator", "provider", "region", "cost_part", "owner_team", "commitment_id"),
        pick("date team namespace accelerator provider region cost_part owner_team commitment_id billing_currency " +
             ATTRIBUTED + SHARES + " metered_energy_j metered_gpu_seconds"),
        "date", "mart.cost_hourly by day and team.",
        nullable_key=("team", "namespace", "accelerator", "provider", "region", "owner_team", "commitment_id"),
    ),
    Table(
        "mart.cost_monthly", "month, team, accelerator, provider", ("month", "team", "accelerator", "provider"),
        pick(MONTHLY),
        "whole", "What each team cost, and who bears what nobody used; rows without a team are the central pool.",
        nullable_key=("team", "accelerator", "provider"),
    ),
    Table(
        "mart.commitment_balance_daily", "date, commitment", ("date", "provider", "commitment_id"),
        pick("date provider commitment_id commitment_name commitment_category commitment_type owner_team "
             "billing_currency commitment_unit committed_quantity used_quantity unused_quantity eligible_quantity "
             "commitment_utilization_ratio commitment_coverage_ratio opening_balance purchased_cost used_cost "
             "unused_cost closing_balance scheduled_balance"),
        "whole", "What each commitment was worth: use, coverage, waste, and what is paid and not yet amortized.",
    ),
    Table(
        "mart.bill_reconciliation", "date, account, kind of charge, resource",
        ("date", "provider", "billing_account_id", "charge_scope", "resource_id"),
        pick("date provider billing_account_id resource_id cluster node charge_scope billing_currency computed_hours "
             "bill_hours computed_billed_cost bill_billed_cost billed_difference computed_effective_cost "
             "bill_effective_cost effective_difference verdict"),
        "date", "Bills against what the rate cards say they should be.",
        nullable_key=("billing_account_id", "resource_id"),
    ),
    Table(
        "mart.buy_or_rent", "owned instance type, rental offer",
        ("provider", "region", "instance_type", "rental_provider", "rental_region", "rental_instance_type",
         "rental_billing_model", "commitment_type"),
        pick("provider region instance_type accelerator gpu_count owned_cost_per_year owned_cost_per_gpu_hour "
             "rental_provider rental_region rental_instance_type rental_billing_model commitment_type "
             "rental_cost_per_gpu_hour currency "
             "break_even_ratio utilization_measured_ratio allocation_measured_ratio verdict"),
        "whole", "Total cost of owning against renting the same accelerator, and from which utilization owning pays.",
        nullable_key=("rental_instance_type", "commitment_type"),
    ),
    Table(
        "mart.cost_statement", "statement, team, accelerator, provider, part",
        ("statement_id", "team", "accelerator", "provider", "cost_part"),
        pick("date month statement_id issued_at supersedes complete_until_at statement_digest statement_rows team "
             "accelerator provider cost_part billing_currency " + ATTRIBUTED + SHARES),
        "date", "Billing months that were closed, as they were told; date is the first day of the month.",
        nullable_key=("team", "accelerator", "provider"), frozen=True,
    ),
    Table(
        "mart.cost_monthly_statement", "statement, team, accelerator, provider",
        ("statement_id", "team", "accelerator", "provider"),
        pick("date statement_id issued_at " + MONTHLY),
        "date", "Rows of mart.cost_monthly as closed months told them; date is the first day of the month.",
        nullable_key=("team", "accelerator", "provider"), frozen=True,
    ),
)  # fmt: skip
