-- FOCUS 1.4: a split row names its method, and how its ratio came about; only a pod is an allocated resource, and tags
-- and name belong to one. What is not split carries none of it.
-- table: mart.focus_cost_and_usage
select
    date, x_charge_id, x_cost_part, x_holder, "ChargeCategory", "AllocatedMethodId", "AllocatedMethodDetails",
    "AllocatedResourceId",
    "AllocatedResourceName", "AllocatedTags"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and (
        ("AllocatedMethodId" is not null) <> (x_charge_scope = 'node')
        or ("AllocatedMethodId" is null and coalesce(
            "AllocatedMethodDetails", "AllocatedResourceId", "AllocatedResourceName", "AllocatedTags"
        ) is not null)
        or ("AllocatedMethodId" is not null and "AllocatedMethodDetails" is null and "ChargeClass" is null)
        or "AllocatedResourceId" is distinct from case when x_charge_scope = 'node' then x_holder end
        or ("AllocatedResourceId" is null) <> ("AllocatedTags" is null)
    )
