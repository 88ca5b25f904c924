"""What the label block of a sample line says: which GPU, which pod, which host.

Strict about the exposition format, lenient about spelling. The same block text comes with every
scrape of a series, so what is read here is cached by the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, cast

_PAIR = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\\n]|\\[\\"n])*)"\s*(?:,|$)')
_SMALL_NUMBER = re.compile(r"[0-9]{1,9}")
_ESCAPE = re.compile(r"\\(.)")
_CACHE_LIMIT = 400_000

# dcgm-exporter under its usual names; its own pod on a GPU row says who was scraped, not who holds the GPU.
_EXPORTER_POD = re.compile(r"(^|-)dcgm-exporter(-|$)|^nvidia-dcgm(-|$)")
_EXPORTER_NAMESPACES = frozenset({"gpu-operator", "gpu-operator-resources", "nvidia-gpu-operator", "dcgm-exporter"})
_NOT_A_GPU = ("nvlink", "nvswitch", "cpu", "cpucore")


class Device(NamedTuple):
    """What a row is about: physical GPU (the parent's UUID under MIG) and GPU instance."""

    gpu_uuid: str
    gi_id: int | None


class RowKey(NamedTuple):
    """Lines of one scrape with equal keys make one row of raw.dcgm_samples."""

    device: Device
    hint_namespace: str | None
    hint_pod: str | None
    hint_container: str | None
    hint_pod_uid: str | None
    vgpu: str | None
    hpc_job: str | None

    @property
    def is_shared_copy(self) -> bool:
        """Whether the row claims a holder; the device's own row claims none."""
        return any(self[1:])


class Attributes(NamedTuple):
    """Properties of the device as labelled; lines of one row may each know only some of them."""

    gpu_index: int | None
    pci_bus_id: str | None
    device: str | None
    mig_profile: str | None
    model: str | None
    driver: str | None
    host: str | None


class Labels(NamedTuple):
    """A label block, read. `row` is None where the line is about no GPU (NVLink, NVSwitch, CPU, self).

    Equal ones from `read_labels` are one object, and so are equal rows and attributes in them, so that
    the thousands of a scrape can be told apart by identity.
    """

    series: tuple[tuple[str, str], ...]
    row: RowKey | None
    attributes: Attributes | None


class BadLabels(ValueError):
    """The block is not well-formed or says something impossible; the message is the reason."""


def parse_pairs(text: str) -> dict[str, str]:
    """Label pairs of the text between the braces; `BadLabels` where an exposition parser must refuse."""
    pairs: dict[str, str] = {}
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _PAIR.match(text, position)
        if match is None or (match.end() < len(text) and text[match.end() - 1] != ","):
            raise BadLabels("malformed labels (an unescaped quote or backslash?)")
        name, value = match.groups()
        if name in pairs:
            raise BadLabels(f"label {name} twice")
        pairs[name] = _ESCAPE.sub(lambda m: "\n" if m[1] == "n" else m[1], value) if "\\" in value else value
        position = match.end()
    return pairs


_cache: dict[str, Labels | BadLabels] = {}
_same: dict[tuple, tuple] = {}


def read_labels(block: str) -> Labels | BadLabels:
    """A block `{...}` (outer spaces allowed), read; the error is returned so that it is cached too."""
    known: Labels | BadLabels | None = _cache.get(block)
    if known is None:
        if len(_cache) >= _CACHE_LIMIT:  # pods come and go: a collector that runs for months must not grow
            _cache.clear()
            _same.clear()
        try:
            read = _read(block)
            parts = (part if part is None else _same.setdefault(part, part) for part in read)
            known = cast(Labels, _same.setdefault(read, Labels._make(parts)))
        except BadLabels as error:
            known = error
        _cache[block] = known
    return known


def _read(block: str) -> Labels:
    text = block.strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise BadLabels("malformed labels (no closing brace)")
    pairs = parse_pairs(text[1:-1])
    series = tuple(sorted(pairs.items()))
    given = {name: value for name, value in pairs.items() if value}  # an empty label is an absent one

    def first(*names: str) -> str | None:
        return next((given[n] for n in names if n in given), None)

    uuid = first("UUID", "uuid", "gpu_uuid")
    if uuid is None or any(name in given for name in _NOT_A_GPU):
        return Labels(series, None, None)
    gi_text = first("GPU_I_ID", "gpu_i_id")
    if gi_text is not None and not _SMALL_NUMBER.fullmatch(gi_text):
        raise BadLabels(f"GPU_I_ID {gi_text!r} is not a number")
    index = first("gpu", "minor_number") or ""
    row = RowKey(Device(uuid, None if gi_text is None else int(gi_text)), *_holder(pairs, first),
                 first("vgpu"), first("hpc_job"))  # fmt: skip
    attributes = Attributes(
        int(index) if _SMALL_NUMBER.fullmatch(index) else None,
        first("pci_bus_id"),
        first("device"),
        first("GPU_I_PROFILE", "gpu_i_profile"),
        first("modelName", "model_name", "model"),
        first("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION", "driver_version"),
        _host(first("Hostname", "hostname")),
    )
    return Labels(series, row, attributes)


def _holder(
    pairs: dict[str, str], first: Callable[..., str | None]
) -> tuple[str | None, str | None, str | None, str | None]:
    """Namespace, pod, container and pod UID that the line claims.

    With honor_labels off, Prometheus keeps the workload's labels as exported_*, and pod, namespace
    and container are those of the scraped exporter (dcgm-exporter#85).
    """
    if any(name in pairs for name in ("exported_pod", "exported_namespace", "exported_container")):
        return (first("exported_namespace"), first("exported_pod"), first("exported_container"),
                first("exported_pod_uid"))  # fmt: skip
    namespace = first("namespace", "pod_namespace")
    pod = first("pod", "pod_name")
    if (pod and _EXPORTER_POD.search(pod)) or namespace in _EXPORTER_NAMESPACES:
        return None, None, None, None
    return namespace, pod, first("container", "container_name"), first("pod_uid")


def _host(name: str | None) -> str | None:
    """The host label, unless it names no host: localhost, or the exporter's own pod (dcgm-exporter#78)."""
    if name is None or name.startswith("localhost") or name in ("127.0.0.1", "::1") or _EXPORTER_POD.search(name):
        return None
    return name
