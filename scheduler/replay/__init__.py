"""Replays: the queue over a recorded trace, in simulated time."""
