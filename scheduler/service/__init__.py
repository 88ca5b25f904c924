"""The queue as a service: event log, loop over a world, HTTP API. Decisions are made in the rooms beside it."""
