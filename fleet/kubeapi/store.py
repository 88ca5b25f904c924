"""The object store behind the simulated Kubernetes API: current objects, resourceVersions, the watch log, snapshots.

What the world shows at an instant comes in as `Entry`s; what clients wrote lies over it. Consistency belongs here: one
version counter, one log, immutable objects (a change replaces the object). HTTP and what a write means do not.

The store is not thread-safe: one event loop uses it.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Literal

from fleet.kubeapi.objects import rfc3339
from fleet.kubeapi.patches import merge
from fleet.kubeapi.status import conflict, expired_continue, too_old

Key = tuple[str, str]  # namespace ("" where there is none), name
Object = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One object of the world at an instant: equal `token`s mean equal objects, so `build` is called on change only."""

    resource: str
    namespace: str
    name: str
    token: Any
    build: Callable[[], Object]


@dataclass(frozen=True)
class Event:
    """One line of the watch log; `old` is the object before, for selectors."""

    version: int
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    resource: str
    key: Key
    object: Object
    old: Object | None


@dataclass(frozen=True)
class Snapshot:
    """A resource's objects at one version, in key order; `at` is the simulated instant."""

    version: int
    at: datetime
    items: tuple[tuple[Key, Object], ...]


class Store:
    """Objects of one cluster.

    `source(at)` gives all the world's entries at an instant. `log_size` events are kept for watches, and snapshots for
    continue tokens for `snapshot_ttl_s` wall seconds (5 minutes is etcd's compaction interval); older is 410 Gone.
    """

    def __init__(
        self,
        source: Callable[[datetime], Iterable[Entry]],
        now: Callable[[], datetime],
        *,
        log_size: int = 50_000,
        snapshot_ttl_s: float = 300.0,
        max_snapshots: int = 100,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._now, self._monotonic = source, now, monotonic
        self._snapshot_ttl_s, self._max_snapshots = snapshot_ttl_s, max_snapshots
        self._objects: dict[str, dict[Key, Object]] = {}
        self._world: dict[tuple[str, Key], tuple[Any, Object]] = {}
        self._overlays: dict[tuple[str, Key, str], Object] = {}  # by uid: a new object of that name starts clean
        self._deleted: set[str] = set()
        self._owned: dict[tuple[str, Key], Object] = {}
        self._log: deque[Event] = deque(maxlen=log_size)
        self._snapshots: OrderedDict[tuple[str, int], tuple[float, Snapshot]] = OrderedDict()
        self._sorted: dict[str, Snapshot] = {}
        self._listeners: set[Callable[[], None]] = set()
        self.version = 1000
        self.at = datetime.min
        self.on_sync: list[Callable[[datetime], None]] = []
        self.sync()
        self.compact()

    # -- the world ----------------------------------------------------------------------------------------------

    def sync(self) -> datetime:
        """Brings the objects to the clock's now and gives that instant; does nothing when the clock stood still."""
        at = self._now()
        if at == self.at:
            return at
        self.at = at
        seen: dict[tuple[str, Key], tuple[Any, Object]] = {}
        changed: list[tuple[str, Key]] = []
        for entry in self._source(at):
            where = (entry.resource, (entry.namespace, entry.name))
            known = self._world.get(where)
            if known is not None and known[0] == entry.token:
                seen[where] = known
            else:
                seen[where] = (entry.token, entry.build())
                changed.append(where)
        gone = [where for where in self._world if where not in seen]
        self._world = seen
        for resource, key in gone + changed:
            self.refresh(resource, key)
        for hook in self.on_sync:
            hook(at)
        return at

    def refresh(self, resource: str, key: Key) -> Object | None:
        """Recomputes one object from the world and what clients wrote, and logs the change, if any."""
        new = self._owned.get((resource, key))
        if new is None and (world := self._world.get((resource, key))) is not None:
            uid = world[1]["metadata"]["uid"]
            if uid not in self._deleted:
                overlay = self._overlays.get((resource, key, uid))
                new = merge(world[1], overlay) if overlay else world[1]
        return self._put(resource, key, new)

    def _put(self, resource: str, key: Key, new: Object | None) -> Object | None:
        objects = self._objects.setdefault(resource, {})
        old = objects.get(key)
        if old is not None and new is not None:
            if old["metadata"]["uid"] != new["metadata"]["uid"]:
                self._append("DELETED", resource, key, old, old)
                old = None
            elif _same(old, new):
                return old
        if new is None:
            if old is not None:
                del objects[key]
                self._append("DELETED", resource, key, old, old)
            return None
        stored = self._append("ADDED" if old is None else "MODIFIED", resource, key, new, old)
        objects[key] = stored
        return stored

    def _append(
        self, type_: Literal["ADDED", "MODIFIED", "DELETED"], resource: str, key: Key, obj: Object, old: Object | None
    ) -> Object:
        self.version += 1
        stored = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self.version)}}
        self._log.append(Event(self.version, type_, resource, key, stored, old))
        self._sorted.pop(resource, None)
        for listener in self._listeners:
            listener()
        return stored

    # -- reading ------------------------------------------------------------------------------------------------

    def get(self, resource: str, key: Key) -> Object | None:
        """The object now, or None."""
        return self._objects.get(resource, {}).get(key)

    def snapshot(self, resource: str) -> Snapshot:
        """All objects of the resource now, in key order."""
        found = self._sorted.get(resource)
        if found is None or found.version != self.version or found.at != self.at:
            items = found.items if found else tuple(sorted(self._objects.get(resource, {}).items()))
            found = self._sorted[resource] = Snapshot(self.version, self.at, items)
        return found

    def keep(self, resource: str, snapshot: Snapshot) -> None:
        """Keeps a snapshot for the pages that follow."""
        self._snapshots[resource, snapshot.version] = (self._monotonic(), snapshot)
        while len(self._snapshots) > self._max_snapshots:
            self._snapshots.popitem(last=False)

    def kept(self, resource: str, version: int) -> Snapshot:
        """A kept snapshot; `ApiError` 410 when it is gone."""
        found = self._snapshots.get((resource, version))
        if found is None or self._monotonic() - found[0] > self._snapshot_ttl_s:
            raise expired_continue()
        return found[1]

    def oldest(self) -> int:
        """The oldest version a watch can start from."""
        return self._log[0].version - 1 if self._log else self.version

    def since(self, version: int) -> list[Event]:
        """Events after `version`; `ApiError` 410 when the log no longer reaches back that far."""
        oldest = self.oldest()
        if version < oldest:
            raise too_old(version, oldest)
        # Every version is one event, so the position is known.
        return list(islice(self._log, max(0, version - oldest), None))

    def compact(self) -> None:
        """Forgets the log and all kept snapshots, as etcd's compaction does."""
        self._log.clear()
        self._snapshots.clear()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls `listener` at every change until the function given back is called."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    # -- writing ------------------------------------------------------------------------------------------------

    def create(self, resource: str, key: Key, obj: Object) -> Object:
        """Adds an object of a client's; its name must be free."""
        self._owned[resource, key] = obj
        stored = self.refresh(resource, key)
        assert stored is not None
        return stored

    def change(self, resource: str, key: Key, patch: Object) -> Object:
        """Lays a merge patch over the object; the world's later changes show where the patch says nothing."""
        current = self.get(resource, key)
        if current is None:
            raise conflict(resource, key[1], "the object is gone")
        where = (resource, key)
        if where in self._owned:
            self._owned[where] = merge(self._owned[where], patch)
        else:
            uid = current["metadata"]["uid"]
            self._overlays[resource, key, uid] = merge(
                self._overlays.get((resource, key, uid), {}), patch, keep_nulls=True
            )
        stored = self.refresh(resource, key)
        assert stored is not None
        return stored

    def remove(self, resource: str, key: Key) -> Object | None:
        """Deletes the object; the world's own stays hidden from then on. Gives the object as it was."""
        current = self.get(resource, key)
        if current is None:
            return None
        if self._owned.pop((resource, key), None) is None:
            self._deleted.add(current["metadata"]["uid"])
        self.refresh(resource, key)
        return current

    def owned(self, resource: str) -> list[tuple[Key, Object]]:
        """Objects that clients made."""
        return [(key, obj) for (kind, key), obj in self._owned.items() if kind == resource]

    def stamp(self) -> str:
        """The simulated now as objects carry it."""
        return rfc3339(self.at) or ""


def _same(old: Object, new: Object) -> bool:
    """Whether two versions of an object say the same, their resourceVersions aside."""
    version = old["metadata"].get("resourceVersion")
    return old == new | {"metadata": new["metadata"] | {"resourceVersion": version}}
