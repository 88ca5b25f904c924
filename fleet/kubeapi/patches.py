"""Patches of objects: JSON merge patch, strategic merge patch, JSON patch, and the difference of two objects.

Pure functions on JSON values; they never change their arguments. Which object is patched is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from fleet.kubeapi.status import ApiError, bad_request

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

# Lists that a strategic merge patch merges by a key of their items (`patchMergeKey` in k8s.io/api/core/v1 types);
# every other list is replaced.
_MERGE_KEYS = {
    "conditions": "type",
    "addresses": "type",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "volumes": "name",
    "ownerReferences": "uid",
    "imagePullSecrets": "name",
}


def merge(target: Any, patch: Any, *, keep_nulls: bool = False) -> Any:
    """RFC 7386: `patch` over `target`; a null removes the field.

    With `keep_nulls` the nulls stay, which composes two patches into one.
    """
    if not isinstance(patch, Mapping):
        return deepcopy(patch)
    out = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None and not keep_nulls:
            out.pop(key, None)
        else:
            out[key] = None if value is None else merge(out.get(key), value, keep_nulls=keep_nulls)
    return out


def strategic(target: Any, patch: Any, field: str = "") -> Any:
    """Strategic merge patch for the core types served here, with `$patch: delete` and `$patch: replace`."""
    if isinstance(patch, list):
        key = _MERGE_KEYS.get(field)
        if key is None or not isinstance(target, list):
            return [deepcopy(item) for item in patch if not _directive(item)]
        if any(isinstance(item, Mapping) and item.get("$patch") == "replace" for item in patch):
            return [deepcopy(item) for item in patch if not _directive(item)]
        return _merge_list(target, patch, key)
    if not isinstance(patch, Mapping):
        return deepcopy(patch)
    if patch.get("$patch") == "replace":
        return {k: deepcopy(v) for k, v in patch.items() if k != "$patch"}
    out = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            out.pop(name, None)
        else:
            out[name] = strategic(out.get(name), value, name)
    return out


def _directive(item: Any) -> bool:
    return isinstance(item, Mapping) and "$patch" in item


def _merge_list(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    out = list(target)
    for item in patch:
        if not isinstance(item, Mapping) or key not in item:
            raise bad_request(f"map: {item!r} does not contain declared merge key: {key}")
        index = next((i for i, old in enumerate(out) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            if index is not None:
                del out[index]
        elif index is None:
            out.append(deepcopy(dict(item)))
        else:
            out[index] = strategic(out[index], item)
    return out


def json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902 with add, replace, remove and test; 422 where a path or a test does not hold."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    out = deepcopy(target)
    for operation in operations:
        try:
            out = _operate(out, operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ApiError(422, "Invalid", f"the server rejected our request due to an error in our request: "
                                           f"{operation!r}: {error}") from error  # fmt: skip
    return out


def _operate(document: Any, operation: Mapping[str, Any]) -> Any:
    parts = [p.replace("~1", "/").replace("~0", "~") for p in operation["path"].split("/")[1:]]
    if not parts:
        raise ValueError("the whole object cannot be replaced")
    parent = document
    for part in parts[:-1]:
        parent = parent[int(part)] if isinstance(parent, list) else parent[part]
    last, op = parts[-1], operation["op"]
    if isinstance(parent, list):
        index = len(parent) if last == "-" else int(last)
        if op == "add":
            parent.insert(index, operation["value"])
        elif op == "replace":
            parent[index] = operation["value"]
        elif op == "remove":
            del parent[index]
        elif op != "test" or parent[index] != operation["value"]:
            raise ValueError(f"operation {op} failed")
    elif op == "add" or (op == "replace" and last in parent):
        parent[last] = operation["value"]
    elif op == "remove":
        del parent[last]
    elif op != "test" or parent.get(last) != operation["value"]:
        raise ValueError(f"operation {op} failed")
    return document


def apply(target: dict[str, Any], patch: Any, content_type: str) -> dict[str, Any]:
    """`target` after a patch of that content type; 415 for another type."""
    if content_type == JSON_PATCH:
        return json_patch(target, patch)
    if content_type == MERGE:
        return merge(target, patch)
    if content_type == STRATEGIC:
        return strategic(target, patch)
    supported = ", ".join((JSON_PATCH, MERGE, STRATEGIC))
    raise ApiError(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {supported}",
    )


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that turns `old` into `new`; lists that differ are taken whole."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if before == value and key in old:
            continue
        patch[key] = difference(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return patch
