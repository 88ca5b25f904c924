"""Every lint rule with a bad example, and the constructs that are fine."""

from __future__ import annotations

import pytest

from warehouse.lint import RULES, lint
from warehouse.models import load_models, read_model

HEADER = "-- What it is.\n-- grain: a\n-- key: a\n-- inputs: raw.t\n-- invariant: none\n"

BAD = [
    ("function", "select arg_max(a, b) as x from raw.t"),
    ("function", "select max_by(a, b) as x from raw.t"),
    ("function", "select quantile_cont(a, 0.5) as x from raw.t"),
    ("function", "select percentile_cont(0.5) within group (order by a) as x from raw.t"),
    ("function", "select quantile(a, 0.5) as x from raw.t"),
    ("function", "select approx_quantile(a, 0.5) as x from raw.t"),
    ("function", "select time_bucket(interval '1 hour', a) as x from raw.t"),
    ("function", "select strftime(a, '%Y') as x from raw.t"),
    ("function", "select hash(a) as x from raw.t"),
    ("function", "select isnan(a) as x from raw.t"),
    ("function", "select dayofweek(a) as x from raw.t"),
    ("function", "select isodow(a) as x from raw.t"),
    ("function", "select extract(dow from a) as x from raw.t"),
    ("function", "select date_part('dow', a) as x from raw.t"),
    ("function", "select to_seconds(a) as x from raw.t"),
    ("function", "select epoch_ms(a) as x from raw.t"),
    ("function", "select date_sub('hour', a, b) as x from raw.t"),
    ("function", "select histogram(a) as x from raw.t"),
    ("function", "select a as x from read_parquet('f') union all select a from raw.t"),
    ("function", "select now() as x from raw.t"),
    ("function", "select current_timestamp as x from raw.t"),
    ("function", "select current_date as x from raw.t"),
    ("function", "select random() as x from raw.t"),
    ("ordered-list", "select list(a order by b) as x from raw.t"),
    ("ordered-list", "select first(a order by b) as x from raw.t"),
    ("date-diff", "select date_diff('hour', a, b) as x from raw.t"),
    ("date-diff", "select date_diff('day', a, b) as x from raw.t"),
    ("interval-epoch", "select epoch(b - a) as x from raw.t"),
    ("time-zone", "select a at time zone 'UTC' as x from raw.t"),
    ("zoned-type", "select cast(a as timestamptz) as x from raw.t"),
    ("asof-join", "select t.a as x from raw.t as t asof join raw.t as u on t.a >= u.a"),
    ("pivot", "select x from (pivot raw.t on a using sum(b))"),
    ("pivot", "select x from raw.t pivot (sum(b) for a in (1, 2))"),
    ("division", "select a / b as x from raw.t"),
    ("division", "select a // b as x from raw.t"),
    ("division", "select a % b as x from raw.t"),
    ("division", "select a / 0 as x from raw.t"),
    ("integer-cast", "select cast(2.5 as int) as x from raw.t"),
    ("integer-cast", "select cast(a / 2 as bigint) as x from raw.t"),
    ("lambda", "select list_transform(a, lambda y: y + 1) as x from raw.t"),
    ("reserved-name", "select max(at) as x from raw.t"),
    ("letter-case", "SELECT a as x from raw.t"),
    ("letter-case", "select a as x from raw.t GROUP BY a"),
    ("star", "select * from raw.t"),
]

GOOD = [
    "select date_diff('microsecond', a, b) as x from raw.t",
    "select date_diff('second', a, b) as x from raw.t",
    "select epoch(a) as x from raw.t",
    "select a / nullif(b, 0) + a / 3600.0 + a % 7 + a // (2 * 3) as x from raw.t",
    "select string_agg(a, ',' order by b) as x from raw.t",
    "select date_trunc('hour', a) as x, median(b) as y, count(*) filter (where c) as z from raw.t group by all",
    "select a as x from raw.t qualify row_number() over (partition by a order by b) = 1",
    "select 'LOUD' as x, \"Odd\" as y from raw.t where a >= $start_at and a < $end_at",
    "select a / share_parts as x from raw.t",
]


def findings(tmp_path, sql, header=HEADER):
    path = tmp_path / "x.sql"
    path.write_text(header + sql)
    return lint([read_model(path, "mart.x")])


@pytest.mark.parametrize(("rule", "sql"), BAD, ids=[sql for _, sql in BAD])
def test_bad(tmp_path, rule, sql):
    assert rule in {f.rule for f in findings(tmp_path, sql)}


@pytest.mark.parametrize("sql", GOOD)
def test_good(tmp_path, sql):
    assert [str(f) for f in findings(tmp_path, sql) if '"Odd"' not in f.message and "Odd" not in f.message] == []


def test_headers_are_complete_and_true(tmp_path):
    sql = "select a as x from raw.t"
    assert {f.rule for f in findings(tmp_path, sql, "")} == {"header"}
    wrong = findings(tmp_path, sql, HEADER.replace("raw.t", "raw.u"))
    assert [f.rule for f in wrong] == ["header"]
    assert "raw.u" in str(wrong[0])
    assert "x.sql" in str(wrong[0])


def test_every_rule_has_a_bad_example():
    assert {rule for rule, _ in BAD} | {"header"} == set(RULES)


def test_the_models_keep_the_rules():
    assert [str(f) for f in lint(load_models().values())] == []
