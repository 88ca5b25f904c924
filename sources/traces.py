"""Job traces as other people published them, read into one form.

Formats, told by their columns (CSV with a header, or Parquet):

* generic: `submit_time` (a time, UTC where no zone is given) or `submit_s` (seconds from any origin),
  `duration_s`, `num_gpus`, one of `group`, `vc`, `team` (optional) and `name` (optional);
* Philly (Microsoft): the generic form with `submit_time`, `duration_s`, `num_gpus`, `vc`, `job_id`;
* openb (Alibaba GPU trace 2023): `name`, `num_gpu`, `gpu_milli`, `creation_time`, `deletion_time`, `qos`.

Any of them may have `cpu_milli`, `memory_mib` (of the whole job) and `gpu_spec`, a list of models joined by a bar.
What is made of a trace (shifting it in time, a fleet that fits) is not decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from warehouse.errors import BadInput

_GROUPS = ("group", "vc", "team", "qos", "user")
_NAMES = ("name", "job_id")
_SHOWN = 20
# fields that are whole numbers
_WHOLE = ("num_gpus", "gpu_milli", "cpu_milli", "memory_mib")
# Three centuries in seconds: beyond it is a wrong unit, and microseconds would soon leave 64 bits.
_MOST_S = 1e10
_MOST = {
    "submit_s": _MOST_S, "duration_s": _MOST_S, "num_gpus": 1e6, "gpu_milli": 1000, "cpu_milli": 1e12,
    "memory_mib": 1e12,
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One job: submit time in seconds (since 1970 where the trace has times, else from its origin), run time
    in seconds, GPUs (0 for CPU-only jobs), group (team, virtual cluster; empty if the trace has none), name.

    `gpu_milli` is the share of each GPU in thousandths; below 1000 only for a shared single GPU. `cpu_milli` and
    `memory_mib` are of the whole job, 0 where the trace does not say. `models` are the GPU models it may run on, best
    liked first; empty: any.
    """

    submit_s: float
    duration_s: float
    num_gpus: int
    group: str = ""
    name: str = ""
    gpu_milli: int = 1000
    cpu_milli: int = 0
    memory_mib: int = 0
    models: tuple[str, ...] = ()


def read_trace(path: Path | str) -> list[Job]:
    """The jobs of a trace file in the order of submission, then name (stable).

    `BadInput` names the file and the missing columns, or row and field of what cannot be read, times before 1970 or
    below 0 among it; rows count from 1 without the header.
    """
    path = Path(path)
    table = _load(path)
    columns = set(table.columns)
    if {"creation_time", "deletion_time", "num_gpu"} <= columns:
        table = table.with_columns(submit_s=pl.col("creation_time"), num_gpus=pl.col("num_gpu"))
        table = table.with_columns(
            _number(table, "deletion_time").alias("ends"), _number(table, "creation_time").alias("starts")
        )
        table = table.with_columns(duration_s=pl.col("ends") - pl.col("starts"))
    elif missing := [c for c in ("duration_s", "num_gpus") if c not in columns]:
        raise BadInput(f"{path}: no column {' and '.join(missing)}; columns are {', '.join(table.columns)}")
    if "submit_s" not in table.columns and "submit_time" not in table.columns:
        raise BadInput(f"{path}: no column submit_time or submit_s; columns are {', '.join(table.columns)}")
    _check_types(path, table)
    fields = {
        "submit_s": _number(table, "submit_s") if "submit_s" in table.columns else _epoch(table),
        "duration_s": _number(table, "duration_s"),
        "num_gpus": _number(table, "num_gpus"),
        "gpu_milli": _number(table, "gpu_milli") if "gpu_milli" in table.columns else pl.lit(1000.0),
        "cpu_milli": _number(table, "cpu_milli") if "cpu_milli" in table.columns else pl.lit(0.0),
        "memory_mib": _number(table, "memory_mib") if "memory_mib" in table.columns else pl.lit(0.0),
    }
    read = table.select(
        *(e.alias(n) for n, e in fields.items()),
        _text(table, _GROUPS).alias("group"),
        _text(table, _NAMES).alias("name"),
        _text(table, ("gpu_spec",)).alias("gpu_spec"),
    )
    _check(path, table, read)
    read = read.sort("submit_s", "name", maintain_order=True)
    return [
        Job(s, d, int(g), group, name, int(m), int(c), int(mib), tuple(x for x in spec.split("|") if x))
        for s, d, g, m, c, mib, group, name, spec in read.iter_rows()
    ]


