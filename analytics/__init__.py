"""Floor 3: what SQL cannot say. Gets and returns frames; no tables, no Dagster."""
