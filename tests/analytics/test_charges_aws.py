"""Published worked examples of AWS Savings Plans; each test names its page."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from small_card import HOUR, START, Row, charges, columns, commitment, dec, only, pick, plan, price, run, total


# AWS Savings Plans user guide, "Understanding how Savings Plans apply to your usage"
# (docs.aws.amazon.com/savingsplans/latest/userguide/sp-applying.html): first edition's table of rates.
def aws_hour(*plans: Row) -> list[Row]:
    """1x c5.9xlarge, 1x c5.24xlarge Windows, 10 vCPU and 5 GB of Fargate for an hour."""
    hours = (
        run("c5.9xlarge", START, START + HOUR, instance_type="c5.9xlarge")
        + run("c5.24xlarge", START, START + HOUR, instance_type="c5.24xlarge")
        + run("fargate", START, START + HOUR, instance_type="fargate", cpu_milli=10_000, memory_bytes=5 * 2**30)
    )
    rates = {
        ("c5.9xlarge", "Hours"): (4, 2, 1), ("c5.24xlarge", "Hours"): (10, 8, 6),
        ("fargate", "vCPU-Hours"): ("1.5", 1, None), ("fargate", "GiB-Hours"): (2, 1, None),
    }  # fmt: skip
    prices = []
    for (kind, unit), (on_demand, compute, instance) in rates.items():
        sku = f"{kind}.{unit}"
        usual = {"sku_id": sku, "instance_type": kind, "pricing_unit": unit}
        prices.append(price(on_demand, sku_price_id=sku, **usual))
        for name, rate in (("Compute", compute), ("EC2 Instance", instance)):
            if rate is not None:
                committed = {"billing_model": "committed", "commitment_type": name}
                prices.append(price(rate, sku_price_id=f"{sku}.{name}", **usual, **committed))
    rows = charges({"core.node_hours": hours, "raw.prices": prices, "raw.commitments": list(plans)})
    return [r for r in rows if r["hour"] == START and r["charge_category"] == "Usage"]


def savings_plan(kind: str, hourly: str, precedence: int = 2) -> Row:
    return plan(
        commitment_id=kind, commitment_type=kind, committed_spend=dec(hourly), recurring_cost=dec(hourly),
        precedence=precedence, starts_at=START, ends_at=START + timedelta(days=365),
    )  # fmt: skip


def test_aws_compute_plan_covers_all_usage() -> None:
    """Scenario 1 of the page: 25.00 an hour covers everything (2 + 8 + 10 x 1 + 5 x 1)."""
    rows = aws_hour(savings_plan("Compute", "25"))
    assert {r["commitment_discount_status"] for r in rows} == {"Used"}
    assert total(rows, "effective_cost") == 25
    # on demand it would have been 4 + 10 + 15 + 10
    assert total(rows, "contracted_cost") == 39


@pytest.mark.parametrize(
    ("hourly", "covered"),
    [
        # 50 %: of the two, Fargate memory has the lower rate
        ("5", {"i-fargate/GiB-Hours": 5}),
        ("7", {"i-fargate/GiB-Hours": 5, "i-c5.9xlarge/Hours": 1}),
        # then 33.3 %: vCPU; then 20 %: Windows
        ("12", {"i-fargate/GiB-Hours": 5, "i-c5.9xlarge/Hours": 1, "i-fargate/vCPU-Hours": 5}),
        ("21", {"i-fargate/GiB-Hours": 5, "i-c5.9xlarge/Hours": 1, "i-fargate/vCPU-Hours": 10,
                "i-c5.24xlarge/Hours": dec("0.5")}),
    ],
)  # fmt: skip
def test_aws_highest_saving_first_then_lowest_rate(hourly: str, covered: dict[str, Decimal]) -> None:
    """The page's order, on its rates, with less money than scenario 1."""
    rows = pick(aws_hour(savings_plan("Compute", hourly)), commitment_discount_status="Used")
    assert {f"{r['resource_id']}/{r['pricing_unit']}": r["pricing_quantity"] for r in rows} == covered
    assert total(rows, "commitment_quantity") == Decimal(hourly)


