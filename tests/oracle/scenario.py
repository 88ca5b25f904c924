"""Draws a random small fleet from a seed: hosts and their troubles; jobs.py adds the pods.

Belongs here: which features meet in a case and when. Does not belong here: shapes (world.py), printing (render.py).
"""

from __future__ import annotations

import random

from .jobs import draw_jobs
from .world import Gpu, Host, Scenario

LAYOUTS = {
    "a30": [(2, 1), (1, 1, 1, 1), (4,), (2, 2), (1,)],
    "a100": [(3, 3), (4, 2, 1), (1, 1, 1, 1, 1, 1, 1), (3, 2, 1), (2, 2), (7,)],
    "h100": [(4, 3), (3, 2, 1), (2, 2, 2, 1), (1, 1)],
}


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
        draw_jobs(scene, host)
    return scene


def _host(scene: Scenario, cluster: str, name: str, two_targets: bool) -> Host:
    rng, length = scene.rng, scene.length
    kind = rng.choice(["whole", "whole", "whole", "sliced", "sliced", "mig", "mig", "mig"])
    model = rng.choice({"mig": ["a100", "h100", "a30"]}.get(kind, ["h100", "a100", "t4"]))
    size = rng.choice({"whole": [1, 2, 3, 4], "sliced": [1, 2], "mig": [1, 2, 2, 3]}[kind])
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
        _mig_troubles(scene, host)
    if kind == "sliced":
        host.replicas = rng.choice([2, 3, 4])
        host.shared_resource = rng.choice(["nvidia.com/gpu", "nvidia.com/gpu.shared"])
        say("time-sliced GPUs")
        host.per_process = host.labels and "util" in host.fields and rng.random() < 0.5
        if host.per_process:
            say("GPU_UTIL per process beside the device's")
    if kind != "mig":
        _counters_and_kubelet(scene, host)
    if kind == "whole":
        host.plain_labels = rng.random() < 0.7
    _troubles(scene, host, kind, two_targets)
    if not host.labels and not host.kubelet:
        say("no pod labels: node share")
    for trouble in host.troubles:
        say(trouble)
    return host


def _mig_troubles(scene: Scenario, host: Host) -> None:
    """MIG strategies, whole GPUs between cut ones, new layouts on the way."""
    rng, say = scene.rng, scene.features.add
    luck = rng.random()
    layouts = LAYOUTS[host.model]
    if luck < 0.25:
        host.single = True
        slices = rng.choice([cut for cut in layouts if len(set(cut)) == 1])
        for gpu in host.gpus:
            gpu.layout = {str(i + 1): n for i, n in enumerate(slices)}
        say("mig strategy single")
    elif luck < 0.5 and len(host.gpus) > 1:
        host.gpus[rng.randrange(len(host.gpus))].layout = {}
        say("whole and MIG GPUs on one node")
    if not host.single and rng.random() < 0.4:
        gpu = rng.choice(host.gpus)
        new = rng.choice([cut for cut in [*layouts, ()] if cut != tuple(gpu.layout.values())])
        base = rng.choice([0, 7])
        gpu.recut = (rng.randrange(600, scene.length - 400), {str(base + i + 1): n for i, n in enumerate(new)})
        say("mig layout changes")
    elif rng.random() < 0.3 and max(len(g.layout) for g in host.gpus) > 1:
        start = rng.randrange(300, scene.length - 600)
        max(host.gpus, key=lambda g: len(g.layout)).gaps.append((start, start + 150))
        say("rows of some instances missing for minutes")


def _counters_and_kubelet(scene: Scenario, host: Host) -> None:
    """Profiling counters that stand still, pod-resources lists."""
    rng, say = scene.rng, scene.features.add
    if "util" in host.fields and len(host.fields) > 1 and rng.random() < 0.35:
        start = rng.randrange(0, scene.length - 1000)
        rng.choice(host.gpus).frozen = (start, start + rng.choice([500, 600, 640, 700, 1500]))
        host.tensor = rng.random() < 0.5
        say("profiling counters frozen")
    if rng.random() < 0.25:
        host.kubelet, host.labels, host.per_process = True, False, False
        say("pod-resources lists")


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
        elif trouble == "hidden" and kind == "whole" and size > 1 and not host.kubelet:
            for gpu in host.gpus[size - 1 :]:
                gpu.hidden = True
            say("a device the exporter never shows")
        elif trouble == "targets" and two_targets and kind == "whole":
            host.targets = 2
            say("two targets for one node")
