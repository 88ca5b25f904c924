"""Label and field selectors: from the query string to a predicate on objects.

Parsing and matching belong here; which fields a resource may be selected by stands in `FIELD_PATHS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from fleet.kubeapi.status import bad_request

Predicate = Callable[[Mapping[str, Any]], bool]

# The field labels that the API server supports for each resource, and the value of an unset one.
FIELD_PATHS: dict[str, tuple[str, ...]] = {
    "pods": (
        "metadata.name",
        "metadata.namespace",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "nodes": ("metadata.name", "spec.unschedulable"),
    "namespaces": ("metadata.name", "status.phase"),
    "events": (
        "metadata.name",
        "metadata.namespace",
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}
_UNSET = {"spec.unschedulable": "false", "spec.hostNetwork": "false"}

_SET = re.compile(r"^\s*([\w./-]+)\s+(in|notin)\s+\(([^)]*)\)\s*$")
_EQUAL = re.compile(r"^\s*([\w./-]+)\s*(==|=|!=)\s*([\w.-]*)\s*$")
_EXISTS = re.compile(r"^\s*(!?)\s*([\w./-]+)\s*$")
_COMMA = re.compile(r",(?![^(]*\))")


def label_selector(text: str) -> Predicate:
    """Predicate of a label selector (`a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`); 400 when malformed."""
    tests = [_label_test(part, text) for part in _COMMA.split(text) if part.strip()]

    def matches(obj: Mapping[str, Any]) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(test(labels) for test in tests)

    return matches


def _label_test(part: str, whole: str) -> Callable[[Mapping[str, str]], bool]:
    if m := _SET.match(part):
        key, values = m[1], {v.strip() for v in m[3].split(",")}
        if m[2] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if m := _EQUAL.match(part):
        key, value = m[1], m[3]
        if m[2] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if m := _EXISTS.match(part):
        key, negated = m[2], bool(m[1])
        return lambda labels: (key in labels) != negated
    raise bad_request(f"unable to parse requirement: found '{part.strip()}' in label selector '{whole}'")


def field_selector(resource: str, text: str) -> Predicate:
    """Predicate of a field selector of terms `path=value`, `path==value` or `path!=value`; 400 on unknown paths."""
    terms: list[tuple[str, str, bool]] = []
    for part in text.split(","):
        if not part.strip():
            continue
        m = re.match(r"^\s*([\w.]+)\s*(!=|==|=)(.*)$", part)
        if m is None:
            raise bad_request(f"invalid field selector: '{text}'; can't understand '{part}'")
        if m[1] not in FIELD_PATHS.get(resource, ("metadata.name", "metadata.namespace")):
            raise bad_request(
                f'Unable to find "/v1, Resource={resource}" that match label selector "", field selector "{text}": '
                f"field label not supported: {m[1]}"
            )
        terms.append((m[1], m[3].strip(), m[2] != "!="))

    def matches(obj: Mapping[str, Any]) -> bool:
        return all((_value(obj, path) == value) == equal for path, value, equal in terms)

    return matches


def _value(obj: Mapping[str, Any], path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return str(value).lower()
    return _UNSET.get(path, "") if value is None else str(value)


def selector(resource: str, labels: str | None, fields: str | None) -> Predicate | None:
    """Both selectors as one predicate; None where neither is given."""
    tests = []
    if labels:
        tests.append(label_selector(labels))
    if fields:
        tests.append(field_selector(resource, fields))
    if not tests:
        return None
    return lambda obj: all(test(obj) for test in tests)
