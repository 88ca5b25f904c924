"""Contracts of the queue: its events as logged, spells and starts of jobs, and what became of waits and estimates."""

from __future__ import annotations

from warehouse.contracts.fields import pick
from warehouse.contracts.model import Table

RAW = (
    Table(
        "raw.scheduler_events", "event", ("cluster", "log_id", "event_id"),
        pick("cluster log_id event_id event_at event_kind job_id team queue size_class gpu_milli attempt is_success "
             "will_return lost_gpu_seconds estimated_at estimate_method p50_at p90_at bound_p90_at reason payload "
             "source hour date"),
        "hour", "Everything the queue decided, with its reason, in the order of its log.",
    ),
)  # fmt: skip

CORE = (
    Table(
        "core.job_spells", "date, job, spell", ("date", "cluster", "log_id", "job_id", "spell"),
        pick("date cluster log_id job_id spell queue team size_class spell_state gpu_milli asked_gpu_milli attempt "
             "submitted_at started_at finished_at end_reason interval_start_at interval_end_at"),
        "date", "When jobs of the queue waited and ran, and with how many GPUs.",
        spans=True,
    ),
    Table(
        "core.job_starts", "start of a job", ("date", "cluster", "log_id", "job_id", "attempt"),
        pick("date cluster log_id job_id attempt queue team size_class gpu_milli asked_gpu_milli submitted_at "
             "run_started_at bound_at is_first waited_us was_passed_over estimated_at estimate_method p50_at p90_at "
             "bound_p90_at no_estimate_reason"),
        "date", "Every start with the wait before it; a job's first start with the first time it had been told.",
    ),
)  # fmt: skip

MART = (
    Table(
        "mart.queue_daily", "date, queue, size class", ("date", "cluster", "queue", "size_class"),
        pick("date cluster queue size_class submitted_jobs impossible_jobs starts first_starts ended_jobs failed_jobs "
             "cancelled_jobs evictions shrinks losses requeues lost_gpu_hours waiting_job_hours waiting_gpu_hours "
             "run_gpu_hours depth_max pending_at_end running_at_end mean_wait_s p50_wait_s p95_wait_s "
             "mean_first_wait_s p50_first_wait_s p95_first_wait_s"),
        "date", "What the queue did each day, by queue and size of job. A day without jobs has no row.",
    ),
    Table(
        "mart.slo_daily", "date, queue, size class", ("date", "cluster", "queue", "size_class"),
        pick("date cluster queue size_class first_starts waited_jobs answered_jobs unanswered_jobs unanswered_reasons "
             "answered_ratio p50_covers_ratio p90_covers_ratio p50_pinball_s p90_pinball_s overdue_jobs bound_jobs "
             "bounded_p90_pinball_s bound_p90_pinball_s target_wait_s within_target_jobs within_target_ratio "
             "mean_bind_s p95_bind_s"),
        "date", "Whether jobs started as they were told, within the target, and how fast they were bound.",
    ),
)  # fmt: skip
