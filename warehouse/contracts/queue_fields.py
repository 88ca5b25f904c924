"""Fields of the queue's tables, in the form of `fields.py`.

Belongs here: columns that only the tables of `queue.py` have. Not here: which table uses which.
"""

DEFINITIONS = """
log_id                  string     id of the queue's event log; a log made anew has another
event_id                integer    position in the log, from 1
event_at                timestamp  when it happened, by the clock of the queue's cluster
event_kind              string     what happened: submitted, waiting, estimated, intended, bound, ended …
job_id                  string     id of the job in its queue; null where an event is of none
queue                   string     queue of the job
size_class              string     GPUs that the job asked for: 1 (one, a share or none), 2-7 or 8+
gpu_milli               integer    thousandths of a GPU: asked for by submitted, else held from this event on
asked_gpu_milli         integer    thousandths of a GPU that the job asked for
attempt                 integer    which start of the job, from 1
is_success              boolean    whether the run ended by itself and well
will_return             boolean    whether the job comes again after this end of a run
lost_gpu_seconds        quantity   work undone by this end of a run, since what was saved last
estimated_at            timestamp  as of when the start was estimated
estimate_method         string     forward, held, bound or none
p50_at                  timestamp  by when half of such jobs start; null where no time could be given
p90_at                  timestamp  by when nine of ten such jobs start
bound_p90_at            timestamp  the P90 that the bound on recent waits alone would have given
payload                 string     all that the event says, as JSON, without what the pods run
spell                   integer    event_id of the event that began the spell
spell_state             string     queued, backoff (stopped, waits to be queued again) or running
submitted_at            timestamp  when the job was submitted first
run_started_at          timestamp  when the start was decided
bound_at                timestamp  when all pods were bound; null where they never were
is_first                boolean    whether it is the first start of the job
waited_us               integer    microseconds that the job had waited until this start, requeues included
was_passed_over         boolean    whether a cycle had left it waiting before its first start
no_estimate_reason      string     why a job that waited had no time when it started first; null where it had one
submitted_jobs          integer    jobs submitted
impossible_jobs         integer    jobs that could never start
starts                  integer    starts of gangs, those after a requeue too
first_starts            integer    jobs that started for the first time
ended_jobs              integer    jobs that ended well
failed_jobs             integer    jobs that failed for good
cancelled_jobs          integer    jobs cancelled
evictions               integer    runs stopped for another job, whole
shrinks                 integer    runs that gave some of their pods to another job and went on
losses                  integer    runs stopped by a failure: lost pods, nodes, errors
requeues                integer    times that a stopped job was queued again
lost_gpu_hours          quantity   work undone by stopped runs; null where one does not say
waiting_job_hours       quantity   time that jobs waited, requeues and backoff included
waiting_gpu_hours       quantity   the same, times the GPUs that they asked for
run_gpu_hours           quantity   GPUs held times time
depth_max               integer    most jobs waiting at one instant
pending_at_end          integer    jobs waiting when the day ended
running_at_end          integer    jobs running when the day ended
mean_wait_s             double     mean wait of the starts, requeues included
p50_wait_s              double     its median
p95_wait_s              double     its 95th percentile
mean_first_wait_s       double     mean time from submission to the first start
p50_first_wait_s        double     its median
p95_first_wait_s        double     its 95th percentile
waited_jobs             integer    first starts of jobs that a cycle had left waiting
answered_jobs           integer    of those, jobs that had been told a time
unanswered_jobs         integer    of those, jobs that had not
unanswered_reasons      string     why, and how many, as reason: n, semicolon separated
answered_ratio          double     answered_jobs over waited_jobs; null where none waited
p50_covers_ratio        double     share of answered jobs that started by the first P50 they were told
p90_covers_ratio        double     share of answered jobs that started by the first P90 they were told
p50_pinball_s           double     mean pinball loss of these P50
p90_pinball_s           double     mean pinball loss of these P90
overdue_jobs            integer    jobs not started when the day ended, beyond the first P90 they had been told
bound_jobs              integer    answered jobs for which the bound had a P90 too
bounded_p90_pinball_s   double     mean pinball loss of the P90 over bound_jobs
bound_p90_pinball_s     double     mean pinball loss of the bound's P90 over bound_jobs
target_wait_s           double     the wait within which a job should start (setting queue_target_wait)
within_target_jobs      integer    first starts within it; null without a target
within_target_ratio     double     within_target_jobs over first_starts
mean_bind_s             double     mean time from the decision until all pods were bound
p95_bind_s              double     its 95th percentile
"""
