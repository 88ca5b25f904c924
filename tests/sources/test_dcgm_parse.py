"""Parsing as a whole: real captures, prometheus_client as the oracle, verdicts, which attempt counts."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from sources.dcgm import Scrape, parse_scrapes
from sources.dcgm import parse as parse_module
from sources.dcgm.aliases import ALIASES, resolve
from sources.dcgm.lines import read_lines
from warehouse.contracts import CONTRACTS
from warehouse.contracts.raw import DCGM_METRICS
from warehouse.errors import BadInput

AT = datetime(2026, 3, 2, 10)
RATIO = "DCGM_FI_DEV_GPU_UTIL_RATIO"


@pytest.mark.parametrize(
    ("name", "samples", "rows"),
    [("l4_one_gpu", 23, 1), ("a100_mig_parent_and_instance", 21, 2), ("t4_pod_and_empty_labels", 6, 2)],
)
def test_captures(shared_dir: Path, name: str, samples: int, rows: int) -> None:
    body = (shared_dir / "scrapes" / f"{name}.prom").read_bytes()
    tables = parse_scrapes([Scrape("c", name, None, AT, body)])
    (scrape,) = tables["raw.scrapes"].to_pylist()
    assert (scrape["samples"], scrape["rejected_lines"], scrape["duplicate_lines"]) == (samples, 0, 0)
    assert tables["raw.dcgm_samples"].num_rows == rows
    assert set(tables["raw.dcgm_samples"]["node"].to_pylist()) == {"node-a"}


def test_mig_parent_and_instance_are_told_apart(shared_dir: Path) -> None:
    body = (shared_dir / "scrapes" / "a100_mig_parent_and_instance.prom").read_bytes()
    parent, instance = parse_scrapes([Scrape("c", "a", None, AT, body)])["raw.dcgm_samples"].to_pylist()
    assert (parent["gi_id"], parent["power_w"], parent["energy_j"]) == (None, 409.692, 319159.391)
    assert (instance["gi_id"], instance["mig_profile"], instance["power_w"]) == (13, "1g.5gb", None)


def test_every_alias_fills_a_column_of_the_contract() -> None:
    assert {a.column for a in ALIASES.values()} <= set(DCGM_METRICS.split())
    relayed = resolve("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_millijoules_total")
    assert relayed is not None
    assert (relayed.column, relayed.factor) == ("energy_j", 0.001)
    assert resolve("DCGM_FI_DEV_FB_USED_PERCENT") is None


# -- the oracle ---------------------------------------------------------------------------------------------

_label_text = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=12)
_name = st.sampled_from(sorted(ALIASES)) | st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,10}", fullmatch=True)
# Names that begin with two underscores are Prometheus' own; the client refuses them.
_label_names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True).filter(lambda n: not n.startswith("__"))
_labels = st.dictionaries(_label_names, _label_text, max_size=4)
_value = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.integers(-(10**18), 10**18).map(str)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(_name, _labels, _value), max_size=12), st.sampled_from(["\n", "\n\n", "\n# note\n"]))
def test_clean_bodies_read_as_prometheus_client_reads_them(
    series: list[tuple[str, dict[str, str], str]], gap: str
) -> None:
    lines = []
    for name, labels, value in series:
        block = ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items())
        lines.append(f"{name}{{{block}}} {value}" if labels else f"{name} {value}")
    text = gap.join(lines) + "\n"
    theirs = sorted(
        (s.name, tuple(sorted(s.labels.items())), float(s.value))
        for family in text_string_to_metric_families(text)
        for s in family.samples
    )
    read = read_lines([text.encode()])
    ours = sorted(
        (read.names[n], read.labels[b].series, v)
        for n, b, v in zip(read.name.tolist(), read.block.tolist(), read.value.tolist(), strict=True)
    )
    assert not read.rejected
    assert ours == theirs


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=6))
def test_no_bytes_raise(bodies: list[bytes]) -> None:
    scrapes = [Scrape("c", f"t{i}", None, AT, body) for i, body in enumerate(bodies)]
    tables = parse_scrapes(scrapes)
    assert tables["raw.scrapes"].num_rows == len(bodies)
    for name, table in tables.items():
        assert table.schema == CONTRACTS[name].arrow_schema


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damage_costs_at_most_the_damaged_line(data: st.DataObject) -> None:
    lines = [f'DCGM_FI_DEV_GPU_TEMP{{gpu="{g}",UUID="GPU-{g}"}} {40 + g}'.encode() for g in range(5)]
    hit = data.draw(st.integers(0, 4))
    place = data.draw(st.integers(0, len(lines[hit]) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != 10))
    damaged = [*lines]
    damaged[hit] = lines[hit][:place] + bytes([byte]) + lines[hit][place + 1 :]
    rows = parse_scrapes([Scrape("c", "t", "n", AT, b"\n".join(damaged))])["raw.dcgm_samples"].to_pylist()
    found = {r["gpu_uuid"]: r["gpu_temp_c"] for r in rows}
    for g in range(5):
        if g != hit and found.get(f"GPU-{g}") != 40 + g:
            # Only a damaged UUID can touch another GPU: its line then claims that GPU, and the first one counts.
            assert place >= lines[hit].index(b"UUID") and hit < g


# -- percent or ratio ------------------------------------------------------------------------------------------


def _ratio_scrape(minute: int, *values: str, target: str = "t") -> Scrape:
    body = "".join(f'{RATIO}{{gpu="{i}",UUID="GPU-{i}"}} {v}\n' for i, v in enumerate(values))
    return Scrape("c", target, "n", AT + timedelta(minutes=minute), body.encode())


@pytest.mark.parametrize(
    ("values", "overrides", "factor", "verdict", "first"),
    [
        (["0", "1"], {}, 0.01, "format", 0.0),
        (["0.000000", "0.500000"], {}, 1.0, "format", 0.0),
        (["0.500000", "63.000000"], {}, 0.01, "range", 0.005),
        (["0.5", "9223372036854775794"], {}, 1.0, "format", 0.5),
        (["50", "60"], {"t": "ratio"}, 1.0, "override", 50.0),
        (["0.5"], {"*": "percent"}, 0.01, "override", 0.005),
    ],
)
def test_one_name_for_percent_and_ratio(
    values: list[str], overrides: dict[str, str], factor: float, verdict: str, first: float
) -> None:
    tables = parse_scrapes([_ratio_scrape(0, *values)], overrides)
    (row,) = tables["raw.field_maps"].to_pylist()
    assert (row["source_name"], row["factor"], row["verdict"]) == (RATIO, factor, verdict)
    assert tables["raw.dcgm_samples"]["gpu_util_ratio"].to_pylist()[0] == first


def test_the_verdict_is_of_the_whole_hour_of_the_target() -> None:
    scrapes = [_ratio_scrape(0, "0.500000"), _ratio_scrape(1, "70.000000"), _ratio_scrape(2, "0.5", target="other")]
    tables = parse_scrapes(scrapes)
    assert tables["raw.dcgm_samples"]["gpu_util_ratio"].to_pylist() == [0.005, 0.7000000000000001, 0.5]


def test_a_bad_override_is_refused() -> None:
    with pytest.raises(BadInput, match="target t: 'permille'"):
        parse_scrapes([], {"t": "permille"})


def test_the_table_factor_is_recorded() -> None:
    body = b'DCGM_FI_DEV_FB_USED{UUID="GPU-a"} 2\nDCGM_FI_DEV_SM_CLOCK_HERTZ{UUID="GPU-a"} 5\n'
    maps = parse_scrapes([Scrape("c", "t", "n", AT, body)])["raw.field_maps"].to_pylist()
    assert [(m["column_name"], m["factor"], m["verdict"]) for m in maps] == [
        ("fb_used_bytes", 1048576.0, "table"),
        ("sm_clock_hz", 1.0, "table"),
    ]


# -- which attempt counts ------------------------------------------------------------------------------------------


def _temp(value: int, pad: str = "", at: datetime = AT, **more: object) -> Scrape:
    return Scrape("c", "t", "n", at, f'DCGM_FI_DEV_GPU_TEMP{{UUID="GPU-a"}} {value}\n{pad}'.encode(), **more)  # type: ignore[arg-type]


def test_the_longer_body_counts_whatever_came_first() -> None:
    for scrapes in ([_temp(40), _temp(41, "# longer\n")], [_temp(41, "# longer\n"), _temp(40)]):
        tables = parse_scrapes(scrapes)
        assert tables["raw.dcgm_samples"]["gpu_temp_c"].to_pylist() == [41.0]
        assert tables["raw.scrapes"].num_rows == 1


def test_a_success_beats_a_failure_and_equal_lengths_the_smaller_hash() -> None:
    failed = Scrape("c", "t", "n", AT, None, error="refused")
    a, b = _temp(40), _temp(41)
    best = min((a, b), key=lambda s: s.sha256 or "")
    tables = parse_scrapes([failed, a, b])
    assert tables["raw.scrapes"]["body_sha256"].to_pylist() == [best.sha256]
    assert tables["raw.scrapes"]["is_up"].to_pylist() == [True]


def test_order_and_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    scrapes = [_temp(40 + m % 7, at=AT + timedelta(minutes=m)) for m in range(90)]
    scrapes += [_ratio_scrape(m, "0.5", "1") for m in range(5)] + [_temp(99, "#\n", AT + timedelta(minutes=3))]
    expected = parse_scrapes(scrapes)
    random.Random(1).shuffle(scrapes)
    monkeypatch.setattr(parse_module, "_CHUNK_BYTES", 200)
    found = parse_scrapes(scrapes + scrapes[:20])
    for name in expected:
        assert found[name].equals(expected[name]), name


def test_two_scrapes_that_repeat_a_stamped_sample_give_it_once() -> None:
    stamp = 1772445600000 - 20_000
    body = f'DCGM_FI_DEV_GPU_TEMP{{UUID="GPU-a"}} 40 {stamp}\n'.encode()
    scrapes = [Scrape("c", "t", "n", AT + timedelta(seconds=s), body) for s in (0, 15)]
    rows = parse_scrapes(scrapes)["raw.dcgm_samples"].to_pylist()
    assert [r["sampled_at"] for r in rows] == [AT - timedelta(seconds=20)]
