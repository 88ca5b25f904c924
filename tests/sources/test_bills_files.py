"""Quirks and damage of whole files: separators, quotes, encodings, headers, packing; and what is no bill at all."""

from __future__ import annotations

import csv
import gzip
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from bill_files import SOUND, csv_text, read, row, write_csv
from hypothesis import given, settings
from hypothesis import strategies as st

from sources.bills import delimited
from warehouse.errors import BadInput

TEXT = csv_text([row(), row(ResourceId="i-2"), row(ResourceId="i-3")])
LINES = TEXT.splitlines()


def _body(*lines: str) -> bytes:
    return "\n".join([LINES[0], *lines, ""]).encode()


HEADERS = {
    "spaces": lambda n: "".join(f" {c}" if c.isupper() and i and n[i - 1].islower() else c for i, c in enumerate(n)),
    "snake": lambda n: "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(n)),
    "capitals": str.upper,
}

# id, bytes of a file of three sound rows
SOUND_FILES = {
    "plain": TEXT.encode(),
    "bom": b"\xef\xbb\xbf" + TEXT.encode(),
    "windows-line-ends": TEXT.replace("\n", "\r\n").encode(),
    "no-end-of-last-line": TEXT.rstrip("\n").encode(),
    "blank-lines": _body("", LINES[1], "", LINES[2], "   ", LINES[3], "," * (len(SOUND) - 1)),
    "blank-lines-first": b"\n\n" + TEXT.encode(),
    "semicolons": csv_text([row(), row(ResourceId="i-2"), row(ResourceId="i-3")], ";").encode(),
    "tabs": csv_text([row(), row(ResourceId="i-2"), row(ResourceId="i-3")], "\t").encode(),
    "gzip": gzip.compress(TEXT.encode()),
    "a-line-break-in-quotes": csv_text([row(ChargeDescription="two\nlines, and \"quotes\""), row(), row()]).encode(),
    "backslash-escapes": TEXT.replace('""', '\\"').encode(),
    "an-inch-mark": TEXT.replace("p5 hours", 'p5 8" hours').encode(),
    "a-carriage-return-in-quotes": TEXT.replace("p5 hours", '"p5\rhours"').encode(),
    "a-carriage-return-without-quotes": TEXT.replace("p5 hours", "\rp5 \r hours").encode(),
    "a-carriage-return-beside-a-line-break": TEXT.replace("p5 hours", "\rp5").replace(
        ",Instances,", ',"a\n=1,b",').encode(),
    "carriage-returns-in-windows-lines": TEXT.replace("p5 hours", '"p5\r\nor\rp5"').replace(
        "kept\n", "kept\r\n").encode(),
    "not-ascii": TEXT.replace("p5 hours", "p5 Stunden für Größe").encode(),
    "empty-columns-at-the-end": "\n".join(line + ",," for line in LINES).encode(),
    **{f"headers-{k}": "\n".join([",".join(map(f, LINES[0].split(","))), *LINES[1:]]).encode()
       for k, f in HEADERS.items()},
}  # fmt: skip

# id, bytes of a file with a sound line on each side of the damage, the line refused, words of the reason
DAMAGED_FILES = {
    "truncated-line": (_body(LINES[1], LINES[2][:80], LINES[3]), 3, "cells where the header has"),
    "file-cut-off": (_body(LINES[1], LINES[2], LINES[3][:60]), 4, "cells where the header has"),
    "too-many-cells": (_body(LINES[1], LINES[2] + ",more", LINES[3]), 3, f"{len(SOUND) + 1} cells"),
    "quote-never-closed": (_body(LINES[1], LINES[2].replace("p5", '"p5'), LINES[3]), 3, "never closed"),
    "quote-that-swallows-a-line": (
        _body(LINES[1], LINES[2].replace(",i-2,", ',i-2",').replace(",kept", ',"kept'), LINES[3]), 3, "a quote stands"),
    "quote-opened-twice": (_body(LINES[1], LINES[2].replace(",p5 hours,", ',a"b,"c,'), LINES[3]), 3, "cells"),
    "invalid-utf-8": (_body(LINES[1], "@@", LINES[3]).replace(b"@@", LINES[2].replace("p5", "@").encode().replace(
        b"@", b"\xff\xfe")), 3, "not UTF-8"),
    "nul-byte": (_body(LINES[1], LINES[2].replace("p5", "p\x005"), LINES[3]), 3, "NUL"),
}  # fmt: skip

