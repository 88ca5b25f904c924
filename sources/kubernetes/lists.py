"""One list as the API server (or `kubectl get -o json`) gave it, cut into documents and objects.

Reading objects stands in `nodes.py` and `pods.py`, choosing between two lists of one instant in `parse.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import orjson

from sources.dcgm.scrape import naive_utc
from warehouse.errors import BadInput
from warehouse.landing import Record

Json = dict[str, Any]


@dataclass(frozen=True)
class KubeList:
    """A list, or the attempt at one. `at` is UTC; `body` is one JSON document or several after each
    other (the pages of a list); None where the attempt failed and `error` says why.

    `kind` says how to read it: `kubernetes` for objects of the API, `pod_resources` for the kubelet's
    pod-resources list of `node`. `source` is the file or API path, for messages; `lists` the object kind
    that was asked for, so that an empty or failed list still says of what.
    """

    cluster: str
    at: datetime
    body: bytes | None
    source: str = ""
    kind: str = "kubernetes"
    node: str | None = None
    lists: str | None = None
    error: str | None = None

    @cached_property
    def sha256(self) -> str | None:
        """Hex digest of the body."""
        return None if self.body is None else hashlib.sha256(self.body).hexdigest()

    def record(self) -> Record:
        """The list as a landing record."""
        meta = {"node": self.node, "lists": self.lists, "error": self.error}
        return Record(self.kind, self.cluster, self.source, naive_utc(self.at), meta, self.body)

    @classmethod
    def of(cls, record: Record) -> KubeList:
        """The list that a landing record holds."""
        return cls(record.cluster, record.at, record.body, record.target, record.kind, **record.meta)


def documents(body: bytes, source: str) -> Iterator[Json]:
    """The JSON documents of a body, one at a time; `BadInput` names source, line and column."""
    lines = body.splitlines() if body.startswith(b'{"') else []
    if len(lines) > 1 and all(line.startswith(b"{") and line.endswith(b"}") for line in lines):
        for number, line in enumerate(lines, 1):
            yield _object(_load(line, source, number), source)
        return
    try:
        yield _object(orjson.loads(body.removeprefix(b"\xef\xbb\xbf")), source)
    except orjson.JSONDecodeError:
        yield from _one_after_the_other(body, source)


def _load(line: bytes, source: str, number: int) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{source}: not JSON at line {number} column {error.colno}: {error.msg}") from None


def _one_after_the_other(body: bytes, source: str) -> Iterator[Json]:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{source}: not UTF-8 at byte {error.start}") from None
    decoder, position = json.JSONDecoder(), 0
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
        if position >= len(text):
            break
        try:
            start = position
            _, position = decoder.raw_decode(text, start)
            found = orjson.loads(text[start:position])  # the stricter one: no NaN, no broken surrogates
        except (json.JSONDecodeError, UnicodeEncodeError, RecursionError) as error:
            where = f"line {error.lineno} column {error.colno}: {error.msg}" if isinstance(
                error, json.JSONDecodeError) else "a value that no parser should take"  # fmt: skip
            raise BadInput(f"{source}: not JSON at {where}") from None
        yield _object(found, source)
    if not text.strip():
        raise BadInput(f"{source}: not JSON at line 1 column 1: the file is empty")


def _object(found: Any, source: str) -> Json:
    if not isinstance(found, dict):
        raise BadInput(f"{source}: a JSON object is expected, not {type(found).__name__}")
    return found


def check_list(listed: KubeList) -> None:
    """Refuse a body that is no Kubernetes (or pod-resources) list; `BadInput` says where and why."""
    for document in documents(listed.body or b"", listed.source):
        if listed.kind == "pod_resources":
            if not isinstance(document.get("podResources"), list):
                raise BadInput(f"{listed.source}: no list podResources")
        elif not isinstance(document.get("kind"), str):
            raise BadInput(f"{listed.source}: no kind; a Kubernetes list or object is expected")
        elif document["kind"].endswith("List") and not isinstance(document.get("items") or [], list):
            raise BadInput(f"{listed.source}: items of {document['kind']} is no list")
