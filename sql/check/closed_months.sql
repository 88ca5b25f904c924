-- No change of a closed month goes unseen. The frozen rows are told unchanged: what mart.focus_cost_and_usage says under
-- a statement is what the statement froze, to the row's amounts; the statement's costs are its FOCUS rows without
-- corrections of earlier months; and on every date of a closed month, by team and part, what is computed today =
-- frozen rows + Correction rows (and rows billed in other months), for each of the four costs.
-- table: mart.focus_cost_and_usage
with issued as (
    select
        month, statement_id, row_number() over (partition by month order by issued_at desc, statement_id desc) as age
    from (select distinct month, statement_id, issued_at from mart.cost_statement) as s
),
closed as (
    select month, statement_id from issued where age = 1
),
days as (
    select distinct h.date from mart.cost_hourly as h
    inner join closed as c on c.month = cast(date_trunc('month', h.date) as date)
    where h.date >= cast($start_at as date) and h.date < cast($end_at as date)
),
today as (
    select
        h.date, h.team, h.cost_part, sum(h.list_cost) as list_cost, sum(h.contracted_cost) as contracted_cost,
        sum(h.billed_cost) as billed_cost, sum(h.effective_cost) as effective_cost
    from mart.cost_hourly as h
    inner join days as d on d.date = h.date
    group by h.date, h.team, h.cost_part
),
told as (
    select
        f.date, f.x_team as team, f.x_cost_part as cost_part, sum(f."ListCost") as list_cost,
        sum(f."ContractedCost") as contracted_cost, sum(f."BilledCost") as billed_cost,
        sum(f."EffectiveCost") as effective_cost
    from mart.focus_cost_and_usage as f
    inner join days as d on d.date = f.date
    group by f.date, f.x_team, f.x_cost_part
),
frozen as (
    select
        s.date, s.statement_id, s.x_team as team, s.x_cost_part as cost_part, sum(s."ListCost") as list_cost,
        sum(s."ContractedCost") as contracted_cost, sum(s."BilledCost") as billed_cost,
        sum(s."EffectiveCost") as effective_cost, count(*) as n
    from mart.focus_statement as s
    inner join closed as c on c.month = s.month and c.statement_id = s.statement_id
    where s.date >= cast($start_at as date) and s.date < cast($end_at as date)
    group by s.date, s.statement_id, s.x_team, s.x_cost_part
),
told_frozen as (
    select
        date, x_statement_id as statement_id, x_team as team, x_cost_part as cost_part, sum("ListCost") as list_cost,
        sum("ContractedCost") as contracted_cost, sum("BilledCost") as billed_cost,
        sum("EffectiveCost") as effective_cost, count(*) as n
    from mart.focus_cost_and_usage
    where x_statement_id is not null and date >= cast($start_at as date) and date < cast($end_at as date)
    group by date, x_statement_id, x_team, x_cost_part
),
stated as (
    select
        s.statement_id, s.team, s.cost_part, sum(s.list_cost) as list_cost, sum(s.contracted_cost) as contracted_cost,
        sum(s.billed_cost) as billed_cost, sum(s.effective_cost) as effective_cost
    from mart.cost_statement as s
    where s.month >= date_trunc('month', cast($start_at as date)) and s.month < cast($end_at as date)
    group by s.statement_id, s.team, s.cost_part
),
held as (
    select
        s.statement_id, s.x_team as team, s.x_cost_part as cost_part, sum(s."ListCost") as list_cost,
        sum(s."ContractedCost") as contracted_cost, sum(s."BilledCost") as billed_cost,
        sum(s."EffectiveCost") as effective_cost
    from mart.focus_statement as s
    where
        not ("ChargeClass" is not null and x_allocated_ratio is null)
        and s.month >= date_trunc('month', cast($start_at as date)) and s.month < cast($end_at as date)
    group by s.statement_id, s.x_team, s.x_cost_part
)
select
    'a change of a closed month is in no correction' as what, coalesce(a.date, b.date) as date,
    cast(null as varchar) as statement_id, coalesce(a.team, b.team) as team,
    coalesce(a.cost_part, b.cost_part) as cost_part, a.effective_cost as computed, b.effective_cost as told
from today as a
full outer join told as b
    on b.date = a.date and b.team is not distinct from a.team and b.cost_part = a.cost_part
where
    coalesce(a.list_cost, 0) <> coalesce(b.list_cost, 0)
    or coalesce(a.contracted_cost, 0) <> coalesce(b.contracted_cost, 0)
    or coalesce(a.billed_cost, 0) <> coalesce(b.billed_cost, 0)
    or coalesce(a.effective_cost, 0) <> coalesce(b.effective_cost, 0)
union all
select
    'rows told under a statement are not those it froze', coalesce(a.date, b.date),
    coalesce(a.statement_id, b.statement_id), coalesce(a.team, b.team), coalesce(a.cost_part, b.cost_part),
    a.effective_cost, b.effective_cost
from frozen as a
full outer join told_frozen as b
    on b.date = a.date and b.statement_id = a.statement_id and b.team is not distinct from a.team
    and b.cost_part = a.cost_part
where
    a.n is distinct from b.n or a.list_cost is distinct from b.list_cost
    or a.contracted_cost is distinct from b.contracted_cost or a.billed_cost is distinct from b.billed_cost
    or a.effective_cost is distinct from b.effective_cost
union all
select
    'the costs of a statement are not its FOCUS rows', cast(null as date), coalesce(a.statement_id, b.statement_id),
    coalesce(a.team, b.team), coalesce(a.cost_part, b.cost_part), a.effective_cost, b.effective_cost
from stated as a
full outer join held as b
    on b.statement_id = a.statement_id and b.team is not distinct from a.team and b.cost_part = a.cost_part
where
    a.list_cost is distinct from b.list_cost or a.contracted_cost is distinct from b.contracted_cost
    or a.billed_cost is distinct from b.billed_cost or a.effective_cost is distinct from b.effective_cost
