"""The stranding report over small marts: its figures are the marts', names are escaped, gaps stay gaps."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from html.parser import HTMLParser

import duckdb
import pytest

from pipelines.reporting import window
from reports import marts, stranding
from reports.bars import areas
from reports.marts import Parts
from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput
from warehouse.sqltypes import duckdb_type

DAY = date(2026, 3, 1)
NEXT = DAY + timedelta(days=1)
MARTS = ("mart.stranding_hourly", "mart.gpu_ledger_hourly", "mart.job_efficiency")


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    """Empty marts with the columns of their contracts."""
    con = duckdb.connect()
    con.execute("create schema mart")
    for name in MARTS:
        columns = ", ".join(f'"{f.name}" {duckdb_type(f.arrow)}' for f in CONTRACTS[name].fields)
        con.execute(f"create table {name} ({columns})")
    return con


def add(con: duckdb.DuckDBPyConnection, table: str, **values: object) -> None:
    names = ", ".join(values)
    con.execute(f"insert into {table} ({names}) values ({', '.join('?' * len(values))})", list(values.values()))


def hour(
    con: duckdb.DuckDBPyConnection, at: int, team: str | None, allocated: int, utilized: int, unseen: int = 0
) -> None:
    """One hour of one GPU's worth of `team`, seconds."""
    add(
        con, "mart.stranding_hourly", date=DAY, hour=datetime(2026, 3, 1, at), team=team,
        namespace=None if team is None else f"ns-{team}", accelerator="H100", capacity_gpu_seconds=3600,
        allocated_gpu_seconds=allocated, unallocated_gpu_seconds=3600 - allocated, unavailable_gpu_seconds=0,
        utilized_gpu_seconds=utilized, stranded_gpu_seconds=allocated - utilized - unseen,
        unobserved_gpu_seconds=unseen, resident_gpu_seconds=allocated, rogue_gpu_seconds=0,
    )  # fmt: skip


class Text(HTMLParser):
    """Tags that stay open, and the text of the page."""

    VOID = ("meta", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())


def text_of(page: str) -> str:
    parser = Text()
    parser.feed(page)
    assert parser.open == []
    return " ".join(w for w in parser.words if w)


def test_figures_are_sums_of_the_marts(con: duckdb.DuckDBPyConnection) -> None:
    for at in range(10):
        hour(con, at, "vision", 3600, 900)
        hour(con, at, None, 0, 0)
    found = marts.read(con, DAY, NEXT)
    assert found.total.capacity == 20
    assert (found.total.allocated, found.total.utilized, found.total.stranded) == (10, 2.5, 7.5)
    assert found.teams == (("vision", found.teams[0][1]),)
    assert sum(p.capacity for _, p in found.timeline) == 20
    assert "7.5 of 10 allocated GPU-hours were stranded" in text_of(stranding.render(con, DAY, NEXT))


def test_the_label_stands_only_where_it_is_due(con: duckdb.DuckDBPyConnection) -> None:
    hour(con, 1, "vision", 3600, 900)
    assert "SIMULATED" in stranding.render(con, DAY, NEXT, simulated=True)
    assert "SIMULATED" not in stranding.render(con, DAY, NEXT)


def test_names_cannot_become_markup(con: duckdb.DuckDBPyConnection) -> None:
    evil = '"><script>alert(1)</script>'
    hour(con, 1, evil, 3600, 900)
    add(
        con, "mart.job_efficiency", date=DAY, cluster="c", pod_uid="u", namespace=evil, pod=evil, team=evil, devices=1,
        accelerator=evil, shape=evil, verdict=evil, allocated_gpu_seconds=3600, stranded_gpu_seconds=1800,
    )  # fmt: skip
    add(con, "mart.gpu_ledger_hourly", date=DAY, cluster=evil)
    page = stranding.render(con, DAY, NEXT)
    assert "<script" not in page
    text_of(page)


def test_the_page_loads_nothing(con: duckdb.DuckDBPyConnection) -> None:
    hour(con, 1, "vision", 3600, 900)
    page = stranding.render(con, DAY, NEXT)
    assert not re.search(r"(src|href)=|url\(|@import|https?://", page)


def test_an_empty_window_is_a_page_too(con: duckdb.DuckDBPyConnection) -> None:
    assert marts.days(con) is None
    assert "No GPU was held" in text_of(stranding.render(con, DAY, NEXT))


def test_the_window_is_the_newest_days_and_never_one_that_is_not_built() -> None:
    built = (date(2026, 1, 1), date(2026, 3, 2))
    assert window(built, None, None) == (date(2026, 1, 31), date(2026, 3, 2))
    assert window(built, date(2026, 2, 1), None) == (date(2026, 2, 1), date(2026, 3, 2))
    with pytest.raises(
        BadInput, match=r"no day of 2020-01-01 to 2020-01-01 is built: there are 2026-01-01 to 2026-03-01"
    ):
        window(built, date(2020, 1, 1), date(2020, 1, 2))
    with pytest.raises(BadInput, match="--to 2026-01-01 must be after --from 2026-02-01"):
        window(built, date(2026, 2, 1), date(2026, 1, 1))


def test_share_is_told_only_of_what_was_observed(con: duckdb.DuckDBPyConnection) -> None:
    hour(con, 1, "tpu", 3600, 0, unseen=3600)
    row = re.search(r'<th scope="row" title="tpu">.*?</tr>', stranding.render(con, DAY, NEXT))
    assert row
    assert row[0].endswith("<td>–</td></tr>")


def test_many_groups_end_in_one_that_keeps_the_sum(con: duckdb.DuckDBPyConnection) -> None:
    for n in range(30):
        hour(con, 1, f"team-{n:02}", 3600, 100 * n)
    found = marts.read(con, DAY, NEXT)
    assert len(found.teams) == marts.TOP + 1
    assert found.teams[-1][0] == "all others (18)"
    assert sum(p.allocated for _, p in found.teams) == pytest.approx(found.total.allocated)


def test_hours_that_are_missing_stay_a_gap() -> None:
    part = Parts(capacity=1, allocated=1, stranded=1)
    drawn = areas([(datetime(2026, 3, 1, h), part) for h in (0, 1, 5)], 1)
    stranded = re.findall(r'<path d="([^"]+)" fill="#d55e00"', drawn)
    assert stranded[0].count("M") == 2
