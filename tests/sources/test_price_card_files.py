"""Files of rate cards: what is no card at all, how CSV and YAML are told apart and read, and damage to either."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from card_files import LINE, PRICE, SOUND_CSV, document, read
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sources.prices import read_cards
from warehouse.errors import BadInput


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("card.yaml", "", ": is empty"),
        ("card.yaml", "\n \n", ": is empty"),
        ("card.yaml", "# nothing but a comment\n", ": is empty"),
        ("card.yaml", "- a\n- b\n", ":1: a list is no card"),
        ("card.yaml", "just text\n", ":1: a single value is no card"),
        ("card.yaml", "provider: x\nprices: []\n", ": holds no rows"),
        ("card.yaml", "provider: x\nprice:\n  - a: 1\n", ":2: price: no such section or default; did you mean prices?"),
        ("card.yaml", "prices: 5\n", ":1: prices: a single value, where a list of rows is expected"),
        ("card.yaml", "prices:\n  a: 1\n", ":1: prices: a mapping, where a list of rows is expected"),
        ("card.yaml", "provider: [x]\nprices: []\n", ":1: provider: a list, where a single value is expected"),
        ("card.yaml", "provider: x\nprovider: y\nprices: []\n", ":2: provider: stands twice"),
        ("card.yaml", "prices:\n  - a: [1\n", ":3: not YAML"),
        ("card.yaml", "a: 1\n\tb: 2\n", ":2: not YAML"),
        ("card.yaml", "provider: &p x\nprices: []\n", ":1: anchors and aliases are not read"),
        ("card.yaml", "provider: !!python/name:os.system x\n", ":1: tag"),
        ("card.yaml", "provider: x\n---\nprovider: y\n", ":2: a second document"),
        ("card.yaml", "prices:\n - " + "[" * 20 + "]" * 20, ":2: nested deeper than any card"),
        ("card.yaml", "prices:\n - " + "[" * 200_000, ":2: n"),
        ("card.yaml", "provider: x\nprices: \x07\n", ":2: not YAML"),
        ("card.yaml", b"provider: caf\xe9\n", ":1: byte 0xe9 is not UTF-8"),
        ("card.yaml", codecs.BOM_UTF16_LE + "provider: x".encode("utf-16-le"), ":1: is UTF-16 text"),
        ("card.yaml", b"provider: x\nprices: \0\n", ":2: a null character"),
        ("card.yaml", b"[1]: x\n", ":1: a name is expected"),
        ("card.csv", "", ": is empty"),
        ("card.csv", SOUND_CSV, ": holds no rows below its header"),
        ("card.csv", "a,b\n1,2\n", ":1: the header tells no kind of card"),
        ("card.csv", SOUND_CSV.replace(",", ";") + LINE, "separated by commas"),
        ("card.csv", SOUND_CSV.strip() + ",credit_id\n", ":1: the header tells no kind of card"),
        ("card.csv", SOUND_CSV.strip() + ",colour\n" + LINE, ":1: colour: prices has no such column"),
        ("card.csv", SOUND_CSV.strip() + ",regoin\n" + LINE, ":1: regoin: prices has no such column; did you mean re"),
        ("card.csv", SOUND_CSV.strip() + ",\n" + LINE, ":1: a column without a name"),
        ("card.csv", SOUND_CSV.strip() + ",currency\n" + LINE, ":1: currency: stands twice in the header"),
        ("card.csv", SOUND_CSV.replace("currency,", "").replace(",as_of", ""), ":1: currency, as_of: missing"),
        ("card.csv", SOUND_CSV + '"nimbus"x,nb-1\n', ":2: not CSV"),
        ("card.csv", SOUND_CSV + LINE + 'nimbus,"nb-1\n', ":3: not CSV"),
        ("card.csv", codecs.BOM_UTF16_BE + SOUND_CSV.encode("utf-16-be"), ":1: is UTF-16 text"),
        ("card.json", "{}", ": neither .yaml nor .csv"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_card_brings_nothing(name: str, text: str | bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        read(tmp_path, text, name)
    assert str(error.value).startswith(str(tmp_path / name))
    assert words in str(error.value)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name in ("nowhere.yaml", "folder.csv"):
        with pytest.raises(BadInput, match=name):
            read_cards(tmp_path / name)


def test_bad_lines_of_a_csv_cost_themselves(tmp_path: Path) -> None:
    lines = [
        LINE,
        "\n",
        LINE.replace("55.04", "-1").replace("h100", "a"),
        '"nimbus",nb-1,on_demand,USD,"6.68",2026-01-01,"nb.l4.4x"\n',
        "nimbus,nb-1\n",
        LINE.replace("h100", "b").strip() + ",more\n",
        LINE.replace("nb.h100.8x", "=1+1"),
        LINE.replace("nb.h100.8x", '"two\nlines"'),
        LINE.replace("h100", "c").replace("USD", ""),
    ]
    cards = read(tmp_path, codecs.BOM_UTF8 + (SOUND_CSV + "".join(lines)).encode(), "card.csv")
    assert [r["instance_type"] for r in cards.rows["prices"]] == ["nb.h100.8x", "nb.l4.4x"]
    assert [r["source_line"] for r in cards.rows["prices"]] == [2, 5]
    assert [m.removeprefix(f"{tmp_path / 'card.csv'}:").split(":")[:2] for m in cards.refused] == [
        ["4", " list_unit_price"],
        ["6", " billing_model"],
        ["7", " instance_type"],
        ["8", " instance_type"],
        ["9", " instance_type"],
        ["11", " currency"],
    ]


def test_a_csv_of_windows_and_of_crlf_reads_the_same(tmp_path: Path) -> None:
    plain = read(tmp_path, SOUND_CSV + LINE, "card.csv").rows
    assert read(tmp_path, (SOUND_CSV + LINE).replace("\n", "\r\n"), "card.csv").rows == plain


def test_kind_of_a_csv_can_be_given_and_of_a_yaml_not(tmp_path: Path) -> None:
    assert read(tmp_path, SOUND_CSV + LINE, "card.csv", "raw.prices").rows["prices"]
    with pytest.raises(BadInput, match=r"card\.csv:1: billing_model: credits has no such column"):
        read(tmp_path, SOUND_CSV + LINE, "card.csv", "credits")
    with pytest.raises(BadInput, match=r"--kind price: none of prices, commitments"):
        read(tmp_path, SOUND_CSV + LINE, "card.csv", "price")
    with pytest.raises(BadInput, match="--kind is for CSV"):
        read(tmp_path, document("prices", PRICE)[0], "card.yaml", "prices")


@pytest.fixture(scope="module")
def first_table(project_root: Path) -> None:
    """What the first table of a process loads comes before the clock that a single damaged card is held to."""
    assert read_cards(project_root / "docs" / "cost" / "cards" / "cirrus.yaml").tables


@pytest.mark.usefixtures("first_table")
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(["cirrus.yaml", "onprem.yaml", "prices.csv"]))
def test_no_damage_does_worse_than_being_refused(
    tmp_path: Path, project_root: Path, data: st.DataObject, name: str
) -> None:
    folder = project_root / "docs" / "cost" / "cards"
    text = (SOUND_CSV + LINE * 3).encode() if name.endswith(".csv") else (folder / name).read_bytes()
    cut = data.draw(st.integers(0, len(text)))
    junk = data.draw(
        st.binary(max_size=6) | st.sampled_from([b"[", b"- ", b": ", b'"', b"\n", b"\t", b"{", b"*a", b"&a "])
    )
    skipped = data.draw(st.integers(0, 40))
    try:
        cards = read(tmp_path, text[:cut] + junk + text[cut + skipped :], name)
    except BadInput as error:
        assert str(tmp_path / name) in str(error)
    else:
        assert cards.tables or cards.refused
