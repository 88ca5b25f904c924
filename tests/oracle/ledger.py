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
    slot never shown). A slot not yet or never sampled has no last cover: it is lost from the first scrape since the
    node is there that carries others without it, also one before the slot's own first evidence. A single MIG instance
    is never lost on its own.
10. Of two targets that cover one slot at once the newer sample stands; of two at one instant the smaller target name.
11. A sample's activity is the first valid of SM, GR, GPU_UTIL of that sample; a newer sample without any leaves the
    time unobserved even where an older one still covers. Resident adds valid GPU_UTIL over covered held time.
12. The range and clamp rule (1 to 1.1) holds for all three fields after their factor, GPU_UTIL too. Equal series in
    one body: the first stands. A malformed line loses itself only.
13. Usual spacing unset: the median of all gaps of the target (mean of the middle two); limit unset: three times the
    usual spacing, at most 300 s. A limit that is set is taken as it is.
14. A pod starts at PodScheduled=True (else startTime, else creation) and ends, once Succeeded or Failed, at the latest
    finishedAt of any container. Without any finishedAt it ends at the later of its last list not yet ended and its last
    label (or pod-resources name), but not after the first list that shows it ended; without either, at that first list.
    Containers that all ended in a pod still Running end nothing. A pod in the newest pod list without an end is held on
    to the end of capacity.
15. Gone: some later complete pod list lacks it. Held to the later of its last list and its last label (on any device)
    or pod-resources name on its node, as an instant, never past the start of the next UID of the same namespace and
    name.
16. A device that pod-resources or else a label names for the pod at any instant in [start, end) is held for the whole
    interval; a name that itself sets the end counts too. Names beyond the request are cut to the devices with most of
    them; a pod that requests nothing holds nothing (its work is rogue); other names mean nothing. On an exclusive unit
    a hold of a gone pod stops where the next one begins; of two that still overlap the one that started first stands,
    the other begins at its end.
17. What a pod misses beside its named devices is its share of the node's free units of that resource, at every
    instant: of R missing units in all and free units F (only working ones where these are at least R), pod i holds
    r_i / max(|F|, R) of each. A unit is free where no named hold covers the instant.
18. On a shared device with r replicas a pod that was seen on any device misses nothing: its replicas are spread evenly
    over those, the remainder to the ones with most samples. Seen on none it holds r_i / (r * units) of every unit.
    A device is never held more than once over; its part applies to capacity, activity and residency.
19. Rogue is the activity times the unheld share of the device, so also the free replicas of a device others hold; it
    counts on every Ready node, cordoned or not, and not on uncarved slices.
20. GR_ENGINE_ACTIVE of a MIG instance without SM_ACTIVE is divided by the highest valid GR_ENGINE_ACTIVE of the same
    model and profile on the sample's date or the days beside it, but at least by 1/2 for 2g, 0.333333 for 3g, 0.25 for
    4g and 1 for any other.
21. A MIG device's parent row is never activity. The layout is the set of instances that scrapes show, from the scrape
    that first shows it; a set shown for less than five minutes between two equal ones is rows missing. Where the node's
    mig.strategy is single, nvidia.com/gpu and nvidia.com/gpu.count mean instances.
22. Team: pod label ``team``, else the namespace's label, else its annotation, else ``(unmapped)``.
23. Consecutive samples of one unit over at least ten minutes, first to last, in which GPU_UTIL is above 0.5 and every
    profiling field present (SM, GR, tensor, DRAM; SM or GR among them) is exactly 0: there GPU_UTIL is the activity.
24. Of two lists of one kind at one instant one with objects stands before one without, then the longer, then the
    smaller sha256.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from .activity import Maxima, activity, frozen_samples, observed_maxima
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
    profile: str | None = None
    units: Fraction = Fraction(0)  # of what the node advertises: GPUs, instances or replicas; 0 for uncarved slices
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
    assign(case, pods, {(n.cluster, n.name): n.layout for n in nodes})
    maxima = observed_maxima(case)
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


def _covers(node: Node, ends: Ends) -> dict[Device, list[Cover]]:
    covers: dict[Device, list[Cover]] = defaultdict(list)
    for scrape in node.scrapes:
        for device, row in scrape.rows.items():
            covers[device].append(Cover(scrape.at, ends[scrape.cluster, scrape.target, scrape.at], scrape.target, row))
    return covers


def _standing(covers: list[Cover], at: int) -> Cover | None:
    """The sample that stands at an instant: the newest that covers it."""
    live = [c for c in covers if c.start <= at < c.end]
    return min(live, key=lambda c: (-c.start, c.target)) if live else None


