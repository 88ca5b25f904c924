"""The `strandline` command: its subcommands, and what an error becomes.

Belongs here: registration and exit codes (0 done, 1 failed, 2 bad usage or bad data). Not here: flags and
work of a subcommand (`commands/`).
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from pipelines import console
from pipelines.commands import build, demo, doctor, export, fleet, ingest, query, report, ui
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
app.command()(build.build)
app.command()(query.query)
app.command()(query.sql)
app.command()(export.export)
app.command()(export.catalog)
app.command()(report.report)
app.command()(doctor.doctor)
app.command()(ui.ui)
app.command()(doctor.version)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit. A traceback goes to the log (`--verbose`), never to a user by itself."""
    try:
        app(args=None if argv is None else list(argv))
    except BadInput as e:
        log.debug("bad input", exc_info=True)
        _fail(str(e), 2)
    except LakeBusy as e:
        _fail(str(e), 1)
    except BrokenPipeError:
        # The reader of our output has gone, as in `| head`. What is left in the buffer has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as e:
        log.debug("failed", exc_info=True)
        _fail(f"{type(e).__name__}: {e}" if str(e) else type(e).__name__, 1)
    sys.exit(0)


def _fail(message: str, code: int) -> NoReturn:
    console.say(f"strandline: {message}")
    sys.exit(code)


if __name__ == "__main__":
    main()
