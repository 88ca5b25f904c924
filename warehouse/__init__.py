"""Floor 1: table contracts, the lake, the DuckDB engine, the SQL runner and exports.

No domain logic lives here: what a GPU-second means is said in `sql/`, what a scrape means in `sources/`.
"""
