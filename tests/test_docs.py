"""README and build log against the code: commands, tables, settings, pictures and links that exist.

`UPDATE_GOLDEN=1` rewrites the generated blocks of the README.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

from pipelines.cli import app
from pipelines.settings import PREFIX, Settings, load
from warehouse.contracts import CONTRACTS

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
ROOT_COMMAND = typer.main.get_command(app)
MAKE = re.compile(r"\bmake ([a-z]+)")


def commands(
    command: click.Command = ROOT_COMMAND, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with the words that name it."""
    children = getattr(command, "commands", None)
    if not children:
        yield path, command
        return
    for name, child in children.items():
        yield from commands(child, (*path, name))


def quoted_lines() -> list[str]:
    """Every `strandline …` with flags or arguments in the README, from fenced blocks and inline code."""
    text = README.read_text("utf-8")
    blocks = re.findall(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    prose = re.sub(r"^```\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines += [re.sub(r"\s+", " ", code) for code in re.findall(r"`([^`]+)`", prose)]
    return [line.strip() for line in lines if line.strip().startswith("strandline ")]


def words_of(line: str) -> list[str]:
    return shlex.split(line, comments=True)[1:]


@pytest.mark.parametrize("line", quoted_lines())
def test_every_command_line_of_the_readme_parses(line: str) -> None:
    command, words, context = ROOT_COMMAND, words_of(line), None
    context = click.Context(command, info_name="strandline")
    while children := getattr(command, "commands", None):
        assert words and words[0] in children, f"{line}: {words[:1]} is no command"
        command = children[words.pop(0)]
        context = click.Context(command, parent=context)
    known = {o for p in command.params for o in (*p.opts, *p.secondary_opts) if o.startswith("-")} | {"--help", "-h"}
    assert {w for w in words if w.startswith("--")} <= known, line
    if words:
        # Fills parameters as the command would, without running it; files need not exist here.
        command.make_context(line, list(words), parent=context.parent, resilient_parsing=False)


def test_every_command_is_mentioned_and_has_help() -> None:
    lines = quoted_lines()
    for path, command in commands():
        assert (command.help or "").strip(), path
        assert any(words_of(line)[: len(path)] == list(path) for line in lines), f"README never shows {' '.join(path)}"


def test_every_option_has_help() -> None:
    for path, command in commands():
        for parameter in command.params:
            assert getattr(parameter, "help", None), (path, parameter.name)


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    fenced_or_code = "\n".join(
        re.findall(r"`[^`]+`|^```\n.*?^```", README.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    )
    assert set(MAKE.findall(fenced_or_code)) <= targets


def table_block() -> str:
    """Marts open, the layers below folded: who reads starts with the marts."""
    parts = []
    for layer in ("mart", "core", "raw"):
        tables = [t for t in CONTRACTS.values() if t.layer == layer]
        rows = [f"| `{t.name}` | {t.grain} | {', '.join(t.key)} | {t.window} | {t.description} |" for t in tables]
        body = "\n".join(["| table | grain | key | replaced by | what it holds |", "|---|---|---|---|---|", *rows])
        fold = f"<details><summary>{layer}: {len(tables)} tables</summary>\n\n{body}\n\n</details>"
        parts.append(body if layer == "mart" else fold)
    return "\n\n".join(parts)


def settings_block() -> str:
    described = {
        name: (value, meaning) for name, value, _, meaning in load({}, environ={}, folder=ROOT / "tests").rows()
    }
    rows = [
        f"| `{name}` | `{PREFIX}{name.upper()}` | {described[name][0]} | {described[name][1]} |"
        for name in Settings.model_fields
    ]
    return "\n".join(["| name | environment | default | meaning |", "|---|---|---|---|", *rows])


@pytest.mark.parametrize(("name", "block"), [("tables", table_block), ("settings", settings_block)])
def test_generated_blocks_are_in_step(name: str, block: object) -> None:
    assert callable(block)
    text = README.read_text("utf-8")
    found = re.search(rf"(<!-- {name}: [^\n]*-->\n)(.*?)(<!-- /{name} -->)", text, re.DOTALL)
    assert found, f"README has no block {name}"
    wanted = f"\n{block()}\n\n"
    if os.environ.get("UPDATE_GOLDEN"):
        README.write_text(text[: found.start(2)] + wanted + text[found.end(2) :], "utf-8")
        return
    assert found[2] == wanted, "run UPDATE_GOLDEN=1 pytest tests/test_docs.py and read the difference"


@pytest.mark.parametrize("page", sorted([README, *(ROOT / "docs").rglob("*.md")]), ids=lambda p: p.name)
def test_links_and_pictures_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_pictures_are_of_a_reasonable_size() -> None:
    for path in (ROOT / "docs" / "images").iterdir():
        assert path.stat().st_size < 400_000, path
