"""The queue's API from the command's side: one request, its errors as the command tells them.

Belongs here: HTTP of a client. Not here: flags and what is shown (`commands/queue.py`), the API (`scheduler/service`).
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import urllib3

from warehouse.errors import BadInput

_TRIES = 3
_BAD_REQUESTS = range(400, 500)
_UNAVAILABLE = 503


def first_token(path: Path) -> str:
    """The first token of a token file; `BadInput` where there is none."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return next(csv.DictReader(file))["token"]
    except (OSError, UnicodeDecodeError, StopIteration, KeyError):
        raise BadInput(f"no token: set STRANDLINE_QUEUE_TOKEN, or have {path} where the queue is served") from None


def checked_token(token: str) -> str:
    """The token; `BadInput`, which does not repeat it, where it cannot stand in a header."""
    if not token or not all("!" <= c <= "~" for c in token):
        raise BadInput("the token (--token, STRANDLINE_QUEUE_TOKEN) is not one word of printable ASCII characters")
    return token


def checked_url(url: str) -> str:
    """The address; `BadInput` where it is none of an HTTP service."""
    try:
        parts = urlsplit(url)
        is_fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_fine = False
    if not is_fine:
        raise BadInput(f"--url {url!r}: is no address like http://127.0.0.1:9410")
    return url


@dataclass(frozen=True)
class QueueClient:
    """The API at a URL, asked with a token."""

    url: str
    token: str

    def ask(
        self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None, key: str | None = None
    ) -> Any:
        """The JSON of an answer. With a key, or where nothing is changed, it is asked again when nobody answers.

        `BadInput` where the request is refused, `ConnectionError` where the service does not answer.
        """
        chosen = urlencode({k: v for k, v in (query or {}).items() if v is not None})
        url = f"{self.url.rstrip('/')}{path}" + (f"?{chosen}" if chosen else "")
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        headers |= {"Idempotency-Key": key} if key is not None else {}
        tries = _TRIES if key is not None or method in ("GET", "DELETE") else 1
        why = ""
        for n in range(tries):
            time.sleep(n)
            try:
                answer = urllib3.request(
                    method, url, body=None if body is None else json.dumps(body), headers=headers, retries=False,
                    timeout=urllib3.Timeout(connect=5, read=60),
                )  # fmt: skip
            except (urllib3.exceptions.HTTPError, UnicodeError) as error:
                why = f"{type(error).__name__}: {error}"
                continue
            if answer.status != _UNAVAILABLE:
                return _read(answer, f"{method} {path}")
            why = "HTTP 503"
        raise ConnectionError(f"no queue service answers at {self.url}: {why}")


def _read(answer: urllib3.BaseHTTPResponse, asked: str) -> Any:
    try:
        found = json.loads(answer.data)
    except ValueError:
        raise ConnectionError(f"{asked}: HTTP {answer.status} without JSON; is this the queue service?") from None
    if answer.status in _BAD_REQUESTS:
        parts = [str(found.get("detail") or found.get("title"))]
        parts += [f"{e.get('field')}: {e.get('message')}" for e in found.get("errors") or ()]
        raise BadInput(f"{asked}: " + "; ".join(parts))
    if answer.status >= 300:
        raise ConnectionError(f"{asked}: HTTP {answer.status}")
    return found
