"""Report pages of a lake: which days they show and where they are written.

Belongs here: the window, the file, whether the lake is simulated. Not here: the page itself (`reports/`).
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from pipelines import reading
from pipelines.settings import Settings
from reports import cost, cost_marts, marts, stranding
from warehouse.durable import write_atomically
from warehouse.errors import BadInput
from warehouse.lake import Lake

NEWEST = timedelta(days=30)


def write_stranding(settings: Settings, out: Path | None, start: date | None = None, end: date | None = None) -> Path:
    """Write stranding.html for the days [start, end) into `out` (DATA/reports) and return its path.

    Without `start` the newest 30 days before `end`, without `end` up to the newest day. `BadInput` where nothing is
    built in that time, or `out` is no folder.
    """
    folder = out or settings.data / "reports"
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"--out {folder}: a file of that name is in the way of the folder")
    with reading.open_reader(settings) as con:
        built = marts.days(con)
        if built is None:
            raise BadInput(
                f"{settings.data}: mart.stranding_hourly is empty: nothing is built yet (`strandline build`), or what "
                "was read spans no time, as a single scrape does"
            )
        start, end = window(built, start, end)
        page = stranding.render(con, start, end, simulated=is_simulated(Lake(settings.data)))
    path = folder / "stranding.html"
    write_atomically(path, page.encode())
    return path


def write_cost(settings: Settings, out: Path | None, start: date | None = None, end: date | None = None) -> Path | None:
    """Write cost.html for the days [start, end) as `write_stranding` does; None where no cost is known of them."""
    folder = out or settings.data / "reports"
    with reading.open_reader(settings) as con:
        charged = cost_marts.days(con)
        if charged is None or (start and start >= charged[1]) or (end and end <= charged[0]):
            return None
        start, end = window(charged, start, end)
        page = cost.render(con, start, end, simulated=is_simulated(Lake(settings.data)))
    path = folder / "cost.html"
    write_atomically(path, page.encode())
    return path


def window(built: tuple[date, date], start: date | None, end: date | None) -> tuple[date, date]:
    """The days [start, end) to show of the days [first, after last) that are `built`; `BadInput` where none is."""
    end = end or built[1]
    start = start or max(built[0], end - NEWEST)
    if end <= start:
        raise BadInput(f"--to {end} must be after --from {start}: it names the day after the last")
    if end <= built[0] or start >= built[1]:
        last = built[1] - timedelta(days=1)
        raise BadInput(f"no day of {start} to {end - timedelta(days=1)} is built: there are {built[0]} to {last}")
    return start, end


def is_simulated(lake: Lake) -> bool:
    """Whether a demo wrote this lake: `simulated.py` leaves a marker before its first row."""
    return (lake.state / "simulated.json").is_file()
