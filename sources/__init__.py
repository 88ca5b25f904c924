"""Floor 2: what is read from outside: DCGM text, Kubernetes lists, traces. Returns frames; never writes tables."""
