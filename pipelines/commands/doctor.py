"""`strandline doctor` and `strandline version`: what is installed, what is set and whether it can work."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.commands import options


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    data: options.Data = None,
) -> None:
    """Print every setting with its value and origin, and check the lake, the engine and Dagster's home.

    Exit code 1 where something cannot work.
    """
    import os
    import sys

    from pipelines import console, health
    from pipelines.settings import load, unknown_variables

    resolved = load({"data": data})
    checks = health.check(resolved.settings)
    ignored = unknown_variables(os.environ)
    if json:
        import orjson

        settings = {n: {"value": v, "origin": o, "meaning": d} for n, v, o, d in resolved.rows()}
        report = {"settings": settings, "unknown_variables": ignored, "checks": [c._asdict() for c in checks]}
        sys.stdout.buffer.write(orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n")
    else:
        console.table(("setting", "value", "origin", "meaning"), resolved.rows(), title="Settings")
        print()
        console.table(("check", "result", "detail"), [(c.name, c.result, c.detail) for c in checks], title="Checks")
        for name in ignored:
            console.say(f"{name} is set, but there is no such setting")
    if any(c.result == "fails" for c in checks):
        raise typer.Exit(1)


def version() -> None:
    """Print the version."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        print(f"strandline {installed('strandline')}")
    except PackageNotFoundError:
        print("strandline (not installed: run from a checkout)")
