"""Every column of the lake, defined once: type, unit (in its name), meaning and allowed range.

A field belongs here even if one table uses it. Which table uses which stands in `raw.py`,
`core.py` and `mart.py`.
"""

from __future__ import annotations

from warehouse.contracts import cost_fields, planning_fields, queue_fields
from warehouse.contracts.model import Field

_DEFINITIONS = """
cluster                 string     name of the Kubernetes cluster; part of every raw and core key
date                    date       UTC date of the row; storage partition and window of core and mart
hour                    timestamp  start of the UTC hour of the row; window of raw
scrape_at               timestamp  when the scrape was taken
sampled_at              timestamp  when the sample was taken: the time of its scrape
snapshot_at             timestamp  when the API server was listed
target                  string     the scraped endpoint (Prometheus `instance`), or the node name for files
node                    string     Kubernetes node name
is_up                   boolean    whether the scrape succeeded (HTTP 200)
http_status             integer    HTTP status; null when there was no answer
duration_s              double     seconds the scrape took
samples                 integer    sample lines accepted
rejected_lines          integer    lines that could not be read
duplicate_lines         integer    repeats of a series within one body; the first counts
body_bytes              integer    size of the body as received
body_sha256             string     hash of the body: decides between two bodies for one instant
error                   string     what went wrong, if anything
line_number             integer    line within the body, from 1
line                    string     the rejected line, cut to 500 characters
reason                  string     why
column_name             string     canonical column that a metric was read into
source_name             string     metric name as exported
factor                  double     what a value was multiplied by to reach the unit of its column
verdict                 string     the judgement reached: of a factor (table, format, range, override) or of a run
gpu_uuid                string     UUID of the physical GPU; the parent's on MIG rows
gpu_index               integer    NVML index; not stable over reboots, never a key
pci_bus_id              string     slot in the node; else the UUID, or `unseen-<n>` where no exporter shows it
gi_id                   integer    MIG GPU-instance id; null for the whole device
copy                    integer    0 for a device's first row, 1, 2 … for copies of it in one scrape (shared GPU)
mig_profile             string     MIG profile, e.g. 3g.20gb
model                   string     GPU model as the exporter or the node label names it
driver                  string     driver version
device                  string     device file name as exported, e.g. nvidia0
hint_namespace          string     namespace the exporter's pod labels claim
hint_pod                string     pod name the exporter's pod labels claim
hint_container          string     container the exporter's pod labels claim
hint_pod_uid            string     pod UID the exporter's pod labels claim
vgpu                    string     replica number of a shared GPU
gpu_util_ratio          double     share of time in which any kernel ran
mem_copy_ratio          double     share of time in which device memory was read or written
enc_ratio               double     encoder utilization
dec_ratio               double     decoder utilization
sm_active_ratio         double     mean over SMs of the share of time with a warp assigned
sm_occupancy_ratio      double     resident warps over the maximum
gr_engine_ratio         double     share of time in which the graphics or compute engine was busy
tensor_ratio            double     share of cycles in which the tensor pipe was active
dram_ratio              double     share of cycles in which the memory interface was active
fp64_ratio              double     share of cycles in which the FP64 pipe was active
fp32_ratio              double     share of cycles in which the FP32 pipe was active
fp16_ratio              double     share of cycles in which the FP16 pipe was active
power_w                 double     board power draw
energy_j                double     energy since driver load; resets
fb_used_bytes           double     framebuffer memory used
fb_free_bytes           double     framebuffer memory free
fb_reserved_bytes       double     framebuffer memory reserved
fb_total_bytes          double     framebuffer memory in all
sm_clock_hz             double     SM clock
mem_clock_hz            double     memory clock
gpu_temp_c              double     GPU temperature
mem_temp_c              double     memory temperature
xid_last                double     last XID code; sticky, a code and not a count
nvlink_bytes_per_second double     NVLink throughput
pcie_tx_bytes_per_second double    PCIe bytes sent per second
pcie_rx_bytes_per_second double    PCIe bytes received per second
pcie_replay_total       double     PCIe replays
ecc_sbe_volatile_total  double     corrected ECC errors since driver load
ecc_dbe_volatile_total  double     uncorrected ECC errors since driver load
ecc_sbe_aggregate_total double     corrected ECC errors in the card's life
ecc_dbe_aggregate_total double     uncorrected ECC errors in the card's life
row_remap_failure       double     1 where remapping of rows has failed
uncorrectable_remapped_rows_total double rows remapped for uncorrectable errors
correctable_remapped_rows_total double rows remapped for correctable errors
power_violation_ns_total double    time throttled by the power limit
thermal_violation_ns_total double  time throttled by temperature
vgpu_license_status     double     vGPU license status
kind                    string     Kubernetes kind of the list
objects                 integer    objects in the list
is_complete             boolean    whether every page of the list was read
node_uid                string     UID of the node object
created_at              timestamp  creationTimestamp
provider_id             string     spec.providerID
labels                  labels     metadata.labels
annotations             labels     metadata.annotations
taints                  string     spec.taints as JSON
is_unschedulable        boolean    spec.unschedulable: cordoned
ready_status            string     status of the Ready condition: True, False or Unknown
ready_changed_at        timestamp  lastTransitionTime of the Ready condition
cpu_milli               integer    CPU: capacity of a node, effective request of a pod
memory_bytes            integer    memory: capacity of a node, effective request of a pod
resource                string     extended resource name, e.g. nvidia.com/gpu
capacity                integer    status.capacity of the resource
allocatable             integer    status.allocatable of the resource
quantity                integer    devices requested: the larger of init containers and the sum of containers
pod_uid                 string     pod UID
namespace               string     namespace
pod                     string     pod name
phase                   string     pod phase
scheduled_at            timestamp  lastTransitionTime of PodScheduled=True
started_at              timestamp  start of the whole interval
finished_at             timestamp  end of the whole interval; null while it goes on
pod_started_at          timestamp  status.startTime
pod_finished_at         timestamp  end of the last container, once all have ended
deletion_requested_at   timestamp  metadata.deletionTimestamp
priority                integer    spec.priority
priority_class          string     spec.priorityClassName
scheduler_name          string     spec.schedulerName
owner_kind              string     kind of the controlling owner
owner_name              string     name of the controlling owner
owner_uid               string     UID of the controlling owner
restarts                integer    container restarts
container               string     container name
device_id               string     device id as the kubelet or DRA driver names it
method                  string     how devices were found: pod_resources, dra, exporter_labels or node_share
rank                    integer    position in the chain, from 1
source                  string     where the value comes from
key                     string     label or annotation key
team                    string     team charged
team_source             string     link of the team chain that answered
setting                 string     name of the setting
value                   string     its value as text
interval_start_at       timestamp  start of this date's part of the interval
interval_end_at         timestamp  end of this date's part of the interval
end_reason              string     finished, gone (from the lists without an end) or open; of a spell the next event
workload_kind           string     kind of the controlling owner, or Pod
provider                string     cloud provider, from spec.providerID or a node label
region                  string     topology.kubernetes.io/region
zone                    string     topology.kubernetes.io/zone
instance_type           string     node.kubernetes.io/instance-type
accelerator             string     accelerator model without vendor prefix, e.g. H100-80GB-HBM3
is_ready                boolean    whether the node's Ready condition was True
is_cordoned             boolean    whether the node was cordoned
first_seen_at           timestamp  first evidence
last_seen_at            timestamp  last evidence
mig_layout              string     MIG instances of the slot as gi_id:profile, comma separated; null when not cut
slices                  integer    compute slices of a MIG instance
max_slices              integer    most compute slices the model can be cut into
share_start             integer    where the unit's share begins on the device, in 1/share_parts
share_end               integer    where the unit's share ends on the device, in 1/share_parts
share_parts             integer    parts the device is divided into
replicas                integer    replicas advertised for one device (time-slicing or MPS)
covers_until_at         timestamp  until when the sample stands (ledger rule 3)
resumes_at              timestamp  from when it stands again, where another exporter's newer sample stood shorter
resumes_until_at        timestamp  until when it stands again
util_ratio              double     activity by ledger rule 5
util_source             string     field that activity came from
nulled                  string     columns set to null and why, as column:reason, semicolon separated
is_clamped              boolean    whether a ratio of 1 to 1.1 was cut to 1
flags                   string     remarks on the row, comma separated
holder                  string     pod UID that held the unit; null where nobody did
capacity_gpu_seconds    quantity   GPU-seconds that existed
allocated_gpu_seconds   quantity   held on a working device
unallocated_gpu_seconds quantity   working and held by nobody
unavailable_gpu_seconds quantity   not able to work: node, device or cordon
utilized_gpu_seconds    quantity   held and active
stranded_gpu_seconds    quantity   held and not active
unobserved_gpu_seconds  quantity   held and not covered by a sample
resident_gpu_seconds    quantity   GPU_UTIL over the same held and covered time
rogue_gpu_seconds       quantity   activity on a device that nobody held
allocated_gpu_hours     double     allocated_gpu_seconds / 3600
utilized_gpu_hours      double     utilized_gpu_seconds / 3600
stranded_gpu_hours      double     stranded_gpu_seconds / 3600
unobserved_gpu_hours    double     unobserved_gpu_seconds / 3600
requested_devices       double     devices requested by pods bound to the node, mean over the hour
bound_devices           double     working devices that pods held, mean over the hour
free_devices            double     working devices that nobody held, mean over the hour
unavailable_devices     double     devices not able to work, mean over the hour
capacity_devices        double     devices that existed, mean over the hour
allocatable_devices     double     allocatable devices that existed, mean over the hour
free_at_end             integer    free devices at the end of the hour
largest_gang_devices    integer    most devices an all-or-nothing pod could get on this node at the end of the hour
largest_gang_in_pool    integer    most devices for a gang in the pool, its pods as large as what is free here
shape                   string     workload shape: training, inference, notebook, batch, starved, sweep or unknown
devices                 integer    devices held
held_gpu_seconds        quantity   GPU-seconds held, by the simulator's own account
true_utilized_gpu_seconds quantity GPU-seconds active, integrated at 1 s by the simulator
hidden_gpu_seconds      quantity   GPU-seconds of the device that a fault hides from the exporter
fault_id                string     id of the injected fault
fault                   string     kind of the injected fault
absent_at               timestamp  first complete node list without the node; null while it is listed
missing_from_at         timestamp  first scrape that carries other GPUs and not this one
next_seen_at            timestamp  next sample after the gap, where the day's reading shows it
has_mig_resources       boolean    whether the node advertises nvidia.com/mig-… resources
is_cut                  boolean    whether the node's GPUs are cut by MIG, under either strategy
is_unseen               boolean    known from node lists alone; no exporter shows it
is_uncarved             boolean    the slices of a cut device that belong to no instance
layout_from_at          timestamp  start of this date's part of the layout
layout_to_at            timestamp  end of this date's part of the layout
is_over                 boolean    whether the pod had Succeeded or Failed
first_over_at           timestamp  first list that showed the pod over
last_active_at          timestamp  last list that showed the pod not over
parts                   integer    parts of the unit held
of_parts                integer    parts the unit is divided into
share_ratio             double     parts / of_parts
segment_start_at        timestamp  start of the segment
segment_end_at          timestamp  end of the segment
is_not_ready            boolean    the node's Ready condition was not True
is_lost                 boolean    the GPU was lost
unavailable_us          integer    microseconds of part_us that could not work
hold_start              integer    where the holder's share of the unit begins, in 1/hold_parts
hold_end                integer    where it ends, in 1/hold_parts
hold_parts              integer    parts the unit is divided into among holders
part_us                 integer    microseconds of the device that are this part's
metric                  string     column of core.gpu_samples
bucket                  integer    bucket of the value: floor of it times buckets per unit
value_micros            integer    sum of the values in the bucket, in millionths (ratios, W, MiB)
utilization_ratio       double     utilized over held and observed
activity_mean           double     mean SM activity (engine activity where the card has no SM_ACTIVE)
baseline_activity_ratio double     median activity_mean of that date's runs of the shape on the accelerator
baseline_runs           integer    how many runs that median is of
sm_active_p50 double median of SM activity over the run's samples
sm_active_p95 double 95th percentile of SM activity over the run's samples
gpu_util_p50 double median of GPU_UTIL over the run's samples
gpu_util_p95 double 95th percentile of GPU_UTIL over the run's samples
sm_occupancy_p50 double median of SM occupancy over the run's samples
sm_occupancy_p95 double 95th percentile of SM occupancy over the run's samples
tensor_p50 double median of tensor pipe activity over the run's samples
tensor_p95 double 95th percentile of tensor pipe activity over the run's samples
dram_p50 double median of memory interface activity over the run's samples
dram_p95 double 95th percentile of memory interface activity over the run's samples
power_w_p50 double median of board power in W over the run's samples
power_w_p95 double 95th percentile of board power in W over the run's samples
fb_used_bytes_p50 double median of framebuffer memory used over the run's samples
fb_used_bytes_p95 double 95th percentile of framebuffer memory used over the run's samples
fragmentation_ratio     double     share of the pool's free devices that are on partly held nodes
"""

