"""Random fleets, rate cards and commitments for tests of charges, small enough for the slow oracle."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from small_card import HOUR, Row, commitment, price, run

# two dates over the end of a month
FIRST, DAYS = date(2026, 1, 31), 2
BEGIN = datetime(2026, 1, 31)
PROVIDERS = ("aws", "gcp")
REGIONS = ("r1", "r2")
TYPES = {"big": ("H100", 8), "small": ("L4", 3), "cpu": (None, 0)}
CURRENCIES = ("USD", "EUR")


def decimals(low: str, high: str, places: int) -> st.SearchStrategy[Decimal]:
    return st.decimals(Decimal(low), Decimal(high), places=places, allow_nan=False, allow_infinity=False)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> list[Row]:
    """Hours of one node: a life of minutes to a day, some of it before or after the window."""
    kind = draw(st.sampled_from(sorted(TYPES)))
    begin = BEGIN + timedelta(microseconds=draw(st.integers(-2 * 3_600_000_000, 46 * 3_600_000_000)))
    lasts = draw(st.one_of(st.integers(1, 7200 * 10**6), st.integers(1, 30).map(lambda h: h * 3_600_000_000)))
    hours = run(
        name, begin, begin + timedelta(microseconds=lasts), is_open=draw(st.booleans()), instance_type=kind,
        accelerator=TYPES[kind][0], gpu_count=TYPES[kind][1], provider=draw(st.sampled_from(PROVIDERS)),
        region=draw(st.sampled_from(REGIONS)), cpu_milli=draw(st.sampled_from((1500, 192_000))),
        memory_bytes=draw(st.sampled_from((2**30, 1_234_567_890_123))),
        capacity_type=draw(st.sampled_from(("on-demand", "on-demand", "reserved", "spot"))),
    )  # fmt: skip
    return [r for r in hours if BEGIN <= r["hour"] < BEGIN + timedelta(days=DAYS)]


@st.composite
def prices(draw: st.DrawFn, number: int) -> Row:
    """One price: any model, unit, metering, validity."""
    by_type = draw(st.booleans())
    kind = draw(st.sampled_from(sorted(TYPES)))
    model = draw(st.sampled_from(("on_demand", "on_demand", "spot", "committed")))
    since = draw(st.sampled_from((None, BEGIN + 5 * HOUR, BEGIN + timedelta(hours=20, minutes=30))))
    return price(
        0, provider=draw(st.sampled_from(PROVIDERS)), sku_id=f"sku{number % 3}", sku_price_id=f"price{number:02}",
        region=draw(st.sampled_from(("*", *REGIONS))), instance_type=kind if by_type else None,
        accelerator=TYPES[kind][0], billing_model=model,
        commitment_type=draw(st.sampled_from(("plan", "plan", "other"))) if model == "committed" else None,
        pricing_unit=draw(st.sampled_from(("Hours", "Hours", "GPU-Hours", "vCPU-Hours", "GiB-Hours"))),
        currency=draw(st.sampled_from(CURRENCIES)), list_unit_price=draw(decimals("0", "60", 9)),
        contracted_unit_price=draw(st.one_of(st.none(), decimals("0.01", "55", 6))),
        metering_s=draw(st.sampled_from((60, 900, 3600, 7200))), minimum_s=draw(st.sampled_from((0, 60, 600, 5400))),
        rounding=draw(st.sampled_from(("up", "nearest", "none"))), valid_from_at=since or datetime(2020, 1, 1),
        valid_to_at=draw(st.sampled_from((None, None, BEGIN + 30 * HOUR))),
        as_of=draw(st.sampled_from((date(2026, 1, 1), date(2026, 1, 15)))),
        billing_account_id=draw(st.sampled_from((None, None, "acct"))),
    )  # fmt: skip


@st.composite
def commitments(draw: st.DrawFn, number: int) -> Row:
    """One commitment with a term inside the window."""
    start = draw(st.integers(0, 40))
    starts = BEGIN + start * HOUR + timedelta(minutes=draw(st.sampled_from((0, 0, 30))))
    ends = starts + draw(st.integers(1, 47 - start)) * HOUR
    category = draw(st.sampled_from(("Usage", "Usage", "Spend")))
    currency = draw(st.sampled_from(CURRENCIES))
    upfront, recurring = draw(decimals("0", "5000", 9)), draw(decimals("0", "100", 9))
    model = draw(st.sampled_from(("No Upfront", "Partial Upfront", "All Upfront")))
    types = draw(st.lists(st.sampled_from(sorted(TYPES)), unique=True, max_size=2))
    return commitment(
        commitment_id=f"c{number}", commitment_name=f"commitment {number}", provider=draw(st.sampled_from(PROVIDERS)),
        commitment_category=category, commitment_type="plan", precedence=draw(st.integers(1, 2)),
        region=draw(st.sampled_from((None, "*", *REGIONS))), eligible_instance_types=",".join(types) or None,
        committed_quantity=draw(decimals("0.1", "30", 3)) if category == "Usage" else None,
        committed_spend=draw(decimals("0.1", "90", 4)) if category == "Spend" else None,
        commitment_unit=draw(st.sampled_from(("Hours", "GPU-Hours", "vCPU-Hours"))) if category == "Usage"
        else currency,
        currency=currency, payment_model=model, upfront_cost=Decimal(0) if model == "No Upfront" else upfront,
        recurring_cost=Decimal(0) if model == "All Upfront" else recurring,
        payment_interval=draw(st.sampled_from(("Hourly", "Monthly"))), starts_at=starts, ends_at=ends,
        is_capacity_reservation=draw(st.booleans()), billing_account_id=draw(st.sampled_from((None, None, "acct"))),
    )  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """Input tables of the engine. A node that is there all the time makes every hour of the window known."""
    anchor = run("anchor", BEGIN, BEGIN + timedelta(days=DAYS), is_open=True, instance_type="big", region="r1")
    count = draw(st.integers(0, 5))
    owned = {
        "provider": "gcp", "region": "r2", "instance_type": "small",
        "capex": Decimal(90_000),
        "residual": Decimal(7000), "years": Decimal("3.5"), "opex_per_year": draw(decimals("0", "9000", 2)),
        "power_kw": Decimal("1.7"),
        "pue": Decimal("1.25"), "tariff_per_kwh": Decimal("0.1234"), "currency": draw(st.sampled_from(CURRENCIES)),
        "valid_from_at": None, "as_of": date(2026, 1, 1),
    }  # fmt: skip
    credit = {
        "provider": "aws", "credit_id": "goodwill", "amount": draw(decimals("0.01", "500", 2)), "currency": "EUR",
        "charge_period_start_at": BEGIN + timedelta(hours=3, minutes=10),
    }  # fmt: skip
    dated = [(date(2026, 1, 1), "1.08"), (date(2026, 2, 1), "1.1234567")][: draw(st.integers(0, 2))]
    is_inverse = draw(st.booleans())
    rates = [
        {"from_currency": "USD" if is_inverse else "EUR", "to_currency": "EUR" if is_inverse else "USD",
         "rate_date": day, "exchange_rate": Decimal(rate)}
        for day, rate in dated
    ]  # fmt: skip
    return {
        "core.node_hours": anchor + [r for i in range(count) for r in draw(nodes(f"n{i}"))],
        "raw.prices": [draw(prices(i)) for i in range(draw(st.integers(2, 12)))],
        "raw.commitments": [draw(commitments(i)) for i in range(draw(st.integers(0, 4)))],
        "raw.credits": [credit] if draw(st.booleans()) else [],
        "raw.owned_hardware": [owned] if draw(st.booleans()) else [],
        "raw.exchange_rates": rates,
        "raw.settings": [{"setting": "currency", "value": draw(st.sampled_from(("USD", "USD", "EUR")))}],
    }
