"""The reference ledger: expected GPU-seconds of a case, slowly and exactly, from the rules of the design.

Belongs here: cover (rule 3), activity (rule 5), shares (rule 6) and the sums over elementary intervals, in integer
microseconds and fractions. Does not belong here: parsing (reader.py), holders (holders.py), slot states (inventory.py),
anything of the project's rooms or SQL: it is an independent second opinion.

How the rules were read where they leave room:

 1. A list shows as many slots of a node as it counts physical GPUs (nvidia.com/gpu.count, else nvidia.com/gpu and
    nvidia.com/gpu.shared over replicas). It counts for slots already shown, then for slots in the order in which the
    exporter first shows them (then by address), also before that scrape; what is left are slots without an address.
 2. A scrape is evidence for the slots whose rows it carries, a node list for all shown slots of its nodes. Evidence is
    an instant: capacity ends at the last one, not at the end of its cover.
 3. First and last evidence are taken within each validity: a node that leaves the lists loses its capacity from its
    last evidence before the list without it; the next evidence (list or scrape) starts a new validity.
 4. A mixed v1 List with Node objects is a complete node list and a complete pod list; NodeList and PodList are each
    complete for their kind. A file without nodes says nothing of nodes.
 5. Ready changes at each lastTransitionTime the lists show, also before the list itself (never after it). Before the
    first known transition, and where a node has no Ready condition, it counts as Ready.
 6. Cordon and allocatable hold from the list that shows them to the next list that does not.
 7. Free on a cordoned node means every free share: free MIG instances, uncarved slices, free replicas.
 8. Allocatable below capacity is counted per resource in advertised units (GPU, instance, replica). Lost devices of
    that resource count towards the difference first, then free devices, then held ones, highest address first.
 9. Lost is judged per slot within one validity, by scrapes of the targets that ever showed it (all the node's, for a
    slot never shown). A slot not yet or never sampled has no last cover: it is lost from the first scrape that carries
    others without it. A single MIG instance is never lost on its own.
10. Of two targets that cover one slot at once the newer sample stands; of two at one instant the smaller target name.
11. A sample's activity is the first valid of SM, GR, GPU_UTIL of that sample; a newer sample without any leaves the
    time unobserved even where an older one still covers. Resident adds valid GPU_UTIL over covered held time.
12. The range and clamp rule (1 to 1.1) holds for all three fields after their factor, GPU_UTIL too. Equal series in
    one body: the first stands. A malformed line loses itself only.
13. Usual spacing unset: the median of all gaps of the target (mean of the middle two); limit unset: three times the
    usual spacing, at most 300 s. A limit that is set is taken as it is.
14. A pod starts at PodScheduled=True (else startTime, else creation) and ends, once Succeeded or Failed, at the latest
    finishedAt of any container (else at the first list that shows it ended). Containers that all ended in a pod still
    Running end nothing. A pod in the newest pod list without an end is held on to the end of capacity.
15. Gone: some later complete pod list lacks it. Held to the later of its last list and its last label on its node (on
    any device), as an instant, never past the start of the next UID of the same namespace and name.
16. A device whose label names the pod at any sample in [start, end) is held for the whole interval. Labels beyond the
    request are cut to the devices with most labelled samples; a pod that requests nothing holds nothing (its work is
    rogue); labels outside the interval mean nothing.
17. Devices still missing are the lowest free ones (address as text; slots without an address last), pods in order of
    start, then UID; free means free over the pod's whole interval, after all labelled devices are set. What is not
    free is not held.
18. On a shared device with r replicas a pod that requests k holds one replica on each labelled device, the rest on the
    lowest of them. Its part is k/r of capacity, of activity and of residency.
19. Rogue is the activity times the unheld share of the device, so also the free replicas of a device others hold; it
    counts on every Ready node, cordoned or not, and not on uncarved slices.
20. GR_ENGINE_ACTIVE of a MIG instance without SM_ACTIVE is divided by the highest valid GR_ENGINE_ACTIVE of the same
    model and profile anywhere in the case, at most 1; nothing is scaled where that maximum is 0.
21. A MIG device's parent row is never activity; the layout is the union of all instances seen and does not change.
22. Team: pod label ``team``, else the namespace's label, else its annotation, else ``(unmapped)``.
23. PROF fields that stay 0 while GPU_UTIL is high are taken at their word.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from .holders import Device, Pod, assign, read_pods
from .inventory import Ends, Node, Slot, gpu_resources, inside, moments, read_nodes
from .reader import Case, Row, micros, read_case

TEAM = ["allocated", "utilized", "stranded", "unobserved", "resident"]
TOTAL = ["capacity", "unallocated", "unavailable", "rogue", *TEAM]
SECOND = 1_000_000


@dataclass
class Cover:
    """A sample and the time it stands for."""

    start: int
    end: int
    target: str
    row: Row


@dataclass
class Piece:
    """A share of a device in one elementary interval, with its holder or none."""

    device: Device
    weight: Fraction
    pod: Pod | None
    replicas: int = 0
    unavailable: bool = False


def cover_ends(case: Case) -> Ends:
    """End of the cover of each scrape's samples (rule 3)."""
    instants: dict[tuple[str, str], list[int]] = defaultdict(list)
    for scrape in case.scrapes:
        instants[scrape.cluster, scrape.target].append(scrape.at)
    ends = {}
    for (cluster, target), times in instants.items():
        gaps = [b - a for a, b in pairwise(times)]
        set_s, limit_s = case.spec.get("scrape_interval_s"), case.spec.get("staleness_s")
        usual = int(set_s * SECOND) if set_s else int(median(gaps)) if gaps else 0
        limit = int(limit_s * SECOND) if limit_s else min(3 * usual, 300 * SECOND)
        for at, gap in zip(times, [*gaps, limit + 1], strict=True):
            ends[cluster, target, at] = at + (gap if gap <= limit else min(usual, limit))
    return ends