def _load(path: Path) -> pl.DataFrame:
    try:
        if path.suffix.lower() == ".parquet":
            return pl.read_parquet(path)
        return pl.read_csv(path, infer_schema=False)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (OSError, pl.exceptions.PolarsError) as error:
        raise BadInput(f"{path}: not a readable {'Parquet' if path.suffix == '.parquet' else 'CSV'} file: "
                       f"{str(error).splitlines()[0]}") from None  # fmt: skip


def _number(table: pl.DataFrame, column: str) -> pl.Expr:
    if table.schema[column] == pl.String:
        return pl.col(column).str.strip_chars().cast(pl.Float64, strict=False)
    return pl.col(column).cast(pl.Float64, strict=False)


def _check_types(path: Path, table: pl.DataFrame) -> None:
    """Refuse columns whose type is neither text nor a number (nor, of the submission, a time)."""
    for column in ("submit_s", "submit_time", "creation_time", "deletion_time", "duration_s", "num_gpu", *_WHOLE):
        type_ = table.schema.get(column)
        is_time = column == "submit_time" and isinstance(type_, pl.Datetime | pl.Date)
        if type_ is not None and type_ != pl.String and not type_.is_numeric() and not is_time:
            raise BadInput(f"{path}: column {column}: {type_} is neither text nor numbers")


def _epoch(table: pl.DataFrame) -> pl.Expr:
    """submit_time as seconds since 1970."""
    time = pl.col("submit_time")
    type_ = table.schema["submit_time"]
    if type_ == pl.String:
        formats = (
            "%Y-%m-%d %H:%M:%S%.f",
            "%Y-%m-%dT%H:%M:%S%.f",
            "%Y-%m-%dT%H:%M:%S%.fZ",
            "%Y-%m-%d %H:%M",
            "%Y-%m-%d",
        )
        plain = [time.str.strptime(pl.Datetime("us"), f, strict=False) for f in formats]
        zones = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z")
        zoned = [time.str.strptime(pl.Datetime("us", "UTC"), f, strict=False) for f in zones]
        time = pl.coalesce(*plain, *(z.dt.replace_time_zone(None) for z in zoned))
    elif isinstance(type_, pl.Datetime) and type_.time_zone:
        time = time.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    elif type_.is_numeric():
        return time.cast(pl.Float64)
    return time.cast(pl.Datetime("us"), strict=False).cast(pl.Int64).cast(pl.Float64) / 1e6


def _text(table: pl.DataFrame, names: tuple[str, ...]) -> pl.Expr:
    given = [pl.col(n).cast(pl.String) for n in names if n in table.columns]
    return pl.coalesce(*given, pl.lit("")) if given else pl.lit("")


def _check(path: Path, table: pl.DataFrame, read: pl.DataFrame) -> None:
    """Refuse rows with a field that is missing, no finite number, negative, not whole or far too large."""
    source = {"submit_s": "submit_s" if "submit_s" in table.columns else "submit_time"}
    messages = []
    for column in ("submit_s", "duration_s", "num_gpus", "gpu_milli", "cpu_milli", "memory_mib"):
        value = pl.col(column)
        bad = value.is_null() | ~value.is_finite() | (value < 0) | (value > _MOST[column])
        if column in _WHOLE:
            bad = bad | (value != value.floor())
        for row in read.select(bad.fill_null(True).arg_true()).to_series().head(_SHOWN + 1).to_list():
            name = source.get(column, column)
            given = table[name][row] if name in table.columns else None
            messages.append(
                (row, f"{path}: row {row + 1}: {name}: {given!r} is no {'time' if 'time' in name else 'valid number'}")
            )
    if messages:
        shown = [text for _, text in sorted(messages)[:_SHOWN]]
        raise BadInput("\n".join(shown + (["..."] if len(messages) > _SHOWN else [])))
