"""Kubernetes Status objects: how the API server says what went wrong.

Error types and their bodies belong here (they follow k8s.io/apimachinery `api/errors`); when they are raised does not.
"""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """A request the API server refuses; `body()` is the Status object it answers with."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def body(self) -> dict[str, Any]:
        """The Status object."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details:
            status["details"] = self.details
        return status | {"code": self.code}


def success(details: dict[str, Any] | None = None, code: int | None = None) -> dict[str, Any]:
    """The Status object of a request that went well and has no object to show."""
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    return status | ({"code": code} if code else {})


def not_found(resource: str, name: str) -> ApiError:
    """404 for an object that is not there."""
    return ApiError(404, "NotFound", f'{resource} "{name}" not found', {"name": name, "kind": resource})


def unknown_path() -> ApiError:
    """404 for a path that no resource answers."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: str, name: str) -> ApiError:
    """409 for a create under a name that is taken."""
    return ApiError(409, "AlreadyExists", f'{resource} "{name}" already exists', {"name": name, "kind": resource})


def conflict(resource: str, name: str, why: str) -> ApiError:
    """409 for a write that does not fit the object's present state."""
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, {"name": name, "kind": resource})


def modified(resource: str, name: str) -> ApiError:
    """409 for a write against an older resourceVersion."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def bad_request(message: str) -> ApiError:
    """400 for a request that cannot be read."""
    return ApiError(400, "BadRequest", message)


def invalid(kind: str, name: str, field: str, why: str) -> ApiError:
    """422 for an object that breaks a rule of its schema."""
    causes = [{"reason": "FieldValueRequired", "message": why, "field": field}]
    message = f'{kind} "{name}" is invalid: {field}: {why}'
    return ApiError(422, "Invalid", message, {"name": name, "kind": kind, "causes": causes})


def expired_continue() -> ApiError:
    """410 for a continue token whose snapshot is gone."""
    return ApiError(
        410,
        "Expired",
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    )


def too_old(version: int, oldest: int) -> ApiError:
    """410 for a watch or list from a resourceVersion that the log no longer reaches."""
    return ApiError(410, "Expired", f"too old resource version: {version} ({oldest})")
