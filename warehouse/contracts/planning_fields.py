"""Fields of the planning tables, in the form of `fields.py`.

Belongs here: columns that only the tables of `planning.py` have. Not here: which table uses which.
"""

DEFINITIONS = """
cover_us                integer    microseconds that the samples stand for
known_samples           integer    samples that tell how active the device was
active_samples          integer    samples with more than 1 % SM, engine or tensor activity
util_only_samples       integer    samples with GPU_UTIL above 1 % and nothing that tells how much of the device worked
over_1_of_7_samples     integer    samples with more activity than one seventh of the device
over_2_of_7_samples     integer    samples with more activity than two sevenths
over_3_of_7_samples     integer    samples with more activity than three sevenths
over_4_of_7_samples     integer    samples with more activity than four sevenths
activity_max            double     highest activity of any sample
activity_micros         integer    sum of the known activity in millionths
resident_samples        integer    samples that have GPU_UTIL
resident_micros         integer    sum of GPU_UTIL (0 to 1) in millionths
occupancy_samples       integer    samples that have SM occupancy
occupancy_micros        integer    sum of SM occupancy in millionths
tensor_max              double     highest tensor pipe activity of any sample
pcie_samples            integer    samples that have PCIe bytes received
pcie_rx_kilobytes       integer    sum of PCIe bytes received per second, in thousands
fb_used_max_bytes       double     most framebuffer memory used in any sample
peak_busy_devices       integer    most devices of one pod active in the same minute; null where nobody looked
template                string     the owner's name without what is generated for each run
role                    string     part that the pod plays under its owner (launcher, worker …), else main
rightsizing_run         string     the job, or the pod of what lives on, that counts as one run
is_long_lived           boolean    whether the owner keeps its pods (services, notebooks) and never ends by itself
is_failed               boolean    whether the pod failed
observed_devices        integer    devices of the run that samples show
sampling_interval_s     double     seconds that a sample stands for on average; peaks between samples are not seen
known_ratio             double     share of the time held in which activity is known; of a template, the runs' mean
active_ratio            double     share of samples that show activity, of the busiest device of the busiest run
over_1_of_7_ratio       double     share of samples over one seventh of the device, of the busiest device and run
over_2_of_7_ratio       double     share of samples over two sevenths
over_3_of_7_ratio       double     share of samples over three sevenths
over_4_of_7_ratio       double     share of samples over four sevenths
resident_mean           double     mean GPU_UTIL (0 to 1): any kernel at all, whatever its size
occupancy_mean          double     mean SM occupancy
pcie_rx_mean_bytes_per_second double mean of PCIe bytes received per second
memory_peak_bytes       double     most framebuffer memory on one device, failed runs included
memory_sum_bytes        double     sum over devices of the most memory on each
memory_total_bytes      double     framebuffer memory of the device
busy_devices            integer    devices of the run that were active at any time
dark_devices            integer    devices of the run that were sampled and whose activity never showed
confidence              string     high, medium or low, by runs, hours and what was seen; null for an abstention
asked_devices           integer    devices that each pod of the role asks for
suggested_devices       integer    devices to ask for; null where nothing is suggested
suggested_placement     string     MIG profile, time-slice/<clients> or accelerator to move to
suggested_memory_bytes  double     memory to plan for on each device: peak and margin
runs                    integer    runs of the template in the window
judged_runs             integer    runs that the verdict stands on
failed_runs             integer    runs with failed pods and none to judge; their peaks count
unjudged_runs           integer    runs not over yet, not sampled or hardly; their peaks count
pods                    integer    pods of the runs
gang_pods               integer    most pods of one run in this role
judged_hours            double     hours of the judged runs that samples cover
window_from_at          timestamp  start of the 28 days
first_run_at            timestamp  start of the earliest run
last_run_at             timestamp  until when the last run is known
peak_busy_devices_p95   integer    95th percentile over runs of each run's peak
peak_busy_devices_mean  double     mean over runs of each run's peak
needed_devices          integer    highest peak, devices that nobody saw counted as busy
ever_busy_devices       integer    most devices of one pod active at any time, those that nobody saw included
activity_peak           double     highest activity of any sample of any run
tensor_peak             double     highest tensor pipe activity of any sample of any run
pcie_rx_ratio           double     mean of PCIe bytes received over what the card's link carries
starved_runs_ratio      double     share of judged runs whose metrics show matrix work at low activity
is_out_of_memory        boolean    whether a run failed with its memory nearly full
"""
