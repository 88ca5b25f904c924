"""What a client's write means: create, bind, replace, patch, delete, with the API server's checks and defaults.

Validation, defaulting and conflicts belong here; the state is the store's and the wire is the app's.
"""

from __future__ import annotations

from datetime import timedelta
from secrets import choice
from typing import Any
from uuid import uuid4

from fleet.kubeapi import patches, status
from fleet.kubeapi.kubelet import STOP_DELAY, parse_time
from fleet.kubeapi.objects import rfc3339
from fleet.kubeapi.resources import Resource
from fleet.kubeapi.store import Key, Object, Store

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # apimachinery's alphabet for generateName
# Fields that a client cannot change by writing the object.
_SERVER_METADATA = ("uid", "creationTimestamp", "resourceVersion", "generation", "name", "namespace", "selfLink")


def create(store: Store, resource: Resource, namespace: str, body: Any, *, dry_run: bool = False) -> Object:
    """A new object with the server's defaults; 400, 404 (namespace), 409 or 422."""
    if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
        raise status.bad_request(f"the body is not a {resource.kind} object with metadata")
    if body.get("kind", resource.kind) != resource.kind:
        raise status.bad_request(
            f"the object provided is unrecognized: kind {body.get('kind')!r} is not {resource.kind}"
        )
    meta = dict(body["metadata"])
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"] + "".join(choice(_SUFFIX) for _ in range(5))
    if not meta.get("name"):
        raise status.invalid(resource.kind, "", "metadata.name", "Required value: name or generateName is required")
    if resource.namespaced:
        if meta.setdefault("namespace", namespace) != namespace:
            raise status.bad_request(
                f"the namespace of the provided object does not match the namespace sent on the request "
                f"({meta['namespace']} != {namespace})"
            )
        if store.get("namespaces", ("", namespace)) is None:
            raise status.not_found("namespaces", namespace)
    key: Key = (namespace if resource.namespaced else "", meta["name"])
    if store.get(resource.name, key) is not None:
        raise status.already_exists(resource.name, meta["name"])
    meta |= {"uid": str(uuid4()), "creationTimestamp": store.stamp()}
    meta.pop("resourceVersion", None)
    obj = {k: v for k, v in body.items() if k not in ("kind", "apiVersion")} | {"metadata": meta}
    obj = _defaults(store, resource, obj)
    if dry_run:
        return obj
    return store.create(resource.name, key, obj)


