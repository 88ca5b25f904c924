"""Prints a scenario as a case folder: scrape bodies and the manifest.

Belongs here: text forms, scrape times, exporters' bad habits. Does not belong here: saved lists (lists.py), what is
true (world.py), the right answer (ledger.py).
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .lists import add_kubelet_lists, add_lists
from .world import GR_CAP, MODELS, Gpu, Host, Job, Scenario

DAY = datetime(2026, 3, 2, tzinfo=UTC)
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
FROZEN = {"sm": "0.000000", "gr": "0.000000", "util": "81"}
FAMILIES = {
    "old": ("DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"),
    "renamed": ("DCGM_FI_PROF_SM_UTIL_RATIO", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", "DCGM_FI_DEV_GPU_UTIL_RATIO"),
    "lower": ("DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "dcgm_gpu_utilization"),
}


class Printer:
    """Writes the files of one case and remembers the manifest."""

    def __init__(self, scene: Scenario, out: Path) -> None:
        self.scene, self.rng, self.out = scene, random.Random(scene.seed + 1), out
        self.base = DAY + timedelta(hours=scene.base_hour)
        self.manifest: list[dict[str, Any]] = []

    def stamp(self, second: int) -> str:
        """RFC 3339 of a second of the case."""
        return (self.base + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def add(self, name: str, body: str, **entry: Any) -> None:
        """Write a file and its manifest line."""
        (self.out / name).write_text(body)
        self.manifest.append({"file": name, **entry})

    def write(self) -> None:
        """All files of the case but case.json."""
        for host in self.scene.hosts:
            for target in range(host.targets):
                self._scrapes(host, target)
            if host.kubelet:
                add_kubelet_lists(self, host)
        for cluster in sorted({h.cluster for h in self.scene.hosts}):
            add_lists(self, cluster, [h for h in self.scene.hosts if h.cluster == cluster])
        lines = list(self.manifest)
        if self.rng.random() < 0.5:
            self.rng.shuffle(lines)
            lines += self.rng.sample(lines, len(lines) // 20)
            self.scene.features.add("ingested in random order, some twice")
        (self.out / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    # ---- scrapes

    def _times(self) -> list[int]:
        scene, rng = self.scene, self.rng
        jitter = 0 if scene.regular else rng.choice([0, 0, 7, 20])
        nominal = -rng.randrange(1, 4) * scene.interval - rng.randrange(scene.interval)
        times = []
        while nominal <= scene.evidence_end:
            times.append(nominal + (rng.randrange(-jitter, jitter + 1) if jitter else 0))
            nominal += scene.interval
            if not scene.regular and rng.random() < 0.04:
                nominal += rng.choice([scene.interval, scene.staleness - scene.interval, 2 * scene.staleness, 601])
                scene.features.add("scrapes missing")
        if jitter:
            scene.features.add("irregular scrape times")
        return sorted(set(times))

    def _scrapes(self, host: Host, number: int) -> None:
        rng, say = self.rng, self.scene.features.add
        target = {"target": f"{host.name}-b"} if number else {}
        for index, at in enumerate(self._times()):
            if not host.present(at):
                continue
            if host.not_ready and host.silent_when_not_ready and host.not_ready[0] <= at < host.not_ready[1]:
                continue
            where = {"kind": "dcgm", "node": host.name, "cluster": host.cluster, "at": self.stamp(at), **target}
            sign = "m" if at < 0 else ""
            name = f"{host.cluster}_{host.name}_{number}_{sign}{abs(at):06d}.prom"
            body, luck = self._body(host, at, index), rng.random()
            if luck < 0.02:
                body = ""
                say("empty bodies")
            elif luck < 0.03:
                body = "<html><body>502 Bad Gateway</body></html>\n"
                say("bodies that are not metrics")
            elif luck < 0.06:
                say("two bodies for one target and instant")
                short = "".join(line + "\n" for line in body.splitlines()[: len(body.splitlines()) // 2])
                self.add(name.replace(".prom", "_cut.prom"), short, **where)
            self.add(name, body, **where)

    def _body(self, host: Host, at: int, index: int) -> str:
        style = host.restyle if host.restyle_at is not None and at >= host.restyle_at else host.style
        sm, gr, util = FAMILIES[style.split("-")[0]]
        families: dict[str, list[str]] = {
            sm: [],
            gr: [],
            util: [],
            TENSOR: [],
            "DCGM_FI_DEV_FB_USED": [],
            "DCGM_FI_DEV_POWER_USAGE": [],
        }
        bare = self.rng.random() < 0.03  # one scrape in which the lookup of pods failed
        for number, gpu in enumerate(host.gpus):
            if gpu.hidden or any(a <= at < b for a, b in gpu.absent):
                continue
            shown = [*gpu.layout_at(at).items()]
            if any(a <= at < b for a, b in gpu.gaps):
                shown = shown[:1]
            for gi, slices in shown or [(None, 0)]:
                sharers = [] if bare or not host.labels else self._sharers(host, at, number, gi)
                values = self._values(host, style, slices, index)
                if gpu.frozen and gpu.frozen[0] <= at < gpu.frozen[1]:
                    values |= {k: v for k, v in FROZEN.items() if k in values}
                    if style == "renamed-ratio" and "util" in values:
                        values["util"] = "0.810000"
                if host.tensor and self.rng.random() < 0.9:
                    values["tensor"] = "0.000000"
                if host.per_process and "util" in values and sharers:
                    bare_labels = self._labels(host, gpu, number, gi, slices, [], at)[0]
                    families[util] += self._line(host, util, bare_labels, values["util"])
                for labels in self._labels(host, gpu, number, gi, slices, sharers, at):
                    for what, family in (("sm", sm), ("gr", gr), ("util", util), ("tensor", TENSOR)):
                        if what in values:
                            own = host.per_process and what == "util" and sharers and style != "renamed-ratio"
                            value = str(self.rng.randrange(0, 90)) if own else values[what]
                            families[family] += self._line(host, family, labels, value)
                    families["DCGM_FI_DEV_FB_USED"].append(f"DCGM_FI_DEV_FB_USED{{{labels}}} 4000")
            if not gpu.layout_at(at) or host.parent != "none":
                labels = self._labels(host, gpu, number, None, 0, [], at)[0]
                families["DCGM_FI_DEV_POWER_USAGE"].append(f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 171.500000")
                if gpu.layout_at(at) and host.parent == "full":
                    families[gr].append(f"{gr}{{{labels}}} 0.700000")
        order = [f for f in families if families[f]]
        self.rng.shuffle(order)
        return "".join(f"# TYPE {f} gauge\n" + "".join(line + "\n" for line in families[f]) for f in order)

    def _values(self, host: Host, style: str, slices: int, index: int) -> dict[str, str]:
        """Printed values of one device for one scrape."""
        rng, values = self.rng, {}
        level = rng.choice([0.0, rng.random(), rng.random()])
        busy = level if rng.random() < 0.7 else rng.random()
        values["sm"] = f"{level:.6f}"
        cap = GR_CAP[slices] if slices else 1.0
        values["gr"] = f"{cap if slices and index % 10 == 0 else round(busy * cap, 6):.6f}"
        percent = max(1, round(100 * rng.random()))
        values["util"] = str(percent)
        if style == "renamed-ratio":
            values["util"] = f"{percent / 100:.6f}"
        values = {k: v for k, v in values.items() if k in host.fields and not (k == "util" and slices)}
        pinned = slices and index % 10 == 0
        for what in list(values):
            luck = rng.random()
            if "holes" in host.troubles and luck < 0.05 and not (pinned and what == "gr"):
                del values[what]
            elif "sentinels" in host.troubles and luck < 0.12 and not (pinned and what == "gr"):
                if what != "util":
                    values[what] = rng.choice(["140737488355328.000000", "-0.250000", "NaN", "1.500000"])
                elif style in {"old", "lower"}:
                    values[what] = rng.choice(["2147483632", "4294967295", "127000", "9223372036854775794"])
            elif "clamp" in host.troubles and luck < 0.2 and what != "util" and not slices:
                values[what] = f"{rng.uniform(1.001, 1.099):.6f}"
            elif "clamp" in host.troubles and luck < 0.25 and what == "util" and style != "renamed-ratio":
                values[what] = str(rng.randrange(101, 111))
                self.scene.features.add("GPU_UTIL above 100")
        return values

    def _line(self, host: Host, family: str, labels: str, value: str) -> list[str]:
        rng, lines = self.rng, [f"{family}{{{labels}}} {value}"]
        if "duplicate-series" in host.troubles and rng.random() < 0.05 and value != "NaN":
            lines.append(f"{family}{{{labels}}} 0.010000")
            if (
                family == "DCGM_FI_DEV_GPU_UTIL"
                or family == "dcgm_gpu_utilization"
                or ("UTIL_RATIO" in family and "." not in value)
            ):
                lines[1] = f"{family}{{{labels}}} 1"
        if "bad-lines" in host.troubles and rng.random() < 0.03:
            lines.append(
                rng.choice(
                    [f'{family}{{{labels},x="a"b"}} 1', f"{family}{{{labels}}} ERROR - FAILED TO CONVERT TO STRING"]
                )
            )
            if rng.random() < 0.5 and "sm" in host.fields and len(host.fields) > 1 and "SM_" in family:
                del lines[0]  # the value itself was lost to a bad line
        return lines

    def _sharers(self, host: Host, at: int, number: int, gi: str | None) -> list[tuple[Job, int]]:
        """Pods the exporter names on a device, with their replica numbers."""
        names: list[tuple[Job, int]] = []
        for job in host.jobs:
            times = job.devices.count((number, gi))
            if times and job.labelled_from <= at < job.end:
                names += [(job, 0)] * times
        if not names:
            late = [j for j in host.jobs if (number, gi) in j.devices and j.end <= at < j.end + j.linger]
            names = [(j, 0) for j in sorted(late, key=lambda j: j.end)[-1:]]
            if any((number, gi) in j.devices and j.start <= at < j.end for j in host.jobs):
                names = []
        return [(job, replica) for replica, (job, _) in enumerate(names)]

    def _labels(
        self, host: Host, gpu: Gpu, number: int, gi: str | None, slices: int, sharers: list[tuple[Job, int]], at: int
    ) -> list[str]:
        shown = number
        if "reindex" in host.troubles and at >= self.scene.length // 2:
            shown = len(host.gpus) - 1 - number
        uuid = [u for since, u in gpu.uuids if since <= at][-1]
        model, profiles = MODELS[host.model]
        pci = f',pci_bus_id="{gpu.pci}"' if host.addresses else ""
        head = f'gpu="{shown}",UUID="{uuid}"{pci},device="nvidia{shown}",modelName="{model}"'
        if gi is not None:
            head += f',GPU_I_PROFILE="{profiles[slices]}",GPU_I_ID="{gi}"'
        head += f',Hostname="{"localhost" if "reindex" in host.troubles else host.name}"'
        own = ',container="exporter",namespace="gpu-operator",pod="nvidia-dcgm-exporter-x1"'
        if not sharers:
            return [head + {"empty": ',container="",namespace="",pod=""', "exported": own}.get(host.label_style, "")]
        texts = []
        for job, replica in sharers:
            text = {
                "exported": own
                + f',exported_container="main",exported_namespace="{job.space}",exported_pod="{job.name}"',
                "old": f',container_name="main",pod_namespace="{job.space}",pod_name="{job.name}"',
            }.get(host.label_style, f',container="main",namespace="{job.space}",pod="{job.name}"')
            texts.append(head + text + (f',vgpu="{replica}"' if host.replicas > 1 else ""))
        return texts
