-- FOCUS 1.4: over its term a commitment's used and unused usage costs effectively what its purchases were billed;
-- before the end no more than that. Judged where the data reach back to the start of the term, over all of it.
-- table: mart.focus_cost_and_usage
with terms as (
    select
        "ContractCommitmentId" as id, "ServiceProviderName" as provider, "ContractCommitmentPeriodStart" as from_at,
        "ContractCommitmentPeriodEnd" as to_at
    from mart.focus_contract_commitment
),
known as (
    select min("ChargePeriodStart") as first_at, max("ChargePeriodEnd") as last_at
    from mart.focus_cost_and_usage
    where x_charge_scope = 'node'
),
sums as (
    select
        "CommitmentDiscountId" as id, "ServiceProviderName" as provider,
        sum(case when "ChargeCategory" = 'Usage' then "EffectiveCost" else 0 end) as amortized,
        sum(case when "ChargeCategory" = 'Purchase' then "BilledCost" else 0 end) as billed,
        max(case when "ChargeCategory" = 'Usage' then "ChargePeriodEnd" end) as used_until_at
    from mart.focus_cost_and_usage
    where "CommitmentDiscountId" is not null and date < cast($end_at as date)
    group by "CommitmentDiscountId", "ServiceProviderName"
    having count(*) filter (where date >= cast($start_at as date)) > 0
)
select s.id, s.provider, t.from_at, t.to_at, s.used_until_at, s.amortized, s.billed
from sums as s
inner join terms as t on t.id = s.id and t.provider = s.provider
cross join known as k
where
    k.first_at <= t.from_at
    and (s.amortized > s.billed or (s.used_until_at >= t.to_at and s.amortized <> s.billed))
