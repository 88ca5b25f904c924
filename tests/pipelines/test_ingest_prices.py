"""`strandline ingest prices`: exit codes, and what is said of what landed and what did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines import cli
from warehouse.lake import Lake

SOUND = """provider: nimbus
billing_account_id: nb-1
currency: USD
as_of: 2026-01-01
prices:
  - {instance_type: x, billing_model: on_demand, list_unit_price: 10}
"""
BAD = SOUND + "  - {instance_type: y, billing_model: on_demand, list_unit_price: '1,000'}\n"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Runs the command on files of these texts; returns exit code, stdout and stderr."""

    def run(*words: str, **files: str) -> tuple[int, str, str]:
        paths = []
        for name, text in files.items():
            path = tmp_path / name.replace("_", ".")
            path.write_text(text, "utf-8")
            paths.append(str(path))
        with pytest.raises(SystemExit) as exited:
            cli.main(["ingest", "prices", *paths, *words, "--data", str(tmp_path / "lake")])
        said = capsys.readouterr()
        return int(exited.value.code or 0), said.out, said.err

    return run


def test_sound_cards_end_with_0_and_twice_change_nothing(run, tmp_path: Path) -> None:
    code, out, err = run(card_yaml=SOUND)
    assert (code, out) == (0, "")
    assert "raw.prices: 1 row landed, 1 new or changed" in err
    assert "strandline build" in err
    version = Lake(tmp_path / "lake").version("raw.prices")
    code, out, err = run(card_yaml=SOUND)
    assert (code, out, err) == (0, "", "raw.prices: 1 row landed, 0 new or changed\n")
    assert Lake(tmp_path / "lake").version("raw.prices") == version


def test_bad_rows_end_with_2_and_say_how_many_landed(run, tmp_path: Path) -> None:
    code, _, err = run(card_yaml=BAD)
    assert code == 2
    assert "1 row landed, 1 refused" in err
    assert f"{tmp_path / 'card.yaml'}:7: list_unit_price: '1,000' is no decimal number" in err
    assert "Traceback" not in err
    assert Lake(tmp_path / "lake").read("raw.prices").num_rows == 1


@pytest.mark.parametrize(
    ("words", "files", "says"),
    [
        ((), {"card_yaml": "- a list\n"}, "card.yaml:1: a list is no card"),
        ((), {"card_csv": "a,b\n1,2\n"}, "card.csv:1: the header tells no kind of card"),
        (("nowhere.yaml",), {}, "nowhere.yaml: No such file or directory"),
        (("--kind", "cards"), {"card_csv": "a,b\n1,2\n"}, "--kind cards: none of prices"),
        (("--kind", "credits"), {"card_csv": "a,b\n1,2\n"}, "card.csv:1: a: credits has no such column"),
        (("--kind", "credits"), {"card_yaml": SOUND}, "--kind is for CSV files"),
        ((), {}, "Missing argument"),
    ],
)
def test_what_is_no_card_ends_with_2_and_makes_no_lake(
    run, words: tuple[str, ...], files: dict[str, str], says: str, tmp_path: Path
) -> None:
    code, out, err = run(*words, **files)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err
    assert not (tmp_path / "lake").exists()


def test_a_broken_file_beside_a_sound_one(run, tmp_path: Path) -> None:
    code, _, err = run(card_yaml=SOUND, other_yaml="prices: [")
    assert code == 2
    assert "other.yaml" in err
    assert Lake(tmp_path / "lake").read("raw.prices").num_rows == 1


def test_many_refusals_are_cut(run) -> None:
    rows = [f"  - {{instance_type: i{n}, billing_model: on_demand, list_unit_price: -1}}\n" for n in range(80)]
    code, _, err = run(card_yaml=SOUND + "".join(rows))
    assert code == 2
    assert err.count("must not be negative") == 50
    assert "... and 30 more" in err
    assert "1 row landed, 80 refused" in err
