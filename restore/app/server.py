"""The server: it serves the page and restores posted pictures.

All files are in memory, so no request becomes a path. A limited number of requests run, each in a process of its own
that is ended if it takes too long, and a limited number wait. Others get status 503.
"""

import asyncio
import base64
import ipaddress
import json
import re
import socket
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import urlsplit

import prometheus_client as figures
import uvicorn
from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartParser
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

import restore
from restore.app.answers import Task, request_model
from restore.app.faults import FAULTS, SENDING, answer_to, fault_as_json
from restore.app.reference import JSON, PNG, RECORD_HEADER, body_of, reference, responses_of
from restore.app.workers import Workers
from restore.errors import TooLarge, UsageError, shown

# A foreign page can point a host name of its own at this machine, which then answers under these names alone.
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})

TYPES = {"json": JSON, "png": PNG}
TYPES |= {
    ending: f"text/{kind}; charset=utf-8" for ending, kind in {"html": "html", "css": "css", "js": "javascript"}.items()
}

# Scripts, styles, images and data only from this site.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

ENDPOINTS: dict[Task, str] = {
    "denoise": "Remove flipped pixels or noise from an image",
    "complete": "Fill the pixels of an image under a mask",
    "marks": "Find the marks on an image, such as dirt, dots and rules, and leave them there",
}

# Seconds: limit for the headers of a request; time for which a request that is answered before its end is still read (a
# client that sends all before reading would else miss the answer).
HEADING = 30
LINGERING = 1


