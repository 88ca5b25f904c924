"""Outside tools that tests need and the project does not: fetched once into `build/tools`, which git ignores.

A tool that cannot be had (no package index, no Python that it runs on) skips its tests with that reason; one that can
be had and does not install fails them. Belongs here: getting tools. Not here: what tests ask of them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "build" / "tools"
PIP = ("--disable-pip-version-check", "--quiet", "--retries", "1", "--timeout", "20")
FETCH_S, INSTALL_S = 120, 600


@contextmanager
def _alone(name: str) -> Iterator[Path]:
    """The tool's folder, held against other test workers."""
    folder = TOOLS / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def wheel(requirement: str) -> Path:
    """The wheel of `name==version` from the package index, without what it requires."""
    with _alone(requirement) as folder:
        _download(Path(sys.executable), requirement, folder)
        return next(folder.glob("*.whl"))


def environment(requirement: str, *, beside: tuple[str, ...], version: tuple[int, int]) -> Path:
    """Folder of a virtual environment of Python `version` with `requirement` and what is `beside` it installed."""
    python = _python(version)
    if python is None:
        pytest.skip(f"{requirement} needs Python {version[0]}.{version[1]}, which is not on this machine")
    with _alone(requirement) as folder:
        home, ready = folder / "venv", folder / ".ready"
        if not ready.exists():
            _download(python, requirement, folder)
            shutil.rmtree(home, ignore_errors=True)
            subprocess.run([python, "-m", "venv", home], check=True, timeout=FETCH_S, capture_output=True)
            command = [home / "bin" / "python", "-m", "pip", "install", *PIP, requirement]
            done = subprocess.run([*command, *beside], timeout=INSTALL_S, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            ready.touch()
        return home


def _download(python: Path, requirement: str, folder: Path) -> None:
    if any(folder.glob("*.whl")) or any(folder.glob("*.tar.gz")):
        return
    command = [
        python,
        "-m",
        "pip",
        "download",
        *PIP,
        "--no-deps",
        "--dest",
        folder,
        requirement,
    ]
    try:
        done = subprocess.run(command, timeout=FETCH_S, capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{requirement} cannot be fetched: the package index does not answer")
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["pip says nothing"]
        pytest.skip(f"{requirement} cannot be fetched: {said[-1]}")


def _python(version: tuple[int, int]) -> Path | None:
    """A Python of exactly that version: this one, on the path, or among pyenv's."""
    name = f"python{version[0]}.{version[1]}"
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [sys.executable, shutil.which(name), *sorted(root.glob(f"{version[0]}.{version[1]}*/bin/{name}"))]
    for candidate in filter(None, candidates):
        # a shim on the path may stand for a version that is not chosen
        done = subprocess.run(
            [candidate, "-c", f"import sys, venv; sys.exit(sys.version_info[:2] != {version})"],
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return Path(candidate)
    return None
