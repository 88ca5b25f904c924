"""Columns of money: prices, commitments, charges and what is made of them, under the names of FOCUS in snake case.

A definition is a line as in `fields.py`. Types: `price` DECIMAL(20,9), `amount` DECIMAL(18,9) (FOCUS quantities),
`exact_cost` DECIMAL(38,18) (a price times an amount, without rounding), `cost` DECIMAL(28,10). Costs are in the
column `billing_currency` unless the description says otherwise.
"""

DEFINITIONS = """
billing_account_id      string     account that the provider bills
sub_account_id          string     account or project below it
sku_id                  string     SKU of the provider
sku_price_id            string     the SKU's price under its billing model
sku_meter               string     what the SKU meters, e.g. Compute Instance
sku_price_details       string     JSON: GpuCount, InstanceType, x_GpuModel and the like
price_description       string     what the price is for
billing_model           string     on_demand, spot or committed (the rate under a spend commitment)
pricing_unit            string     unit of the price: Hours (of a node), GPU-Hours, vCPU-Hours, GiB-Hours
currency                string     ISO 4217 code
list_unit_price         price      published price of a unit
contracted_unit_price   price      negotiated price of a unit, before commitments; the list price where none was agreed
metering_s              integer    seconds of a metering unit: 1, 60, 900, 3600
minimum_s               integer    seconds charged at least for each run of a node
rounding                string     how a begun metering unit counts: up, nearest or none
valid_from_at           timestamp  from when it holds
valid_to_at             timestamp  until when it holds; null: until another replaces it
as_of                   date       date on which the source said so; of two that hold, the newer counts
source_line             integer    line of the file it came from
commitment_id           string     id of the commitment (FOCUS CommitmentDiscountId)
commitment_name         string     its name
commitment_category     string     Usage (units an hour) or Spend (money an hour)
commitment_type         string     the provider's word, e.g. Savings Plan, Resource CUD, Capacity Block
precedence              integer    commitments apply in this order, lowest first
eligible_instance_types string     instance types it applies to, comma separated; null: any
committed_quantity      amount     units an hour (Usage)
committed_spend         cost       money an hour (Spend)
commitment_unit         string     Hours, GPU-Hours, or the currency of a Spend commitment
payment_model           string     No Upfront, Partial Upfront or All Upfront
upfront_cost            cost       paid at the start
recurring_cost          cost       paid for each hour of the term
payment_interval        string     how recurring cost is invoiced: Hourly, Monthly
starts_at               timestamp  start of the term
ends_at                 timestamp  end of the term
is_capacity_reservation boolean    whether it also holds capacity, usable by its own nodes only
owner_team              string     team that answers for it
credit_id               string     id of the credit
credit_description      string     why the credit was given
amount                  cost       money credited, positive
charge_period_start_at  timestamp  start of the charge period
charge_period_end_at    timestamp  end of the charge period, exclusive
rate_date               date       date from which the rate holds
from_currency           string     currency converted from
to_currency             string     currency converted to
exchange_rate           price      units of to_currency for one unit of from_currency
capex                   cost       price of one node with its share of network and racks
residual                cost       what one node is worth at the end
years                   price      years of depreciation
opex_per_year           cost       yearly cost of one node without power: space, staff, support
power_kw                price      draw of one node under load, kW
pue                     price      power usage effectiveness of the site
tariff_per_kwh          price      money for a kWh
carbon_g_per_kwh        price      grams of CO2e for a kWh
gpu_count               integer    accelerators of a node
bill_id                 string     hash of account and billing period: what one import replaces
source_sha256           string     hash of the file
focus_version           string     FOCUS version the file follows
extra                   string     JSON of columns that FOCUS does not name
field                   string     column that could not be read
charge_id               string     id of the charge: of the origin row that is split
charge_origin           string     computed from rate cards, or bill
charge_scope            string     node, commitment, credit, tax, not_in_cluster or other_services
charge_category         string     FOCUS ChargeCategory: Usage, Purchase, Tax, Credit, Adjustment
charge_class            string     FOCUS ChargeClass: Correction or null
charge_description      string     what is charged
charge_frequency        string     FOCUS ChargeFrequency: One-Time, Recurring, Usage-Based
billing_period_start_at timestamp  start of the billing period
billing_period_end_at   timestamp  end of the billing period, exclusive
invoice_id              string     invoice; null while there is none
invoice_issuer          string     who sends the invoice
service_provider        string     who provides the service
host_provider           string     on whose infrastructure it runs
service_category        string     FOCUS ServiceCategory
service_subcategory     string     FOCUS ServiceSubcategory
service_name            string     name of the service
resource_id             string     provider's id of the resource: a node's spec.providerID, or the commitment
resource_name           string     its name
resource_type           string     its kind
pricing_category        string     FOCUS PricingCategory: Standard, Dynamic, Committed, Other
pricing_quantity        amount     priced quantity
consumed_quantity       amount     consumed quantity; null unless Usage and not Unused
consumed_unit           string     its unit
list_cost               exact_cost list_unit_price x pricing_quantity
contracted_cost         exact_cost contracted_unit_price x pricing_quantity
billed_cost             cost       what the invoice asks
effective_cost          cost       amortized cost
billing_currency        string     currency of the costs
pricing_currency        string     currency the price was given in
pricing_currency_list_unit_price price list_unit_price in pricing_currency
pricing_currency_contracted_unit_price price contracted_unit_price in pricing_currency
pricing_currency_effective_cost cost effective_cost in pricing_currency
invoiced_currency       string     currency the provider invoices in
invoiced_billed_cost    cost       billed_cost in invoiced_currency
invoiced_effective_cost cost       effective_cost in invoiced_currency
commitment_discount_status string  FOCUS CommitmentDiscountStatus: Used or Unused
commitment_quantity     amount     FOCUS CommitmentDiscountQuantity
capacity_reservation_id string     FOCUS CapacityReservationId
capacity_reservation_status string FOCUS CapacityReservationStatus: Used or Unused
tags                    labels     tags of the resource
capacity_type           string     on-demand, spot or reserved, from node labels
billed_resource_id      string     id of the resource as the bill spells it
is_named                boolean    whether the bill charges it otherwise than by corrections
weight_us               integer    the date's part of the microseconds by which a charge is spread
weight_before_us        integer    parts of the dates before it
weight_total_us         integer    parts of all dates of the charge
node_finished_at        timestamp  first complete node list without the node; null while it is there
running_us              integer    microseconds of the hour in which the node was there
cost_part               string     who or what the share stands for: holder, or the kind of what nobody held
method_id               string     how a node's price was turned into shares of it: id of the published method
allocated_ratio         ratio12    share of the origin charge; adds up to 1 over the origin
gpu_ratio               ratio12    the part of allocated_ratio that stands for accelerators
usage_quantity          quantity   usage that the ratio comes from
utilized_cost           cost       effective cost of held and active GPU-seconds
stranded_cost           cost       effective cost of held and idle GPU-seconds
unobserved_cost         cost       effective cost of held GPU-seconds without a sample, and of CPU and memory held
bearer                  string     team, owner or central: who bears the cost under the setting unused_policy
month                   date       first day of the month
cpu_milli_seconds       integer    CPU requests x time
memory_mib_seconds      integer    memory requests x time
metered_energy_j        quantity   energy measured, over metered_gpu_seconds
metered_gpu_seconds     quantity   GPU-seconds that metered_energy_j covers
energy_kwh              quantity   energy measured, at the card
facility_kwh            quantity   energy_kwh x PUE
carbon_kg               quantity   facility_kwh x grid carbon intensity, kg CO2e
own_effective_cost      cost       effective cost of what the team held; without a team: what no policy moves
borne_waste_cost        cost       share of unused capacity that the team bears
total_effective_cost    cost       own_effective_cost + borne_waste_cost
cost_per_utilized_gpu_hour cost    effective cost / utilized GPU-hours; null where nothing was utilized
used_quantity           amount     committed units (or money) used
unused_quantity         amount     committed units (or money) not used
eligible_quantity       amount     usage that it covered, or could have covered because no commitment did
commitment_utilization_ratio double used / committed
commitment_coverage_ratio double   covered usage / eligible usage; Spend: both at contracted prices
purchased_cost          cost       billed for the commitment on the date
used_cost               cost       effective cost of used units
unused_cost             cost       effective cost of unused units: the waste
opening_balance         cost       paid and not yet amortized when the date began
scheduled_opening_balance cost     paid by the terms' schedule - amortized by it, when the date began
scheduled_balance       cost       the same when the date ended; closing_balance departs from it where a bill does
closing_balance         cost       opening_balance + purchased_cost - used_cost - unused_cost
computed_billed_cost    cost       billed cost as computed from rate cards
bill_billed_cost        cost       billed cost as the bill says
billed_difference       cost       bill - computed
computed_effective_cost cost       effective cost as computed
bill_effective_cost     cost       effective cost as the bill says
effective_difference    cost       bill - computed
computed_hours          amount     node-hours computed
bill_hours              amount     node-hours billed
rental_provider         string     provider that the owned node is compared with
rental_region           string     region of the offer; *: everywhere
rental_instance_type    string     its instance type; null where the offer is by accelerator alone
rental_billing_model    string     on_demand, spot or committed
owned_cost_per_gpu_hour price      yearly cost of owning / accelerator-hours of a year
rental_cost_per_gpu_hour price     contracted unit price / accelerators
owned_cost_per_year     cost       (capex - residual) / years + opex + power x PUE x tariff, one node
break_even_ratio        double     share of time held from which owning is cheaper than renting; above 1: never
utilization_measured_ratio double  utilized / capacity of owned accelerators of that kind, in the lake
allocation_measured_ratio double   allocated / capacity of owned accelerators of that kind, in the lake
statement_id            string     id of the statement
issued_at               timestamp  when it was issued
supersedes              string     statement that it replaces
complete_until_at       timestamp  how far the month was known; before its end where it was closed early
statement_digest        string     hash of what it froze: the same for the same rows
statement_rows          integer    FOCUS rows that it froze
"""
