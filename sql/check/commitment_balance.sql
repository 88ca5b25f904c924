-- Balances of commitments: what a date opens with is what the one before closed with, closing = opening + purchased -
-- used - unused, no commitment is used beyond what was committed, and where no bill speaks of it, used + unused is what
-- the terms commit and the balance is what the terms' own arithmetic says, so nothing is left when a term ends.
-- Where a rate or a term is unknown there is no balance to compare.
-- table: mart.commitment_balance_daily
with billed as (
    select distinct provider, commitment_id from core.charges where charge_origin = 'bill' and commitment_id is not null
),
balances as (
    select
        m.*, b.commitment_id is not null as is_billed,
        lag(m.closing_balance) over (partition by m.provider, m.commitment_id order by m.date) as closed_before,
        lag(m.date) over (partition by m.provider, m.commitment_id order by m.date) as date_before
    from mart.commitment_balance_daily as m
    left join billed as b on b.provider = m.provider and b.commitment_id = m.commitment_id
),
wrong as (
    select
        *,
        case
            when closing_balance <> opening_balance + purchased_cost - used_cost - unused_cost
                then 'closing is not opening + purchased - used - unused'
            when date_before = date - 1 and closed_before is distinct from opening_balance
                then 'opening is not what the date before closed with'
            when not is_billed and used_quantity + unused_quantity <> committed_quantity
                then 'used + unused is not what was committed'
            when not is_billed and scheduled_balance is not null and closing_balance <> scheduled_balance
                then 'balance departs from the terms'
        end as what
    from balances
)
select
    what, date, provider, commitment_id, opening_balance, purchased_cost, used_cost, unused_cost, closing_balance,
    scheduled_balance, committed_quantity, used_quantity, unused_quantity
from wrong
where what is not null and date >= cast($start_at as date) and date < cast($end_at as date)
