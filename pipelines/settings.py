"""Settings, resolved in one place: lake's file < file < environment < flags. Nothing below reads the environment.

Belongs here: the settings themselves, their layers and where each value came from. Not here: what
is done with them, and how the models get them (`assets/recorded.py` writes them to raw tables).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
    YamlConfigSettingsSource,
)
from yaml import YAMLError

from pipelines.durations import format_duration, parse_duration
from warehouse.errors import BadInput

PREFIX = "STRANDLINE_"
FILES = ("strandline.toml", "strandline.yaml", "strandline.yml")
TEAM_SOURCES = ("pod_label", "namespace_label", "namespace_annotation", "mapping")
PRICE_SHARE_METHODS = ("whole_node", "aws_weights", "opencost_ratios")
UNUSED_POLICIES = ("central", "owner", "proportional")
# Set by the machinery around the command, not settings of their own.
OTHER_VARIABLES = ("STRANDLINE_CONFIG", "STRANDLINE_QUEUE_URL", "STRANDLINE_QUEUE_TOKEN")


def _positive_duration(value: object) -> object:
    if value is None or value == "":
        return None
    seconds = parse_duration(value)
    if seconds <= 0:
        raise ValueError("must be longer than zero")
    return seconds


def _split_list(value: object) -> object:
    return [v.strip() for v in value.split(",") if v.strip()] if isinstance(value, str) else value


def _split_map(value: object) -> object:
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in _split_list(value)]  # type: ignore[attr-defined]
    if any(not sep for _, sep, _ in pairs):
        raise ValueError("write namespace=team, separated by commas (cluster/namespace=team for one cluster)")
    return {k.strip(): v.strip() for k, _, v in pairs}


Seconds = Annotated[float | None, BeforeValidator(_positive_duration)]


class Settings(BaseSettings):
    """Everything that can be set. Read it with `load`, which names the origin of what is wrong.

    A field's description is what `strandline doctor` and the documentation say about it.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, env_ignore_empty=True)

    data: Path = Field(Path("data"), description="folder of the lake, its landing zone and Dagster's storage")
    scrape_interval: Seconds = Field(None, description="usual spacing of scrapes; default: each target's median")
    staleness: Seconds = Field(None, description="how long a sample may stand; default: 3 spacings, 5m at most")
    team_chain: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)] = Field(
        ("pod_label:team", "namespace_label:team", "namespace_annotation:team", "mapping"),
        description="where a pod's team is looked for, first answer wins",
    )
    team_map: Annotated[dict[str, str], NoDecode, BeforeValidator(_split_map)] = Field(
        {}, description="namespace (or cluster/namespace) to team, for the link `mapping` of the chain"
    )
    currency: str = Field("USD", description="ISO 4217 code of the currency that costs are stated in")
    price_share_method: str = Field(
        "whole_node",
        description="how a node's price becomes a price of its GPUs: whole_node, aws_weights, opencost_ratios, or "
        "fixed:GPU:CPU:MEMORY with shares that add up to 1",
    )
    unused_policy: str = Field(
        "central", description="who bears capacity that nobody used: central, owner or proportional"
    )
    queue_log: Path | None = Field(
        None, description="event log of the queue service, read hourly; default: queue/events.db in the data folder"
    )
    queue_cluster: str = Field("default", description="name of the cluster that the queue serves", min_length=1)
    queue_target_wait: Seconds = Field(3600.0, description="within which wait a job should start: mart.slo_daily")
    memory_limit: str | None = Field(None, description="memory of one SQL engine, for example 4GB")
    threads: int | None = Field(None, ge=1, le=1024, description="threads of one SQL engine; default: the cores")
    retention: Seconds = Field(
        35 * 86400.0, description="age at which vacuum drops files no longer in use: the audit window"
    )
    partitions_start: date = Field(date(2026, 1, 1), description="first partition that Dagster knows")

    @field_validator("team_chain")
    @classmethod
    def _known_links(cls, chain: tuple[str, ...]) -> tuple[str, ...]:
        for link in chain:
            source, _, key = link.partition(":")
            if source not in TEAM_SOURCES or bool(key) == (source == "mapping"):
                raise ValueError(
                    f"{link!r} is no link; write pod_label:KEY, namespace_label:KEY, namespace_annotation:KEY, mapping"
                )
        return chain

    @field_validator("currency")
    @classmethod
    def _is_currency(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Z]{3}", value):
            raise ValueError("write an ISO 4217 code such as USD")
        return value

    @field_validator("price_share_method")
    @classmethod
    def _is_method(cls, value: str) -> str:
        if value in PRICE_SHARE_METHODS:
            return value
        try:
            shares = [Decimal(part) for part in value.removeprefix("fixed:").split(":")]
        except InvalidOperation:
            shares = []
        if not value.startswith("fixed:") or len(shares) != 3 or sum(shares) != 1 or min(shares) < 0:
            raise ValueError(f"write {', '.join(PRICE_SHARE_METHODS)} or fixed:0.95:0.03:0.02 (shares of 1)")
        return value

    @field_validator("unused_policy")
    @classmethod
    def _is_policy(cls, value: str) -> str:
        if value not in UNUSED_POLICIES:
            raise ValueError(f"write one of {', '.join(UNUSED_POLICIES)}")
        return value

    @field_validator("memory_limit")
    @classmethod
    def _is_size(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"\d+(\.\d+)?\s*([KMGT]i?B|[KMGT]?B)", value, re.IGNORECASE):
            raise ValueError("write a size such as 4GB or 512MiB")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load` hands over: it reads the layers itself to know each value's origin."""
        return (init_settings,)

    def recorded(self) -> dict[str, str | None]:
        """The settings that models read, as rows of raw.settings: name to text, null where not set."""
        return {
            "scrape_interval_s": None if self.scrape_interval is None else f"{self.scrape_interval:.6f}",
            "staleness_s": None if self.staleness is None else f"{self.staleness:.6f}",
            "currency": self.currency,
            "price_share_method": self.price_share_method,
            "unused_policy": self.unused_policy,
            "queue_target_wait_s": None if self.queue_target_wait is None else f"{self.queue_target_wait:.6f}",
        }

    def queue_log_path(self) -> Path:
        """Where the event log of the queue service lies, or would."""
        return self.queue_log if self.queue_log is not None else self.data / "queue" / "events.db"

    def team_rules(self) -> list[tuple[int, str, str | None]]:
        """The chain as rows of raw.team_rules: (rank from 1, source, key)."""
        links = (link.partition(":") for link in self.team_chain)
        return [(rank, source, key or None) for rank, (source, _, key) in enumerate(links, 1)]

    def team_rows(self) -> list[tuple[str, str, str]]:
        """The mapping as rows of raw.team_map: (cluster or *, namespace, team)."""
        split = ((k.rpartition("/"), team) for k, team in sorted(self.team_map.items()))
        return [(cluster or "*", namespace, team) for (cluster, _, namespace), team in split]


class Resolved:
    """Settings and, for every field, where its value came from."""

    def __init__(self, settings: Settings, origins: Mapping[str, str], config_file: Path | None):
        self.settings = settings
        self.origins = dict(origins)
        self.config_file = config_file

    def rows(self) -> list[tuple[str, str, str, str]]:
        """(name, value as text with secrets masked, origin, description) of every setting."""
        out = []
        for name, field in Settings.model_fields.items():
            value = getattr(self.settings, name)
            out.append((name, mask(_show(name, value)), self.origins.get(name, "default"), field.description or ""))
        return out


def _show(name: str, value: object) -> str:
    if value is None:
        return "(not set)"
    if isinstance(value, float):
        return format_duration(value)
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, dict):
        return ", ".join(f"{k}={v}" for k, v in value.items()) or "(empty)"
    return str(value)


def mask(text: str) -> str:
    """The text with passwords inside URLs and bearer tokens replaced by ***."""
    text = re.sub(r"(?<=://)([^/@:\s]+):[^/@\s]+@", r"\1:***@", text)
    return re.sub(r"(?i)(bearer\s+|token=|password=)\S+", r"\1***", text)


def _find_file(environ: Mapping[str, str], folder: Path) -> Path | None:
    named = environ.get("STRANDLINE_CONFIG")
    if named and not Path(named).is_file():
        raise BadInput(f"STRANDLINE_CONFIG names {named}, which is no file")
    return Path(named) if named else next((folder / n for n in FILES if (folder / n).is_file()), None)


def _read_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    source_of = TomlConfigSettingsSource if path.suffix == ".toml" else YamlConfigSettingsSource
    try:
        content: Any = source_of(Settings, path)()
    except (ValueError, TypeError, OSError, YAMLError) as e:
        raise BadInput(f"{path}: {e}") from e
    if not isinstance(content, dict):
        raise BadInput(f"{path}: settings are expected as name = value")
    unknown = sorted(set(content) - set(Settings.model_fields))
    if unknown:
        raise BadInput(f"{path}: unknown setting {unknown[0]!r}; known: {', '.join(Settings.model_fields)}")
    return content


def load(
    flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> Resolved:
    """Resolve the settings: the lake's own file < file < environment < flags (a flag of None was not given).

    The file is the one `STRANDLINE_CONFIG` names, else strandline.toml or .yaml in `folder` (default: the
    current one). A lake may carry a strandline.toml in its folder, for what belongs to its data (the demo's
    team mapping does). Raises `BadInput` naming the setting and where its value came from.
    """
    environ = os.environ if environ is None else environ
    path = _find_file(environ, folder or Path.cwd())
    from_file = _read_file(path)
    env_source = EnvSettingsSource(Settings)
    env_source.env_vars = {k.lower(): v for k, v in environ.items() if v}
    from_env = env_source()
    from_flags = {k: v for k, v in (flags or {}).items() if v is not None}
    layers = [(from_file, f"file {path}"), (from_env, "environment"), (from_flags, "flag")]
    data = next((layer["data"] for layer, _ in reversed(layers) if "data" in layer), "data")
    own = Path(data) / FILES[0]
    if own.is_file() and not (path and path.exists() and own.samefile(path)):
        from_lake = _read_file(own)
        if "data" in from_lake:
            raise BadInput(f"{own}: data cannot be set in the lake's own file")
        layers.insert(0, (from_lake, f"lake's file {own}"))
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer, origin in layers:
        merged |= layer
        for name in layer:
            suffix = {"environment": f" {PREFIX}{name.upper()}", "flag": f" --{name.replace('_', '-')}"}
            origins[name] = origin + suffix.get(origin, "")
    try:
        settings = Settings(**merged)
    except ValidationError as e:
        first = e.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        message = str(first["msg"]).removeprefix("Value error, ")
        raise BadInput(f"{origins.get(name, 'default')}: {name}: {message}") from e
    return Resolved(settings, origins, path)


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """STRANDLINE_* variables that set nothing, most likely misspelt."""
    known = {f"{PREFIX}{n.upper()}" for n in Settings.model_fields} | set(OTHER_VARIABLES)
    return sorted(k for k in environ if k.startswith(PREFIX) and k not in known)
