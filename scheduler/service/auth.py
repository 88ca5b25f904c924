"""Who asks: bearer tokens with their team and role, from a file, and what each role may do.

The file is CSV or YAML with rows of `token`, `team`, `role`. Roles: `admin` (everything, all teams), `team` (reads,
submits and cancels its own), `read` (reads its own; with the team `*` everybody's). Only digests of tokens are kept,
and all are compared in constant time. Belongs here: identity and rights. Not here: requests (`api.py`).
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal, cast

from scheduler.replay.files import read_rows
from warehouse.errors import BadInput

Role = Literal["admin", "team", "read"]
EVERYBODY = "*"
TEAM = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
LEAST_TOKEN = 16
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750


@dataclass(frozen=True)
class Caller:
    """Who asks. `ident` stands for the token where one has to be told from another, and gives nothing of it away."""

    team: str
    role: Role
    ident: str

    @property
    def sees_all(self) -> bool:
        """Whether every team's jobs may be read."""
        return self.role == "admin" or self.team == EVERYBODY

    def may_read(self, team: str) -> bool:
        """Whether a team's jobs may be read."""
        return self.sees_all or team == self.team

    def may_write(self, team: str) -> bool:
        """Whether jobs of a team may be submitted and cancelled."""
        return self.role == "admin" or (self.role == "team" and team == self.team)


class Tokens:
    """All tokens that are known."""

    def __init__(self, tokens: Sequence[tuple[str, str, Role]]) -> None:
        self._known = [(sha256(token.encode()).digest(), team, role) for token, team, role in tokens]

    @property
    def teams(self) -> list[str]:
        """Teams that have a token of their own."""
        return sorted({team for _, team, _ in self._known if team != EVERYBODY})

    def caller(self, token: str) -> Caller | None:
        """Whose token it is; every known one is looked at, whichever fits."""
        digest = sha256(token.encode("utf-8", "surrogatepass")).digest()
        found: Caller | None = None
        for known, team, role in self._known:
            if hmac.compare_digest(known, digest):
                found = Caller(team, role, known.hex()[:16])
        return found


def read_tokens(path: Path) -> Tokens:
    """Tokens of a file. `BadInput` names file, line and field, never a token."""
    found: list[tuple[str, str, Role]] = []
    seen: set[str] = set()
    for row in read_rows(path, "tokens"):
        row.only(("token", "team", "role"))
        token, team, role = row.text("token"), row.text("team", EVERYBODY), row.text("role")
        if len(token) < LEAST_TOKEN or not _TOKEN.fullmatch(token):
            raise row.wrong("token", f"is no bearer token of at least {LEAST_TOKEN} letters, digits and ._~+/-")
        if token in seen:
            raise row.wrong("token", "stands twice")
        if role not in ("admin", "team", "read"):
            raise row.wrong("role", f"{role!r} is none of admin, team, read")
        if (team == EVERYBODY and role == "team") or (team != EVERYBODY and not TEAM.fullmatch(team)):
            raise row.wrong("team", f"{team!r} is no name of a team")
        seen.add(token)
        found.append((token, team, cast("Role", role)))
    if not found:
        raise BadInput(f"{path}: no token in it")
    return Tokens(found)
