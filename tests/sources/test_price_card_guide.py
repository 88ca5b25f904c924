"""The guide to rate cards and its example cards: they load, fit the fleet, and name every column."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.catalogue import ACCELERATORS
from fleet.topology import SITES
from sources.prices import KINDS, read_cards


@pytest.mark.parametrize("name", ["nimbus", "cirrus", "onprem"])
def test_the_examples_load_and_name_what_the_fleet_has(name: str, project_root: Path) -> None:
    cards = read_cards(project_root / "docs" / "cost" / "cards" / f"{name}.yaml")
    assert cards.refused == []
    (site,) = (s for s in SITES if s.provider == name)
    hosts = {host.instance_type for host, _ in site.pools}
    names = {ACCELERATORS[host.accelerator].plain_name for host, _ in site.pools}
    priced = cards.rows.get("prices", []) + cards.rows.get("owned_hardware", [])
    assert {r["provider"] for rows in cards.rows.values() for r in rows if "provider" in r} == {name}
    assert {r["instance_type"] for r in priced} - {None} <= hosts
    assert {r["accelerator"] for r in priced} - {None} <= names
    assert {r["region"] for rows in cards.rows.values() for r in rows if "region" in r} <= {site.region, "*"}
    wanted = {
        "nimbus": {"prices", "commitments", "credits", "energy_factors"},
        "cirrus": {"prices", "commitments", "exchange_rates", "energy_factors"},
        "onprem": {"owned_hardware", "energy_factors"},
    }
    assert set(cards.rows) == wanted[name]


def test_the_guide_names_every_column(project_root: Path) -> None:
    text = (project_root / "docs" / "cost" / "cards" / "README.md").read_text("utf-8")
    for kind in KINDS.values():
        (line,) = (row for row in text.splitlines() if row.startswith(f"| `{kind.name}` |"))
        for column in kind.columns:
            assert f"`{column}`" in line or column == "source", (kind.name, column)
