"""From files and endpoints to the lake: lands what was read, then seals it.

Belongs here: what `strandline ingest` does once its flags are read. Not here: reading and parsing (`sources/`),
merging into tables (`assets/sealing.py`).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from pipelines import console
from pipelines.durations import format_duration, parse_duration
from pipelines.settings import Settings
from sources.dcgm import Scrape, parse_scrapes
from sources.dcgm.collect import Client, collect, scrape_once
from sources.dcgm.targets import Target, targets_of_discovery, targets_of_urls
from sources.kubernetes import KubeList
from sources.kubernetes.lists import check_list
from sources.pacing import stop_on_signals
from warehouse.errors import BadInput
from warehouse.lake import Lake
from warehouse.landing import Landing, Record

DEFAULT_CLUSTER = "default"
LONGEST_TIMEOUT_S = 3600.0


def scrape_of_file(path: Path, node: str, cluster: str, at: datetime) -> Scrape:
    """A captured exporter body as an attempt at `at`; `BadInput` names file and line where it holds no sample."""
    scrape = Scrape(cluster, node, node, at, read_bytes(path))
    tables = parse_scrapes([scrape])
    if scrape.body and not tables["raw.dcgm_samples"].num_rows:
        rejected = tables["raw.rejected_lines"].slice(0, 1).to_pylist()
        first = f"; line {rejected[0]['line_number']}: {rejected[0]['reason']}" if rejected else ""
        raise BadInput(f"{path}: no DCGM sample in it{first}")
    return scrape


def list_of_file(path: Path, node: str | None, cluster: str, at: datetime) -> KubeList:
    """A saved list of objects, or of pod-resources, as the list of `at`; `BadInput` where it is none."""
    body = read_bytes(path)
    kind = "pod_resources" if b'"podResources"' in body and b'"apiVersion"' not in body else "kubernetes"
    if kind == "pod_resources" and node is None:
        raise BadInput(f"{path}: a pod-resources list needs --node: it does not say whose it is")
    listed = KubeList(cluster, at, body, str(path), kind, node)
    check_list(listed)
    return listed


def client(timeout: str, ca_file: Path | None, token_file: Path | None, insecure: bool) -> Client:
    """The scrape client of these flags; `BadInput` names the one that makes no sense."""
    timeout_s = parse_duration(timeout)
    if not 0 < timeout_s <= LONGEST_TIMEOUT_S:
        raise BadInput(f"--timeout {timeout}: must be above 0 and at most {format_duration(LONGEST_TIMEOUT_S)}")
    if ca_file is not None:
        try:
            ssl.create_default_context(cadata=read_bytes(ca_file).decode("ascii"))
        except (ssl.SSLError, ValueError) as e:
            raise BadInput(f"--ca-file {ca_file}: no certificates in PEM form in it: {e}") from e
    headers = {}
    if token_file is not None:
        token = read_bytes(token_file).strip()
        if not token or not all(33 <= byte < 127 for byte in token):
            raise BadInput(f"--token-file {token_file}: one token of printable ASCII characters is expected")
        headers["Authorization"] = f"Bearer {token.decode()}"
    return Client(timeout_s, verify=not insecure, ca_file=None if ca_file is None else str(ca_file), headers=headers)


def read_bytes(path: Path) -> bytes:
    """Content of a file; `BadInput` names it where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as e:
        raise BadInput(f"{path}: {e.strerror or e}") from e


def targets(urls: Sequence[str], discovery: Sequence[str], cluster: str, node: str | None) -> list[Target]:
    """Exporters named by URL or by service discovery (file_sd or http_sd JSON); `BadInput` where there is none."""
    found = targets_of_urls(urls, cluster, node)
    for source in discovery:
        found += targets_of_discovery(source, cluster)
    if not found:
        raise BadInput(f"no exporter to read{': ' + ', '.join(discovery) + ' names none' if discovery else ''}")
    return found


def scrape_now(settings: Settings, exporters: Sequence[Target], client: Client, at: datetime | None) -> int:
    """Read every exporter once, land and seal what came; how many did not answer. `at` replaces the time stamp."""
    scrapes = scrape_once(exporters, client)
    if at is not None:
        scrapes = [replace(s, at=at) for s in scrapes]
    failed = [s for s in scrapes if not s.is_up]
    for s in failed[:20]:
        console.say(f"{s.target}: {s.error}")
    Landing(settings.data).append(s.record() for s in scrapes)
    seal(settings)
    return len(failed)


def scrape_until_stopped(
    settings: Settings, exporters: Callable[[], Sequence[Target]], client: Client, every_s: float
) -> None:
    """Read every exporter each `every_s` seconds until SIGINT or SIGTERM; bodies land and are sealed by the hour."""
    landing = Landing(settings.data)
    with stop_on_signals() as stop:
        console.say(f"collecting every {every_s:g} s into {settings.data}; Ctrl-C stops")
        attempts = collect(exporters, lambda some: landing.append(s.record() for s in some), every_s, stop, client)
    console.say(f"{attempts:,} scrapes landed; they are sealed by the hour in Dagster, or by `strandline build`")


def land_files(settings: Settings, records: Iterable[Record]) -> None:
    """Land captured files and seal them; `BadInput` where one could not be used after all."""
    Landing(settings.data).append(list(records))
    raise_for(seal(settings))


def seal(settings: Settings, until: datetime | None = None) -> list[str]:
    """Seal what has landed and say what came of it; returns a message for each list that could not be used."""
    from assets import sealing

    with console.steps("seal", plain=False) as progress:
        report = sealing.seal(Lake(settings.data), until=until, progress=progress)
    days = sorted(report.dates)
    span = f", days {days[0]} to {days[-1]}" if len(days) > 1 else f", day {days[0]}" if days else ""
    console.say(
        f"sealed {report.scrapes} scrapes and {report.lists} lists: {report.samples:,} samples, "
        f"{report.rejected_lines:,} lines rejected{span}; `strandline build` brings them into the tables"
    )
    return report.errors


def raise_for(errors: Sequence[str], shown: int = 20) -> None:
    """`BadInput` with the first of these messages, where there are any."""
    if errors:
        more = [f"... and {len(errors) - shown} more"] if len(errors) > shown else []
        raise BadInput("\n".join([*errors[:shown], *more]))


def import_manifest(settings: Settings, path: Path, cluster: str) -> None:
    """Land and seal what a manifest names; the bad lines are told once the good ones are safe."""
    from sources.manifest import import_manifest

    report = import_manifest(path, Landing(settings.data), cluster)
    landed = ", ".join(f"{n} {kind}" for kind, n in report.landed.items() if n)
    console.say(f"{path}: landed {landed or 'nothing'}")
    raise_for([*report.errors, *seal(settings)], shown=50)
