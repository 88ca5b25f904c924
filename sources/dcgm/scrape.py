"""One attempt to read one exporter, and its form in the landing spool.

Which of two attempts for one target and instant counts is decided here (`rank`). Fetching stands in
`collect.py`, reading the text in `parse.py`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from warehouse.landing import Record


def naive_utc(at: datetime) -> datetime:
    """The instant in UTC without a zone, as the lake stores it; a naive one is taken as UTC."""
    return at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)


@dataclass(frozen=True)
class Scrape:
    """One attempt. `at` is UTC; `body` is None when there was no usable answer; `duration_s` in seconds.

    `http_status` is None where no HTTP was spoken (a file) or no answer came; `error` says what went
    wrong. `target` is the endpoint (Prometheus `instance`), `node` the Kubernetes node if known.
    """

    cluster: str
    target: str
    node: str | None
    at: datetime
    body: bytes | None
    http_status: int | None = None
    duration_s: float | None = None
    error: str | None = None
    digest: str | None = None

    @property
    def is_up(self) -> bool:
        """Whether the exporter answered with a body (an empty one too)."""
        return self.body is not None and self.http_status in (None, 200)

    @cached_property
    def sha256(self) -> str | None:
        """Hex digest of the body: `digest` where the collector gave it, so that it is worked out once."""
        return self.digest or (None if self.body is None else hashlib.sha256(self.body).hexdigest())

    @property
    def instant(self) -> tuple[str, str, datetime]:
        """Cluster, target and naive UTC time: what one attempt is counted for."""
        return self.cluster, self.target, naive_utc(self.at)

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sort key among attempts for one target and instant: the smallest counts (see `rank`)."""
        size = None if self.body is None else len(self.body)
        return rank(self.is_up, size, self.sha256, self.node, self.http_status, self.duration_s, self.error)

    def record(self) -> Record:
        """The attempt as a landing record."""
        meta = {"node": self.node, "http_status": self.http_status, "duration_s": self.duration_s,
                "error": self.error, "digest": self.sha256}  # fmt: skip
        return Record("dcgm", self.cluster, self.target, naive_utc(self.at), meta, self.body)

    @classmethod
    def of(cls, record: Record) -> Scrape:
        """The attempt that a landing record holds."""
        return cls(record.cluster, record.target, at=record.at, body=record.body, **record.meta)


def rank(  # noqa: PLR0917  (the columns of raw.scrapes that decide, in their order)
    is_up: bool, size: int | None, sha256: str | None, node: str | None, status: int | None, seconds: float | None,
    error: str | None,
) -> tuple[Any, ...]:  # fmt: skip
    """Total order of attempts for one target and instant; the smallest wins, whatever came first.

    A success beats a failure, then the longer body, then the smaller hash; the rest only makes the
    order total, so that the outcome never depends on the order of arrival.
    """
    return (
        not is_up,
        -1 - size if size is not None else 0,
        sha256 or "~",
        node is None, node or "",
        status is None, status or 0,
        seconds is None, seconds or 0.0,
        error or "",
    )  # fmt: skip
