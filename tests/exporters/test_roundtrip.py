"""Exporter text read by the product's own parser gives the rows it was made from, to the last bit."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from exporters.dcgm import bodies
from fleet.exported import EXPORTED
from sources.dcgm import Scrape, parse_scrapes
from warehouse.contracts import CONTRACTS

AT = datetime(2026, 6, 1, 3, 17, 42, 123456)
SCHEMA = CONTRACTS["raw.dcgm_samples"].arrow_schema
KEYS = [(name, "ascending") for name in ("cluster", "sampled_at", "target", "gpu_uuid", "gi_id", "copy")]


def read_back(rows: pa.Table) -> pa.Table:
    """Rows of one instant rendered, then parsed."""
    node = dict(zip(rows.column("target").to_pylist(), rows.column("node").to_pylist(), strict=True))
    at = rows.column("sampled_at")[0].as_py()
    scrapes = [Scrape(c, t, node[t], at, body, 200, 0.01) for (c, t), body in bodies(rows).items()]
    return parse_scrapes(scrapes)["raw.dcgm_samples"].sort_by(KEYS)


def assert_equal(left: pa.Table, right: pa.Table) -> None:
    """Names the first column that differs."""
    assert left.num_rows == right.num_rows
    for name in SCHEMA.names:
        assert left.column(name).to_pylist() == right.column(name).to_pylist(), name


def random_rows(seed: int) -> pa.Table:
    """Rows of two nodes with whole GPUs and MIG instances, some fields blank, some sentinels."""
    rng = np.random.default_rng(seed)
    sentinels = {"int": float(9223372036854775794), "float": 140737488355330.0}
    rows = []
    for target in ("a:9400", "b:9400"):
        for index in range(6):
            row: dict[str, object] = {
                "cluster": "c", "target": target, "node": target[0], "sampled_at": AT, "copy": 0,
                "hour": AT.replace(minute=0, second=0, microsecond=0), "date": AT.date(),
                "gpu_uuid": f"GPU-{target[0]}-{index // 3}", "gpu_index": index // 3, "device": f"nvidia{index // 3}",
                "pci_bus_id": f"00000000:0{index // 3}:00.0", "model": "NVIDIA A100-SXM4-40GB", "driver": "580.1",
                "gi_id": index if index >= 3 else (None if index == 0 else index + 20),
                "mig_profile": None if index == 0 else "1g.5gb",
            }  # fmt: skip
            if index % 2:
                row |= {"hint_namespace": "ns", "hint_pod": f"pod-{index}", "hint_container": "main"}
            for field in EXPORTED:
                high = 100 if field.factor == 0.01 else 10_000_000
                if field.column.endswith("_ratio") and field.format == "float":
                    high = 1
                number = float(rng.integers(0, high + 1))
                if field.format == "float":
                    number = float(f"{rng.random() * high:.6f}")
                kind = rng.random()
                if kind < 0.1:
                    continue
                row[field.column] = (sentinels[field.format] if kind < 0.15 else number) * field.factor
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=SCHEMA).sort_by(KEYS)


@pytest.mark.parametrize("seed", range(5))
def test_random_rows_survive_the_text(seed: int) -> None:
    rows = random_rows(seed)
    assert_equal(read_back(rows), rows)