NO_BILLS = {
    "empty": (b"", "is empty"),
    "blank": (b"\n \n", "is empty"),
    "zip": (b"PK\x03\x04rest", "zip archive"),
    "utf-16": (TEXT.encode("utf-16"), "UTF-16"),
    "git-lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "LFS pointer"),
    "json": (b'[{"BilledCost": 1}]', "no CSV"),
    "gzip-cut-off": (gzip.compress(TEXT.encode())[:-20], "damaged gzip"),
    "parquet-cut-off": (b"PAR1" + b"\0" * 40, "no readable Parquet"),
    "another-table": (b"a,b\n1,2\n", "columns missing: BillingAccountId, BillingCurrency"),
    "no-cost": (csv_text([row(BilledCost=None, EffectiveCost=None)]).encode(), "BilledCost or EffectiveCost"),
    "a-column-twice": (TEXT.replace("x_Note", "billed_cost").encode(), "are the same"),
    "carriage-returns-only": (TEXT.replace("\n", "\r").replace('"', "").encode(), "carriage return alone"),
    "a-huge-column-twice": (TEXT.replace("x_Note", "x" * 999 + ",X" + "x" * 998).encode(), "x… and X"),
    "header-not-utf-8": (b"\xffBilledCost,a\n1,2\n", "not UTF-8"),
}


