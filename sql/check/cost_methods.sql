-- Every row names a published method, and all parts of a charge the same one.
-- table: mart.cost_hourly
select date, charge_id, min(method_id) as method_id, max(method_id) as other_method_id
from mart.cost_hourly
where date >= cast($start_at as date) and date < cast($end_at as date)
group by date, charge_id
having
    min(method_id) <> max(method_id) or count(method_id) < count(*)
    or max(
        case
            when method_id in (
                'strandline-whole-node-1', 'strandline-aws-weights-1', 'strandline-opencost-ratios-1',
                'strandline-fixed-1'
            ) then 0
            else 1
        end
    ) = 1
