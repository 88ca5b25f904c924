"""One value of a card from its text: exact decimals, UTC times, currencies, words.

Belongs here: what a single text may be. A function returns the value or raises `BadInput` saying what is wrong with it,
without file and line, which the caller knows. Not here: what columns mean to each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from sources.prices.currencies import CURRENCIES
from sources.prices.kinds import ABOVE_ZERO, CURRENCY_COLUMNS, DIGITS, LEAST, LIST_COLUMNS, MOST, WORDS
from warehouse.contracts.model import Field
from warehouse.errors import BadInput

EARLIEST, LATEST = datetime(1970, 1, 1), datetime(2200, 1, 1)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?\.?(?:nan|inf|infinity)", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_INSTANT = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|z|[+-]\d{2}:?\d{2})?)?", re.ASCII
)
_LONGEST_TEXT, _LONGEST_NUMBER = 1000, 100
# what a spreadsheet takes for the beginning of a formula (OWASP, CSV injection)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def parse_value(field: Field, text: str) -> Any:
    """The value of a column from its text; `BadInput` says why it is none."""
    kind = field.arrow
    if pa.types.is_decimal(kind):
        fewer = kind.scale - DIGITS.get(field.name, kind.scale)
        return _bounded(field.name, parse_decimal(text, kind.precision - fewer, kind.scale - fewer))
    if pa.types.is_integer(kind):
        return int(_bounded(field.name, parse_decimal(text, 18, 0)))
    if field.name in WORDS:
        return parse_word(text, WORDS[field.name])
    return _PARSERS.get(field.name, _PARSERS.get(field.type, parse_text))(text)


def parse_decimal(text: str, precision: int, scale: int) -> Decimal:
    """An exact number that DECIMAL(precision, scale) holds without rounding; a column of scale 0 holds whole ones."""
    text = text.strip()
    if _NOT_FINITE.fullmatch(text):
        raise BadInput("is not finite")
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        marks = "; thousands marks, decimal commas and units are not read" if re.search(r"\d", text) else ""
        raise BadInput(f"is no decimal number, such as 12.34{marks}")
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    significant = int("".join(map(str, digits)))
    while significant and significant % 10 == 0:
        significant, exponent = significant // 10, exponent + 1
    if significant and exponent < -scale:
        allowed = f"{scale} digits after the point are" if scale else "whole numbers are"
        raise BadInput(f"has {-exponent} digits after the point; {allowed} kept, and nothing is rounded")
    if significant and len(str(significant)) + exponent > precision - scale:
        raise BadInput(f"is too large: the column holds {precision - scale} digits before the point")
    if not significant:
        return Decimal(0)
    if exponent > 0:  # so that it prints as people write it
        significant, exponent = significant * 10**exponent, 0
    return Decimal((sign, tuple(map(int, str(significant))), exponent))


def _bounded(column: str, number: Decimal) -> Decimal:
    if number < 0:
        raise BadInput("must not be negative")
    if column in ABOVE_ZERO and number == 0:
        raise BadInput("must be above 0")
    if number < LEAST.get(column, Decimal(0)):
        raise BadInput(f"must be {LEAST[column]} or more")
    if column in MOST and number > MOST[column]:
        raise BadInput(f"must be {MOST[column]} or less")
    return number


def parse_instant(text: str) -> datetime:
    """Naive UTC of an ISO 8601 time; without a zone it is UTC, a date alone is its midnight."""
    text = text.strip()
    if not _INSTANT.fullmatch(text):
        raise BadInput("is no ISO 8601 time, such as 2026-03-01T00:00:00Z")
    try:
        at = datetime.fromisoformat(text.upper())
        at = at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
    except (ValueError, OverflowError):
        raise BadInput("is no time that exists") from None
    if not EARLIEST <= at < LATEST:
        hint = "; leave out an end that is not known" if at >= LATEST else ""
        raise BadInput(f"is out of range, {EARLIEST:%Y} to {LATEST:%Y}{hint}")
    return at


def parse_date(text: str) -> date:
    """Date of YYYY-MM-DD."""
    if not _DATE.fullmatch(text.strip()):
        raise BadInput("is no date, such as 2026-03-01")
    return parse_instant(text).date()


def parse_boolean(text: str) -> bool:
    """true or false, in any case."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise BadInput("is neither true nor false")
    return word == "true"


def parse_currency(text: str) -> str:
    """A currency code of ISO 4217."""
    code = text.strip()
    if code not in CURRENCIES:
        hint = f"; {code.upper()} is one" if code.upper() in CURRENCIES else ", such as USD"
        raise BadInput(f"is no currency code of ISO 4217{hint}")
    return code


def parse_word(text: str, words: tuple[str, ...]) -> str:
    """One of these words, spelled exactly so."""
    word = text.strip()
    if word not in words:
        raise BadInput(f"is none of {', '.join(words)}")
    return word


def parse_list(text: str) -> str:
    """Names separated by commas, each once, blanks around them dropped."""
    names = [parse_text(name) for name in text.split(",")]
    if len(set(names)) < len(names):
        raise BadInput("names something twice")
    return ",".join(names)


def parse_text(text: str) -> str:
    """Text of one line that no spreadsheet takes for a formula."""
    if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA):
        raise BadInput("begins as a formula does; a spreadsheet that opens an export would run it")
    text = text.strip()
    if not text:
        raise BadInput("is empty")
    if not text.isprintable():
        raise BadInput("has control characters or line breaks")
    if len(text) > _LONGEST_TEXT:
        raise BadInput(f"is longer than {_LONGEST_TEXT} characters")
    return text


def midnight(day: date) -> datetime:
    """The first instant of a date."""
    return datetime(day.year, day.month, day.day)


def next_month(at: datetime) -> datetime:
    """The first instant of the month after the one of `at`."""
    return (at.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=32)).replace(day=1)


# by type of the contract, or by name of the column where its text has a form of its own
_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "timestamp": parse_instant,
    "date": parse_date,
    "boolean": parse_boolean,
    **dict.fromkeys(CURRENCY_COLUMNS, parse_currency),
    **dict.fromkeys(LIST_COLUMNS, parse_list),
}
