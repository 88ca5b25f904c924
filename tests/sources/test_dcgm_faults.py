"""Every kind of fault a scrape body is known to have, as the smallest body that shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from sources.dcgm import Scrape, parse_scrapes

AT = datetime(2026, 3, 2, 10)
AT_MS = 1772445600000
G = 'gpu="0",UUID="GPU-aa"'
U, T, X = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_XID_ERRORS"
S, R, E = "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
F = "DCGM_FI_DEV_FB_USED"


@dataclass
class Case:
    """A body, the rows expected (only the columns named), and what must be counted."""

    name: str
    body: str
    rows: list[dict[str, Any]]
    samples: int | None = None
    rejected: list[str] = field(default_factory=list)
    duplicates: int = 0


CASES = [
    Case("plain", f"{U}{{{G}}} 50\n", [{"gpu_uuid": "GPU-aa", "gpu_util_ratio": 0.5, "copy": 0, "gpu_index": 0}], 1),
    Case("no newline at the end", f"{U}{{{G}}} 50", [{"gpu_util_ratio": 0.5}], 1),
    Case("CRLF", f"# TYPE {U} gauge\r\n{U}{{{G}}} 50\r\n{T}{{{G}}} 40\r\n",
         [{"gpu_util_ratio": 0.5, "gpu_temp_c": 40.0}], 2),
    Case("byte order mark", f"\ufeff{U}{{{G}}} 50\n", [{"gpu_util_ratio": 0.5}], 1),
    Case("blanks around", f"  {U}{{{G}}}   50  \n\n \n", [{"gpu_util_ratio": 0.5}], 1),
    Case("tab before the value", f"{U}{{{G}}}\t50\n", [{"gpu_util_ratio": 0.5}], 1),
    Case("trailing comma in the labels", f"{U}{{{G},}} 50\n", [{"gpu_util_ratio": 0.5}], 1),
    Case("exponent", f"{U}{{{G}}} 5e1\n{E}{{{G}}} 1.5E+06\n", [{"gpu_util_ratio": 0.5, "energy_j": 1500.0}], 2),
    Case("second TYPE line (DE#125)", f"# TYPE {U} gauge\n# TYPE {U} counter\n# nonsense\n{U}{{{G}}} 50\n",
         [{"gpu_util_ratio": 0.5}], 1),
    Case("text as value (DE#488)", f"V{{{G}}} ERROR - FAILED TO CONVERT TO STRING\n{U}{{{G}}} 50\n",
         [{"gpu_util_ratio": 0.5}], 1, ["value is not a number: ERROR - FAILED TO CONVERT TO STRING"]),
    Case("NaN", f"{U}{{{G}}} NaN\n{T}{{{G}}} 40\n", [{"gpu_util_ratio": None, "gpu_temp_c": 40.0}], 1,
         ["value is NaN"]),
    Case("infinity", f"{U}{{{G}}} +Inf\n", [], 0, ["value is +Inf"]),
    Case("too large", f"{U}{{{G}}} 1e999\n", [], 0, ["value is too large: 1e999"]),
    Case("no value", f"{U}{{{G}}}\n{U}{{{G}}} \n", [], 0, ["no value", "no value"]),
    Case("number with a text behind", f"{U}{{{G}}} 50 W\n", [], 0, ["unexpected text behind the value: W"]),
    Case("digits with an underscore", f"{U}{{{G}}} 1_0\n", [], 0, ["value is not a number: 1_0"]),
    Case("hexadecimal", f"{U}{{{G}}} 0x10\n", [], 0, ["value is not a number: 0x10"]),
    Case("unescaped quote (gitlab#221)", f'{U}{{{G},pod="a"b"}} 1\n{T}{{{G}}} 40\n', [{"gpu_temp_c": 40.0}], 1,
         ["malformed labels (an unescaped quote or backslash?)"]),
    Case("unescaped backslash", f'{U}{{{G},pod="a\\b"}} 1\n', [], 0,
         ["malformed labels (an unescaped quote or backslash?)"]),
    Case("newline in a label", f'{U}{{{G},pod="a\nb"}} 1\n{T}{{{G}}} 40\n', [{"gpu_temp_c": 40.0}], 1,
         ["malformed labels (an unescaped quote or backslash?)", "malformed metric name"]),
    Case("escaped quote and backslash are fine", f'{U}{{{G},pod="a\\"b\\\\c"}} 50\n', [{"hint_pod": 'a"b\\c'}], 1),
    Case("brace and hash in a label", f'{U}{{{G},pod="a}} # b{{"}} 50\n', [{"hint_pod": "a} # b{"}], 1),
    Case("label twice", f"{U}{{{G},{G}}} 1\n", [], 0, ["label gpu twice"]),
    Case("no closing brace", f"{U}{{{G} 1\n", [], 0, ["malformed labels (an unescaped quote or backslash?)"]),
    Case("no name", f"{{{G}}} 1\n", [], 0, ["no metric name"]),
    Case("empty labels (DE#58)", f'{U}{{{G},container="",namespace="",pod="",pod_uid="",vgpu=""}} 44\n',
         [{"hint_pod": None, "hint_namespace": None, "hint_container": None, "hint_pod_uid": None, "vgpu": None,
           "copy": 0}], 1),
    Case("exported labels win (DE#85)",
         f'{U}{{{G},pod="dcgm-x",namespace="ops",exported_pod="p",exported_namespace="ml"}} 7\n',
         [{"hint_pod": "p", "hint_namespace": "ml"}], 1),
    Case("exported labels win though empty", f'{U}{{{G},pod="dcgm-x",namespace="ops",exported_pod=""}} 7\n',
         [{"hint_pod": None, "hint_namespace": None}], 1),
    Case("the exporter's own pod", f'{U}{{{G},pod="nvidia-dcgm-exporter-x7",namespace="ml",container="e"}} 7\n',
         [{"hint_pod": None, "hint_namespace": None, "hint_container": None}], 1),
    Case("the exporter's own namespace", f'{U}{{{G},pod="x",namespace="gpu-operator"}} 7\n', [{"hint_pod": None}], 1),
    Case("old namespace", 'dcgm_gpu_utilization{gpu="0",uuid="GPU-aa",pod_name="p",pod_namespace="n",'
         'container_name="c"} 50\n',
         [{"gpu_uuid": "GPU-aa", "hint_pod": "p", "hint_namespace": "n", "hint_container": "c",
           "gpu_util_ratio": 0.5}], 1),
    Case("shared GPU (DE#201)", f'{U}{{{G},pod="a",vgpu="0"}} 90\n{U}{{{G},pod="b",vgpu="1"}} 90\n',
         [{"copy": 0, "hint_pod": "a", "vgpu": "0"}, {"copy": 1, "hint_pod": "b", "vgpu": "1"}], 2),
    Case("device row beside the pods' (DE#594)", f'{U}{{{G},pod="a",vgpu="0"}} 30\n{U}{{{G}}} 90\n',
         [{"copy": 1, "hint_pod": "a", "gpu_util_ratio": 0.3}, {"copy": 0, "hint_pod": None, "gpu_util_ratio": 0.9}],
         2),
    Case("MIG parent and instance", f'{R}{{{G}}} 0.5\n{R}{{{G},GPU_I_PROFILE="1g.5gb",GPU_I_ID="7"}} 0.25\n',
         [{"gi_id": None, "mig_profile": None, "gr_engine_ratio": 0.5, "copy": 0},
          {"gi_id": 7, "mig_profile": "1g.5gb", "gr_engine_ratio": 0.25, "copy": 0}], 2),
    Case("field missing on one instance (DE#380)",
         f'{F}{{{G},GPU_I_ID="7"}} 100\n{R}{{{G},GPU_I_ID="7"}} 1\n{R}{{{G},GPU_I_ID="8"}} 1\n',
         [{"gi_id": 7, "fb_used_bytes": 104857600.0}, {"gi_id": 8, "fb_used_bytes": None}], 3),
    Case("instance id that is no number", f'{R}{{{G},GPU_I_ID="x"}} 1\n', [], 0, ["GPU_I_ID 'x' is not a number"]),
    Case("ratio above 1 stays in raw (DCGM#152)", f'{S}{{{G},GPU_I_ID="2"}} 1.03\n', [{"sm_active_ratio": 1.03}], 1),
    Case("utilisation of thousands stays in raw (DCGM#199)", f"{U}{{{G}}} 127000\n", [{"gpu_util_ratio": 1270.0}], 1),
    Case("sentinel stays in raw (GMT#152)", f"{T}{{{G}}} 9223372036854775794\n",
         [{"gpu_temp_c": 9223372036854775808.0}], 1),
    Case("XID row twice (DE#304)", f'{X}{{{G},err_code="31",err_msg="GPU memory page fault"}} 31\n' * 2,
         [{"xid_last": 31.0, "copy": 0}], 1, duplicates=1),
    Case("series twice, other value (PROM#14089)", f"{U}{{{G}}} 1\n{U}{{{G}}} 2\n", [{"gpu_util_ratio": 0.01}], 1,
         duplicates=1),
    Case("series twice, labels in another order", f'{U}{{{G}}} 1\n{U}{{UUID="GPU-aa",gpu="0"}} 2\n',
         [{"gpu_util_ratio": 0.01}], 1, duplicates=1),
    Case("labels of single lines make no rows", f'{X}{{{G},err_code="0",err_msg=""}} 0\n{U}{{{G}}} 5\n',
         [{"xid_last": 0.0, "gpu_util_ratio": 0.05}], 2),
    Case("attributes from any line of a row", f'{U}{{{G}}} 5\n{T}{{{G},modelName="NVIDIA L4"}} 40\n',
         [{"model": "NVIDIA L4"}], 2),
    Case("NVLink, switch and CPU rows have no GPU",
         'A{gpu_uuid="GPU-aa",nvlink="3"} 1\nB{nvswitch="0"} 1\nC{cpu="0",cpucore="1"} 1\n'
         f'{U}{{nvswitch="1",UUID="GPU-zz"}} 1\n', [], 4),
    Case("metrics that fill no column count", f"go_goroutines 12\nDCGM_EXP_XID_ERRORS_COUNT{{{G}}} 1\n", [], 2),
    Case("relay suffixes (#58)", f"{E}_total{{{G}}} 5000\n{T}_celsius{{{G}}} 40\n{E.lower()}{{{G}}} 9\n",
         [{"energy_j": 5.0, "gpu_temp_c": 40.0}], 3),
    Case("timestamp within tolerance is used (#51)", f"{U}{{{G}}} 50 {AT_MS - 3000}\n",
         [{"sampled_at": AT - timedelta(seconds=3), "gpu_util_ratio": 0.5}], 1),
    Case("timestamp an hour old is refused", f"{U}{{{G}}} 50 {AT_MS - 3_600_000}\n{T}{{{G}}} 40\n",
         [{"sampled_at": AT, "gpu_util_ratio": None}], 1, ["timestamp 3600 s before the scrape, beyond the tolerance"]),
    Case("timestamp just ahead is the scrape's", f"{U}{{{G}}} 50 {AT_MS + 2000}\n", [{"sampled_at": AT}], 1),
    Case("OpenMetrics: seconds, exemplar, EOF", f"{U}{{{G}}} 50 {AT_MS / 1000:.3f} # {{a=\"b\"}} 1\n# EOF\n",
         [{"sampled_at": AT, "gpu_util_ratio": 0.5}], 1),
    Case("Hostname (DE#655)", f'{U}{{{G},Hostname="h1"}} 5\n', [{"node": "h1"}], 1),
    Case("hostname (DE#655)", f'{U}{{{G},hostname="h1"}} 5\n', [{"node": "h1"}], 1),
    Case("localhost (DE#78)", f'{U}{{{G},Hostname="localhost"}} 5\n', [{"node": "target-host"}], 1),
    Case("Hostname of the exporter's pod (DE#78)", f'{U}{{{G},Hostname="dcgm-exporter-x7k2p"}} 5\n',
         [{"node": "target-host"}], 1),
    Case("HPC jobs", f'{U}{{{G},hpc_job="1"}} 5\n{U}{{{G},hpc_job="2"}} 5\n', [{"copy": 0}, {"copy": 1}], 2),
    Case("first name of the table wins in a cell",
         f"DCGM_FI_DEV_BOARD_POWER_WATTS{{{G}}} 5\nDCGM_FI_DEV_POWER_USAGE{{{G}}} 6\n",
         [{"power_w": 6.0}], 2),
    Case("empty body (DE reload)", "", [], 0),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_fault(case: Case) -> None:
    tables = parse_scrapes([Scrape("c", "target-host:9400", None, AT, case.body.encode())])
    rows = tables["raw.dcgm_samples"].to_pylist()
    assert [{k: row[k] for k in want} for row, want in zip(rows, case.rows, strict=True)] == case.rows
    (scrape,) = tables["raw.scrapes"].to_pylist()
    assert scrape["is_up"]
    assert [r["reason"] for r in tables["raw.rejected_lines"].to_pylist()] == case.rejected
    assert scrape["rejected_lines"] == len(case.rejected)
    assert scrape["duplicate_lines"] == case.duplicates
    assert case.samples is None or scrape["samples"] == case.samples


def test_bytes_that_are_no_text_cost_one_line() -> None:
    body = b'A{pod="\xff"} 1\n' + f"{U}{{{G}}} 50\n".encode()
    tables = parse_scrapes([Scrape("c", "t", "n", AT, body)])
    assert tables["raw.dcgm_samples"]["gpu_util_ratio"].to_pylist() == [0.5]
    assert [(r["line_number"], r["reason"]) for r in tables["raw.rejected_lines"].to_pylist()] == [(1, "not UTF-8")]


def test_node_of_the_scrape_wins() -> None:
    tables = parse_scrapes([Scrape("c", "t", "n", AT, f'{U}{{{G},Hostname="h1"}} 5\n'.encode())])
    assert tables["raw.dcgm_samples"]["node"].to_pylist() == ["n"]


def test_failed_attempt_is_a_row_of_its_own() -> None:
    tables = parse_scrapes([Scrape("c", "t", "n", AT, None, 500, 0.1, "HTTP 500")])
    (row,) = tables["raw.scrapes"].to_pylist()
    assert (row["is_up"], row["http_status"], row["samples"], row["body_bytes"]) == (False, 500, 0, None)
    assert tables["raw.dcgm_samples"].num_rows == 0


def test_garbage_is_counted_whole_and_kept_in_part() -> None:
    tables = parse_scrapes([Scrape("c", "t", "n", AT, b"?\n" * 5000)])
    assert tables["raw.scrapes"]["rejected_lines"].to_pylist() == [5000]
    assert tables["raw.rejected_lines"].num_rows == 1000