def _defaults(store: Store, resource: Resource, obj: Object) -> Object:
    name = obj["metadata"]["name"]
    if resource.name == "pods":
        spec = obj.get("spec") or {}
        if not spec.get("containers"):
            raise status.invalid("Pod", name, "spec.containers", "Required value")
        defaults = {
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "enableServiceLinks": True,
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        containers = [_container(container) for container in spec["containers"]]
        pod_status: Object = {"phase": "Pending", "qosClass": "Burstable"}
        if spec.get("nodeName"):
            pod_status["conditions"] = [_scheduled(store.stamp())]
        return obj | {"spec": defaults | spec | {"containers": containers}, "status": pod_status}
    if resource.name == "namespaces":
        labels = (obj["metadata"].get("labels") or {}) | {"kubernetes.io/metadata.name": name}
        meta = obj["metadata"] | {"labels": labels}
        return obj | {"metadata": meta, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    return obj


def _container(container: Object) -> Object:
    resources = dict(container.get("resources") or {})
    if "limits" in resources:
        # The API server copies limits to requests that are not set.
        resources["requests"] = resources["limits"] | (resources.get("requests") or {})
    return {"imagePullPolicy": "IfNotPresent"} | container | {"resources": resources}


def _scheduled(stamp: str) -> Object:
    return {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp}


def bind(store: Store, namespace: str, name: str, body: Any) -> Object:
    """Binds a pod to the node of a Binding object; 404, or 409 where it is bound or being deleted."""
    key = (namespace, name)
    pod = store.get("pods", key)
    if pod is None:
        raise status.not_found("pods", name)
    target = body.get("target") if isinstance(body, dict) else None
    if not isinstance(target, dict) or not target.get("name"):
        raise status.invalid("Binding", name, "target.name", "Required value")
    meta = body.get("metadata") or {}
    if meta.get("uid") and meta["uid"] != pod["metadata"]["uid"]:
        why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {pod['metadata']['uid']}"
        raise status.conflict("pods/binding", name, why)
    if "deletionTimestamp" in pod["metadata"]:
        raise status.conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if pod["spec"].get("nodeName"):
        why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        raise status.conflict("pods/binding", name, why)
    others = [c for c in pod["status"].get("conditions", ()) if c["type"] != "PodScheduled"]
    patch: Object = {
        "spec": {"nodeName": target["name"]},
        "status": {"conditions": [*others, _scheduled(store.stamp())]},
    }
    if meta.get("annotations"):
        patch["metadata"] = {"annotations": meta["annotations"]}
    store.change("pods", key, patch)
    return status.success(code=201)


def replace(store: Store, resource: Resource, key: Key, body: Any, *, subresource: str | None) -> Object:
    """PUT of the object or its status; 409 when the body carries an older resourceVersion."""
    current = _current(store, resource, key)
    if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
        raise status.bad_request(f"the body is not a {resource.kind} object with metadata")
    _check_version(resource, key, current, body)
    return _write(store, resource, key, current, body, subresource=subresource)


def patch(
    store: Store, resource: Resource, key: Key, body: Any, content_type: str, *, subresource: str | None
) -> Object:
    """PATCH of the object or its status by the patch's content type."""
    current = _current(store, resource, key)
    wanted = patches.apply(current, body, content_type)
    _check_version(resource, key, current, wanted)
    return _write(store, resource, key, current, wanted, subresource=subresource)


def _current(store: Store, resource: Resource, key: Key) -> Object:
    current = store.get(resource.name, key)
    if current is None:
        raise status.not_found(resource.name, key[1])
    return current


def _check_version(resource: Resource, key: Key, current: Object, wanted: Object) -> None:
    version = wanted["metadata"].get("resourceVersion")
    if version and version != current["metadata"]["resourceVersion"]:
        raise status.modified(resource.name, key[1])


def _write(
    store: Store, resource: Resource, key: Key, current: Object, wanted: Object, *, subresource: str | None
) -> Object:
    # A write to an object leaves its status alone, and one to its status leaves all else (API conventions).
    if subresource == "status":
        wanted = current | {"status": wanted.get("status") or {}}
    else:
        meta = wanted["metadata"] | {k: v for k, v in current["metadata"].items() if k in _SERVER_METADATA}
        wanted = {k: v for k, v in wanted.items() if k not in ("kind", "apiVersion")} | {"metadata": meta}
        if resource.has_status and "status" in current:
            wanted["status"] = current["status"]
        if resource.name == "pods" and wanted["spec"].get("nodeName") != current["spec"].get("nodeName"):
            raise status.invalid("Pod", key[1], "spec", "Forbidden: pod updates may not change spec.nodeName")
    difference = patches.difference(current, wanted)
    return store.change(resource.name, key, difference) if difference else current


def delete(store: Store, resource: Resource, key: Key, body: Any, grace_s: int | None, *, immediately: bool) -> Object:
    """Deletes an object. A bound pod first gets a deletionTimestamp and goes when its kubelet has stopped it.

    `immediately` takes the kubelet's part at once (a clock that stands still would keep the pod forever).
    """
    current = _current(store, resource, key)
    options = body if isinstance(body, dict) else {}
    uid = (options.get("preconditions") or {}).get("uid")
    if uid and uid != current["metadata"]["uid"]:
        raise status.conflict(resource.name, key[1], f"the UID in the precondition ({uid}) does not match")
    if grace_s is None:
        grace_s = options.get("gracePeriodSeconds")
    owned = any(k == key for k, _ in store.owned(resource.name))
    graceful = resource.name == "pods" and current["spec"].get("nodeName") and owned and grace_s != 0
    if not graceful or immediately or current["status"].get("phase") in ("Succeeded", "Failed"):
        removed = store.remove(resource.name, key)
        assert removed is not None
        return removed
    if "deletionTimestamp" in current["metadata"]:
        return current
    grace = current["spec"].get("terminationGracePeriodSeconds", 30) if grace_s is None else grace_s
    now = parse_time(store.stamp())
    assert now is not None
    stop_at = now + min(STOP_DELAY, timedelta(seconds=grace))
    meta = {"deletionTimestamp": rfc3339(stop_at), "deletionGracePeriodSeconds": grace}
    return store.change(resource.name, key, {"metadata": meta})
