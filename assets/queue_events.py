"""The queue's event log in the lake: what is new is added, nothing that is there is ever changed, touched days marked.

An event is known by log and position. A log that was made anew has another id; one that was put back to an older copy
and went on from there says other things at the same positions, and is refused. Belongs here: merging a log with what
the table holds. Not here: reading the file (`sources/queuelog/`). No Dagster in it: `strandline ingest queue-events`
calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa

from sources.queuelog import LogRows, read_log
from sources.queuelog.read import log_id_of
from sources.queuelog.rows import Row
from warehouse.contracts import CONTRACTS
from warehouse.engine import open_database
from warehouse.errors import BadInput
from warehouse.lake import Lake
from warehouse.windows import DAY, days

TABLE = "raw.scheduler_events"
# What an event says, as opposed to where it was read.
_SAID = ("event_at", "event_kind", "job_id", "payload", "reason")


@dataclass
class QueueReport:
    """What logs brought: `read` events looked at, `new` of them added, `refused` a message for each bad event or file.

    `version` is the newest of the table where anything was added, `dates` the days marked.
    """

    read: int = 0
    new: int = 0
    refused: list[str] = field(default_factory=list)
    version: int | None = None
    dates: set[date] = field(default_factory=set)


@dataclass(frozen=True)
class _Held:
    """What the table has of a log: ids 1 to `whole` without a gap, `newest` the day of its last event."""

    cluster: str | None
    whole: int
    newest: date | None


def load_queue_events(lake: Lake, paths: Sequence[Path | str], cluster: str, run_id: str = "") -> QueueReport:
    """Bring what is new in these logs of one cluster's queue into the lake.

    A file that is no log, or does not go on from what the lake has of it, brings nothing and is among the refusals.
    """
    report = QueueReport()
    with lake.writer():
        for path in map(Path, paths):
            try:
                _load(lake, path, cluster, report, run_id)
            except BadInput as error:
                report.refused.append(str(error))
    return report


def _load(lake: Lake, path: Path, cluster: str, report: QueueReport, run_id: str) -> None:
    log_id = log_id_of(path)
    with open_database(lake.root) as con:
        con.execute(f"create temp view held as {lake.relation(TABLE)}")
        held = _held(con, log_id)
        if held.cluster not in (None, cluster):
            raise BadInput(f"{path}: its events are in the lake as those of cluster {held.cluster}, not {cluster}")
        # The last event that is known is read again: it shows whether this is still the same log.
        log = read_log(path, max(held.whole - 1, 0))
        report.read += len(log.rows)
        report.refused += log.refused
        rows = _new(con, log, held)
    if not rows:
        return
    first = min(held.newest, rows[0]["date"]) if held.newest else min(r["date"] for r in rows)
    touched = set(days(first, max(r["date"] for r in rows) + DAY))
    # Jobs wait and run over days without an event, which are known only now; before the commit, so that a death between
    # the two costs a build and not a change.
    lake.mark(touched, f"{TABLE} of {path.name}")
    report.dates |= touched
    for day in sorted({r["date"] for r in rows}):
        report.version = _add(lake, day, [{**r, "cluster": cluster} for r in rows if r["date"] == day], run_id)
    report.new += len(rows)


def _held(con: duckdb.DuckDBPyConnection, log_id: str) -> _Held:
    cluster, newest, whole = con.execute(
        "select min(cluster), max(date), max(case when event_id = place then event_id end) from ("
        "select cluster, date, event_id, row_number() over (order by event_id) as place from held where log_id = ?)",
        [log_id],
    ).fetchall()[0]
    return _Held(cluster, whole or 0, newest)


def _new(con: duckdb.DuckDBPyConnection, log: LogRows, held: _Held) -> list[Row]:
    """Events that the lake does not have; `BadInput` where it has others in their places."""
    if log.last_id < held.whole and not log.refused:
        raise BadInput(
            f"{log.path}: the log ends with event {log.last_id}, and the lake has {held.whole} events of it: the file "
            "was put back to an older copy"
        )
    known = {
        row[0]: row[1:]
        for row in con.execute(
            f"select event_id, {', '.join(_SAID)} from held where log_id = ? and event_id >= ?",
            [log.log_id, max(held.whole, 1)],
        ).fetchall()
    }
    for row in log.rows:
        said = known.get(row["event_id"])
        if said is not None and said != tuple(row[c] for c in _SAID):
            raise BadInput(
                f"{log.path}: event {row['event_id']} is {row['event_kind']} at {row['event_at']}, and in the lake it "
                f"is {said[1]} at {said[0]}: the file was put back to an older copy and went on from there"
            )
    return [r for r in log.rows if r["event_id"] not in known]


def _add(lake: Lake, day: date, rows: list[Row], run_id: str) -> int:
    """One commit for a day: what it holds and what is new."""
    start = datetime.combine(day, time())
    end = start + timedelta(days=1)
    schema = CONTRACTS[TABLE].arrow_schema
    full = [{name: row.get(name) for name in schema.names} for row in rows]
    before = lake.read(TABLE, start=start, end=end)
    return lake.replace(
        TABLE, pa.concat_tables([before, pa.Table.from_pylist(full, schema=schema)]), start, end, run_id
    )  # fmt: skip


def messages(report: QueueReport) -> Iterator[str]:
    """What a person is told of a load, line by line; refusals are not among it."""
    yield f"{TABLE}: {report.new} new event{'' if report.new == 1 else 's'}"
    if report.dates:
        yield f"`strandline build` brings them into the tables; {len(report.dates)} days are to be computed anew"