def test_aws_instance_plans_go_before_compute_plans() -> None:
    """EC2 Instance Savings Plans first: 1.00 + 6.00 for both instances, so that 15.00 of Compute covers Fargate."""
    rows = aws_hour(savings_plan("EC2 Instance", "7", 1), savings_plan("Compute", "15"))
    assert {(r["commitment_id"], r["resource_id"]) for r in rows} == {
        ("EC2 Instance", "i-c5.9xlarge"), ("EC2 Instance", "i-c5.24xlarge"), ("Compute", "i-fargate"),
    }  # fmt: skip
    assert total(rows, "effective_cost") == 22


def test_aws_reserved_instances_go_before_savings_plans() -> None:
    """The page: Savings Plans apply after Reserved Instances; 2 of 4 nodes reserved, 2 hours' money for the rest."""
    hours = [r for i in range(4) for r in run(f"r{i}", START, START + HOUR)]
    tables = {
        "core.node_hours": hours,
        "raw.prices": [price(1), price("0.7", sku_price_id="c", billing_model="committed", commitment_type="plan")],
        "raw.commitments": [
            plan(commitment_id="sp", committed_spend=dec("0.7"), precedence=1, starts_at=START, ends_at=START + HOUR),
            commitment(commitment_id="ri", committed_quantity=dec(2), precedence=9),
        ],
    }
    rows = pick(charges(tables), hour=START, charge_category="Usage")
    assert [r["commitment_id"] for r in rows] == ["ri", "ri", "sp", None]


def test_aws_13_dollars_at_4_cover_three_and_a_quarter_of_four() -> None:
    """repost.aws, "How compute saving plan going to be adjusted": 13/h at a rate of 4 covers 3.25 of 4 instances;
    0.75 stay on demand at 5."""
    hours = [r for i in range(4) for r in run(f"n{i}", START, START + HOUR)]
    tables = {
        "core.node_hours": hours,
        "raw.prices": [price(5), price(4, sku_price_id="c", billing_model="committed", commitment_type="plan")],
        "raw.commitments": [
            plan(committed_spend=dec(13), recurring_cost=dec(13), starts_at=START, ends_at=START + HOUR)
        ],
    }
    rows = pick(charges(tables), charge_category="Usage")
    assert total(rows, "pricing_quantity", commitment_discount_status="Used") == dec("3.25")
    assert columns(only(rows, commitment_discount_status=None), ("pricing_quantity", "billed_cost")) == (
        dec("0.75"), dec("3.75")
    )  # fmt: skip
    assert total(rows, "effective_cost") == dec("16.75")


def test_aws_second_edition_of_the_page() -> None:
    """The page's newer table, as quoted on repost.aws ("AWS saving plans calculation example by Amazon"): r5.4xlarge
    1.00 to 0.70, Fargate vCPU 0.04 to 0.03, m5.24xlarge 10.00 to 8.20, and what each costs: 2.80, 12.00, 8.20."""
    hours = [r for i in range(4) for r in run(f"r{i}", START, START + HOUR, instance_type="r5.4xlarge")]
    hours += run("m", START, START + HOUR, instance_type="m5.24xlarge")
    hours += run("f", START, START + HOUR, instance_type="fargate", cpu_milli=400_000)
    prices = []
    for kind, unit, on_demand, rate in (
        ("r5.4xlarge", "Hours", "1", "0.7"), ("m5.24xlarge", "Hours", "10", "8.2"),
        ("fargate", "vCPU-Hours", "0.04", "0.03"),
    ):  # fmt: skip
        usual = {"sku_id": kind, "instance_type": kind, "pricing_unit": unit}
        prices.append(price(on_demand, sku_price_id=kind, **usual))
        prices.append(
            price(rate, sku_price_id=f"{kind}.c", **usual, billing_model="committed", commitment_type="Compute")
        )
    tables = {"core.node_hours": hours, "raw.prices": prices}
    everything = charges({**tables, "raw.commitments": [savings_plan("Compute", "50")]})
    used = pick(everything, commitment_discount_status="Used")
    assert total(used, "commitment_quantity") == dec("2.8") + 12 + dec("8.2")
    scarce = charges({**tables, "raw.commitments": [savings_plan("Compute", "2")]})
    assert {r["instance_type"] for r in pick(scarce, commitment_discount_status="Used")} == {"r5.4xlarge"}
    # of the highest saving, 2.00 buy 2.857 hours at 0.70
    assert total(scarce, "pricing_quantity", commitment_discount_status="Used") == dec("2.857142857")
