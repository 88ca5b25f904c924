"""The queue's metrics by the reference parser."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from exporters.queue import render


def test_a_snapshot_as_text() -> None:
    text, content_type = render(
        {
            "jobs": {("a", "pending"): 3, ("b", "running"): 1},
            "waiting_gpus": {"a": 12.0, "b": 0.0},
            "held_gpus": {"a": 0.0, "b": 8.0},
            "oldest_wait_s": {"a": 90.5, "b": 0.0},
            "events": {"submitted": 4, "bound": 1},
            "cycles": 7,
            "cycle_s": 0.25,
            "is_well": True,
        }
    )
    assert content_type.startswith("text/plain")
    found = {
        (s.name, *s.labels.values()): s.value for f in text_string_to_metric_families(text.decode()) for s in f.samples
    }
    assert found["strandline_queue_jobs", "a", "pending"] == 3
    assert found["strandline_queue_waiting_gpus", "a"] == 12
    assert found["strandline_queue_held_gpus", "b"] == 8
    assert found["strandline_queue_oldest_wait_seconds", "a"] == 90.5
    assert found["strandline_queue_events_total", "submitted"] == 4
    assert found["strandline_queue_cycles_total",] == 7
    assert found["strandline_queue_up",] == 1
