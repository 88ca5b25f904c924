-- What each commitment was worth on each date: use, coverage, waste, and what is paid and not yet amortized. The first
-- date of every unbroken run of dates opens with the term's own arithmetic (paid by schedule - amortized by schedule);
-- from there on each date opens with what the one before it closed with. scheduled_balance is that arithmetic at the
-- end of the date: where a bill charges otherwise than the terms, the balance departs from it. Balances of commitments
-- whose terms nobody gave, and what they could have covered, are null.
-- Eligible: node usage that the commitment covered or could have covered because no other did: provider, account, region,
-- instance type, not spot; for a Spend commitment only what has a committed rate of its type. In units of the
-- commitment; a Spend commitment measures eligible and covered usage at contracted prices, as published savings plan
-- coverage does.
-- grain: date, commitment
-- key: date, provider, commitment_id
-- inputs: core.charges, core.commitment_terms_daily, raw.prices
-- invariant: closing_balance = opening_balance + purchased_cost - used_cost - unused_cost = the next date's opening_balance
with flows as (
    select
        date, provider, commitment_id, min(commitment_name) as commitment_name,
        min(commitment_category) as commitment_category, min(commitment_type) as commitment_type,
        min(owner_team) as owner_team, min(billing_currency) as billing_currency, min(commitment_unit) as commitment_unit,
        sum(case when charge_category = 'Usage' and is_used then commitment_quantity else 0 end) as used_quantity,
        sum(case when charge_category = 'Usage' and not is_used then commitment_quantity else 0 end) as unused_quantity,
        sum(case when charge_category = 'Purchase' then billed_cost else 0 end) as purchased_cost,
        sum(case when charge_category = 'Usage' and is_used then effective_cost else 0 end) as used_cost,
        sum(case when charge_category = 'Usage' and not is_used then effective_cost else 0 end) as unused_cost
    from (
        select *, coalesce(commitment_discount_status, 'Used') = 'Used' as is_used from core.charges
        where commitment_id is not null
    ) as c
    group by date, provider, commitment_id
),
calendar as (
    select distinct date from core.charges
),
dates as (
    select t.date, t.provider, t.commitment_id
    from core.commitment_terms_daily as t
    inner join calendar as c on c.date = t.date
    union
    select date, provider, commitment_id from flows
),
measured as (
    select
        t.date, t.provider, t.commitment_id, c.commitment_id is not distinct from t.commitment_id as is_covered,
        case
            when t.commitment_category = 'Spend' then cast(c.contracted_cost as decimal(38, 9))
            when t.commitment_unit = c.pricing_unit then cast(c.pricing_quantity as decimal(38, 9))
            when t.commitment_unit = 'GPU-Hours' and c.pricing_unit = 'Hours'
                then cast(c.pricing_quantity as decimal(38, 9)) * coalesce(c.gpu_count, 0)
            when t.commitment_unit = 'Hours' and c.pricing_unit = 'GPU-Hours'
                then cast(
                    cast(cast(c.pricing_quantity as decimal(38, 9)) * 1000000000 as hugeint) // nullif(c.gpu_count, 0)
                    as decimal(28, 0)
                ) * 0.000000001
        end as quantity
    from core.commitment_terms_daily as t
    inner join core.charges as c
        on c.date = t.date and c.provider = t.provider and c.charge_scope = 'node' and c.charge_category = 'Usage'
        and coalesce(c.pricing_category, 'Standard') <> 'Dynamic' and c.hour >= t.starts_at and c.hour < t.ends_at
    where
        c.commitment_id is not distinct from t.commitment_id
        or (
            c.commitment_id is null
            and (t.billing_account_id is null or c.billing_account_id is null or t.billing_account_id = c.billing_account_id)
            and (t.region is null or t.region = c.region)
            and (
                t.eligible_instance_types is null
                or position(',' || c.instance_type || ',' in ',' || t.eligible_instance_types || ',') > 0
            )
            and (
                t.commitment_category = 'Usage'
                or exists (
                    select 1 from raw.prices as p
                    where
                        p.provider = t.provider and p.billing_model = 'committed'
                        and p.commitment_type is not distinct from t.commitment_type
                        and p.pricing_unit = c.pricing_unit and (p.region = '*' or p.region = c.region)
                        and (
                            p.instance_type = c.instance_type
                            or (p.instance_type is null and p.accelerator is not distinct from c.accelerator)
                        )
                        and p.valid_from_at <= c.hour and (p.valid_to_at is null or p.valid_to_at > c.hour)
                )
            )
        )
),
usage as (
    select
        date, provider, commitment_id, sum(quantity) as eligible_quantity,
        sum(case when is_covered then quantity else 0 end) as covered_quantity
    from measured
    group by date, provider, commitment_id
),
joined as (
    select
        d.date, d.provider, d.commitment_id, t.commitment_id is not null as is_known,
        coalesce(t.commitment_name, f.commitment_name) as commitment_name,
        coalesce(t.commitment_category, f.commitment_category) as commitment_category,
        coalesce(t.commitment_type, f.commitment_type) as commitment_type,
        coalesce(t.owner_team, f.owner_team) as owner_team,
        coalesce(f.billing_currency, t.billing_currency) as billing_currency,
        coalesce(t.commitment_unit, f.commitment_unit) as commitment_unit,
        t.committed_quantity, t.scheduled_opening_balance, t.scheduled_balance,
        coalesce(f.used_quantity, 0) as used_quantity, coalesce(f.unused_quantity, 0) as unused_quantity,
        coalesce(u.eligible_quantity, 0) as eligible_quantity, coalesce(u.covered_quantity, 0) as covered_quantity,
        coalesce(f.purchased_cost, 0) as purchased_cost, coalesce(f.used_cost, 0) as used_cost,
        coalesce(f.unused_cost, 0) as unused_cost,
        lag(d.date) over (partition by d.provider, d.commitment_id order by d.date) as date_before
    from dates as d
    left join core.commitment_terms_daily as t
        on t.date = d.date and t.provider = d.provider and t.commitment_id = d.commitment_id
    left join flows as f on f.date = d.date and f.provider = d.provider and f.commitment_id = d.commitment_id
    left join usage as u on u.date = d.date and u.provider = d.provider and u.commitment_id = d.commitment_id
),
anchored as (
    select
        *,
        case
            when
                date_before is not null
                and date_diff('second', cast(date_before as timestamp), cast(date as timestamp)) = 86400
                then 0
            else 1
        end as is_first
    from joined
),
runs as (
    select
        *, sum(is_first) over (partition by provider, commitment_id order by date rows unbounded preceding) as run
    from anchored
),
closed as (
    select
        *, sum(
            case when is_first = 1 then coalesce(scheduled_opening_balance, 0) else 0 end
            + purchased_cost - used_cost - unused_cost
        ) over (partition by provider, commitment_id, run order by date rows unbounded preceding) as closing,
        max(case when is_first = 1 and is_known then 1 else 0 end) over (
            partition by provider, commitment_id, run
        ) as is_anchored
    from runs
)
select
    date, provider, commitment_id, commitment_name, commitment_category, commitment_type, owner_team, billing_currency,
    commitment_unit, committed_quantity, used_quantity, unused_quantity,
    case when is_known then eligible_quantity end as eligible_quantity,
    cast(used_quantity as double)
        / nullif(cast(coalesce(committed_quantity, used_quantity + unused_quantity) as double), 0)
        as commitment_utilization_ratio,
    case when is_known then cast(covered_quantity as double) / nullif(cast(eligible_quantity as double), 0) end
        as commitment_coverage_ratio,
    case when is_anchored = 1 then closing - purchased_cost + used_cost + unused_cost end as opening_balance,
    purchased_cost, used_cost, unused_cost, case when is_anchored = 1 then closing end as closing_balance,
    scheduled_balance
from closed
