"""The HTTP face of one cluster's simulated API server, as a Starlette application.

Paths, content types and bodies belong here; lists and watches are in `reads`, writes in `writes`, state in `store`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from fleet.clock import Clock
from fleet.kubeapi import deleteoptions, reads, status, tables, writes
from fleet.kubeapi.kubelet import Kubelets
from fleet.kubeapi.resources import (
    API_GROUPS,
    API_VERSIONS,
    OPENAPI_V3,
    RESOURCES,
    VERSION,
    Resource,
    openapi,
    resource_list,
)
from fleet.kubeapi.source import KubeWorld, world_source
from fleet.kubeapi.store import Object, Store

SIMULATED_AT = "X-Strandline-Simulated-At"

Handler = Callable[[Request], Awaitable[Response]]


def _json(value: Any, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(value), code, headers, "application/json")


def _wants_table(request: Request) -> bool:
    first = request.headers.get("accept", "").split(",")[0].replace(" ", "")
    return "as=Table" in first and "g=meta.k8s.io" in first


def _errors(handler: Handler) -> Handler:
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except status.ApiError as error:
            return _json(error.body(), error.code)
        except ClientDisconnect:
            return Response(status_code=400)  # whoever asked was killed in the middle; nobody reads this

    return answer


def _static(document: Any) -> Handler:
    async def answer(_: Request) -> Response:
        return _json(document)

    return answer


async def _missing(_: Request, __: Exception) -> Response:
    error = status.unknown_path()
    return _json(error.body(), error.code)


async def _wrong_method(_: Request, __: Exception) -> Response:
    error = status.ApiError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
    )
    return _json(error.body(), error.code)


async def _body(request: Request) -> Any:
    raw = await request.body()
    if not raw:
        return None
    content_type = request.headers.get("content-type", "application/json").split(";")[0].strip()
    if content_type == deleteoptions.CONTENT_TYPE and request.method == "DELETE":
        return deleteoptions.decode(raw)
    if "json" not in content_type and content_type not in ("", "*/*"):
        raise status.ApiError(
            415, "UnsupportedMediaType", f"the body of the request was in an unknown format: {content_type}; send JSON"
        )
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise status.bad_request(f"couldn't read the body as JSON: {error}") from None


class ClusterApi:
    """Routes of one cluster over its store; `app` is the application."""

    def __init__(self, store: Store, clock: Clock, timing: reads.WatchTiming | None = None) -> None:
        self.store, self._clock, self._timing = store, clock, timing or reads.WatchTiming()
        self.kubelets = Kubelets(store)
        self.app = Starlette(routes=list(self._routes()), exception_handlers={404: _missing, 405: _wrong_method})

    def _routes(self) -> list[Route]:
        documents = {
            "/version": VERSION,
            "/api": API_VERSIONS,
            "/apis": API_GROUPS,
            "/api/v1": resource_list(),
            "/openapi/v3": OPENAPI_V3,
            "/openapi/v3/api/v1": openapi(),
            "/healthz": "ok",
            "/readyz": "ok",
            "/livez": "ok",
        }
        routes = [Route(path, _static(document), methods=["GET"]) for path, document in documents.items()]
        for resource in RESOURCES.values():
            flat = f"/api/v1/{resource.name}"
            base = f"/api/v1/namespaces/{{namespace}}/{resource.name}" if resource.namespaced else flat
            if resource.namespaced:
                routes.append(Route(flat, self._handler(resource, self._list), methods=["GET"]))
            routes += [
                Route(base, self._handler(resource, self._list), methods=["GET"]),
                Route(base, self._handler(resource, self._create), methods=["POST"]),
            ]
            if resource.name == "pods":
                routes.append(Route(f"{base}/{{name}}/binding", self._handler(resource, self._bind), methods=["POST"]))
                routes.append(
                    Route(
                        "/api/v1/namespaces/{namespace}/bindings", self._handler(resource, self._bind), methods=["POST"]
                    )
                )
            for sub in ("/status", "") if resource.has_status else ("",):
                path = f"{base}/{{name}}{sub}"
                routes += [
                    Route(path, self._handler(resource, self._get), methods=["GET"]),
                    Route(path, self._handler(resource, self._put), methods=["PUT"]),
                    Route(path, self._handler(resource, self._patch), methods=["PATCH"]),
                ]
            routes.append(Route(f"{base}/{{name}}", self._handler(resource, self._delete), methods=["DELETE"]))
        return routes

    def _handler(self, resource: Resource, method: Callable[[Request, Resource], Awaitable[Response]]) -> Handler:
        async def answer(request: Request) -> Response:
            return await method(request, resource)

        return _errors(answer)

    # -- reading ------------------------------------------------------------------------------------------------

    def _headers(self, at: Any) -> dict[str, str]:
        return {SIMULATED_AT: at.isoformat() + "Z"}

    async def _list(self, request: Request, resource: Resource) -> Response:
        query = request.query_params
        namespace = request.path_params.get("namespace")
        if reads.flag(query, "watch"):
            reads.predicate(resource, query)  # a selector that cannot be read is a 400, not a broken stream
            reads.number(query, "resourceVersion")
            reads.number(query, "timeoutSeconds")
            return StreamingResponse(
                self._stream(request, resource, namespace),
                media_type="application/json",
                headers=self._headers(self.store.sync()),
            )
        page = reads.list_page(self.store, resource, namespace, query)
        headers = self._headers(page.at)
        if _wants_table(request):
            include = query.get("includeObject", "Metadata")
            items = [_typed(resource, item) for item in page.items]
            return _json(tables.table(resource.name, items, page.at, page.metadata, include), 200, headers)
        listed = {
            "kind": f"{resource.kind}List",
            "apiVersion": "v1",
            "metadata": page.metadata,
            "items": page.items,
        }
        return _json(listed, 200, headers)

    async def _stream(self, request: Request, resource: Resource, namespace: str | None) -> AsyncIterator[bytes]:
        as_table = _wants_table(request)
        include = request.query_params.get("includeObject", "Metadata")
        async for event in reads.watch(self.store, resource, namespace, request.query_params, self._timing):
            out = event
            if as_table and event["type"] not in ("ERROR", "BOOKMARK"):
                meta = {"resourceVersion": event["object"]["metadata"]["resourceVersion"]}
                rows = tables.table(resource.name, [event["object"]], self.store.at, meta, include)
                out = event | {"object": rows}
            yield orjson.dumps(out) + b"\n"

    async def _get(self, request: Request, resource: Resource) -> Response:
        at = self.store.sync()
        key = _key(request, resource)
        found = self.store.get(resource.name, key)
        if found is None:
            raise status.not_found(resource.name, key[1])
        item = _typed(resource, found)
        if _wants_table(request):
            meta = {"resourceVersion": item["metadata"]["resourceVersion"]}
            include = request.query_params.get("includeObject", "Metadata")
            return _json(tables.table(resource.name, [item], at, meta, include), 200, self._headers(at))
        return _json(item, 200, self._headers(at))

    # -- writing ------------------------------------------------------------------------------------------------

    async def _create(self, request: Request, resource: Resource) -> Response:
        body = await _body(request)
        self.store.sync()
        namespace = request.path_params.get("namespace", "")
        dry_run = "dryRun" in request.query_params
        made = writes.create(self.store, resource, namespace, body, dry_run=dry_run)
        return _json(_typed(resource, made), 201)

    async def _bind(self, request: Request, _: Resource) -> Response:
        body = await _body(request)
        self.store.sync()
        name = request.path_params.get("name")
        if name is None and isinstance(body, dict):
            name = (body.get("metadata") or {}).get("name")
        bound = writes.bind(self.store, request.path_params["namespace"], name or "", body)
        return _json(bound, 201)

    async def _put(self, request: Request, resource: Resource) -> Response:
        body = await _body(request)
        self.store.sync()
        key = _key(request, resource)
        written = writes.replace(self.store, resource, key, body, subresource=_subresource(request))
        return _json(_typed(resource, written))

    async def _patch(self, request: Request, resource: Resource) -> Response:
        content_type = request.headers.get("content-type", "").split(";")[0].strip()
        body = await _body(request)
        self.store.sync()
        key = _key(request, resource)
        written = writes.patch(self.store, resource, key, body, content_type, subresource=_subresource(request))
        return _json(_typed(resource, written))

    async def _delete(self, request: Request, resource: Resource) -> Response:
        body = await _body(request)
        self.store.sync()
        query = request.query_params
        grace = reads.number(query, "gracePeriodSeconds") if "gracePeriodSeconds" in query else None
        gone = writes.delete(
            self.store, resource, _key(request, resource), body, grace, immediately=self._clock.speed == 0
        )
        return _json(_typed(resource, gone))


def _typed(resource: Resource, obj: Object) -> Object:
    return {"kind": resource.kind, "apiVersion": "v1"} | obj


def _key(request: Request, resource: Resource) -> tuple[str, str]:
    return (request.path_params["namespace"] if resource.namespaced else "", request.path_params["name"])


def _subresource(request: Request) -> str | None:
    # With the name before it: an object may itself be called "status".
    return "status" if request.url.path.endswith(f"/{request.path_params['name']}/status") else None


def cluster_api(
    world: KubeWorld, cluster: str, clock: Clock, timing: reads.WatchTiming | None = None, *, log_size: int = 50_000
) -> ClusterApi:
    """The API of one cluster of the world at the clock's instant."""
    return ClusterApi(Store(world_source(world, cluster), clock.now, log_size=log_size), clock, timing)
