"""Exact money: amounts as integers of small units, rounding half up, and dealing a total by largest remainder.

Quantities and unit prices are integers of 1e-9 (NANO), costs of 1e-10 (COST), a price times a quantity of 1e-18.
Belongs here: arithmetic without a meaning of its own. Not here: what is priced, or in which currency.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

NANO = 10**9
COST = 10**10
# a price (1e-9) times a quantity (1e-9), in units of a cost (1e-10)
PRODUCT_PER_COST = 10**8


def half_up(numerator: int, denominator: int) -> int:
    """`numerator / denominator` rounded to an integer, halves away from zero; `denominator` > 0."""
    if numerator < 0:
        return -half_up(-numerator, denominator)
    return (2 * numerator + denominator) // (2 * denominator)


def units(value: Decimal | int | Fraction | None, scale: int) -> int:
    """`value` in units of 1/scale, rounded half up; null is nothing."""
    if value is None:
        return 0
    numerator, denominator = value.as_integer_ratio()
    return half_up(numerator * scale, denominator)


def cost_of(price: int, quantity: int) -> int:
    """Cost in 1e-10 of a quantity (1e-9) at a unit price (1e-9), rounded half up."""
    return half_up(price * quantity, PRODUCT_PER_COST)


def deal(total: int, weights: Sequence[int]) -> list[int]:
    """`total` >= 0 dealt in proportion to `weights` >= 0: floors, then one unit each to the largest remainders.

    Equal remainders are served in the order of `weights`. The parts add up to `total` exactly. Without any weight
    the last part takes all.
    """
    whole = sum(weights)
    if not whole:
        return [0] * (len(weights) - 1) + [total]
    parts, rest = [], []
    for weight in weights:
        part, remainder = divmod(total * weight, whole)
        parts.append(part)
        rest.append(remainder)
    missing = total - sum(parts)
    if missing:
        for i in sorted(range(len(weights)), key=lambda i: -rest[i])[:missing]:
            parts[i] += 1
    return parts