@pytest.mark.parametrize("body", SOUND_FILES.values(), ids=SOUND_FILES)
def test_all_rows_of_a_sound_file_land(body: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bill"
    path.write_bytes(body)
    rows, rejected, report = read(path)
    assert (len(rows), rejected, report.refused) == (3, [], 0)
    assert {(r["billed_cost"], r["bill_id"], r["provider"]) for r in rows} == {
        (Decimal("6.12"), rows[0]["bill_id"], "nimbus")
    }
    assert all(r["tags"] == [("team", "vision")] for r in rows)


@pytest.mark.parametrize(("body", "line", "reason"), DAMAGED_FILES.values(), ids=DAMAGED_FILES)
def test_a_damaged_line_costs_only_itself(body: bytes, line: int, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "bill.csv"
    path.write_bytes(body)
    rows, rejected, report = read(path)
    assert [(r["source_line"], r["field"]) for r in rejected] == [(line, "line")]
    assert reason in rejected[0]["reason"]
    assert [r["source_line"] for r in rows] == [n for n in (2, 3, 4) if n != line]
    assert report.refused == 1


@pytest.mark.parametrize(("body", "reason"), NO_BILLS.values(), ids=NO_BILLS)
def test_what_is_no_bill_is_refused_whole(body: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "bill"
    path.write_bytes(body)
    with pytest.raises(BadInput, match=reason) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(BadInput, match=str(path)):
            read_whole(path)


def read_whole(path: Path) -> None:
    from sources.bills import spool

    spool(path, path.parent)


def test_a_header_alone_is_a_bill_without_lines(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_text(LINES[0])
    rows, rejected, report = read(path)
    assert (rows, rejected, report.is_empty) == ([], [], True)


def test_a_header_cut_anywhere_is_bad_input_or_has_no_line(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    needed = LINES[0].index(",ChargeClass")  # ChargeCategory before it is the last mandatory column
    for length in range(1, len(LINES[0])):
        path.write_text(LINES[0][:length])
        if length < needed:
            with pytest.raises(BadInput, match="columns missing"):
                read(path)
        else:
            assert read(path)[2].is_empty


def test_a_carriage_return_stays_in_its_cell(tmp_path: Path) -> None:
    lines = [row(ChargeDescription="a\rb", SkuId="\r=1"), row(ResourceId="i-2", ChargeDescription="c")]
    path = tmp_path / "b.csv"
    path.write_bytes(csv_text(lines).encode())
    rows, rejected, _ = read(path)
    assert rejected == []
    assert [(r["source_line"], r["charge_description"], r["sku_id"]) for r in rows] == [
        (2, "a\rb", "=1"), (3, "c", "SKU1"),
    ]  # fmt: skip


def test_line_numbers_hold_over_blocks_and_records_of_several_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 700)
    given = []
    for i in range(60):
        text = "one\ntwo\n" if i % 7 == 0 else "one"
        given.append(row(ResourceId=f"i-{i}", ChargeDescription=text, BilledCost="x" if i % 11 == 0 else str(i)))
    path = write_csv(tmp_path / "b.csv", *given)
    with path.open(newline="") as f:
        reader = csv.reader(f)
        next(reader)
        starts, before = [], reader.line_num
        for _ in reader:
            starts.append(before + 1)
            before = reader.line_num
    rows, rejected, _ = read(path)
    landed = {r["source_line"]: r["resource_id"] for r in rows}
    assert landed == {starts[i]: f"i-{i}" for i in range(60) if i % 11}
    assert [r["source_line"] for r in rejected] == [starts[i] for i in range(60) if i % 11 == 0]


VERSIONS = {
    "0.5": {"ServiceProviderName": None, "ProviderName": "Nimbus", "EffectiveCost": None, "AmortizedCost": "6.12",
            "InvoiceIssuerName": None, "InvoiceIssuer": "Nimbus", "RegionId": None, "Region": "north-1"},
    "1.0": {"ServiceProviderName": None, "ProviderName": "Nimbus", "CommitmentDiscountQuantity": None},
    "1.1": {"ServiceProviderName": None, "ProviderName": "Nimbus"},
    "1.2": {"ServiceProviderName": None, "ProviderName": "Nimbus", "InvoiceId": "inv-1", "PricingCurrency": "USD"},
    "1.3": {"ProviderName": "Nimbus", "HostProviderName": "Nimbus"},
    "1.4": {"HostProviderName": "Nimbus", "InvoiceDetailId": "d-1"},
}  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_columns_of_every_version(version: str, tmp_path: Path) -> None:
    rows, rejected, _ = read(write_csv(tmp_path / "b.csv", row(**VERSIONS[version])))
    assert rejected == []
    assert rows[0]["focus_version"] == version
    assert (rows[0]["provider"], rows[0]["service_provider"]) == ("nimbus", "Nimbus")
    assert (rows[0]["invoice_issuer"], rows[0]["region"], rows[0]["effective_cost"]) == (
        "Nimbus", "north-1", Decimal("6.12"),
    )  # fmt: skip


JUNK = (b'"', b",", b"\n", b"\r", b"\xff", b"\x00", b"{", b"-", b"9" * 30, b"NULL", b"\\", b" ", b";", b"")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(JUNK), st.integers(0, 40)), min_size=1, max_size=3))
def test_no_damage_is_more_than_bad_input(damage: list[tuple[int, bytes, int]]) -> None:
    given_rows = [row(ResourceId=f"i-{i}", ChargeDescription='"a"\nb' if i % 3 else "c") for i in range(6)]
    body = bytearray(csv_text(given_rows).encode())
    for at, junk, length in damage:
        body[at % len(body) : at % len(body) + length] = junk
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b.csv"
        path.write_bytes(body)
        try:
            rows, rejected, report = read(path)
        except BadInput as e:
            assert str(path) in str(e)
            return
    assert report.rows == len(rows) and report.refused == len({r["source_line"] for r in rejected})
    assert not {r["source_line"] for r in rows} & {r["source_line"] for r in rejected}
    assert all(r["reason"] and r["field"] for r in rejected)