def expected(folder: Path) -> dict[str, Any]:
    """Expected GPU-seconds of a case folder, in the form of ``expect`` in case.json."""
    return compute(read_case(folder))


def compute(case: Case) -> dict[str, Any]:
    """Totals and per-team sums over [from, to) of the case."""
    ends = cover_ends(case)
    nodes = read_nodes(case, ends)
    pods = read_pods(case)
    assign(case, pods, {(n.cluster, n.name): n.parts() for n in nodes})
    maxima = _observed_maxima(case)
    total: dict[str, Fraction] = defaultdict(Fraction)
    teams: dict[str, dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for node in nodes:
        here = [p for p in pods if (p.cluster, p.node) == (node.cluster, node.name)]
        _sum_node(case, node, here, ends, maxima, total, teams)
    return {
        "total": {f"{k}_gpu_seconds": _seconds(total[k]) for k in TOTAL},
        "teams": {
            team: {f"{k}_gpu_seconds": _seconds(sums[k]) for k in TEAM}
            for team, sums in sorted(teams.items())
            if sums["allocated"]
        },
    }


def _seconds(value: Fraction) -> float:
    return round(float(value / SECOND), 6)


def _observed_maxima(case: Case) -> dict[tuple[str, str], Fraction]:
    """Highest GR_ENGINE_ACTIVE by model and MIG profile."""
    highest: dict[tuple[str, str], Fraction] = {}
    for scrape in case.scrapes:
        for (_, gi), row in scrape.rows.items():
            if gi is not None and "gr" in row.values:
                key = (row.model or "", row.profile or "")
                highest[key] = max(highest.get(key, Fraction(0)), row.values["gr"])
    return highest


def activity(row: Row, maxima: dict[tuple[str, str], Fraction]) -> Fraction | None:
    """SM_ACTIVE, else GR_ENGINE_ACTIVE (scaled on MIG), else GPU_UTIL, else nothing."""
    if "sm" in row.values:
        return row.values["sm"]
    if "gr" in row.values:
        highest = maxima.get((row.model or "", row.profile or ""), Fraction(0))
        if row.gi is not None and highest:
            return min(Fraction(1), row.values["gr"] / highest)
        return row.values["gr"]
    return row.values.get("util")


def _covers(node: Node, ends: Ends) -> dict[Device, list[Cover]]:
    covers: dict[Device, list[Cover]] = defaultdict(list)
    for scrape in node.scrapes:
        for device, row in scrape.rows.items():
            covers[device].append(Cover(scrape.at, ends[scrape.cluster, scrape.target, scrape.at], scrape.target, row))
    return covers


def _standing(covers: list[Cover], at: int) -> Row | None:
    """The sample that stands at an instant: the newest that covers it."""
    live = [c for c in covers if c.start <= at < c.end]
    return min(live, key=lambda c: (-c.start, c.target)).row if live else None


def _sum_node(
    case: Case,
    node: Node,
    pods: list[Pod],
    ends: Ends,
    maxima: dict[tuple[str, str], Fraction],
    total: dict[str, Fraction],
    teams: dict[str, dict[str, Fraction]],
) -> None:
    begin, finish = micros(case.spec["from"]), micros(case.spec["to"])
    covers = _covers(node, ends)
    cuts = moments(node) | {t for p in pods for t in (p.start, p.end)} | {begin, finish}
    cuts |= {t for standing in covers.values() for c in standing for t in (c.start, c.end)}
    edges = sorted(t for t in cuts if begin <= t <= finish)
    for start, end in pairwise(edges):
        ready = node.ready(start)
        live = [s for s in node.slots.values() if inside(start, s.capacity)]
        pieces = [piece for slot in live for piece in _pieces(node, slot, pods, start)]
        _mark_unavailable(node, live, pieces, start, ready)
        near = {d: [c for c in standing if c.start <= start < c.end] for d, standing in covers.items()}
        for piece in pieces:
            amount = piece.weight * (end - start)
            row = _standing(near.get(piece.device, []), start) if piece.replicas else None
            active = None if row is None else activity(row, maxima)
            total["capacity"] += amount
            if piece.pod is None and ready and active:
                total["rogue"] += amount * active
            if piece.unavailable:
                total["unavailable"] += amount
            elif piece.pod is None:
                total["unallocated"] += amount
            else:
                found = {"allocated": amount}
                if row is None or active is None:
                    found["unobserved"] = amount
                else:
                    found["utilized"] = amount * active
                    found["stranded"] = amount - found["utilized"]
                    found["resident"] = amount * row.values.get("util", Fraction(0))
                for key, value in found.items():
                    total[key] += value
                    teams[piece.pod.team][key] += value


def _pieces(node: Node, slot: Slot, pods: list[Pod], at: int) -> list[Piece]:
    """Held and free shares of one slot at an instant; they add up to 1."""
    shares = [((slot.name, gi), slot.weight(gi), 1) for gi in slot.instances]
    if not shares:
        shares = [((slot.name, None), Fraction(1), node.replicas)]
    pieces = []
    for device, weight, replicas in shares:
        left = replicas
        for pod in sorted(pods, key=lambda p: (p.start, p.uid)):
            take = min(left, pod.devices.get(device, 0)) if pod.start <= at < pod.end else 0
            if take:
                pieces.append(Piece(device, weight * take / replicas, pod, take))
                left -= take
        if left:
            pieces.append(Piece(device, weight * left / replicas, None, left))
    uncarved = 1 - sum((p.weight for p in pieces), Fraction(0))
    if uncarved:
        pieces.append(Piece((slot.name, None), uncarved, None, 0))  # no replicas: nothing runs there
    return pieces


def _mark_unavailable(node: Node, live: list[Slot], pieces: list[Piece], at: int, ready: bool) -> None:
    """Rule 2. A piece may be split where only some of its replicas are unavailable."""
    lost = {slot.name for slot in live if inside(at, slot.lost)}
    shown = node.shown(at)
    cordoned = bool(shown and (shown.get("spec") or {}).get("unschedulable"))
    if shown:
        _mark_below_capacity(node, pieces, shown, lost)
    for piece in pieces:
        if not ready or piece.device[0] in lost or (cordoned and piece.pod is None):
            piece.unavailable = True


def _mark_below_capacity(node: Node, pieces: list[Piece], shown: dict[str, Any], lost: set[str]) -> None:
    slots = node.slots
    for resource in sorted(gpu_resources(shown)):
        capacity = int(shown["status"]["capacity"][resource])
        short = capacity - int(shown["status"].get("allocatable", {}).get(resource, capacity))
        profile = resource.removeprefix("nvidia.com/mig-") if "/mig-" in resource else None

        def means(piece: Piece, profile: str | None = profile) -> bool:
            slot, gi = piece.device
            cut = slots[slot].instances.get(gi) if gi else None
            whole = not slots[slot].instances
            return piece.replicas > 0 and (cut == profile if profile else whole)

        ours = [p for p in pieces if means(p)]
        short -= sum(p.replicas for p in ours if p.device[0] in lost)
        candidates = [p for p in ours if p.device[0] not in lost]
        candidates.sort(key=lambda p: (p.device[0], p.device[1] or ""), reverse=True)
        candidates.sort(key=lambda p: p.pod is not None)
        for piece in candidates:
            if short <= 0:
                break
            if piece.replicas > short:
                unit = piece.weight / piece.replicas
                pieces.append(Piece(piece.device, unit * short, piece.pod, short, True))
                piece.replicas, piece.weight = piece.replicas - short, piece.weight - unit * short
                break
            piece.unavailable = True
            short -= piece.replicas
