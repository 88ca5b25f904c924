"""The queue's exporter: figures of one snapshot of the queue as Prometheus text.

The snapshot is a plain dictionary that the caller takes (`jobs` by queue and state, `waiting_gpus`, `held_gpus` and
`oldest_wait_s` by queue, `events` by kind, `cycles`, `cycle_s`, `is_well`), so that nothing here knows the queue.
Belongs here: names, types and help of metrics. Not here: what is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

# Name, help and key in the snapshot of what is told by queue.
BY_QUEUE = (
    ("strandline_queue_waiting_gpus", "GPUs that waiting jobs ask for", "waiting_gpus"),
    ("strandline_queue_held_gpus", "GPUs that running jobs hold", "held_gpus"),
    ("strandline_queue_oldest_wait_seconds", "Age of the longest waiting job", "oldest_wait_s"),
)


class QueueCollector(Collector):
    """All metrics of one snapshot."""

    def __init__(self, snapshot: Mapping[str, Any]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        """Metrics, each queue and state in the order of its name."""
        known = self._snapshot
        jobs = GaugeMetricFamily("strandline_queue_jobs", "Jobs by state", labels=("queue", "state"))
        for (queue, state), n in sorted(known["jobs"].items()):
            jobs.add_metric((queue, state), n)
        yield jobs
        for name, meaning, key in BY_QUEUE:
            gauge = GaugeMetricFamily(name, meaning, labels=("queue",))
            for queue, value in sorted(known[key].items()):
                gauge.add_metric((queue,), value)
            yield gauge
        events = CounterMetricFamily("strandline_queue_events", "Events in the log by kind", labels=("kind",))
        for kind, n in sorted(known["events"].items()):
            events.add_metric((kind,), n)
        yield events
        yield CounterMetricFamily("strandline_queue_cycles", "Cycles run since the start", value=known["cycles"])
        yield GaugeMetricFamily("strandline_queue_cycle_seconds", "Length of the last tick", value=known["cycle_s"])
        yield GaugeMetricFamily("strandline_queue_up", "Whether world and log answer", value=float(known["is_well"]))


def render(snapshot: Mapping[str, Any]) -> tuple[bytes, str]:
    """The text of a snapshot and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(QueueCollector(snapshot))
    return generate_latest(registry), CONTENT_TYPE_LATEST
