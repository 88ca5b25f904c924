"""Parsing a scrape of 200 nodes: ours, text to raw tables, beside `prometheus_client.parser`, text to samples.

Both get the same text in the same run: 8 GPUs a node, 25 fields, the labels of dcgm-exporter with
Kubernetes mapping on. Ours also decides factors and builds Arrow tables (bodies are hashed when they
are collected, not here); the other side only walks its samples. Cold is the first scrape of a fresh
process, warm a later one of the same series with new values and its families in another order, as the
exporter prints them.

    python -m benchmarks.parse [--nodes 200] [--rounds 7]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta

GPUS = 8
_START = datetime(2026, 3, 2)
# Name, and how the exporter prints it: whole numbers below a bound, or six decimals below one.
FIELDS: tuple[tuple[str, float, bool], ...] = (
    ("DCGM_FI_DEV_SM_CLOCK", 1980, False), ("DCGM_FI_DEV_MEM_CLOCK", 2619, False),
    ("DCGM_FI_DEV_MEMORY_TEMP", 90, False), ("DCGM_FI_DEV_GPU_TEMP", 80, False),
    ("DCGM_FI_DEV_POWER_USAGE", 700, True), ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 9e12, False),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 3, False), ("DCGM_FI_DEV_GPU_UTIL", 100, False),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", 100, False), ("DCGM_FI_DEV_ENC_UTIL", 100, False),
    ("DCGM_FI_DEV_DEC_UTIL", 100, False), ("DCGM_FI_DEV_XID_ERRORS", 2, False),
    ("DCGM_FI_DEV_FB_FREE", 81559, False), ("DCGM_FI_DEV_FB_USED", 81559, False),
    ("DCGM_FI_DEV_FB_RESERVED", 600, False), ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 400000, False),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 2, False), ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 2, False),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", 2, False), ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1, True),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1, True), ("DCGM_FI_PROF_DRAM_ACTIVE", 1, True),
    ("DCGM_FI_PROF_SM_ACTIVE", 1, True), ("DCGM_FI_PROF_PCIE_TX_BYTES", 2e10, False),
    ("DCGM_FI_PROF_PCIE_RX_BYTES", 2e10, False),
)  # fmt: skip


def body(node: int, seed: int) -> bytes:
    """One node's text: labels depend on the node only, values and the order of families on the seed."""
    rng = random.Random(node * 1_000_003 + seed)
    labels = []
    for gpu in range(GPUS):
        uuid = f"GPU-{node:08x}-7953-256e-8f33-{gpu:012x}"
        labels.append(
            f'gpu="{gpu}",UUID="{uuid}",pci_bus_id="00000000:{gpu + 1:X}1:00.0",device="nvidia{gpu}",'
            f'modelName="NVIDIA H100 80GB HBM3",Hostname="node-{node:04d}",DCGM_FI_DRIVER_VERSION="580.105.08",'
            f'container="main",namespace="team-{node % 6}",pod="train-{node:04d}-{gpu}-x7k2p"'
        )
    lines = []
    for name, bound, decimal in rng.sample(FIELDS, len(FIELDS)):
        lines += [f"# HELP {name} Help text of about the usual length (in units).", f"# TYPE {name} gauge"]
        for label in labels:
            value = f"{rng.random() * bound:.6f}" if decimal else str(rng.randrange(int(bound)))
            lines.append(f"{name}{{{label}}} {value}")
    return ("\n".join(lines) + "\n").encode()


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _theirs(texts: list[str]) -> int:
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    return sum(1 for t in texts for family in text_string_to_metric_families(t) for _ in family.samples)


def measure(side: str, nodes: int, rounds: int) -> dict[str, float]:
    """Rows, seconds of the first and the best later round, and peak memory growth of one side, in this process."""
    scrapes = [[body(n, seed) for n in range(nodes)] for seed in range(rounds)]
    if side == "ours":
        # Loaded here so that neither side carries the memory of the other.
        import sources.dcgm.parse as ours  # noqa: PLC0415
        from sources.dcgm.scrape import Scrape  # noqa: PLC0415

        inputs: list = [
            [
                Scrape("bench", f"node-{n}", f"node-{n}", _START + timedelta(minutes=m), b, digest=_digest(b))
                for n, b in enumerate(bodies)
            ]
            for m, bodies in enumerate(scrapes)
        ]
        ours.parse_scrapes([Scrape("bench", "warm", "warm", _START, body(10**6, 0))])  # libraries load lazily
        run: Callable[[list], int] = lambda scrapes: sum(  # noqa: E731
            ours.parse_scrapes(scrapes)["raw.scrapes"]["samples"].to_pylist()
        )
    else:
        inputs = [[b.decode() for b in bodies] for bodies in scrapes]
        _theirs([body(10**6, 0).decode()])
        run = _theirs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, rows = [], 0
    for given in inputs:
        start = time.perf_counter()
        rows = run(given)
        seconds.append(time.perf_counter() - start)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"rows": rows, "cold": seconds[0], "warm": min(seconds[1:] or seconds), "grown_mb": grown / 1024}


def compare(nodes: int = 200, rounds: int = 7) -> dict[str, dict[str, float]]:
    """Both sides, each in a process of its own."""
    found = {}
    for side, count in (("prometheus_client", 3), ("ours", rounds)):
        command = [
            sys.executable,
            "-m",
            "benchmarks.parse",
            "--side",
            side,
            "--nodes",
            str(nodes),
            "--rounds",
            str(count),
        ]
        found[side] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    """Print the comparison as a table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--nodes", type=int, default=200)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--side", choices=("prometheus_client", "ours"), help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.side:
        print(json.dumps(measure(given.side, given.nodes, given.rounds)))
        return
    found = compare(given.nodes, given.rounds)
    theirs = found["prometheus_client"]
    print(f"{'parse of one scrape':<28}{'rows':>9}{'seconds':>10}{'rows/s':>12}{'ratio':>8}{'peak MB':>9}")
    shown = (("prometheus_client, warm", "prometheus_client", "warm"), ("ours, cold", "ours", "cold"))
    for label, side, state in (*shown, ("ours, warm", "ours", "warm")):
        row = found[side]
        print(
            f"{label:<28}{row['rows']:>9,.0f}{row[state]:>10.4f}{row['rows'] / row[state]:>12,.0f}"
            f"{theirs['warm'] / row[state]:>8.1f}{row['grown_mb']:>9.0f}"
        )


if __name__ == "__main__":
    main()
