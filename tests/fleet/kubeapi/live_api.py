"""A small world served by the simulated Kubernetes API, and a pod to send to it."""

from __future__ import annotations

from datetime import timedelta

from kubernetes import client

from fleet.clock import Clock
from fleet.kubeapi.fixed import EPOCH, FixedWorld

START = EPOCH + timedelta(hours=1)


class Live:
    """A served world, its clock and a client."""

    def __init__(self, url: str, world: FixedWorld, clock: Clock) -> None:
        self.url, self.world, self.clock = url, world, clock
        self.api = f"{url}/clusters/alpha"
        config = client.Configuration(host=self.api)
        self.core = client.CoreV1Api(client.ApiClient(config))

    def step(self, seconds: float = 1.0) -> None:
        """Moves the clock, so that the world is looked at again."""
        self.clock.set(advance_s=seconds)


def body(name: str, **annotations: str) -> dict[str, object]:
    """A pod that asks for one GPU."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": limits}]},
    }
