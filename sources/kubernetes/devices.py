"""Which pod holds which device: the kubelet's pod-resources list and allocated DRA claims.

Both give rows of raw.kube_devices. What exporters claim about pods is a hint and stands in the samples.
"""

from __future__ import annotations

import re
from typing import Any

from sources.kubernetes.quantity import BadObject, is_extended, mapping, objects, text

Json = dict[str, Any]
_ATTRIBUTES = ("uuid", "parentUUID", "profile", "pciBusID")
_GPU_UUID = re.compile(r"(GPU-[0-9A-Za-z-]+)")
_MIG_OF_PARENT = re.compile(r"MIG-(GPU-[0-9A-Za-z-]+)/(\d{1,9})/\d+")


def pod_resource_devices(document: Json, node: str | None) -> tuple[int, list[Json], list[str]]:
    """Pods counted, rows and errors of a kubelet `List` reply as JSON (`podResources`, with device ids).

    A time-slice or MPS replica is `UUID::N`: the device id stays whole, the UUID is read from it.
    """
    node = node or document.get("node")
    if not isinstance(node, str) or not node:
        raise BadObject("no node; a pod-resources list does not name its own")
    rows: dict[tuple[str, str, str | None, str], Json] = {}
    errors = []
    pods = objects(document.get("podResources"), "podResources")
    for pod in pods:
        name, namespace = pod.get("name"), pod.get("namespace")
        try:
            if not isinstance(name, str) or not isinstance(namespace, str):
                raise BadObject("name or namespace is missing")
            for container in objects(pod.get("containers"), "containers"):
                for row in _container_devices(container):
                    key = (namespace, name, row["container"], row["device_id"])
                    rows[key] = {"node": node, "namespace": namespace, "pod": name,
                                 "pod_uid": text(pod.get("uid"), "uid"), **row, "method": "pod_resources"}  # fmt: skip
        except BadObject as error:
            errors.append(f"Pod {namespace}/{name}: {error}")
    return len(pods) - len(errors), list(rows.values()), errors


def _container_devices(container: Json) -> list[Json]:
    found = []
    for device in objects(container.get("devices"), "devices"):
        resource = device.get("resourceName")
        ids = device.get("deviceIds")
        if not isinstance(resource, str) or not isinstance(ids, list) or not all(isinstance(i, str) for i in ids):
            raise BadObject("a device without resourceName or deviceIds")
        if is_extended(resource):
            name = text(container.get("name"), "containers.name")
            found += [{"container": name, "resource": resource, "device_id": i, **gpu_of(i)} for i in ids]
    return found


def gpu_of(device_id: str) -> Json:
    """GPU UUID and GPU-instance id that a device id names; null where it names neither.

    The old MIG form `MIG-GPU-<uuid>/<gi>/<ci>` names both; today's `MIG-<uuid>` names no parent.
    """
    plain = device_id.split("::", 1)[0]
    mig = _MIG_OF_PARENT.fullmatch(plain)
    if mig:
        return {"gpu_uuid": mig[1], "gi_id": int(mig[2])}
    whole = _GPU_UUID.fullmatch(plain)
    return {"gpu_uuid": whole[1] if whole else None, "gi_id": None}


def slice_devices(resource_slice: Json) -> dict[str, Json]:
    """GPU UUID and MIG profile by device id, from a ResourceSlice of a GPU driver (attributes `uuid`,
    `parentUUID`, `profile`); empty for devices that name no GPU."""
    spec = mapping(resource_slice.get("spec"), "spec")
    pool = mapping(spec.get("pool"), "spec.pool").get("name")
    found = {}
    for device in objects(spec.get("devices"), "spec.devices"):
        # Before resource.k8s.io/v1 the attributes stood one level down.
        basic = mapping(device.get("basic"), "basic")
        attributes = mapping(device.get("attributes") or basic.get("attributes"), "attributes")
        given = {k: text(mapping(attributes.get(k), k).get("string"), k) for k in _ATTRIBUTES}
        uuid = given["parentUUID"] or given["uuid"]
        if uuid is not None and uuid.startswith("GPU-"):
            found[f"{spec.get('driver')}/{pool}/{device.get('name')}"] = {
                "gpu_uuid": uuid, "mig_profile": given["profile"], "pci_bus_id": given["pciBusID"],
            }  # fmt: skip
    return found


def claim_devices(claim: Json, metadata: Json) -> list[Json]:
    """Rows of an allocated ResourceClaim (resource.k8s.io): one per device and pod it is reserved for.

    The pool is the node's name for node-local drivers, which GPU drivers are.
    """
    status = mapping(claim.get("status"), "status")
    allocation = mapping(status.get("allocation"), "status.allocation")
    results = objects(mapping(allocation.get("devices"), "status.allocation.devices").get("results"), "results")
    rows = []
    for consumer in objects(status.get("reservedFor"), "status.reservedFor"):
        if consumer.get("resource") != "pods":
            continue
        for result in results:
            driver, pool, device = result.get("driver"), result.get("pool"), result.get("device")
            if not (isinstance(driver, str) and isinstance(pool, str) and isinstance(device, str)):
                raise BadObject("an allocated device without driver, pool or device")
            rows.append({
                "node": pool, "namespace": text(metadata.get("namespace"), "metadata.namespace"),
                "pod": text(consumer.get("name"), "reservedFor.name"),
                "pod_uid": text(consumer.get("uid"), "reservedFor.uid"), "container": None, "resource": driver,
                "device_id": f"{driver}/{pool}/{device}", **gpu_of(device), "method": "dra",
            })  # fmt: skip
    return rows
