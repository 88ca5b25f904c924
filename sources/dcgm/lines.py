"""From scrape bodies to sample lines: where each line stands, its name, label block, value and time.

Two roads to one result. The fast one cuts all bodies at once with array operations and looks every
distinct name and label block up; it takes lines of the form `name{labels} value`. Whatever does not
fit goes, line by line, through a strict parser that says why a line is refused. No line ever costs
the rest of its scrape. Which column a metric fills stands in `aliases.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from sources.dcgm.labels import BadLabels, Labels, read_labels

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_BLOCK = re.compile(r'\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\}')
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_LINE_FEED, _RETURN, _SPACE, _HASH, _OPEN = 10, 13, 32, 35, 123  # the closing brace is 125
_SECONDS_BELOW = 1e11  # OpenMetrics writes seconds, the older text format milliseconds


class Rejected(NamedTuple):
    """A refused line: index of its body, line number from 1, reason and text."""

    body: int
    line_number: int
    reason: str
    line: str


@dataclass
class Lines:
    """Accepted sample lines of all bodies, in order of body and line.

    Arrays over lines: `body` (index), `name` and `block` (codes into `names` and `labels`), `value`,
    `text` (the value as written), `time_us` (explicit timestamp, microseconds; -1 if none) and `number`
    (within the body, from 1). `start` and `end` in `data`.
    """

    names: list[str]
    labels: list[Labels]
    body: np.ndarray
    name: np.ndarray
    block: np.ndarray
    value: np.ndarray
    text: pa.Array
    time_us: np.ndarray
    number: np.ndarray
    start: np.ndarray
    end: np.ndarray
    data: bytes
    rejected: list[Rejected]

    def reject(self, i: int, reason: str) -> None:
        """Add accepted line `i` to the refused ones; the caller leaves it out."""
        line = self.data[self.start[i] : self.end[i]].decode("utf-8", "replace")
        self.rejected.append(Rejected(int(self.body[i]), int(self.number[i]), reason, line[:500]))


def read_lines(bodies: Sequence[bytes]) -> Lines:
    """All sample lines of those bodies (UTF-8 exposition text). Never raises for what a body says."""
    data = b"".join([part for body in bodies for part in (body, b"\n")])
    buffer = np.frombuffer(data, np.uint8)
    sizes = np.fromiter((len(b) + 1 for b in bodies), np.int64, len(bodies))
    body_start = np.cumsum(sizes) - sizes
    feeds = np.flatnonzero(buffer == _LINE_FEED)
    starts = np.concatenate(([0], feeds[:-1] + 1)) if len(feeds) else feeds
    ends = feeds - ((feeds > starts) & (buffer[np.maximum(feeds - 1, 0)] == _RETURN))
    kept = np.flatnonzero((ends > starts) & (buffer[np.minimum(starts, max(len(buffer) - 1, 0))] != _HASH))
    starts, ends = starts[kept], ends[kept]
    body = np.repeat(np.arange(len(bodies)), np.diff(np.append(np.searchsorted(starts, body_start), len(starts))))
    number = kept - np.searchsorted(feeds, body_start)[body] + 1
    brace, space = _cuts(buffer, starts, ends)
    fits = (brace < space) & (space < ends) & (space > starts)
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            fits[:] = False  # rare: let every line be decoded, and judged, by itself

    names, labels = _Codes(), _LabelCodes()
    s, e, b, sp = starts[fits], ends[fits], brace[fits], space[fits]
    name, block, text, value = _cut(data, s, b, sp, e, names, labels)
    good = (name >= 0) & (block >= 0) & np.isfinite(value)
    fast, slow = np.flatnonzero(fits)[good], np.ones(len(starts), bool)
    slow[fast] = False
    time_us = np.full(len(fast), -1, np.int64)
    result = Lines(names.items, labels.items, body[fast], name[good], block[good], value[good],
                   text.filter(pa.array(good)), time_us, number[fast], starts[fast], ends[fast], data, [])  # fmt: skip
    odd = np.flatnonzero(slow)
    if not len(odd):
        return result
    return _with_odd(result, fast, odd, data, _Spans(starts, ends, body, number), (names, labels))


def _cuts(buffer: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each line's label block begins and where the space before its value stands (or the buffer's end).

    Nearly always each line has one opening and one closing brace and no other byte above `z`; then one
    pass over the buffer finds both. Otherwise the first brace and the last space of each line are searched.
    """
    high = np.flatnonzero(buffer >= _OPEN)
    if len(high) == 2 * len(starts):
        brace, space = high[0::2], high[1::2] + 1
        if ((brace >= starts) & (space < ends)).all() and (buffer[space] == _SPACE).all():
            return brace, space
    opens = np.append(np.flatnonzero(buffer == _OPEN), len(buffer))
    spaces = np.append(np.flatnonzero(buffer == _SPACE), len(buffer))
    return opens[np.searchsorted(opens, starts)], spaces[np.searchsorted(spaces, ends) - 1]