class Guard:
    """Check host and origin of each request, add our headers to its answer, and time it.

    An answer that comes before the end of its request ends the connection.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], seconds: figures.Histogram) -> None:
        self.app, self.hosts, self.seconds = app, hosts, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        headers = Headers(scope=scope)
        task = scope["path"].removeprefix("/")
        host = headers.get("host", "").lower()
        origin = headers.get("origin")

        unread = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers

        async def received() -> Message:
            nonlocal unread
            message = await receive()
            unread = bool(message.get("more_body"))
            return message

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = HEADERS | ({"Connection": "close"} if unread else {})
                message["headers"] += [(name.lower().encode(), value.encode()) for name, value in ours.items()]
                if task in ENDPOINTS:
                    self.seconds.labels(task, message["status"]).observe(time.perf_counter() - began)
            elif unread and not message.get("more_body"):
                await send({**message, "more_body": True})
                message = {"type": message["type"], "body": b""}
                with suppress(TimeoutError):
                    async with asyncio.timeout(LINGERING):
                        while unread:
                            await received()
            await send(message)

        app = self.app
        if self.hosts and re.sub(r":\d*$", "", host) not in self.hosts:
            app = fault_as_json(421, "this server answers to localhost only; start it with another --host")
        elif origin is not None and _site(origin) != host:
            app = fault_as_json(403, "a page of another site may not ask this server; open the server's own")
        await app(scope, received, guarded)


def _site(origin: str) -> str:
    """The host and port of an origin; empty if it has none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def application(site: Mapping[str, bytes], workers: Workers, hosts: frozenset[str] = frozenset()) -> FastAPI:
    """The application: the files of `site`, and restoration by `workers`; without `hosts` under any host name."""
    facts: dict[str, Any] = {"title": "restore", "version": restore.__version__, "docs_url": None, "redoc_url": None}
    app = FastAPI(exception_handlers=dict.fromkeys((*FAULTS, Exception), answer_to), **facts)
    # Bytes of the largest picture in colours with a mask, neither compressed.
    most = 8 * workers.options.max_pixels + 2**16

    def restorer(task: Task) -> Callable[..., Any]:
        Asked = request_model(task)

        async def endpoint(request: Request, wanted: Annotated[Asked, Query()]) -> Response:  # type: ignore[valid-type]
            for name in request.query_params:
                if len(request.query_params.getlist(name)) > 1:
                    raise UsageError("is given twice; give it once", shown(name))
            with workers.slot():
                async with asyncio.timeout(SENDING):
                    parts = await _parts(request, most)
                needed = ["image", "mask"] if task == "complete" else ["image"]
                names = sorted(name for name, _ in parts)
                if names != needed:
                    had = f"/{task} takes {' and '.join(needed)}, not {', '.join(map(shown, names)) or 'nothing'}"
                    raise UsageError(f"{had}; send files as multipart/form-data, and options in the query")
                accepted = request.headers.get("accept", "").lower()
                whole = JSON in accepted and PNG not in accepted
                options = wanted.model_dump()  # type: ignore[attr-defined]
                facts, pictures = await workers.answered(request, task, dict(parts), options, whole)
            if whole:
                return JSONResponse(facts | {name: base64.b64encode(png).decode() for name, png in pictures.items()})
            return Response(pictures["image"], headers={RECORD_HEADER: json.dumps(facts)}, media_type=PNG)

        return endpoint

    for task, summary in ENDPOINTS.items():
        app.add_api_route(
            f"/{task}",
            restorer(task),
            methods=["POST"],
            summary=summary,
            operation_id=task,
            openapi_extra={"requestBody": body_of(task)},
            responses=responses_of(task),
            response_class=Response,
        )

    @app.get("/health", summary="Status of the server, and its version")
    async def health() -> dict[str, str]:
        return {"status": "ok", "version": restore.__version__}

    @app.get("/metrics", summary="Figures for Prometheus", response_class=Response)
    async def metrics() -> Response:
        return Response(figures.generate_latest(workers.figures), media_type=figures.CONTENT_TYPE_LATEST)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(reference(app.openapi()))

    @app.api_route("/{name:path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def file(name: str) -> Response:
        if name in ENDPOINTS:
            raise HTTPException(405, f"/{name} takes images; post one", {"Allow": "POST"})
        name = name or "index.html"
        if name not in site:
            raise HTTPException(404, "there is nothing at this address; /docs says what there is")
        return Response(site[name], media_type=TYPES[name.rpartition(".")[2]])

    app.add_middleware(Guard, hosts=hosts, seconds=workers.seconds)
    return app


class Punctual(H11Protocol):
    """HTTP that closes a connection if the headers of a request take longer than `HEADING` seconds."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect()

    def on_response_complete(self) -> None:
        self.expected.cancel()
        self._expect()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self.expected.cancel()
        super().connection_lost(exc)

    def _expect(self) -> None:
        """Start the time limit for the headers of a request."""

        def late() -> None:
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

        self.expected = self.loop.call_later(HEADING, late)


class Server(uvicorn.Server):
    """Serves until a signal, then finishes running requests; a second Ctrl-C cancels them.

    With port 0 it picks a free one; see `url`. Raises UsageError if host or port cannot be used.
    """

    def __init__(self, site: Mapping[str, bytes], workers: Workers, host: str, port: int) -> None:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self.listener = socket.create_server((host, port), family=family)
        except OSError as fault:
            where = f"{shown(host)} port {port}"
            raise UsageError(f"cannot be used ({fault.strerror}); give another --host or --port", where) from fault
        bound, number = self.listener.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{number}/"
        self.workers = workers
        hosts = LOCAL if ipaddress.ip_address(bound).is_loopback else frozenset[str]()
        # Without the extras of uvicorn, so that all systems use the same code.
        how: dict[str, Any] = {"loop": "asyncio", "http": Punctual, "ws": "none", "lifespan": "off"}
        how |= dict.fromkeys(("access_log", "server_header", "proxy_headers"), False)
        app = application(site, workers, hosts)
        super().__init__(uvicorn.Config(app, log_config=None, headers=[("Server", "restore")], **how))

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve."""
        try:
            with self.listener:
                super().run([self.listener])
        finally:
            self.workers.close()


async def _bounded(stream: AsyncGenerator[bytes, None], most: int) -> AsyncGenerator[bytes, None]:
    """The same stream; raises TooLarge if it is longer."""
    length = 0
    async for part in stream:
        length += len(part)
        if length > most:
            raise _too_long(most)
        yield part


def _too_long(most: int) -> TooLarge:
    return TooLarge(f"has more than {most} bytes; send a smaller image", "the request")


async def _parts(request: Request, most: int) -> list[tuple[str, bytes]]:
    """The files of a request with their names; a body that is no form is the image."""
    if int(request.headers.get("content-length", 0)) > most:
        raise _too_long(most)
    stream = _bounded(request.stream(), most)
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        content = b"".join([part async for part in stream])
        return [("image", content)] if content else []
    form = await MultiPartParser(request.headers, stream, max_files=2, max_fields=8).parse()
    try:
        return [(name, await part.read() if isinstance(part, UploadFile) else b"") for name, part in form.multi_items()]
    finally:
        await form.close()
