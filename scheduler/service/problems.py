"""Errors as problem JSON (RFC 9457), bounded bodies, and what of it stands in the OpenAPI document.

Nothing of a request is repeated in an answer but the names of fields, so that no token comes back. Belongs here: the
form of errors. Not here: when they come (`api.py`).
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scheduler.service.models import Problem

log = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
MOST_BODY = 256 * 1024
_MOST_ERRORS = 20


class ApiProblem(Exception):
    """A request that is refused with this status and detail."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


def problem(
    status: int, detail: str = "", headers: Mapping[str, str] | None = None, errors: list[dict[str, str]] | None = None
) -> Response:
    """The answer."""
    body = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, errors=errors or [])
    return JSONResponse(body.model_dump(), status, dict(headers or {}), MEDIA_TYPE)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These problems in the OpenAPI document of an operation."""
    schema = Problem.model_json_schema()
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """All errors of the application become problems."""

    @app.exception_handler(ApiProblem)
    async def _own(_: Request, error: ApiProblem) -> Response:
        return problem(error.status, error.detail, error.headers)

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> Response:
        return problem(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> Response:
        errors = [
            {"field": ".".join(map(str, e["loc"]))[:200], "message": str(e["msg"])[:500]}
            for e in error.errors()[:_MOST_ERRORS]
        ]
        return problem(422, "the request does not fit the schema", errors=_plain(errors))

    @app.exception_handler(sqlite3.Error)
    async def _log_away(_: Request, error: sqlite3.Error) -> Response:
        log.error("the event log does not take events: %s", error)
        return problem(503, "the event log does not take events now", {"Retry-After": "5"})


def _plain(errors: list[dict[str, str]]) -> list[dict[str, str]]:
    """Texts that can be encoded, whatever a request called its fields."""
    return [{k: v.encode("utf-8", "backslashreplace").decode() for k, v in e.items()} for e in errors]


class BoundedBody:
    """Refuses bodies of more than `most` bytes with 413, announced or not."""

    def __init__(self, app: ASGIApp, most: int = MOST_BODY) -> None:
        self.app, self.most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        told = dict(scope["headers"]).get(b"content-length", b"0")
        if not told.isdigit() or int(told[:20]) > self.most:
            await problem(413, f"a body has {self.most} bytes at most")(scope, receive, send)
            return
        body = b""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.most:
                await problem(413, f"a body has {self.most} bytes at most")(scope, receive, send)
                return
        is_read = False

        async def replay() -> Message:
            nonlocal is_read
            if is_read:
                return await receive()
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)
