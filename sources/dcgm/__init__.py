"""DCGM telemetry: the exposition text of dcgm-exporter, how it is fetched and what it means.

`scrape` is the record of one attempt, `parse` turns many of them into raw tables, `collect` takes them.
Nothing here judges values: sentinels and values out of range go to raw as they came.
"""

from __future__ import annotations

from sources.dcgm.parse import parse_scrapes
from sources.dcgm.scrape import Scrape

__all__ = ["Scrape", "parse_scrapes"]
