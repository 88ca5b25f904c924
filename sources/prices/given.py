"""What a file gives, before it is understood: rows of texts with the lines they stand on.

Belongs here: the form that YAML and CSV are brought to. Not here: what the texts mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sources.prices.kinds import Kind

_SHOWN = 60


def shown(name: str) -> str:
    """A name from a file as it may be printed: in short, and unable to steer a terminal."""
    name = name if len(name) <= _SHOWN else name[:_SHOWN] + "…"
    return name if name.isprintable() else repr(name)


@dataclass(frozen=True)
class Given:
    """A text, the line it stands on (from 1), and the name that the file gives it where that is not the column's."""

    text: str
    line: int
    name: str | None = None


@dataclass(frozen=True)
class Problem:
    """Something wrong with a row: where and why."""

    line: int
    field: str
    reason: str

    def text(self, file: str) -> str:
        """As people are told it."""
        return f"{file}:{self.line}: {self.field}: {self.reason}"


@dataclass
class GivenRow:
    """A row of some kind: its columns as given (nothing for those that are empty), and what is already wrong."""

    kind: Kind
    line: int
    fields: dict[str, Given]
    problems: list[Problem] = field(default_factory=list)

    def line_of(self, column: str) -> int:
        """Where the column stands, or the row where it does not."""
        return self.fields[column].line if column in self.fields else self.line

    def name_of(self, column: str) -> str:
        """What the file calls the column."""
        return (self.fields[column].name if column in self.fields else None) or column

    def problem(self, column: str, reason: str) -> Problem:
        """A problem with a column, its text shown."""
        text = self.fields[column].text if column in self.fields else None
        value = "" if text is None else repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…") + " "
        return Problem(self.line_of(column), self.name_of(column), value + reason)