class _Spans(NamedTuple):
    """Where the lines stand: start and end in the buffer, index of the body, line number in it."""

    start: np.ndarray
    end: np.ndarray
    body: np.ndarray
    number: np.ndarray


class _Codes:
    """Dense codes of valid metric names; -1 for what is no name."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self._code: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        code = self._code.get(name)
        if code is None:
            code = len(self.items) if _NAME.fullmatch(name) else -1
            self._code[name] = code
            if code >= 0:
                self.items.append(name)
        return code


class _LabelCodes:
    """Dense codes of label sets; blocks that spell one set differently share a code; -1 if malformed."""

    def __init__(self) -> None:
        self.items: list[Labels] = []
        self._code: dict[int, int] = {}  # by identity: equal labels are one object, kept alive by `items`

    def __call__(self, block: str) -> int:
        found = read_labels(block)
        return -1 if isinstance(found, BadLabels) else self.of(found)

    def of(self, found: Labels) -> int:
        code = self._code.get(id(found))
        if code is None:
            code = self._code[id(found)] = len(self.items)
            self.items.append(found)
        return code


def _cut(  # noqa: PLR0917
    data: bytes, start: np.ndarray, brace: np.ndarray, space: np.ndarray, end: np.ndarray, names: _Codes,
    labels: _LabelCodes,
) -> tuple[np.ndarray, np.ndarray, pa.Array, np.ndarray]:  # fmt: skip
    """Codes of names and blocks, value texts and values (NaN: not a number) of lines that look regular.

    The pieces name | block | value | rest follow each other in the buffer, so one Arrow array over it
    needs no copy; only distinct names and blocks become Python objects.
    """
    n = len(start)
    if not n:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), pa.array([], pa.large_string()), np.zeros(0)
    offsets = np.empty(4 * n + 1, np.int64)
    offsets[0:-1:4], offsets[1::4], offsets[2::4], offsets[3::4] = start, brace, space + 1, end
    offsets[-1] = len(data)
    pieces = pa.LargeStringArray.from_buffers(4 * n, pa.py_buffer(offsets), pa.py_buffer(data))
    every = np.arange(0, 4 * n, 4)
    name = _encode(pieces.take(pa.array(every)), names)
    block = _encode(pieces.take(pa.array(every + 1)), labels)
    text = pieces.take(pa.array(every + 2))
    value = pl.Series(text).cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    return name, block, text, value


def _encode(texts: pa.Array, code: Callable[[str], int]) -> np.ndarray:
    encoded = texts.dictionary_encode()
    codes = np.fromiter(map(code, encoded.dictionary.to_pylist()), np.int64, len(encoded.dictionary))
    return codes[encoded.indices.to_numpy()]


def _with_odd(  # noqa: PLR0917
    regular: Lines, at: np.ndarray, odd: np.ndarray, data: bytes, lines: _Spans, codes: tuple[_Codes, _LabelCodes]
) -> Lines:
    """The regular lines (at those positions) together with what the strict parser makes of the odd ones."""
    rows, texts = [], []
    names, labels = codes
    for i in odd.tolist():
        raw = data[lines.start[i] : lines.end[i]]
        try:
            line = raw.decode()
            found = parse_line(line.lstrip("\ufeff") if lines.number[i] == 1 else line)
        except UnicodeDecodeError:
            found = "not UTF-8"
        if found is None:
            continue
        if isinstance(found, str):
            line = raw.decode("utf-8", "replace")
            regular.rejected.append(Rejected(int(lines.body[i]), int(lines.number[i]), found, line[:500]))
            continue
        name, read, text, time_us = found
        rows.append((i, int(lines.body[i]), names(name), labels.of(read), float(text), time_us,
                     lines.number[i], lines.start[i], lines.end[i]))  # fmt: skip
        texts.append(text)
    if not rows:
        return regular
    position, *columns = (np.array(c) for c in zip(*rows, strict=True))
    order = np.argsort(np.concatenate((at, position)), kind="stable")
    old = (regular.body, regular.name, regular.block, regular.value, regular.time_us,
           regular.number, regular.start, regular.end)  # fmt: skip
    merged = (np.concatenate((a, b))[order] for a, b in zip(old, columns, strict=True))
    body, code, block, value, time, number, start, end = merged
    text_of = pa.concat_arrays([regular.text, pa.array(texts, pa.large_string())]).take(pa.array(order))
    return Lines(names.items, labels.items, body, code, block, value, text_of, time, number, start, end, data,
                 regular.rejected)  # fmt: skip


def parse_line(line: str) -> tuple[str, Labels, str, int] | str | None:  # noqa: PLR0911  (one return per reason)
    """One line by the exposition format: name, labels, value text and timestamp (microseconds, -1 if none).

    None for a blank or comment line; a string, the reason, for a line that must be refused.
    """
    text = line.strip()
    if not text or text.startswith("#"):
        return None
    name = _NAME.match(text)
    if name is None:
        return "no metric name"
    position = name.end()
    rest = text[position:].lstrip()
    labels = read_labels("{}")
    if rest.startswith("{"):
        block = _BLOCK.match(rest)
        if block is None:
            return "malformed labels (an unescaped quote or backslash?)"
        labels = read_labels(block[0])
        rest = rest[block.end() :]
    elif rest and not text[position].isspace():
        return "malformed metric name"
    if isinstance(labels, BadLabels):
        return str(labels)
    fields = rest.split(" # ", 1)[0].split()  # behind " # " stands an OpenMetrics exemplar
    if not fields:
        return "no value"
    reason = _judge_value(fields)
    if reason:
        return reason
    time_us = -1
    if len(fields) == 2:
        stamp = float(fields[1])
        scale = 1e6 if "." in fields[1] or abs(stamp) < _SECONDS_BELOW else 1e3
        if not 0 <= stamp * scale < 2**62:
            return f"timestamp {fields[1][:40]} out of range"
        time_us = round(stamp * scale)
    assert isinstance(labels, Labels)
    return name[0], labels, fields[0], time_us


def _judge_value(fields: list[str]) -> str | None:
    value = fields[0]
    if _NUMBER.fullmatch(value) is None:
        if value.lower().lstrip("+-") in ("nan", "inf", "infinity"):
            return f"value is {value}"
        return f"value is not a number: {' '.join(fields)[:80]}"
    if not math.isfinite(float(value)):
        return f"value is too large: {value[:80]}"
    if len(fields) > 2 or (len(fields) == 2 and _NUMBER.fullmatch(fields[1]) is None):
        return f"unexpected text behind the value: {' '.join(fields[1:])[:80]}"
    return None
