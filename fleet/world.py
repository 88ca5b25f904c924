"""The simulated fleet: one clock, and every question that can be asked of it at an instant.

The World ties topology, work, activity and faults together; each of them is made in its own
module. It serves nothing over HTTP and writes no table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import pyarrow as pa

from fleet.model import Fault, FleetSpec, Namespace, Node, NodeState, Pod, PodState, ScrapeOutcome


class World:
    """A fleet and all the work on it over `[history_start_at, end_at)`.

    `nodes`, `namespaces`, `pods` (those that touch the telemetry window, by scheduled_at) and
    `faults` are tuples of records. Objects are identified by cluster and name: node names repeat
    between clusters.
    """

    spec: FleetSpec
    nodes: tuple[Node, ...]
    namespaces: tuple[Namespace, ...]
    pods: tuple[Pod, ...]
    faults: tuple[Fault, ...]
    start_at: datetime
    end_at: datetime

    @classmethod
    def build(cls, spec: FleetSpec) -> World:
        """Generates the whole world from `spec`, the same for the same spec; `BadInput` on a spec that makes no sense."""
        raise NotImplementedError

    def sample_rows(
        self, times: Sequence[datetime], nodes: Iterable[tuple[str, str]] | None = None
    ) -> pa.Table:
        """Rows of raw.dcgm_samples that scrapes at `times` give, for nodes (cluster, name) or all with an exporter.

        Values are exactly what parsing the exporter's text and multiplying by the factor of
        `fleet.exported` gives; what a card does not report is null. Scrapes that fail or come back
        empty (faults) give no rows. sampled_at is the instant given, plus the skew where a
        clock_skew fault is on.
        """
        raise NotImplementedError

    def scrape_outcome(self, cluster: str, node: str, at: datetime) -> ScrapeOutcome:
        """What a scrape of the node's exporter at `at` meets: ok, down (refused), empty (200, no body), timeout."""
        raise NotImplementedError

    def nodes_at(self, at: datetime, cluster: str | None = None) -> tuple[NodeState, ...]:
        """Nodes as the API server shows them at `at`, in order of cluster and name."""
        raise NotImplementedError

    def pods_at(self, at: datetime, cluster: str | None = None) -> tuple[PodState, ...]:
        """Pods as the API server lists them at `at` (pending, running, and finished ones within their TTL)."""
        raise NotImplementedError

    def raw_tables(self, start: datetime | None = None, end: datetime | None = None) -> Iterator[tuple[str, pa.Table]]:
        """The history face over `[start, end)` (default: all of it): (table name, rows) pairs, day by day.

        Several parts of one table may come for one day; all rows of a day come before the next day.
        raw.allocation_history (once, its days precede the window), raw.fleet_faults, raw.team_map
        and raw.team_rules come first.
        """
        raise NotImplementedError

    def truth(self, start: datetime, end: datetime) -> pa.Table:
        """raw.fleet_truth over the days of `[start, end)`: per pod and date what it held and truly used."""
        raise NotImplementedError
