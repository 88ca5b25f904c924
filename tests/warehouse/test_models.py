"""Finding, ordering and selecting models; the project's own models bind and fit their contracts."""

from __future__ import annotations

from datetime import date

import pytest

from assets.computed import load_all_models
from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput
from warehouse.lake import Lake
from warehouse.models import downstream, load_models, read_model, select_models, upstream
from warehouse.runner import build


def write(directory, **models):
    for name, sql in models.items():
        layer, table = name.split("__")
        path = directory / layer / f"{table}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sql)
    return directory


def test_models_come_in_run_order_with_their_inputs(models):
    assert list(models) == ["core.stays", "mart.days", "mart.totals"]
    assert models["core.stays"].inputs == ("raw.events",)
    assert models["core.stays"].parameters == ("start_at", "end_at")
    assert models["mart.totals"].parameters == ()
    assert models["mart.days"].fields["invariant"] == "pods > 0"
    assert models["mart.days"].columns == ("date", "pods", "stay_seconds")


def test_lineage_reaches_the_tables(models):
    assert ("core.stays", "interval_start_at") in models["mart.days"].lineage["stay_seconds"]
    assert models["core.stays"].lineage["started_at"] == (("raw.events", "seen_at"),)


def test_selection(models):
    assert upstream(models, "mart.days") == {"core.stays"}
    assert downstream(models, "core.stays") == {"mart.days", "mart.totals"}
    assert list(select_models(models, [])) == list(models)
    assert list(select_models(models, ["mart.totals", "+mart.days"])) == list(models)
    with pytest.raises(BadInput, match=r"did you mean mart\.days"):
        select_models(models, ["mart.day"])


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select from where", "x.sql"),
        ("select 1 as a; select 2 as a", "exactly one select"),
        ("delete from raw.t", "exactly one select"),
        ("select a from t", "t is neither"),
        ("select a from raw.t where a > $other", "unknown parameter other"),
    ],
)
def test_a_file_that_is_no_model_is_named(tmp_path, sql, message):
    path = tmp_path / "x.sql"
    path.write_text(sql)
    with pytest.raises(BadInput, match=message) as error:
        read_model(path, "core.x")
    assert "x.sql" in str(error.value)


def test_a_circle_is_named(tmp_path):
    write(tmp_path, core__a="select x from core.b", core__b="select x from core.a")
    with pytest.raises(BadInput, match="in a circle"):
        load_models(tmp_path)


@pytest.mark.slow
def test_the_models_bind_and_fit_their_contracts(tmp_path):
    lake = Lake(tmp_path)
    report = build(lake, date(2026, 3, 1), date(2026, 3, 2), models=load_all_models())
    built = {n for n, contract in CONTRACTS.items() if contract.layer != "raw" and not contract.frozen}
    assert {m.name for m in report.models} == built
    assert report.rows == 0
