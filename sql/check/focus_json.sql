-- FOCUS 1.4: columns of JSON hold one valid JSON object.
-- table: mart.focus_cost_and_usage
with texts as (
    select
        date, x_charge_id, x_cost_part, x_holder, "ChargeCategory",
        unnest([
            "AllocatedMethodDetails", "AllocatedTags", "CommitmentProgramEligibilityDetails", "ContractApplied",
            "SkuPriceDetails", "Tags"
        ]) as text
    from mart.focus_cost_and_usage
    where date >= cast($start_at as date) and date < cast($end_at as date)
)
select *
from texts
where text is not null and (not json_valid(text) or left(ltrim(text), 1) <> '{')