_BOUNDS: dict[str, tuple[float | None, float | None]] = {
    "line_number": (1, None), "samples": (0, None), "rejected_lines": (0, None), "duplicate_lines": (0, None),
    "body_bytes": (0, None), "copy": (0, None), "objects": (0, None), "capacity": (0, None),
    "allocatable": (0, None), "quantity": (0, None), "util_ratio": (0, 1),
    "utilization_ratio": (0, 1), "activity_mean": (0, 1), "fragmentation_ratio": (0, 1),
    "event_id": (1, None), "gpu_milli": (0, None), "attempt": (1, None), "waited_us": (0, None),
    "answered_ratio": (0, 1), "p50_covers_ratio": (0, 1), "p90_covers_ratio": (0, 1), "within_target_ratio": (0, 1),
    "slices": (0, None), "share_start": (0, None), "share_parts": (1, None), "replicas": (1, None),
}  # fmt: skip


def parse(definitions: str) -> dict[str, Field]:
    """Fields from lines `name type description`, by name; `ValueError` where one is defined twice."""
    fields: dict[str, Field] = {}
    for text in definitions.strip().splitlines():
        name, type_, description = text.split(None, 2)
        if name in fields:
            raise ValueError(f"{name} is defined twice")
        low, high = _BOUNDS.get(name, (None, None))
        if name.endswith("_gpu_seconds") or name.endswith("_devices") or name.endswith("_gpu_hours"):
            low = 0
        fields[name] = Field(name, type_, description, low, high)
    return fields


FIELDS: dict[str, Field] = parse(
    _DEFINITIONS.rstrip()
    + cost_fields.DEFINITIONS.rstrip()
    + queue_fields.DEFINITIONS.rstrip()
    + planning_fields.DEFINITIONS
)


def pick(names: str) -> tuple[Field, ...]:
    """The fields of those names, separated by white space, in that order; `KeyError` on an unknown one."""
    return tuple(FIELDS[n] for n in names.split())
