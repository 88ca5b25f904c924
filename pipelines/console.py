"""What a person sees while a command runs. Belongs here: lines to stderr, progress, tables for the terminal.

Not here: results on stdout (`results.py`), which other programs read.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO


def say(line: str) -> None:
    """One line to stderr."""
    print(line, file=sys.stderr, flush=True)


def set_up_logging(verbose: bool) -> None:
    """Logs of every room to stderr: warnings, or everything where `verbose`."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    # These narrate every byte, or warn of what is meant; nobody who looks into Strandline wants that.
    for name in ("urllib3", "asyncio"):
        logging.getLogger(name).setLevel(logging.INFO if verbose else logging.ERROR)


@contextmanager
def steps(title: str, plain: bool = True) -> Iterator[_Steps]:
    """Progress of a longer piece of work: one live line on a terminal; elsewhere plain lines, or none."""
    progress = _Steps(title, sys.stderr, plain)
    try:
        yield progress
    finally:
        progress.close()


class _Steps:
    def __init__(self, title: str, stream: IO[str], plain: bool):
        self._title, self._stream, self._live, self._plain = title, stream, stream.isatty(), plain
        self._last = ""

    def __call__(self, text: str) -> None:
        """Say what is being done now; the same text twice is said once."""
        if text == self._last:
            return
        self._last = text
        if self._live:
            self._stream.write(f"\r\x1b[K{self._title}: {text}")
        elif self._plain:
            self._stream.write(f"{self._title}: {text}\n")
        self._stream.flush()

    def close(self) -> None:
        if self._live and self._last:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None, stream: IO[str] | None = None
) -> None:
    """A table on `stream` (stdout): drawn by rich on a terminal, aligned columns without decoration elsewhere."""
    stream = stream or sys.stdout
    cells = [["" if v is None else _one_line(str(v)) for v in row] for row in rows]
    right = [_numeric(row[i] for row in cells) for i in range(len(columns))]
    if stream.isatty():
        # rich is imported only where a person looks: it costs a third of the start of `query`.
        from rich.console import Console
        from rich.table import Table

        drawn = Table(title=title, title_justify="left", header_style="bold")
        for name, is_right in zip(columns, right, strict=True):
            drawn.add_column(name, justify="right" if is_right else "left", overflow="fold")
        for row in cells:
            drawn.add_row(*[v.replace("[", "\\[") for v in row])
        Console(file=stream).print(drawn)
        return
    if title:
        stream.write(f"{title}\n")
    widths = [max([len(c), *(len(row[i]) for row in cells)]) for i, c in enumerate(columns)]
    lines = [list(columns), ["-" * w for w in widths], *cells]
    for line in lines:
        padded = (v.rjust(w) if r else v.ljust(w) for v, w, r in zip(line, widths, right, strict=True))
        stream.write("  ".join(padded).rstrip() + "\n")


def _one_line(text: str) -> str:
    """The text without control characters: a label may hold line feeds, or sequences that steer a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _numeric(values: Iterable[str]) -> bool:
    seen = [v for v in values if v]
    return bool(seen) and all(v.replace(",", "").lstrip("-").replace(".", "", 1).isdigit() for v in seen)
