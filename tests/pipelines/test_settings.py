"""Settings: layers, origins, and what a wrong value says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.durations import format_duration, parse_date, parse_duration, parse_instant
from pipelines.settings import load, mask, unknown_variables
from warehouse.errors import BadInput


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("5m", 300), ("1h", 3600), ("250ms", 0.25), ("2d", 172800), ("90", 90), (15, 15)]
)
def test_durations_are_read(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("seconds", [0.25, 1, 60, 90, 3600, 7200, 86400])
def test_durations_are_written_so_that_they_read_back(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5s", "5 parsecs", "1h30"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="no duration"):
        parse_duration(text)


def test_instants_end_as_naive_utc() -> None:
    want = "2026-01-31 12:00:00"
    for text in ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00", "2026-01-31T17:30:00+05:30", "1769860800"):
        assert str(parse_instant(text)) == want
    with pytest.raises(BadInput, match="--at"):
        parse_instant("yesterday", "--at")
    with pytest.raises(BadInput, match="--from"):
        parse_date("2026-02-30", "--from")


def test_flags_beat_environment_beats_file(tmp_path: Path) -> None:
    (tmp_path / "strandline.toml").write_text('staleness = "3m"\nthreads = 1\nmemory_limit = "1GB"\n')
    environ = {"STRANDLINE_THREADS": "2", "STRANDLINE_MEMORY_LIMIT": "2GB"}
    resolved = load({"memory_limit": "3GB", "data": None}, environ, tmp_path)
    assert (resolved.settings.staleness, resolved.settings.threads, resolved.settings.memory_limit) == (180, 2, "3GB")
    assert resolved.origins["staleness"].startswith("file ")
    assert resolved.origins["threads"] == "environment STRANDLINE_THREADS"
    assert resolved.origins["memory_limit"] == "flag --memory-limit"
    assert "data" not in resolved.origins


def test_yaml_is_read_too_and_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("team_chain: [pod_label:squad, mapping]\nteam_map: {web: apps, eu/batch: research}\n")
    settings = load({}, {"STRANDLINE_CONFIG": str(path)}, tmp_path).settings
    assert settings.team_rules() == [(1, "pod_label", "squad"), (2, "mapping", None)]
    assert settings.team_rows() == [("eu", "batch", "research"), ("*", "web", "apps")]


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"STRANDLINE_STALENESS": "soon"}, "environment STRANDLINE_STALENESS: staleness: 'soon' is no duration"),
        ({"STRANDLINE_STALENESS": "0s"}, "longer than zero"),
        ({"STRANDLINE_THREADS": "0"}, "STRANDLINE_THREADS"),
        ({"STRANDLINE_TEAM_CHAIN": "guess"}, "'guess' is no link"),
        ({"STRANDLINE_TEAM_MAP": "web"}, "namespace=team"),
        ({"STRANDLINE_MEMORY_LIMIT": "lots"}, "such as 4GB"),
        ({"STRANDLINE_CONFIG": "absent.toml"}, "absent.toml"),
    ],
)
def test_a_wrong_value_is_named_with_its_origin(environ: dict[str, str], says: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=says):
        load({}, environ, tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [("stalenes = 3", "unknown setting 'stalenes'"), ("staleness = ", "strandline.toml"), ("\x00", "strandline.toml")],
)
def test_a_wrong_file_is_named(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "strandline.toml").write_text(text)
    with pytest.raises(BadInput, match=says):
        load({}, {}, tmp_path)


def test_misspelt_variables_are_found() -> None:
    assert unknown_variables({"STRANDLINE_DATA": "x", "STRANDLINE_DAAT": "y", "HOME": "z"}) == ["STRANDLINE_DAAT"]


def test_secrets_are_masked() -> None:
    assert mask("http://me:secret@host:9400/metrics") == "http://me:***@host:9400/metrics"
    assert "abc" not in mask("Authorization: Bearer abc")
