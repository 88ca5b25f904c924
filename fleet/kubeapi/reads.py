"""Lists and watches: pages on one snapshot, and the stream of events after a resourceVersion.

Query parameters and their meaning belong here; bytes and HTTP do not.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleet.kubeapi import status
from fleet.kubeapi.resources import Resource
from fleet.kubeapi.selectors import Predicate, selector
from fleet.kubeapi.store import Event, Key, Object, Store


@dataclass(frozen=True)
class Page:
    """One page of a list: items without kind, the list's metadata, and the simulated instant it shows."""

    items: list[Object]
    metadata: dict[str, Any]
    at: datetime


def number(query: Mapping[str, str], name: str, default: int = 0) -> int:
    """A whole-number query parameter; 400 when it is not one."""
    text = query.get(name)
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise status.bad_request(f"invalid value for query parameter {name}: {text!r} is not a whole number") from None


def flag(query: Mapping[str, str], name: str) -> bool:
    """A boolean query parameter as Go's ParseBool reads it."""
    return query.get(name, "") in ("1", "t", "T", "true", "TRUE", "True")


def predicate(resource: Resource, query: Mapping[str, str]) -> Predicate | None:
    """The selectors of a request."""
    return selector(resource.name, query.get("labelSelector"), query.get("fieldSelector"))


def _token(version: int, after: Key) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": "/".join(after)})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, Key]:
    try:
        told = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = told["start"].split("/")
        return int(told["rv"]), (namespace, name)
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError):
        raise status.bad_request("continue key is not valid: it does not come from a list of this server") from None


def list_page(store: Store, resource: Resource, namespace: str | None, query: Mapping[str, str]) -> Page:
    """A list or the next page of one (`limit`, `continue`), consistent with its first page; 400 or 410."""
    matches = predicate(resource, query)
    limit = number(query, "limit")
    token = query.get("continue")
    after: Key | None = None
    if token:
        if query.get("resourceVersion") not in (None, "", "0"):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        version, after = _read_token(token)
        snapshot = store.kept(resource.name, version)
    else:
        store.sync()
        snapshot = store.snapshot(resource.name)
        wanted = number(query, "resourceVersion")
        if wanted > snapshot.version:
            raise status.ApiError(504, "Timeout", f"Too large resource version: {wanted}, current: {snapshot.version}")
        if query.get("resourceVersionMatch") == "Exact" and wanted != snapshot.version:
            snapshot = store.kept(resource.name, wanted)
    chosen = [
        (key, obj)
        for key, obj in snapshot.items
        if (namespace is None or key[0] == namespace) and (after is None or key > after)
    ]
    if matches is not None:
        chosen = [(key, obj) for key, obj in chosen if matches(obj)]
    metadata: dict[str, Any] = {"resourceVersion": str(snapshot.version)}
    if limit > 0 and len(chosen) > limit:
        store.keep(resource.name, snapshot)
        metadata["continue"] = _token(snapshot.version, chosen[limit - 1][0])
        if matches is None:
            metadata["remainingItemCount"] = len(chosen) - limit
        chosen = chosen[:limit]
    return Page([obj for _, obj in chosen], metadata, snapshot.at)


@dataclass(frozen=True)
class WatchTiming:
    """Wall seconds: how often the world is looked at while somebody watches, and how often a bookmark is sent."""

    tick_s: float = 0.5
    bookmark_s: float = 60.0
    default_timeout_s: float = 1800.0


async def watch(
    store: Store, resource: Resource, namespace: str | None, query: Mapping[str, str], timing: WatchTiming
) -> AsyncIterator[dict[str, Any]]:
    """Events as (`type`, `object`) from `resourceVersion` on until `timeoutSeconds`; objects carry kind and apiVersion.

    Without a version, or with "0" or `sendInitialEvents`, the present objects come first as ADDED. A version the log
    no longer reaches gives one ERROR event with a 410 Status, as the API server's watch cache does.
    """
    matches = predicate(resource, query)
    bookmarks = flag(query, "allowWatchBookmarks")
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + (number(query, "timeoutSeconds") or timing.default_timeout_s)
    changed = asyncio.Event()
    unsubscribe = store.subscribe(changed.set)
    try:
        store.sync()
        version = number(query, "resourceVersion")
        initial = flag(query, "sendInitialEvents")
        if version == 0 or initial:
            snapshot = store.snapshot(resource.name)
            for key, obj in snapshot.items:
                if (namespace is None or key[0] == namespace) and (matches is None or matches(obj)):
                    yield _line("ADDED", resource, obj)
            version = snapshot.version
            if initial and bookmarks:
                yield _bookmark(resource, version, {"k8s.io/initial-events-end": "true"})
        bookmark_at = loop.time() + timing.bookmark_s
        while True:
            try:
                events = store.since(version)
            except status.ApiError as error:
                yield {"type": "ERROR", "object": error.body()}
                return
            for event in events:
                line = _seen(event, resource, namespace, matches)
                if line is not None:
                    yield line
            version = events[-1].version if events else version
            now = loop.time()
            if bookmarks and (now >= bookmark_at or now >= ends_at):
                yield _bookmark(resource, version)
                bookmark_at = now + timing.bookmark_s
            if now >= ends_at:
                return
            changed.clear()
            wait = min(timing.tick_s, ends_at - now, *((bookmark_at - now,) if bookmarks else ()))
            try:
                await asyncio.wait_for(changed.wait(), max(wait, 0.001))
            except TimeoutError:
                store.sync()
    finally:
        unsubscribe()


def _line(kind: str, resource: Resource, obj: Object) -> dict[str, Any]:
    return {"type": kind, "object": {"kind": resource.kind, "apiVersion": "v1"} | obj}


def _bookmark(resource: Resource, version: int, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = dict(annotations)
    obj: Object = {"kind": resource.kind, "apiVersion": "v1", "metadata": metadata}
    if resource.name == "pods":
        obj |= {"spec": {"containers": None}, "status": {}}
    elif resource.has_status:
        obj |= {"spec": {}, "status": {}}
    return {"type": "BOOKMARK", "object": obj}


def _seen(event: Event, resource: Resource, namespace: str | None, matches: Predicate | None) -> dict[str, Any] | None:
    """The event as a watcher with these selectors sees it: an object that begins to match is ADDED for it."""
    if event.resource != resource.name or (namespace is not None and event.key[0] != namespace):
        return None
    if matches is None:
        return _line(event.type, resource, event.object)
    was = event.old is not None and matches(event.old)
    now = event.type != "DELETED" and matches(event.object)
    if now:
        return _line("MODIFIED" if was else "ADDED", resource, event.object)
    return _line("DELETED", resource, event.object) if was else None
