"""Random small fleets for generated ledger cases: nodes with their troubles, pods with their true devices.

Belongs here: what is true in a case, in whole seconds from its base, drawn from a seed. Does not belong here: how it is
printed (render.py), what the right answer is (ledger.py works from the printed files alone).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

MODELS = {
    "h100": ("NVIDIA H100 80GB HBM3", {1: "1g.10gb", 2: "2g.20gb", 3: "3g.40gb", 4: "4g.40gb", 7: "7g.80gb"}),
    "a100": ("NVIDIA A100-SXM4-40GB", {1: "1g.5gb", 2: "2g.10gb", 3: "3g.20gb", 4: "4g.20gb", 7: "7g.40gb"}),
    "a30": ("NVIDIA A30", {1: "1g.6gb", 2: "2g.12gb", 4: "4g.24gb"}),
    "t4": ("Tesla T4", {}),
}
LAYOUTS = {
    "a30": [(2, 1), (1, 1, 1, 1), (4,), (2, 2), (1,)],
    "a100": [(3, 3), (4, 2, 1), (1, 1, 1, 1, 1, 1, 1), (3, 2, 1), (2, 2), (7,)],
    "h100": [(4, 3), (3, 2, 1), (2, 2, 2, 1), (1, 1)],
}
# What GR_ENGINE_ACTIVE reads at most, by slices (after DCGM#138).
GR_CAP = {1: 1.0, 2: 0.5, 3: 0.333333, 4: 0.571429, 7: 1.0}
TEAMS = ["vision", "speech", "search", "maps"]


@dataclass
class Gpu:
    """One GPU: address, uuid per time (RMA), MIG layout (gi -> slices), spans in which its rows are absent."""

    pci: str
    uuids: list[tuple[int, str]]
    layout: dict[str, int] = field(default_factory=dict)
    absent: list[tuple[int, int]] = field(default_factory=list)
    hidden: bool = False  # the exporter never shows it


@dataclass
class Job:
    """One pod: its truth, and how the API server tells it."""

    uid: str
    space: str
    name: str
    team: str
    resource: str
    count: int
    node: str
    start: int
    end: int  # of its last container, or of its deletion
    devices: list[tuple[int, str | None]]  # index of GPU, gi; repeated per replica
    shape: str = "plain"  # plain, two, init, sidecar
    fails: bool = False
    deleted: bool = False  # leaves the lists while running
    labelled_from: int = 0
    linger: int = 0
    kept: int = 10**9  # seconds the finished object stays in the lists


@dataclass
class Host:
    """One node of a case with the features drawn for it."""

    cluster: str
    name: str
    model: str
    gpus: list[Gpu]
    replicas: int = 1
    shared_resource: str = "nvidia.com/gpu"
    labels: bool = True  # exporter knows pods
    style: str = "old"
    restyle_at: int | None = None
    restyle: str = "old"
    fields: tuple[str, ...] = ("sm", "gr", "util")
    parent: str = "none"  # parent rows on MIG: none, power, full
    label_style: str = "empty"  # empty, omitted, exported, old
    joins: int = -(10**6)
    leaves: int = 10**9
    rejoins: int = 10**9
    not_ready: tuple[int, int] | None = None
    silent_when_not_ready: bool = False
    cordoned: tuple[int, int] | None = None
    short: tuple[int, int, int] | None = None  # allocatable below capacity: from, to, by how many
    unhealthy: tuple[int, int] | None = None  # allocatable tells the lost GPU
    targets: int = 1
    addresses: bool = True  # rows carry pci_bus_id
    plain_labels: bool = True  # nvidia.com/gpu.count label present
    troubles: frozenset[str] = frozenset()
    jobs: list[Job] = field(default_factory=list)

    def present(self, at: int) -> bool:
        """Whether the API server has the node."""
        return self.joins <= at < self.leaves or at >= self.rejoins


@dataclass
class Scenario:
    """A whole case before it is printed; times in seconds from ``base`` (the window's start)."""

    rng: random.Random
    seed: int
    base_hour: int
    length: int
    interval: int
    staleness: int
    hosts: list[Host]
    features: set[str]
    namespaces: dict[str, dict[str, str]]
    evidence_end: int
    regular: bool = False


def draw(seed: int, regular: bool = False, two_targets: bool = True) -> Scenario:
    """A scenario from a seed. ``regular`` keeps one spacing throughout, so that every median agrees."""
    rng = random.Random(seed)
    length = rng.choice([3600, 3600, 7200])
    scene = Scenario(
        rng=rng,
        seed=seed,
        base_hour=rng.choice([0, 9, 14, 22, 23]),
        length=length,
        interval=rng.choice([60, 60, 60, 30]),
        staleness=rng.choice([180, 180, 120, 300]),
        hosts=[],
        features=set(),
        namespaces={
            "ml": {"labels": "mapped-by-label"},
            "prod": {"annotations": "mapped-by-annotation"},
            "lab": {},
        },
        evidence_end=length + rng.choice([60, 200, 400]),
        regular=regular,
    )
    if not regular and rng.random() < 0.15:
        scene.evidence_end = length - rng.randrange(300, 1500)
        scene.features.add("evidence ends inside the window")
    clusters = ["gen"]
    if rng.random() < 0.2:
        clusters.append("gen-2")
        scene.features.add("two clusters with equal node names")
    count = rng.choice([1, 2, 2, 3])
    for number in range(max(count, len(clusters))):
        name = f"node-{number // len(clusters)}"
        scene.hosts.append(_host(scene, clusters[number % len(clusters)], name, two_targets))
    for host in scene.hosts:
        _jobs(scene, host)
    return scene


def _host(scene: Scenario, cluster: str, name: str, two_targets: bool) -> Host:
    rng, length = scene.rng, scene.length
    kind = rng.choice(["whole", "whole", "whole", "sliced", "mig", "mig"])
    model = rng.choice({"mig": ["a100", "h100", "a30"]}.get(kind, ["h100", "a100", "t4"]))
    size = rng.choice([1, 2]) if kind != "whole" else rng.choice([1, 2, 3, 4])
    tag = f"{cluster}-{name}"
    gpus = [Gpu(f"00000000:{16 + i:02X}:00.0", [(-(10**6), f"GPU-{tag}-{i}")]) for i in range(size)]
    host = Host(cluster, name, model, gpus)
    say = scene.features.add
    host.labels = rng.random() < 0.75
    host.label_style = rng.choice(["empty", "omitted", "exported", "old"])
    host.style = rng.choice(["old", "old", "renamed-percent", "renamed-ratio", "lower"])
    host.fields = rng.choice([("sm", "gr", "util")] * 4 + [("gr", "util"), ("util",), ("sm",), ("gr",)])
    host.troubles = frozenset(
        t for t in ("sentinels", "clamp", "bad-lines", "duplicate-series", "reindex", "holes") if rng.random() < 0.4
    )
    if host.style == "old" and rng.random() < 0.3:
        host.restyle_at, host.restyle = rng.randrange(600, length), "renamed-ratio"
        say("fields renamed on the way")
    if kind == "mig":
        host.fields = rng.choice([("sm", "gr"), ("gr",)])
        host.style = rng.choice(["old", "renamed-ratio"])
        host.parent = rng.choice(["none", "power", "full"])
        for gpu in gpus:
            slices = rng.choice(LAYOUTS[model])
            gpu.layout = {str(i + 1): n for i, n in enumerate(slices)}
        say("mig on A30" if model == "a30" else "mig with seven slices")
        if "sm" not in host.fields:
            say("mig with GR_ENGINE_ACTIVE alone")
        if host.parent != "none":
            say("mig parent rows beside the instances")
    if kind == "sliced":
        host.replicas = rng.choice([2, 3, 4])
        host.shared_resource = rng.choice(["nvidia.com/gpu", "nvidia.com/gpu.shared"])
        say("time-sliced GPUs")
    if kind == "whole":
        host.plain_labels = rng.random() < 0.7
    _troubles(scene, host, kind, two_targets)
    if not host.labels:
        say("no pod labels: node share")
    for trouble in host.troubles:
        say(trouble)
    return host


def _troubles(scene: Scenario, host: Host, kind: str, two_targets: bool) -> None:
    """At most a few of the big troubles per node, each with times of its own."""
    rng, length, say = scene.rng, scene.length, scene.features.add

    def span(low: int, high: int) -> tuple[int, int]:
        start = rng.randrange(300, length - 600)
        return start, start + rng.randrange(low, high)

    options = [
        "none",
        "lost",
        "lost",
        "not-ready",
        "cordon",
        "short",
        "leaves",
        "joins",
        "rma",
        "hidden",
        "targets",
        "no-addresses",
    ]
    size = len(host.gpus)
    for trouble in rng.sample(options, rng.choice([1, 2, 2, 3])):
        if trouble == "lost" and size > 1:
            start = rng.randrange(300, length - 600)
            last = rng.choice([120, 240, 300, 360, 361, 900, 10**6])
            host.gpus[rng.randrange(size)].absent.append((start, start + last))
            say("GPU missing for minutes" if last <= 300 else "GPU lost for good" if last > 1000 else "GPU lost")
            if kind == "whole" and last > 400 and rng.random() < 0.3:
                host.unhealthy = (start + 60, start + last)
                say("lost GPU also missing from allocatable")
        elif trouble == "not-ready":
            host.not_ready = span(200, 2000)
            host.silent_when_not_ready = rng.random() < 0.5
            say("node not ready and back")
        elif trouble == "cordon":
            host.cordoned = span(300, 3000)
            say("cordon and uncordon")
        elif trouble == "short" and kind == "whole" and size > 1:
            start, end = span(300, 3000)
            host.short = (start, end, rng.randrange(1, size))
            say("allocatable below capacity")
        elif trouble == "leaves":
            host.leaves = rng.randrange(900, length - 600)
            if rng.random() < 0.6:
                host.rejoins = host.leaves + rng.randrange(700, 1500)
            say("node leaves the list" if host.rejoins > length else "node leaves and re-joins")
        elif trouble == "joins":
            host.joins = rng.randrange(300, length - 900)
            say("node joins late")
        elif trouble == "no-addresses" and kind == "whole" and "reindex" not in host.troubles:
            host.addresses = any(len(g.uuids) > 1 for g in host.gpus)
            if not host.addresses:
                say("rows without pci_bus_id")
        elif trouble == "rma" and host.addresses:
            gpu = host.gpus[rng.randrange(size)]
            at = rng.randrange(600, length - 300)
            gpu.uuids.append((at, gpu.uuids[0][1] + "-new"))
            if size > 1:
                gpu.absent.append((at - rng.choice([100, 700]), at))
            say("another card in the slot")
        elif trouble == "hidden" and kind == "whole" and size > 1:
            for gpu in host.gpus[size - 1 :]:
                gpu.hidden = True
            say("a device the exporter never shows")
        elif trouble == "targets" and two_targets and kind == "whole":
            host.targets = 2
            say("two targets for one node")


def _jobs(scene: Scenario, host: Host) -> None:
    """Pods on a node, first come first served; devices at random where labels tell, else the lowest free."""
    rng, taken = scene.rng, []
    units: list[tuple[int, str | None]] = []
    for index, gpu in enumerate(host.gpus):
        units += [(index, gi) for gi in gpu.layout] or [(index, None)] * host.replicas
    reserved = host.short[2] if host.short else 0
    usable = [u for u in units if u[0] < len(host.gpus) - reserved]
    arrivals = sorted(
        {rng.randrange(-3000, scene.length) for _ in range(rng.randrange(2, 9))} | {-rng.randrange(60, 9000)}
    )
    for number, start in enumerate(arrivals):
        long = rng.choice([20, 45, 300, 900, 2400, 5400, 20000])
        end = start + max(5, int(long * rng.uniform(0.5, 1.5)))
        if host.present(start) and start < host.leaves < end:
            end = host.leaves
        if not host.present(start) or end <= start:
            continue
        free = list(usable)
        for job in taken:
            if job.start < end and job.end > start:
                for device in job.devices:
                    if device in free:
                        free.remove(device)
        _place(scene, host, number, start, end, free, taken)
    host.jobs = taken


def _place(
    scene: Scenario, host: Host, number: int, start: int, end: int, free: list[tuple[int, str | None]], taken: list[Job]
) -> None:
    rng, say = scene.rng, scene.features.add
    if not free:
        return
    pick = rng.choice(free)
    slices = host.gpus[pick[0]].layout.get(pick[1] or "")
    resource = host.shared_resource
    if slices:
        resource = f"nvidia.com/mig-{MODELS[host.model][1][slices]}"
        same = [u for u in free if host.gpus[u[0]].layout.get(u[1] or "") == slices]
    else:
        same = free
    if host.replicas > 1:
        devices = [u for u in same if u == pick][: rng.choice([1, 1, 2])]
    else:
        devices = rng.sample(same, min(len(same), rng.choice([1, 1, 2])))
    count = len(devices)
    if not host.labels and rng.random() < 0.15:
        count += 1
        say("a pod that asks for more than is free")
    busy = {(j.space, j.name) for j in taken if j.end + 30 >= start or j.linger}
    reuse = [j for j in taken if (j.space, j.name) not in busy]
    job = Job(
        uid=f"{host.cluster}-{host.name}-u{number}",
        space=rng.choice(["ml", "prod", "lab"]),
        name=f"{host.name}-job-{number}",
        team=rng.choice([*TEAMS, ""]),
        resource=resource,
        count=count,
        node=host.name,
        start=start,
        end=end,
        devices=devices,
        shape=rng.choice(["plain", "plain", "two", "init", "sidecar"]),
        fails=rng.random() < 0.2,
        deleted=rng.random() < 0.15 or end in {host.leaves},
        labelled_from=start + rng.choice([0, 0, 5, 70]),
    )
    if reuse and rng.random() < 0.5:
        old = rng.choice(reuse)
        job.space, job.name = old.space, old.name
        say("a pod name used again by a new UID")
    elif not job.deleted and rng.random() < 0.3:
        job.linger = rng.choice([60, 240, 900])
        say("label on a finished pod")
    elif not job.deleted and rng.random() < 0.2:
        job.kept = rng.randrange(20, 900)
        say("finished pod removed soon, perhaps before a list shows its end")
    if job.deleted:
        say("pod gone without an end")
    if not job.team:
        say("team from the namespace, or none")
    if job.shape in {"init", "sidecar"}:
        say("init and sidecar requests")
    taken.append(job)
