"""Contracts of the FOCUS 1.4 datasets: column names, order and meaning are the specification's.

`x_` columns are ours and stand after the specification's. `date` is storage and leaves no export.
Belongs here: what the datasets hold. Does not: computing them (`sql/mart/focus_*.sql`), other versions of FOCUS.
Source: FOCUS 1.4, Cost and Usage (65 columns) and Contract Commitment (30 columns), alphabetical.
"""

from __future__ import annotations

from warehouse.contracts.fields import parse
from warehouse.contracts.model import Field, Table

_COST_AND_USAGE = """
AllocatedMethodDetails  string     JSON: ratio of the origin charge and the usage it comes from; null unless split
AllocatedMethodId       string     method of the split, described in docs/cost/method.md; null unless split
AllocatedResourceId     string     pod UID; null for the share that no pod held
AllocatedResourceName   string     pod name
AllocatedTags           string     JSON: team, namespace, workload kind and pod of the holder
AvailabilityZone        string     zone
BilledCost              cost       what the invoice asks
BillingAccountId        string     account that is billed
BillingAccountName      string     its name
BillingAccountType      string     its type
BillingCurrency         string     currency of the costs
BillingPeriodEnd        timestamp  end of the billing period, exclusive
BillingPeriodStart      timestamp  start of the billing period
CapacityReservationId   string     capacity reservation
CapacityReservationStatus string   Used or Unused
ChargeCategory          string     Usage, Purchase, Tax, Credit or Adjustment
ChargeClass             string     Correction of an already invoiced billing period, or null
ChargeDescription       string     what is charged
ChargeFrequency         string     One-Time, Recurring or Usage-Based
ChargePeriodEnd         timestamp  end of the charge period, exclusive
ChargePeriodStart       timestamp  start of the charge period
CommitmentDiscountCategory string  Spend or Usage
CommitmentDiscountId    string     commitment
CommitmentDiscountName  string     its name
CommitmentDiscountQuantity amount  units of the commitment bought, used or not used
CommitmentDiscountStatus string    Used or Unused
CommitmentDiscountType  string     the provider's word for its type
CommitmentDiscountUnit  string     unit of the quantity
CommitmentProgramEligibilityDetails string JSON: commitment programs that could cover the charge
ConsumedQuantity        amount     consumed quantity; null unless Usage and not Unused
ConsumedUnit            string     its unit
ContractApplied         string     JSON: contract commitment, and cost or quantity of it, that the charge counts against
ContractedCost          exact_cost ContractedUnitPrice x PricingQuantity
ContractedUnitPrice     price      negotiated unit price, before commitments
EffectiveCost           cost       amortized cost
HostProviderName        string     on whose infrastructure it runs
InvoiceDetailId         string     line of the invoice
InvoiceId               string     invoice; null while there is none
InvoiceIssuerName       string     who sends the invoice
ListCost                exact_cost ListUnitPrice x PricingQuantity
ListUnitPrice           price      published unit price
PricingCategory         string     Standard, Dynamic, Committed or Other
PricingCurrency         string     currency the price was given in
PricingCurrencyContractedUnitPrice price ContractedUnitPrice in PricingCurrency
PricingCurrencyEffectiveCost cost  EffectiveCost in PricingCurrency
PricingCurrencyListUnitPrice price ListUnitPrice in PricingCurrency
PricingQuantity         amount     priced quantity
PricingUnit             string     its unit
RegionId                string     region
RegionName              string     its name
ResourceId              string     node or commitment that is charged; the same on all rows of a split
ResourceName            string     its name
ResourceType            string     its kind
ServiceCategory         string     category of the service
ServiceName             string     name of the service
ServiceProviderName     string     who provides the service
ServiceSubcategory      string     subcategory of the service
SkuId                   string     SKU
SkuMeter                string     what the SKU meters
SkuPriceDetails         string     JSON: properties of the SKU's price
SkuPriceId              string     SKU's price
SubAccountId            string     account or project below the billing account
SubAccountName          string     its name
SubAccountType          string     its type
Tags                    string     JSON: tags of the resource
"""

