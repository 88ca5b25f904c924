"""Nodes and namespaces of a fleet: clusters, providers, regions, boards, labels, teams.

No work runs here (`workload.py`, `placement.py`) and nothing is measured. Providers, regions and
teams are invented.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.catalogue import ACCELERATORS, MIG_LAYOUTS, MIG_PROFILES, Host
from fleet.model import Device, MigInstance, Namespace, Node
from fleet.substreams import uid

GIB = 1024**3
UNMAPPED = "(unmapped)"
TEAM_KEY = "team"
TEAM_ANNOTATION = "strandline.io/team"
OWNER_LABEL = "strandline.io/owner"
SPOT_LABEL = "cloud.google.com/gke-spot"


@dataclass(frozen=True)
class Site:
    """One cluster: its provider, region, node pools (host, number of nodes) and zones."""

    cluster: str
    provider: str
    region: str
    zones: tuple[str, ...]
    pools: tuple[tuple[Host, int], ...]


@dataclass(frozen=True)
class Tenant:
    """A namespace and how its pods' team is told.

    `via` is pod_label, namespace_label, namespace_annotation, mapping or none. `weight` is its share of
    the cluster's work. A pod_label namespace may be shared: `teams` are drawn from evenly.
    """

    cluster: str
    namespace: str
    via: str
    teams: tuple[str, ...]
    weight: float


_H100 = Host("nb.h100.8x", "h100", 8, 192, 2048, owner="language")
_A100_80 = Host("nb.a100-80.8x", "a100-80", 8, 96, 1360, owner="search")
_L4 = Host("nb.l4.4x", "l4", 4, 96, 384)
_A100_40 = Host("cr-gpu-a100-8", "a100-40", 8, 96, 1152, owner="vision")
_L40S = Host("cr-gpu-l40s-8", "l40s", 8, 128, 1024, owner="speech")
_TPU = Host("cr-tpu-v5e-4", "tpu-v5e", 4, 112, 192, owner="recsys")
_SPOT_L4 = Host("cr-gpu-l4-4", "l4", 4, 96, 384, is_spot=True)
_V100 = Host("dgx-v100", "v100", 8, 80, 512, owner="robotics")
_OWN_A100 = Host("hgx-a100-80", "a100-80", 8, 96, 1360, owner="vision")
_MIG_1G = Host("mig-a100-4", "a100-40", 4, 128, 1024, "all-1g.5gb")
_MIG_2G = Host("mig-a100-4", "a100-40", 4, 128, 1024, "all-2g.10gb")
_MIG_3G = Host("mig-a100-4", "a100-40", 4, 128, 1024, "all-3g.20gb")
_MIG_MIX = Host("mig-a100-4", "a100-40", 4, 128, 1024, "balanced")
_TRACED = Host("dgx-v100", "v100", 8, 80, 512)

SITES: tuple[Site, ...] = (
    Site("nimbus-east", "nimbus", "nb-east-1", ("nb-east-1a", "nb-east-1b"),
         ((_H100, 10), (_A100_80, 6), (_L4, 7))),
    Site("cirrus-west", "cirrus", "cr-west-2", ("cr-west-2-b", "cr-west-2-c"),
         ((_A100_40, 7), (_L40S, 4), (_TPU, 6), (_SPOT_L4, 3))),
    Site("lab-north", "onprem", "dc-north", ("dc-north-hall-1",),
         ((_V100, 8), (_OWN_A100, 5), (_MIG_1G, 1), (_MIG_2G, 1), (_MIG_3G, 1), (_MIG_MIX, 1))),
)  # fmt: skip

TENANTS: tuple[Tenant, ...] = (
    Tenant("nimbus-east", "language-train", "namespace_label", ("language",), 4.0),
    Tenant("nimbus-east", "language-serve", "namespace_label", ("language",), 1.5),
    Tenant("nimbus-east", "search", "pod_label", ("search",), 2.0),
    Tenant("nimbus-east", "research-shared", "pod_label", ("language", "vision", "speech"), 1.5),
    Tenant("nimbus-east", "sandbox", "none", (), 0.4),
    Tenant("cirrus-west", "vision", "namespace_annotation", ("vision",), 3.0),
    Tenant("cirrus-west", "speech", "mapping", ("speech",), 2.0),
    Tenant("cirrus-west", "recsys-serve", "pod_label", ("recsys",), 2.0),
    Tenant("lab-north", "robotics", "mapping", ("robotics",), 3.0),
    Tenant("lab-north", "vision", "namespace_annotation", ("vision",), 1.5),
    Tenant("lab-north", "search-batch", "namespace_label", ("search",), 1.5),
    Tenant("lab-north", "scratch", "none", (), 0.5),
)

TEAM_RULES: tuple[tuple[str, str], ...] = (
    ("pod_label", TEAM_KEY),
    ("namespace_label", TEAM_KEY),
    ("namespace_annotation", TEAM_ANNOTATION),
    ("mapping", ""),
)


def trace_site(nodes: int) -> Site:
    """A cluster of 8-GPU hosts for a trace: the trace's own hardware is not published, so V100 stands in."""
    return Site("trace", "onprem", "dc-north", ("dc-north-hall-1",), ((_TRACED, nodes),))


def trace_tenants(cluster: str, groups: set[str]) -> tuple[Tenant, ...]:
    """A namespace for each group of a trace, named as Kubernetes allows; its label says the group as it is."""
    out: list[Tenant] = []
    for group in sorted(groups):
        plain = re.sub("[^a-z0-9]+", "-", group.lower()).strip("-")[:40] or "group"
        name = f"vc-{plain}"
        if any(t.namespace == name for t in out):
            name = f"{name}-{len(out)}"
        out.append(Tenant(cluster, name, "namespace_label", (group,), 1.0))
    return tuple(out)


