"""Floor 3: queue, admission, placement. No Dagster."""
