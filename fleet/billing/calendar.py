"""Dates of the price book relative to the demo's window: months, terms, years.

Belongs here: arithmetic of dates alone. Not here: prices, and what is charged when.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Window:
    """The time `[start_at, end_at)` in which a fleet is looked at."""

    start_at: datetime
    end_at: datetime


def first_of_month(at: datetime, months: int = 0) -> datetime:
    """Midnight of the first day of the month `months` after (or, negative, before) the one that `at` lies in."""
    count = at.year * 12 + at.month - 1 + months
    return datetime(count // 12, count % 12 + 1, 1)


def months_of(window: Window) -> Iterator[tuple[datetime, datetime]]:
    """Start and end of every calendar month that the window touches."""
    month = first_of_month(window.start_at)
    while month < window.end_at:
        following = first_of_month(month, 1)
        yield month, following
        month = following


def hours_of(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The clock hours of `[start, end)`, the first and the last cut to it."""
    at = start
    while at < end:
        following = min(end, at.replace(minute=0, second=0, microsecond=0) + HOUR)
        yield at, following
        at = following


def hour_of(at: datetime) -> datetime:
    """The clock hour that an instant lies in."""
    return at.replace(minute=0, second=0, microsecond=0)


def midnight_from(at: datetime) -> datetime:
    """The first midnight that is not before `at`."""
    day = datetime(at.year, at.month, at.day)
    return day if day == at else day + DAY


def whole_hours(start: datetime, end: datetime) -> int:
    """Hours of a term; both ends lie on the hour."""
    return (end - start) // HOUR


def days_of(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The days of `[start, end)`, the first and the last cut to it."""
    at = start
    while at < end:
        following = min(end, datetime(at.year, at.month, at.day) + DAY)
        yield at, following
        at = following
