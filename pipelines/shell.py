"""The small SQL shell of `strandline sql`: reads lines, runs queries, keeps history.

Belongs here: the loop and its dot commands. Not here: what may run (`reading.py`), how results look (`results.py`).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import get_args

from pipelines import console, reading, results
from pipelines.settings import Settings
from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput

PROMPT, MORE = "strandline> ", "       ...> "


def run(settings: Settings, form: results.Format) -> int:
    """Run until the input ends; 0, or 2 where a query of a script (not of a person) was wrong: then it stops there."""
    if form not in get_args(results.Format) or form == "parquet":
        raise BadInput("--format parquet is for `strandline query`: a shell prints several results")
    interactive = sys.stdin.isatty()
    con = reading.open_reader(settings)
    try:
        with _history(settings) if interactive else contextlib.nullcontext():
            for text in _inputs(interactive):
                try:
                    if text.startswith("."):
                        if text in (".quit", ".exit"):
                            break
                        if text == ".refresh":
                            con.close()
                            con = reading.open_reader(settings)
                        else:
                            _dot(text)
                        continue
                    for statement in reading.statements(con, text):
                        reading.run(con, statement)
                        results.write(con, form, None)
                except BadInput as e:
                    console.say(str(e))
                    if not interactive:
                        return 2
    finally:
        con.close()
    return 0


def _dot(text: str) -> None:
    command, _, argument = text.partition(" ")
    if command == ".tables":
        console.table(("table", "grain"), [(t.name, t.grain) for t in CONTRACTS.values()])
    elif command == ".schema":
        table = CONTRACTS.get(argument.strip())
        if table is None:
            raise BadInput(f"no table {argument.strip()!r}; .tables lists them")
        console.table(("column", "type", "meaning"), [(f.name, f.type, f.description) for f in table.fields])
    else:
        raise BadInput(f"no command {command!r}; there are .tables, .schema TABLE, .refresh and .quit")


def _inputs(interactive: bool) -> Iterator[str]:
    """Texts to run: whole statements from a person, the script at once from a pipe (DuckDB splits it)."""
    if not interactive:
        pending: list[str] = []
        for line in sys.stdin:
            if line.startswith("."):
                if "".join(pending).strip():
                    yield "".join(pending)
                pending = []
                yield line.strip()
            else:
                pending.append(line)
        if "".join(pending).strip():
            yield "".join(pending)
        return
    buffer = ""
    while True:
        try:
            line = input(MORE if buffer else PROMPT)
        except EOFError:
            console.say("")
            return
        except KeyboardInterrupt:
            buffer = ""
            console.say("")
            continue
        if not buffer and line.strip().startswith("."):
            yield line.strip()
            continue
        buffer = f"{buffer}\n{line}" if buffer else line
        if not buffer.strip():
            buffer = ""
        elif buffer.rstrip().endswith(";"):
            yield buffer
            buffer = ""


@contextlib.contextmanager
def _history(settings: Settings) -> Iterator[None]:
    """Arrow keys and a history file in the data folder, where Python was built with readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    path = settings.data / "state" / "sql_history"
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(1000)
    try:
        yield
    finally:
        # A data folder that may only be read is no reason to fail at the end of a session.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)
