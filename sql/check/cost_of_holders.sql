-- A holder's effective cost is what it utilized, stranded and had unobserved, each with the cost's sign; what nobody
-- holds is none of the three.
-- table: mart.cost_hourly
select date, charge_id, cost_part, holder, effective_cost, utilized_cost, stranded_cost, unobserved_cost
from mart.cost_hourly
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and (
        utilized_cost is null or stranded_cost is null or unobserved_cost is null
        or case
            when cost_part <> 'holder' then utilized_cost <> 0 or stranded_cost <> 0 or unobserved_cost <> 0
            else
                effective_cost is distinct from utilized_cost + stranded_cost + unobserved_cost
                or least(utilized_cost, stranded_cost, unobserved_cost) < least(effective_cost, 0)
                or greatest(utilized_cost, stranded_cost, unobserved_cost) > greatest(effective_cost, 0)
        end
    )
