"""The `strandline` command: its subcommands, and what an error becomes.

Belongs here: registration and exit codes (0 done, 1 failed, 2 bad usage or bad data). Not here: flags and
work of a subcommand (`commands/`).
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from pipelines import console
from pipelines.commands import (
    build,
    close,
    demo,
    doctor,
    export,
    fleet,
    ingest,
    ingest_bills,
    ingest_prices,
    ingest_queue,
    query,
    queue,
    replay,
    report,
    ui,
)
from warehouse.errors import BadInput, LakeBusy

log = logging.getLogger(__name__)

app = typer.Typer(
    name="strandline",
    help="Who held and who used every GPU-second: telemetry lakehouse and batch analytics for GPU fleets.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _common(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log in detail, with tracebacks, to stderr.")
    ] = False,
) -> None:
    console.set_up_logging(verbose)


app.command()(demo.demo)
app.add_typer(fleet.app, name="fleet")
app.add_typer(ingest.app, name="ingest")
ingest.app.command()(ingest_prices.prices)
ingest.app.command()(ingest_bills.bills)
ingest.app.command("queue-events")(ingest_queue.queue_events)
app.command()(build.build)
app.command()(query.query)
app.command()(query.sql)
app.command()(export.export)
app.command()(close.close)
app.command()(export.catalog)
app.command()(report.report)
app.command()(replay.replay)
app.add_typer(queue.app, name="queue")
app.command()(doctor.doctor)
app.command()(ui.ui)
app.command()(doctor.version)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit. A traceback goes to the log (`--verbose`), never to a user by itself."""
    _prepare_streams()
    try:
        app(args=None if argv is None else list(argv))
    except SystemExit as e:
        # click turns a broken pipe into exit code 1 before we see it
        if not isinstance(e.__context__, BrokenPipeError):
            raise
        _drop_output()
    except BadInput as e:
        log.debug("bad input", exc_info=True)
        _fail(str(e), 2)
    except LakeBusy as e:
        _fail(str(e), 1)
    except BrokenPipeError:
        _drop_output()
    except Exception as e:
        if str(e) == "Query interrupted":  # what DuckDB makes of Ctrl-C
            _fail("interrupted", 130)
        log.debug("failed", exc_info=True)
        _fail(f"{type(e).__name__}: {e}" if str(e) else type(e).__name__, 1)
    sys.exit(0)


def _prepare_streams() -> None:
    """Streams that take any text: closed ones lead nowhere, pipes and files get UTF-8, terminals what they can show."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller; without this the next file opened would become our output
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (open to the end)
        elif isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _drop_output() -> NoReturn:
    """The reader of our output has gone, as in `| head`. What is left in the buffer has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(0)


def _fail(message: str, code: int) -> NoReturn:
    console.say(f"strandline: {message}")
    sys.exit(code)


if __name__ == "__main__":
    main()