def build_nodes(seed: int, sites: tuple[Site, ...], scale: float, created_at: datetime) -> tuple[Node, ...]:
    """All nodes of the sites, each pool's number multiplied by `scale` (at least one node a pool)."""
    nodes: list[Node] = []
    for site in sites:
        for host, number in site.pools:
            first = sum(1 for n in nodes if n.cluster == site.cluster and n.accelerator == host.accelerator)
            for i in range(max(1, round(number * scale))):
                nodes.append(_node(seed, site, host, first + i, created_at))
    return tuple(nodes)


def _node(seed: int, site: Site, host: Host, index: int, created_at: datetime) -> Node:
    accelerator = ACCELERATORS[host.accelerator]
    name = f"gpu-{host.accelerator}-{index + 1:03d}" if accelerator.has_exporter else f"tpu-v5e-{index + 1:03d}"
    zone = site.zones[index % len(site.zones)]
    key = f"{site.cluster}/{name}"
    node_uid = uid(seed, f"node/{key}")
    devices = tuple(_device(seed, key, host, i) for i in range(host.count))
    capacity: dict[str, int] = {}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": host.instance_type,
        "topology.kubernetes.io/region": site.region,
        "topology.kubernetes.io/zone": zone,
        "strandline.io/provider": site.provider,
        "strandline.io/simulated": "true",
    }
    if host.owner:
        labels[OWNER_LABEL] = host.owner
    if host.is_spot:
        labels[SPOT_LABEL] = "true"
    if accelerator.has_exporter:
        labels |= {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": accelerator.product,
            "nvidia.com/gpu.count": str(host.count),
            "nvidia.com/gpu.memory": str(accelerator.memory_mib),
            "nvidia.com/gpu.family": {
                "h100": "hopper",
                "l4": "ada-lovelace",
                "l40s": "ada-lovelace",
                "v100": "volta",
            }.get(host.accelerator, "ampere"),
            "nvidia.com/cuda.driver.major": "580",
        }
        capacity["nvidia.com/gpu"] = 0 if host.mig else host.count
        if host.accelerator in ("h100", "a100-80", "a100-40"):
            labels["nvidia.com/mig.capable"] = "true"
            labels["nvidia.com/mig.strategy"] = "mixed" if host.mig else "single"
            labels["nvidia.com/mig.config"] = host.mig or "all-disabled"
        for device in devices:
            for instance in device.instances:
                capacity[instance.resource] = capacity.get(instance.resource, 0) + 1
    else:
        labels |= {
            "cloud.google.com/gke-tpu-accelerator": accelerator.product,
            "cloud.google.com/gke-tpu-topology": "2x2",
        }
        capacity[accelerator.resource] = host.count
    return Node(
        cluster=site.cluster, name=name, uid=node_uid, provider=site.provider, region=site.region, zone=zone,
        instance_type=host.instance_type, provider_id=f"{site.provider}:///{zone}/i-{node_uid.replace('-', '')[:17]}",
        accelerator=host.accelerator, driver="580.105.08", cpu_milli=host.cpu * 1000,
        memory_bytes=host.memory_gib * GIB,
        capacity=capacity, labels=labels, annotations={"node.alpha.kubernetes.io/ttl": "0"},
        created_at=created_at - timedelta(hours=2, minutes=7 * index), devices=devices,
        target=f"{name}:9400" if accelerator.has_exporter else None,
    )  # fmt: skip


def _device(seed: int, node_key: str, host: Host, index: int) -> Device:
    accelerator = ACCELERATORS[host.accelerator]
    layout = MIG_LAYOUTS[host.mig] if host.mig else ()
    return Device(
        gpu_index=index,
        gpu_uuid=f"GPU-{uid(seed, f'gpu/{node_key}/{index}')}" if accelerator.has_exporter else "",
        pci_bus_id=f"00000000:{accelerator.pci[index]}:00.0",
        device=f"nvidia{index}" if accelerator.has_exporter else f"accel{index}",
        model=accelerator.model,
        numa=0 if index < (host.count + 1) // 2 else 1,
        # HGX and DGX boards join all eight; without NVLink every card is an island of its own
        nvlink_island=0 if accelerator.nvlink_mb is not None else index,
        instances=tuple(MigInstance(gi, p, MIG_PROFILES[p][0], MIG_PROFILES[p][1]) for gi, p in layout),
    )


def build_namespaces(tenants: tuple[Tenant, ...], created_at: datetime) -> tuple[Namespace, ...]:
    """The tenants' namespaces, and kube-system in each cluster."""
    spaces = []
    for t in tenants:
        labels = {"kubernetes.io/metadata.name": t.namespace}
        annotations = {}
        if t.via == "namespace_label":
            labels[TEAM_KEY] = t.teams[0]
        if t.via == "namespace_annotation":
            annotations[TEAM_ANNOTATION] = t.teams[0]
        spaces.append(Namespace(t.cluster, t.namespace, labels, annotations, created_at))
    for cluster in dict.fromkeys(t.cluster for t in tenants):
        spaces.append(Namespace(cluster, "kube-system", {"kubernetes.io/metadata.name": "kube-system"}, {}, created_at))
    return tuple(sorted(spaces, key=lambda s: (s.cluster, s.name)))


def team_map(tenants: tuple[Tenant, ...]) -> tuple[tuple[str, str, str], ...]:
    """Rows (cluster, namespace, team) of raw.team_map: where neither label nor annotation says."""
    return tuple((t.cluster, t.namespace, t.teams[0]) for t in tenants if t.via == "mapping")
