"""Usage commitments: so many node-hours or GPU-hours an hour, whatever they would have cost.

A commitment in Hours covers node-hours, one in GPU-Hours the hours of accelerators; both cover usage priced in either
unit by the node's number of accelerators. vCPU-Hours and GiB-Hours cover usage priced so. Of a node charged by
components, the commitment covers the component of its own kind.
Belongs here: scope and taking by quantity. Not here: money.
"""

from __future__ import annotations

from collections.abc import Iterable

from analytics.charges.pieces import Hour, Taken, Usage
from analytics.charges.records import Commitment

_NODES = ("Hours", "GPU-Hours")


def in_scope(commitment: Commitment, usage: Usage) -> bool:
    """Whether provider, region, instance type and account fit; spot and owned nodes never do."""
    kind, price = usage.kind, usage.price
    return (
        price.billing_model not in ("spot", "owned")
        and not kind.is_spot
        and kind.provider == commitment.provider
        and commitment.region in (None, kind.region)
        and (not commitment.types or kind.instance_type in commitment.types)
        and (commitment.account is None or price.billing_account_id in (None, commitment.account))
    )


def ratio(commitment: Commitment, usage: Usage) -> tuple[int, int] | None:
    """Committed units for one priced unit, as (numerator, denominator); None: the commitment does not cover it."""
    unit, priced = commitment.unit, usage.price.pricing_unit
    if not in_scope(commitment, usage):
        return None
    if unit in _NODES and priced in _NODES:
        gpus = usage.gpu_count
        if unit == priced:
            # GPU-Hours of a node without accelerators are none
            return (1, 1) if unit == "Hours" or gpus else None
        if not gpus:
            return None
        return (gpus, 1) if unit == "GPU-Hours" else (1, gpus)
    return (1, 1) if unit == priced else None


def cover(commitment: Commitment, hour: Hour, ratios: dict[int, tuple[int, int] | None]) -> Taken:
    """Take of the hour's rows, in order of resource, up to the committed quantity.

    `ratios`: class of usage to `ratio`. Nodes labelled as reserved capacity go first with a capacity reservation.
    Committed units are rounded up, so no more is covered than was committed; the last row takes what is left.
    """
    taken, left = Taken(), commitment.quantity
    places: Iterable[int] = range(len(hour.rows))
    if commitment.is_capacity_reservation:
        places = sorted(places, key=lambda i: not hour.rows[i].is_reserved)
    for i in places:
        found = ratios[hour.rows[i].usage]
        quantity = hour.left[i]
        if found is None or not quantity:
            continue
        numerator, denominator = found
        used = -(-quantity * numerator // denominator)
        if used > left:
            quantity, used = left * denominator // numerator, left
            if not quantity:
                continue
        hour.take(i, quantity)
        taken.add(i, quantity, used)
        left -= used
        if not left:
            break
    return taken
