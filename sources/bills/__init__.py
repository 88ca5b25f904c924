"""FOCUS bills (1.0 to 1.4, CSV or Parquet) to rows of raw.bills and raw.rejected_bill_lines.

Belongs here: reading files and judging rows one by one. Not here: which bill replaces which (`assets/bills.py`), and
matching charges to nodes (`sql/core/billed_charges.sql`).
"""

from sources.bills.chunks import Refusal
from sources.bills.read import Spooled, spool

__all__ = ["Refusal", "Spooled", "spool"]
