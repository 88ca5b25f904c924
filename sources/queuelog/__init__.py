"""The event log of the queue service, as rows. Belongs here: what other rooms call."""

from sources.queuelog.read import LogRows, read_log

__all__ = ["LogRows", "read_log"]
