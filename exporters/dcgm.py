"""The DCGM exporter of the simulated fleet: rows of `raw.dcgm_samples` back to the text they came from.

The collector (a `prometheus_client` custom collector) and the text renderer belong here; where rows come from and how
they are served does not. The renderer is our own because `prometheus_client.generate_latest` appends `_total` to every
counter, sorts labels by name and prints integers as `31.0` and large numbers with exponents, none of which
dcgm-exporter does (knowledge/telemetry.md §1.5); it can go when that function takes a formatter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from exporters.dcgm_fields import DEVICE_LABELS, HELP, POD_LABELS
from fleet.exported import EXPORTED, Exported

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# What DCGM stores for "not supported" in an INT64 field. Its float64 neighbours all read as 2**63, so any of them
# stands for the row's value; this is the one seen most in real scrapes (knowledge/telemetry.md §1.6).
_INT64_NOT_SUPPORTED = 9223372036854775794
_TWO_63 = float(2**63)


def exported_value(field: Exported, value: float) -> int | float:
    """The number the exporter prints for a column's value, in the exported unit: `int` for `%d`, `float` for `%f`.

    Exact inverse of reading: `float(printed) * field.factor == value` for every value that was made that way.
    """
    quotient = value / field.factor
    if field.format == "float":
        return quotient
    if quotient >= _TWO_63 * (1 - 1e-9):
        return _INT64_NOT_SUPPORTED
    return round(quotient)


class DcgmCollector(Collector):
    """Metric families of the rows that `read_rows` gives at the moment of the scrape.

    `pod_labels` is the exporter's Kubernetes mapping: off drops the labels, on writes them where the row has them.
    With `empty_pod_labels` a device without a pod gets them empty, as exporters before 4.x wrote them, instead of
    not at all.
    """

    def __init__(
        self,
        read_rows: Callable[[], pa.Table],
        *,
        pod_labels: bool = True,
        empty_pod_labels: bool = False,
        fields: Iterable[Exported] = EXPORTED,
    ) -> None:
        self._read_rows = read_rows
        self._pod_labels = pod_labels
        self._empty_pod_labels = empty_pod_labels
        self._fields = tuple(fields)

    def describe(self) -> list[Metric]:
        """The families without samples, so that registering does not scrape."""
        return [Metric(field.metric, HELP[field.metric], field.type) for field in self._fields]

    def collect(self) -> Iterator[Metric]:
        """One family per field that at least one row has a value for; blank fields are absent, as in DCGM's."""
        rows = self._read_rows()
        if rows.num_rows == 0:
            return
        labels = self._labels(rows)
        present = set(rows.column_names)
        for field in self._fields:
            if field.column not in present:
                continue
            metric = Metric(field.metric, HELP[field.metric], field.type)
            for row_labels, value in zip(labels, rows.column(field.column).to_pylist(), strict=True):
                if value is not None and not math.isnan(value):
                    metric.add_sample(field.metric, row_labels, exported_value(field, value))
            if metric.samples:
                yield metric

    def _labels(self, rows: pa.Table) -> list[dict[str, str]]:
        wanted = DEVICE_LABELS + (POD_LABELS if self._pod_labels else ())
        names = [(label, column) for label, column in wanted if column in rows.column_names]
        columns = [rows.column(column).to_pylist() for _, column in names]
        always = {label for label, _ in POD_LABELS[:3]} if self._empty_pod_labels else set()
        out = []
        for values in zip(*columns, strict=True):
            labels: dict[str, str] = {}
            for (label, _), value in zip(names, values, strict=True):
                if value is not None:
                    labels[label] = str(value)
                elif label in always:
                    labels[label] = ""
            out.append(labels)
        return out


def render(metrics: Iterable[Metric]) -> bytes:
    """The families as dcgm-exporter's template writes them: labels in the given order, `%d` or `%f`, no escaping."""
    parts: list[str] = []
    # A row's labels are one dict shared by all its samples; it is kept beside its text so that its id stays its own.
    texts: dict[int, tuple[dict[str, str], str]] = {}
    for metric in metrics:
        parts.append(f"# HELP {metric.name} {metric.documentation}\n# TYPE {metric.name} {metric.type}\n")
        for sample in metric.samples:
            known = texts.get(id(sample.labels))
            if known is None:
                text = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
                known = texts[id(sample.labels)] = (sample.labels, text)
            value = sample.value
            number = f"{value:d}" if isinstance(value, int) else f"{value:.6f}"
            parts.append(f"{sample.name}{{{known[1]}}} {number}\n")
    return "".join(parts).encode()


def render_rows(rows: pa.Table, *, pod_labels: bool = True, empty_pod_labels: bool = False) -> bytes:
    """The exporter's whole body for rows of one target and instant; empty bytes for no rows.

    The options are those of `DcgmCollector`.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(DcgmCollector(lambda: rows, pod_labels=pod_labels, empty_pod_labels=empty_pod_labels))
    return render(registry.collect())


def bodies(rows: pa.Table, *, pod_labels: bool = True) -> dict[tuple[str, str], bytes]:
    """Bodies per (cluster, target) of rows of one instant, in the order the targets first appear."""
    groups: dict[tuple[str, str], list[int]] = {}
    keys = zip(rows.column("cluster").to_pylist(), rows.column("target").to_pylist(), strict=True)
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    return {key: render_rows(rows.take(indices), pod_labels=pod_labels) for key, indices in groups.items()}
