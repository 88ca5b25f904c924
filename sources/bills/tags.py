"""Tags of a bill: JSON objects, lists of key and value, pairs joined by signs; and JSON as text.

Belongs here: the ways in which exports write maps into one cell. Not here: which tag means what.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson
import polars as pl
import pyarrow as pa

from sources.bills.quoting import cut

TAGS = pa.map_(pa.string(), pa.string())


def parse_tags(text: pl.Series) -> tuple[pa.Array, pl.Series]:
    """Tags as maps with sorted keys (null where the text is null or wrong), and what is wrong."""
    encoded = text.to_arrow().cast(pa.string()).dictionary_encode()
    read = [_tags(t) for t in encoded.dictionary.to_pylist()]
    pairs = [None if isinstance(r, str) else sorted(r.items()) for r in read]
    wrong = pa.array([r if isinstance(r, str) else None for r in read], pa.string())
    maps = pa.array(pairs, TAGS)
    problem = pl.Series("tags", wrong.take(encoded.indices))
    if not len(maps):
        return pa.nulls(len(text), TAGS), problem.cast(pl.String)
    return maps.take(encoded.indices), problem


def _tags(text: str) -> dict[str, str] | str:
    """Tags of one cell, or what is wrong with it."""
    if text[0] == '"':  # older Azure exports leave the braces out
        text = "{" + text + "}"
    if text[0] not in "{[":
        return _pairs(text, next((s for s in ";|" if s in text), ","))
    if text[0] == "{" and text[-1] == "}" and '"' not in text and "=" in text:
        return _pairs(text[1:-1], ",")  # how Hive and Trino print a map
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as e:
        return f"is no valid JSON: {e}"
    return {k: _text(v) for k, v in value.items()} if isinstance(value, dict) else _listed(value)


def _listed(value: object) -> dict[str, str] | str:
    """Of `[{"key": …, "value": …}, …]` (GCP, AWS), or `[["key", "value"], …]` (a map in Parquet)."""
    tags: dict[str, str] = {}
    for item in value if isinstance(value, list) else [None]:
        if isinstance(item, dict):
            named = {str(k).lower(): v for k, v in item.items()}
            if named.get("key") is not None and "value" in named:
                tags[str(named["key"])] = _text(named["value"])
                continue
        elif isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
            tags[item[0]] = _text(item[1])
            continue
        return "is neither an object nor a list of keys and values"
    return tags


def _pairs(text: str, separator: str) -> dict[str, str] | str:
    tags = {}
    for pair in text.split(separator):
        if not pair.strip():
            continue
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            return f"holds {cut(pair.strip())!r}, which is neither JSON nor key=value"
        tags[key.strip()] = value.strip()
    return tags


def _text(value: object) -> str:
    """A tag's value as text; FOCUS gives a tag without a value `true`, JSON spells the rest."""
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def is_json(text: str) -> bool:
    """Whether the text is a JSON object."""
    try:
        return isinstance(orjson.loads(text), Mapping)
    except orjson.JSONDecodeError:
        return False
