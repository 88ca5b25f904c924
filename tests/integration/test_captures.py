"""Real captures through the command: each is read whole, and a MIG parent is counted once beside its instance."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from simulated_lakes import once, succeed

pytestmark = pytest.mark.integration

# File, node it is said to be from, samples in it.
CAPTURES = (
    ("l4_one_gpu.prom", "l4", 23),
    ("a100_mig_parent_and_instance.prom", "a100", 21),
    ("t4_pod_and_empty_labels.prom", "t4", 6),
)
INSTANTS = ("2026-03-02T10:00:00Z", "2026-03-02T10:01:00Z")
BETWEEN_S = 60


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, shared_dir: Path) -> Path:
    """The captures taken in file by file, then a minute later as a manifest, and built."""
    return once(tmp_path_factory, "captures", lambda root: take_in(shared_dir / "scrapes", root)) / "data"


def take_in(scrapes: Path, root: Path) -> None:
    root.mkdir()
    for name, node, _ in CAPTURES:
        succeed("ingest", "dcgm", scrapes / name, "--node", node, "--at", INSTANTS[0], "--data", root / "data")
        shutil.copyfile(scrapes / name, root / name)  # files of a manifest stand beside it
    lines = [{"kind": "dcgm", "file": name, "node": node, "at": INSTANTS[1]} for name, node, _ in CAPTURES]
    (root / "later.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    succeed("ingest", "manifest", root / "later.jsonl", "--data", root / "data")
    succeed("build", "--from", "2026-03-02", "--to", "2026-03-03", "--data", root / "data")


def ask(lake: Path, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(succeed("query", sql, "--format", "json", "--data", lake))
    return rows


def test_every_sample_is_read(lake: Path) -> None:
    rows = ask(lake, "select node, samples, rejected_lines, duplicate_lines from raw.scrapes order by node, scrape_at")
    want = [
        {"node": node, "samples": n, "rejected_lines": 0, "duplicate_lines": 0}
        for _, node, n in sorted(CAPTURES, key=lambda c: c[1])
        for _ in INSTANTS
    ]
    assert rows == want


def test_a_mig_parent_is_counted_once(lake: Path) -> None:
    """Between the two scrapes each card is one card: the parent's row and its instance's are not two."""
    cards = ask(
        lake,
        "select node, count(distinct pci_bus_id) as slots, sum(capacity_gpu_seconds)::double as seconds "
        "from mart.gpu_ledger_hourly group by node order by node",
    )
    assert cards == [
        {"node": "a100", "slots": 1, "seconds": BETWEEN_S},
        {"node": "l4", "slots": 1, "seconds": BETWEEN_S},
        {"node": "t4", "slots": 2, "seconds": 2 * BETWEEN_S},
    ]
    units = ask(
        lake,
        "select gi_id, mig_profile, sum(capacity_gpu_seconds)::double as seconds from mart.gpu_ledger_hourly "
        "where node = 'a100' group by gi_id, mig_profile order by gi_id nulls last",
    )
    assert [(u["gi_id"], u["mig_profile"]) for u in units] == [(13, "1g.5gb"), (None, None)]
    # Parent and instance both are in raw, so there was something to count twice.
    assert ask(lake, "select count(*) as n from raw.dcgm_samples where node = 'a100'") == [{"n": 2 * len(INSTANTS)}]
    assert units[0]["seconds"] == pytest.approx(BETWEEN_S / 7, abs=2e-6)
    assert units[0]["seconds"] + units[1]["seconds"] == pytest.approx(BETWEEN_S, abs=1e-9)


def test_activity_nobody_holds_is_rogue(lake: Path) -> None:
    """No list says who holds the cards, so what they did is nobody's, and the MIG card's is its instance's alone."""
    rows = ask(
        lake,
        "select node, sum(allocated_gpu_seconds)::double as allocated, sum(rogue_gpu_seconds)::double as rogue "
        "from mart.gpu_ledger_hourly where node = 'a100' group by node",
    )
    assert rows[0]["allocated"] == 0
    assert 0 < rows[0]["rogue"] <= BETWEEN_S / 7 + 1e-6
