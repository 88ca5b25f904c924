"""Floor 4: Dagster assets and checks by layer; thin: a window, a call, a write."""
