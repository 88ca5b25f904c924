"""Floor 2: the simulated fleet: hardware, work, clock, history, and its Kubernetes API. No analytics."""
