"""Draws the pods of one host: who holds what, and how the API server and the exporter will tell it.

Belongs here: arrivals, devices, names, endings. Does not belong here: the host's own troubles (scenario.py).
"""

from __future__ import annotations

from .world import MODELS, Host, Job, Scenario

TEAMS = ["vision", "speech", "search", "maps"]


def draw_jobs(scene: Scenario, host: Host) -> None:
    """Pods on a node, first come first served; devices at random where labels tell, else the lowest free."""
    rng = scene.rng
    taken: list[Job] = []
    reserved = host.short[2] if host.short else 0
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
        free: list[tuple[int, str | None]] = []
        for index, gpu in enumerate(host.gpus[: len(host.gpus) - reserved]):
            if not gpu.recut or not start < gpu.recut[0] < end:  # nobody holds a GPU while it is cut anew
                free += [(index, gi) for gi in gpu.layout_at(start)] or [(index, None)] * host.replicas
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
    slices = host.gpus[pick[0]].layout_at(start).get(pick[1] or "")
    resource = host.shared_resource
    if slices and not host.single:
        resource = f"nvidia.com/mig-{MODELS[host.model][1][slices]}"
        same = [u for u in free if host.gpus[u[0]].layout_at(start).get(u[1] or "") == slices]
    else:
        same = [u for u in free if host.single or u[1] is None]
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
        deleted=(rng.random() < 0.15 and not host.kubelet) or end in {host.leaves},
        labelled_from=start + rng.choice([0, 0, 5, 70]),
    )
    if reuse and rng.random() < 0.5:
        old = rng.choice(reuse)
        job.space, job.name = old.space, old.name
        say("a pod name used again by a new UID")
    elif not job.deleted and rng.random() < 0.3 and not any(host.gpus[i].recut for i, _ in devices):
        job.linger = rng.choice([60, 240, 900])
        say("label on a finished pod")
    elif not job.deleted and rng.random() < 0.2:
        job.kept = rng.randrange(20, 900)
        say("finished pod removed soon, perhaps before a list shows its end")
    if job.deleted:
        say("pod gone without an end")
    if not job.team:
        say("team from the namespace, or none")
    if not job.deleted and rng.random() < 0.12:
        job.untimed = True
        say("finished pod without any finishedAt")
    if job.shape in {"init", "sidecar"}:
        say("init and sidecar requests")
    taken.append(job)
