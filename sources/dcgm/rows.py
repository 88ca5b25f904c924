"""Sample lines to rows: which lines make one row, what the row knows of its device, which copy it is.

A row is one GPU or GPU instance at one instant, per holder the exporter claims. Values stay in the
unit of the metric; scaling and tables stand in `parse.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sources.dcgm.aliases import resolve
from sources.dcgm.labels import Attributes, Device, RowKey
from sources.dcgm.lines import Lines


@dataclass
class Rows:
    """Rows in order of body and first line.

    Arrays over rows: `body`, `at_us` (microseconds), `stamped` (time given in the body), `key` and
    `attribute` (codes into `keys` and `attributes`), `copy`. `values[column, row]` is NaN where no line
    gave the column, `names[column, row]` the code of the metric name that did (-1: none).
    """

    body: np.ndarray
    at_us: np.ndarray
    stamped: np.ndarray
    key: np.ndarray
    attribute: np.ndarray
    copy: np.ndarray
    keys: list[RowKey]
    attributes: list[Attributes]
    values: np.ndarray
    names: np.ndarray


def assemble(lines: Lines, stored: np.ndarray, column: np.ndarray, columns: int, at: np.ndarray) -> Rows:
    """Rows of the stored lines; `column` maps name codes to columns, `at` bodies to microseconds.

    Where several metrics fill one cell, the alias preferred by the table counts, then the first line.
    """
    keys, attributes, key_of, attribute_of, device_of = _codes(lines)
    use = np.flatnonzero(stored)
    body, block, name = lines.body[use], lines.block[use], lines.name[use]
    key, attribute = key_of[block], attribute_of[block]
    instant, instant_us = _instants(body, lines.time_us[use], at)
    code = instant * (len(keys) + 1) + key
    encoded = pa.array(code).dictionary_encode()  # codes in order of appearance
    row = encoded.indices.to_numpy()
    first = np.zeros(len(encoded.dictionary), np.int64)
    first[row[::-1]] = np.arange(len(row))[::-1]

    row_attribute = attribute[first]
    odd = np.flatnonzero(attribute != row_attribute[row])
    for r, a in dict.fromkeys(zip(row[odd].tolist(), attribute[odd].tolist(), strict=True)):
        row_attribute[r] = _merged(attributes, int(row_attribute[r]), a)

    values = np.full((columns, len(first)), np.nan)
    names = np.full((columns, len(first)), -1, np.int64)
    cell = column[name] * max(len(first), 1) + row
    preference = np.array([a.rank if (a := resolve(n)) else 0 for n in lines.names] or [0])
    if len(cell) and np.bincount(cell).max() > 1:
        by = np.lexsort((-np.arange(len(cell)), -preference[name]))  # the preferred one is written last
    else:
        by = np.arange(len(cell))
    values.ravel()[cell[by]] = lines.value[use][by]
    names.ravel()[cell[by]] = name[by]
    is_shared = np.array([k.is_shared_copy for k in keys] or [False])
    return Rows(
        body[first], instant_us[instant[first]], lines.time_us[use][first] >= 0, key[first], row_attribute,
        _copies(instant[first], device_of[key[first]], is_shared[key[first]]),
        keys, attributes, values, names,
    )  # fmt: skip


def _codes(lines: Lines) -> tuple[list[RowKey], list[Attributes], np.ndarray, np.ndarray, np.ndarray]:
    """Distinct keys and attributes, their codes by label code, and device codes by key code."""
    rows, properties = [label.row for label in lines.labels], [label.attributes for label in lines.labels]
    # Equal ones are one object (`labels.Labels`), so identity tells them apart faster than their content.
    keys = {id(row): row for row in rows if row is not None}
    attributes = {id(a): a for a in properties if a is not None}
    key_code = {identity: code for code, identity in enumerate(keys)}
    attribute_code = {identity: code for code, identity in enumerate(attributes)}
    key_of = np.array([key_code.get(id(row), -1) for row in rows] or [-1])
    attribute_of = np.array([attribute_code.get(id(a), -1) for a in properties] or [-1])
    devices: dict[Device, int] = {}
    device_of = np.array([devices.setdefault(k.device, len(devices)) for k in keys.values()] or [0])
    return list(keys.values()), list(attributes.values()), key_of, attribute_of, device_of


def _instants(body: np.ndarray, time_us: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Code of each line's instant and the time by code: the scrape's, or one that the line itself gives."""
    instant, times = body.copy(), at.tolist()
    extra: dict[tuple[int, int], int] = {}
    for i in np.flatnonzero(time_us >= 0).tolist():
        given = (int(body[i]), int(time_us[i]))
        if given not in extra:
            extra[given] = len(times)
            times.append(given[1])
        instant[i] = extra[given]
    return instant, np.array(times, np.int64)


def _merged(attributes: list[Attributes], first: int, other: int) -> int:
    """Code of attributes that take from the other what the first lacks; lines of a row may differ."""
    pairs = zip(attributes[first], attributes[other], strict=True)
    merged = Attributes._make(b if a is None else a for a, b in pairs)
    if merged == attributes[first]:
        return first
    attributes.append(merged)
    return len(attributes) - 1


def _copies(instant: np.ndarray, device: np.ndarray, is_shared: np.ndarray) -> np.ndarray:
    """Number of each row among those of its device and instant: the device's own row first, then as seen."""
    n = len(instant)
    if not n:
        return np.zeros(0, np.int64)
    order = np.lexsort((np.arange(n), is_shared, device, instant))
    fresh = np.ones(n, bool)
    fresh[1:] = (instant[order][1:] != instant[order][:-1]) | (device[order][1:] != device[order][:-1])
    start = np.maximum.accumulate(np.where(fresh, np.arange(n), 0))
    copy = np.empty(n, np.int64)
    copy[order] = np.arange(n) - start
    return copy
