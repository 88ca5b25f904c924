"""`strandline ui`: Dagster's web interface and daemon on this machine."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from pipelines.commands import options
from warehouse.errors import BadInput


def check_port(port: int) -> None:
    """`BadInput` where something listens on the port already: Dagster would start half and stay."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as e:
            raise BadInput(f"--port: 127.0.0.1:{port} cannot be used: {e.strerror}; give another one") from None


def ui(
    port: Annotated[int, typer.Option("--port", help="Port on 127.0.0.1.", min=1, max=65535)] = 3000,
    data: options.Data = None,
) -> None:
    """Start Dagster (web interface, schedules, sensors) on 127.0.0.1 over this lake; stop it with Ctrl-C.

    Runs, schedules and logs are kept under the data folder, in dagster/.
    """
    import os
    import signal
    import sys

    from pipelines import console, instance

    settings = options.settings(data=data)
    check_port(port)
    home = instance.prepare_home(settings.data)
    environ = instance.environment(settings.data, os.environ)
    console.say(f"Dagster on http://127.0.0.1:{port} (home {home}); Ctrl-C stops it")
    console.say("schedules and the late-data sensor are off until they are switched on there, under Automation")
    # Dagster recommends its newer `dg` here, which needs a project laid out its way.
    quiet = ("-W", "ignore:Function `dev_command` is superseded")
    command = [
        sys.executable,
        *quiet,
        "-m",
        "dagster",
        "dev",
        "-m",
        "pipelines.definitions",
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    # A shell's background job starts with Ctrl-C ignored, and Dagster would then never stop.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execvpe(command[0], command, environ)  # noqa: S606 - replaces this process, so that Ctrl-C reaches Dagster