def _sum_node(
    case: Case,
    node: Node,
    pods: list[Pod],
    ends: Ends,
    maxima: Maxima,
    total: dict[str, Fraction],
    teams: dict[str, dict[str, Fraction]],
) -> None:
    begin, finish = micros(case.spec["from"]), micros(case.spec["to"])
    covers = _covers(node, ends)
    frozen = frozen_samples(node.scrapes)
    cuts = moments(node) | {t for p in pods for h in (p, *p.holds) for t in (h.start, h.end)} | {begin, finish}
    cuts |= {t for standing in covers.values() for c in standing for t in (c.start, c.end)}
    edges = sorted(t for t in cuts if begin <= t <= finish)
    for start, end in pairwise(edges):
        ready = node.ready(start)
        live = [s for s in node.slots.values() if inside(start, s.capacity)]
        pieces = _pieces(node, pods, start)
        _mark_unavailable(node, live, pieces, start, ready)
        near = {d: [c for c in standing if c.start <= start < c.end] for d, standing in covers.items()}
        for piece in pieces:
            amount = piece.weight * (end - start)
            cover = _standing(near.get(piece.device, []), start) if piece.units else None
            active = None
            if cover:
                active = activity(cover.row, cover.start, maxima, (piece.device, cover.start) in frozen)
            total["capacity"] += amount
            if piece.pod is None and ready and active:
                total["rogue"] += amount * active
            if piece.unavailable:
                total["unavailable"] += amount
            elif piece.pod is None:
                total["unallocated"] += amount
            else:
                found = {"allocated": amount}
                if cover is None or active is None:
                    found["unobserved"] = amount
                else:
                    found["utilized"] = amount * active
                    found["stranded"] = amount - found["utilized"]
                    found["resident"] = amount * cover.row.values.get("util", Fraction(0))
                for key, value in found.items():
                    total[key] += value
                    teams[piece.pod.team][key] += value


def _pieces(node: Node, pods: list[Pod], at: int) -> list[Piece]:
    """Held and free shares of all slots of a node at an instant; those of one slot add up to 1."""
    here = [p for p in pods if p.start <= at < p.end]
    units = node.units(at)
    per_unit = node.layout.replicas
    left = {device: Fraction(1) for device, _ in units}
    parts: list[tuple[Device, str | None, Pod | None, Fraction]] = []

    def hold(device: Device, profile: str | None, pod: Pod, share: Fraction) -> None:
        share = min(share, left[device])
        if share:
            parts.append((device, profile, pod, share))
            left[device] -= share

    profiles = dict(units)
    for pod in here:
        for named in pod.holds:
            if named.device in profiles and named.start <= at < named.end:
                hold(named.device, profiles[named.device], pod, Fraction(named.replicas, per_unit))
    lost = {slot.name for slot in node.slots.values() if inside(at, slot.lost)}
    for resource in sorted({r for p in here for r in p.missing}):
        missing = [(p, p.missing[resource]) for p in here if p.missing.get(resource)]
        wanted = sum(count for _, count in missing)
        fitting = [(d, profile) for d, profile in units if node.layout.means(resource, profile)]
        free = [u for u in fitting if left[u[0]] == 1] if per_unit == 1 else fitting
        working = [u for u in free if u[0][0] not in lost]
        if per_unit == 1 and len(working) >= wanted:
            free = working
        most = max(len(free), wanted) if per_unit == 1 else len(free) * per_unit
        for device, profile in free:
            for pod, count in missing:
                hold(device, profile, pod, Fraction(count, most))
    parts += [(device, profile, None, left[device]) for device, profile in units if left[device]]
    pieces = []
    for device, profile, holder, share in parts:
        weight = share * (node.slots[device[0]].weight(profile) if profile else 1)
        pieces.append(Piece(device, weight, holder, profile, share * per_unit))
    for name in {device[0] for device, profile in units if profile}:
        uncarved = 1 - sum((p.weight for p in pieces if p.device[0] == name), Fraction(0))
        if uncarved:
            pieces.append(Piece((name, None), uncarved, None))
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
    for resource in sorted(gpu_resources(shown)):
        capacity = int(shown["status"]["capacity"][resource])
        short = Fraction(capacity - int(shown["status"].get("allocatable", {}).get(resource, capacity)))
        ours = [p for p in pieces if p.units and node.layout.means(resource, p.profile)]
        short -= sum(p.units for p in ours if p.device[0] in lost)
        candidates = [p for p in ours if p.device[0] not in lost]
        candidates.sort(key=lambda p: (p.device[0], p.device[1] or ""), reverse=True)
        candidates.sort(key=lambda p: p.pod is not None)
        for piece in candidates:
            if short <= 0:
                break
            if piece.units > short:
                weight = piece.weight / piece.units * short
                pieces.append(Piece(piece.device, weight, piece.pod, piece.profile, short, True))
                piece.units, piece.weight = piece.units - short, piece.weight - weight
                break
            piece.unavailable = True
            short -= piece.units