_CONTRACT_COMMITMENT = """
BillingCurrency         string     currency of the cost
ContractCommitmentApplicability string JSON: what the commitment applies to
ContractCommitmentBenefitCategory string Discount, Entitlement, Availability or Other
ContractCommitmentCategory string  Spend or Usage
ContractCommitmentCost  cost       paid over the whole term
ContractCommitmentCreated timestamp when the commitment was made; its start where that is not known
ContractCommitmentDescription string what it is
ContractCommitmentDiscountPercentage ratio12 discount, 0-1; null where it differs by SKU
ContractCommitmentDurationType string length of the term, e.g. 1 Year
ContractCommitmentFulfillmentInterval string how long a unit can be used: Hourly
ContractCommitmentId    string     the commitment: CommitmentDiscountId of the charges
ContractCommitmentLastUpdated timestamp when its record last changed
ContractCommitmentLifecycleStatus string Pending, Active or Expired, at the end of the lake's newest charge
ContractCommitmentModel string     Continuous: the same amount in every interval
ContractCommitmentOfferCategory string Negotiated or Public
ContractCommitmentPaymentInterval string One-Time, Monthly or Custom
ContractCommitmentPaymentModel string No Upfront, Partial Upfront or All Upfront
ContractCommitmentPaymentUpfrontPercentage ratio12 share paid at the start, 0-1
ContractCommitmentPeriodEnd timestamp end of the term, exclusive
ContractCommitmentPeriodStart timestamp start of the term
ContractCommitmentQuantity amount  units of a Usage commitment in each interval
ContractCommitmentType  string     the provider's word for its type
ContractCommitmentUnit  string     unit of the quantity
ContractId              string     contract it belongs to; the commitment itself where no other is known
ContractPeriodEnd       timestamp  end of the contract, exclusive
ContractPeriodStart     timestamp  start of the contract
InvoiceIssuerName       string     who sends the invoice
PricingCurrency         string     currency the commitment was priced in
PricingCurrencyContractCommitmentCost cost ContractCommitmentCost in PricingCurrency
ServiceProviderName     string     who provides the service
"""

_OWN = """
x_charge_id             string     id of the origin charge; the same on all rows of a split
x_cost_part             string     who or what the row stands for: holder, or the kind of what nobody held
x_holder                string     pod UID of a holder; null where nobody held it
x_charge_origin         string     computed from rate cards, or bill
x_charge_scope          string     node, commitment, credit, tax, not_in_cluster or other_services
x_waste_kind            string     committed_unused, provisioned_unallocated, unavailable, node_overhead or unledgered
x_bearer                string     team, owner or central: who bears the cost
x_cluster               string     Kubernetes cluster
x_node                  string     Kubernetes node
x_namespace             string     namespace of the holder
x_pod                   string     pod name of the holder
x_team                  string     team of the holder
x_workload_kind         string     kind of the holder's controlling owner
x_owner_team            string     team that answers for the node or commitment
x_instance_type         string     instance type of the node
x_gpu_model             string     accelerator of the node
x_gpu_count             integer    accelerators of the node
x_price_share_method    string     how the node's price was turned into shares
x_allocated_ratio       ratio12    share of the origin charge; adds up to 1 over the origin
x_gpu_ratio             ratio12    the part of x_allocated_ratio that stands for accelerators
x_gpu_seconds_allocated quantity   GPU-seconds held
x_gpu_seconds_utilized  quantity   GPU-seconds held and active
x_gpu_seconds_stranded  quantity   GPU-seconds held and idle
x_gpu_seconds_unobserved quantity  GPU-seconds held without a sample
x_gpu_seconds_unallocated quantity GPU-seconds that nobody held
x_gpu_seconds_unavailable quantity GPU-seconds that could not work
x_cost_utilized         cost       EffectiveCost of active GPU-seconds
x_cost_stranded         cost       EffectiveCost of held and idle GPU-seconds
x_cost_unobserved       cost       EffectiveCost of GPU-seconds without a sample, and of CPU and memory held
x_flags                 string     remarks on the charge, comma separated
x_statement_id          string     statement that froze the row; null while its month is open
"""


def _fields(definitions: str) -> tuple[Field, ...]:
    return tuple(parse(definitions).values())


FOCUS_1_4 = _fields(_COST_AND_USAGE)
OWN = _fields(_OWN)
COMMITMENT_1_4 = _fields(_CONTRACT_COMMITMENT)
_DATE = _fields("date date UTC date of ChargePeriodStart; storage partition, in no export")
_KEY = ("date", "x_charge_id", "x_cost_part", "x_holder", "x_team", "x_gpu_model", "BillingPeriodStart", "ChargeClass")
_NULLABLE = ("x_holder", "x_team", "x_gpu_model", "ChargeClass")

MART = (
    Table(
        "mart.focus_cost_and_usage", "charge, part, holder, billing period, class", _KEY, (*_DATE, *FOCUS_1_4, *OWN),
        "date", "FOCUS 1.4 Cost and Usage: node charges split over pods, everything else as charged. Rows of a closed "
        "month are those of its statement; what changed since is a Correction row of the month after the last closed.",
        nullable_key=_NULLABLE,
    ),
    Table(
        "mart.focus_contract_commitment", "commitment", ("ContractCommitmentId", "InvoiceIssuerName"), COMMITMENT_1_4,
        "whole", "FOCUS 1.4 Contract Commitment: reservations, savings plans, capacity blocks.",
    ),
    Table(
        "mart.focus_statement", "statement, row of mart.focus_cost_and_usage", ("statement_id", *_KEY),
        (*_fields("statement_id string id of the statement\nissued_at timestamp when it was issued\n"
                  "month date first day of the month that was closed: that of BillingPeriodStart"),
         *_DATE, *FOCUS_1_4, *OWN),
        "date", "Rows of mart.focus_cost_and_usage as closed months told them, by charge date: all rows whose billing "
        "period is the closed month, corrections of earlier months among them.",
        nullable_key=_NULLABLE, frozen=True,
    ),
)  # fmt: skip
