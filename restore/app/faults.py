"""The answers of the server to requests that fail."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as HTTPFault
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect

from restore.app.worker import Failed, Late
from restore.app.workers import Gone
from restore.errors import REASON, RestoreError, TooLarge, UsageError, reason, shown

# Seconds in which all of a request has to arrive.
SENDING = 60

# Status for a client that has gone, which nobody reads.
GONE = 499


def fault_as_json(
    status: int, error: str, more: Mapping[str, Any] = {}, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """An error: one line, its class of `restore.errors` or the status by name, its subject, and the remedy."""
    remedy = error.rpartition("; ")[2] if "; " in error else ""
    known = {"error": error, "class": HTTPStatus(status).phrase, "subject": "", "remedy": remedy}
    return JSONResponse({**known, **more}, status, headers)


async def answer_to(request: Request, fault: Any) -> Response:
    """The answer to a request that failed."""
    match fault:
        case Gone() | ClientDisconnect():
            return Response(status_code=GONE)
        case RestoreError():
            status = 413 if isinstance(fault, TooLarge) else 422
            return fault_as_json(status, str(fault), {"class": type(fault).__name__, "subject": fault.subject})
        case RequestValidationError():
            first = fault.errors()[0]
            name = shown(str(first["loc"][-1]))
            message = f"{name}: {reason(Exception(first['msg']))}; /docs lists the options"
            return fault_as_json(422, message, {"class": UsageError.__name__, "subject": name})
        case HTTPFault():
            return fault_as_json(fault.status_code, str(fault.detail), headers=fault.headers)
        case MultiPartException():
            return fault_as_json(
                400, f"the request is no form ({reason(fault)}); send multipart/form-data, or an image alone"
            )
        case Late():
            return fault_as_json(504, str(fault))
        case Failed():
            return fault_as_json(500, f"internal fault, {shown(str(fault))[:REASON]}; the server's log says more")
        case TimeoutError():
            return fault_as_json(408, f"the request took more than {SENDING} s to arrive; send it again")
    return fault_as_json(500, f"internal fault, {type(fault).__name__}; the server's log says more")


FAULTS = (
    *(RestoreError, RequestValidationError, HTTPFault, MultiPartException, TimeoutError, Late),
    *(Gone, ClientDisconnect),
)
