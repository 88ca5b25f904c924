-- Every job that waited was told a time or not, shares are of what they say they are, and nothing is judged where there
-- is nothing to judge.
-- table: mart.slo_daily
select *
from mart.slo_daily
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and (
        answered_jobs + unanswered_jobs <> waited_jobs or waited_jobs > first_starts or bound_jobs > answered_jobs
        or (unanswered_jobs > 0) <> (unanswered_reasons is not null)
        or (waited_jobs = 0) <> (answered_ratio is null) or (answered_jobs = 0) <> (p90_covers_ratio is null)
        or p50_covers_ratio > p90_covers_ratio or within_target_jobs > first_starts
    )
