-- Every run of the last 28 days is in one row of each template it is of: rows have runs, the counts add up, and no pod
-- is lost or counted twice.
-- table: mart.rightsizing
with told as (
    select accelerator, sum(pods) as pods from mart.rightsizing group by accelerator
),
taken as (
    select accelerator, count(*) as pods from core.run_peaks group by accelerator
)
select
    coalesce(t.accelerator, p.accelerator) as accelerator, cast(null as varchar) as template, cast(null as varchar) as role,
    t.pods as told, p.pods as expected
from told as t
full join taken as p on p.accelerator = t.accelerator
where t.pods is distinct from p.pods
union all
select accelerator, template, role, judged_runs + failed_runs + unjudged_runs, runs
from mart.rightsizing
where runs < 1 or pods < runs or judged_runs + failed_runs + unjudged_runs is distinct from runs
