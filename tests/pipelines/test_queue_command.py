"""`strandline queue …` as a command against a service on a socket: answers, refusals, exit codes, no token shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exporters import queue as exporter
from exporters.server import serving
from pipelines import cli
from scheduler.model import MILLI, Node, Queue
from scheduler.placement.bestfit import place
from scheduler.policy import POLICIES
from scheduler.service.api import build_api
from scheduler.service.auth import Tokens
from scheduler.service.core import QueueService
from scheduler.service.log import EventLog
from scheduler.service.worlds import FakeWorld

TOKEN = "command-test-token-0"


class Command:
    """The command with a service behind it."""

    def __init__(self, url: str, queue: QueueService, capsys: pytest.CaptureFixture[str]) -> None:
        self.url, self.queue, self._capsys = url, queue, capsys

    def __call__(self, *words: object, token: str = TOKEN) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            cli.main(["queue", str(words[0]), "--url", self.url, "--token", token, *map(str, words[1:])])
        captured = self._capsys.readouterr()
        assert token not in captured.out + captured.err
        return int(stop.value.code or 0), captured.out, captured.err

    def json(self, *words: object) -> Any:
        code, out, err = self(words[0], "--format", "json", *words[1:])
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    fleet = FakeWorld((Node("n0", "H100", 8),))
    queue = QueueService(
        EventLog(tmp_path / "events.db"), fleet, POLICIES["strandline"], {"a": Queue("a")}, placer=place
    )
    with serving(build_api(queue, Tokens([(TOKEN, "a", "team")]), exporter.render)) as url:
        yield Command(url, queue, capsys)
    queue.log.close()


def test_submit_list_status_what_if_cancel(command: Command) -> None:
    first = command.json(
        "submit", "one", "--gpus", 4, "--pods", 2, "--limit", "2h", "--run-for", "10m", "--", "run", "-x"
    )
    second = command.json("submit", "two", "--gpus", 8, "--limit", "3h")
    assert (first["gpus"], first["state"]) == (8, "pending")
    command.queue.tick()
    entry = command.queue.records.entries[first["job_id"]]
    assert entry.template.command == ("run", "-x")
    assert entry.job.roles[0].shape.gpu_milli == 4 * MILLI
    assert [j["state"] for j in command.json("list")] == ["running", "pending"]
    assert [j["name"] for j in command.json("list", "--state", "pending")] == ["two"]
    assert command.json("status", second["job_id"])["position"] == 1
    assert command.json("what-if", second["job_id"], "--gpus", 16)["reason"] == "impossible"
    code, out, err = command("status", second["job_id"])
    assert (code, "two" in out, "no time of its start" in err) == (0, True, True)
    assert command("what-if", second["job_id"])[0] == 0
    assert command.json("cancel", second["job_id"])["state"] == "cancelled"


def test_the_same_key_is_the_same_job(command: Command) -> None:
    ids = {command.json("submit", "one", "--key", "k")["job_id"] for _ in range(2)}
    assert len(ids) == 1


def test_refusals_name_the_field_and_exit_with_2(command: Command) -> None:
    code, out, err = command("submit", "bad name")
    assert (code, out) == (2, "")
    assert "body.name" in err
    assert command("status", "nothing")[0] == 2
    assert command("list", token="not-the-token-000000")[0] == 2
    assert "Traceback" not in err


def test_a_job_that_can_never_start_is_exit_1(command: Command) -> None:
    command.queue.tick()
    code, out, err = command("submit", "huge", "--gpus", 16)
    assert (code, "huge" in out, "can never start" in err) == (1, True, True)


def test_nobody_there_is_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["queue", "submit", "x", "--url", "http://127.0.0.1:9", "--token", TOKEN])
    assert stop.value.code == 1
    assert "no queue service answers" in capsys.readouterr().err


def test_serve_and_clients_say_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STRANDLINE_QUEUE_TOKEN", raising=False)
    for words, wanted in (
        (["serve", "--data", tmp_path], "kubeconfig: no such file"),
        (["serve", "--data", tmp_path, "--every", "1ms"], "--every"),
        (["list", "--data", tmp_path], "STRANDLINE_QUEUE_TOKEN"),
    ):
        with pytest.raises(SystemExit) as stop:
            cli.main(["queue", *map(str, words)])
        assert stop.value.code == 2
        assert wanted in capsys.readouterr().err


def test_a_token_or_address_that_cannot_be_one_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    for url, token in (("http://127.0.0.1:9", "secret\nsecret"), ("", TOKEN), ("ftp://x", TOKEN), ("http://[", TOKEN)):
        with pytest.raises(SystemExit) as stop:
            cli.main(["queue", "list", "--url", url, "--token", token])
        told = capsys.readouterr().err
        assert stop.value.code == 2
        assert "secret" not in told and TOKEN not in told
        assert ("token" in told) if url.endswith(":9") else ("--url" in told)
