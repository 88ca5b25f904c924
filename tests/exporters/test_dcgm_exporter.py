"""The exporter against real captures, and its text against the rows it was made from."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from exporters.dcgm import DcgmCollector, bodies, exported_value, render, render_rows
from exporters.dcgm_fields import DEVICE_LABELS, HELP, POD_LABELS
from fleet.exported import EXPORTED
from warehouse.contracts import CONTRACTS

LINE = re.compile(r"^([A-Z_0-9]+)\{(.*)\} (\S+)$")
LABEL = re.compile(r'([A-Za-z_]+)="([^"]*)"')
CAPTURES = ("l4_one_gpu.prom", "a100_mig_parent_and_instance.prom", "t4_pod_and_empty_labels.prom")
FIELD_BY_NAME = {field.metric: field for field in EXPORTED}
COLUMN_OF_LABEL = dict(DEVICE_LABELS + POD_LABELS)
SCHEMA = CONTRACTS["raw.dcgm_samples"].arrow_schema


def samples(text: str) -> list[tuple[str, dict[str, str], str]]:
    """(metric, labels in order, number as printed) of each sample line."""
    found = [LINE.match(line) for line in text.splitlines() if line and not line.startswith("#")]
    return [(m[1], dict(LABEL.findall(m[2])), m[3]) for m in found if m]


def metadata(text: str) -> dict[tuple[str, str], str]:
    """(HELP or TYPE, metric) to what the capture says."""
    parts = [line.split(" ", 3) for line in text.splitlines() if line.startswith("# ")]
    return {(kind, name): rest for _, kind, name, rest in parts}


def as_rows(text: str) -> pa.Table:
    """Rows of raw.dcgm_samples that a capture stands for, by the exporter's own factors; empty labels stay null."""
    rows: dict[tuple[str | None, ...], dict[str, object]] = {}
    for name, labels, number in samples(text):
        row = rows.setdefault((labels["UUID"], labels.get("GPU_I_ID")), {})
        for label, value in labels.items():
            row[COLUMN_OF_LABEL[label]] = value or None
        row[FIELD_BY_NAME[name].column] = float(number) * FIELD_BY_NAME[name].factor
    at = datetime(2026, 1, 1)
    for row in rows.values():
        for column in ("gpu_index", "gi_id"):
            if row.get(column) is not None:
                row[column] = int(str(row[column]))
        row |= {"cluster": "c", "target": "t", "sampled_at": at, "copy": 0, "hour": at, "date": at.date()}
    return pa.Table.from_pylist(list(rows.values()), schema=SCHEMA)


@pytest.mark.parametrize("name", CAPTURES)
def test_every_line_of_a_capture_is_written_again(shared_dir: Path, name: str) -> None:
    text = (shared_dir / "scrapes" / name).read_text()
    empty = 'pod=""' in text
    out = render_rows(as_rows(text), empty_pod_labels=empty).decode()
    want = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert sorted(want) == sorted(line for line in out.splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("name", CAPTURES)
def test_names_types_help_labels_and_formats_agree(shared_dir: Path, name: str) -> None:
    text = (shared_dir / "scrapes" / name).read_text()
    newest = metadata((shared_dir / "scrapes" / "l4_one_gpu.prom").read_text())
    for (kind, metric), said in metadata(text).items():
        field = FIELD_BY_NAME[metric]
        # Where captures of different releases disagree about a help text, the newest release is the one followed.
        want = newest.get((kind, metric), said)
        assert (field.type if kind == "TYPE" else HELP[metric]) == want
    order = [label for label, _ in DEVICE_LABELS + POD_LABELS]
    for metric, labels, number in samples(text):
        positions = [order.index(label) for label in labels]
        assert positions == sorted(positions)
        assert ("." in number) == (FIELD_BY_NAME[metric].format == "float")
        if "." in number:
            assert len(number.split(".")[1]) == 6


def test_unit_ranges_of_captures(shared_dir: Path) -> None:
    for name in CAPTURES:
        rows = as_rows((shared_dir / "scrapes" / name).read_text()).to_pylist()
        for row in rows:
            for field in EXPORTED:
                value = row[field.column]
                if value is None:
                    continue
                if field.column.endswith("_ratio"):
                    assert 0 <= value <= 1
                if field.column.endswith("_clock_hz"):
                    assert 1e8 < value < 1e10
                if field.column.startswith("fb_"):
                    assert 0 <= value < 2**40 and value % 1048576 == 0


@pytest.mark.parametrize("field", EXPORTED, ids=lambda f: f.metric)
def test_text_reads_back_as_the_column(field) -> None:
    printed = [0, 1, 7, 33, 57, 99, 100, 1215, 35690, 319159391, 987654321987, 2147483634]
    if field.format == "float":
        printed = [0.0, 0.000001, 0.995630, 0.333333, 409.692, 1.03, 140737488355330.0]
    else:
        printed.append(9223372036854775794)
    for number in printed:
        value = float(number) * field.factor
        out = exported_value(field, value)
        text = f"{out:.6f}" if field.format == "float" else f"{out:d}"
        assert float(text) * field.factor == value
        assert "e" not in text


def test_counters_keep_their_names_and_blank_fields_are_absent() -> None:
    at = datetime(2026, 1, 1)
    row = {"cluster": "c", "target": "n:9400", "sampled_at": at, "copy": 0, "hour": at, "date": at.date(),
           "node": "n", "gpu_uuid": "GPU-1", "gpu_index": 0, "energy_j": 12.5,
           "hint_pod": "p", "hint_namespace": "ns"}  # fmt: skip
    rows = pa.Table.from_pylist([row], schema=SCHEMA)
    text = render_rows(rows).decode()
    assert text == (
        "# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Total energy consumption since boot (in mJ).\n"
        "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n"
        'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-1",Hostname="n",namespace="ns",pod="p"} 12500\n'
    )
    assert "pod=" not in render_rows(rows, pod_labels=False).decode()
    assert bodies(rows) == {("c", "n:9400"): text.encode()}
    assert render(DcgmCollector(lambda: rows.slice(0, 0)).collect()) == b""
