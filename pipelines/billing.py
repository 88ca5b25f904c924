"""Money of the simulated fleet in a lake: rate cards and bills written as files, imported as anybody's, and invoices.

Belongs here: where the files lie, that an earlier demo's money goes, and that nobody else's does. Not here: prices and
bills (`fleet/billing/`), importing (`assets/cards.py`, `assets/bills.py`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from assets.bills import load_bills
from assets.cards import load_cards
from fleet.billing.bills import write_bills
from fleet.billing.calendar import Window
from fleet.billing.cards import SOURCE, write_cards
from fleet.billing.invoices import ACCOUNTS, bill_fleet, fleet_invoices
from fleet.world import World
from warehouse.contracts import CONTRACTS
from warehouse.engine import open_database
from warehouse.lake import Lake
from warehouse.windows import DAY

FOLDER = "simulated"
CARD_TABLES = (
    "raw.prices", "raw.commitments", "raw.credits", "raw.owned_hardware", "raw.energy_factors", "raw.exchange_rates",
)  # fmt: skip
INVOICES = "raw.fleet_invoices"


def foreign_money(lake: Lake) -> list[str]:
    """Tables of cards and bills that hold rows of anybody but the invented providers, with whose they are."""
    ours = ", ".join(f"'{p}'" for p in ACCOUNTS)
    found = []
    with open_database(lake.root) as con:
        for name in (*CARD_TABLES, "raw.bills"):
            if lake.version(name) is None:
                continue
            whose, where = ("provider", f"provider not in ({ours})")
            if name == "raw.exchange_rates":
                whose, where = "source", f"source is distinct from '{SOURCE}'"
            query = f"select distinct {whose} from ({lake.relation(name)}) where {where} order by 1"
            if names := [str(row[0]) for row in con.execute(query).fetchall()]:
                found.append(f"{name} of {', '.join(names)}")
    return found


def write_money(lake: Lake, world: World, progress: Callable[[str], None]) -> dict[str, set[date]]:
    """Bill the world's nodes, write cards and bills to DATA/simulated and import them; the days written of each table.

    Cards of an earlier demo are dropped. A card or bill line that the imports refuse is an error of this program.
    """
    progress("billing")
    window = Window(world.start_at, world.end_at)
    billing = bill_fleet(world.nodes, window)
    folder = lake.root / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    for name in CARD_TABLES:
        if lake.version(name) is not None:
            lake.replace(name, CONTRACTS[name].arrow_schema.empty_table(), run_id="demo")
    cards = load_cards(lake, write_cards(billing.book, window, folder / "cards"), run_id="demo")
    bills = write_bills(billing, folder / "bills")
    refused: list[object] = list(cards.refused)
    if bills:
        refused += load_bills(lake, bills, run_id="demo").refusals
    if refused:
        raise RuntimeError(f"the simulated providers' own files were refused: {refused[0]}")
    _name_sources(lake)
    invoices = fleet_invoices(billing)
    months = sorted(set(invoices.column("date").to_pylist()))
    lake.replace(INVOICES, invoices, months[0], months[-1] + DAY, run_id="demo", mark=False)
    return {"raw.bills": set(months), INVOICES: set(months)}


def _name_sources(lake: Lake) -> None:
    """Bills say which file they came from by its place in the data folder: a demo is the same in any folder."""
    bills = lake.read("raw.bills")
    for month in sorted(set(bills.column("date").to_pylist())):
        rows = bills.filter(pc.equal(bills.column("date"), month))
        at = rows.schema.get_field_index("source")
        names = [str(Path(s).relative_to(lake.root)) if Path(s).is_relative_to(lake.root) else s
                 for s in rows.column("source").to_pylist()]  # fmt: skip
        rows = rows.set_column(at, rows.schema.field(at), pa.array(names, pa.string()))
        lake.replace("raw.bills", rows, month, month + DAY, run_id="demo", mark=False)
