"""Match JSON-RPC responses to requests: each response names the id of its request."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from opentabs_py.core.recording.exchange import Exchange, Request, is_json


def with_id_of(request: Request, exchange: Exchange) -> Exchange:
    """Return the recorded exchange, whose response has the id of this request if it is JSON-RPC."""
    response = exchange.response
    if response is None or not response.body or not is_json(response.mime):
        return exchange
    sent, received = _message(request.body), _message(response.body)
    if sent is None or received is None or sent.get("id") == received.get("id"):
        return exchange
    body = json.dumps({**received, "id": sent.get("id")}, ensure_ascii=False).encode()
    return replace(exchange, response=replace(response, body=body))


def _message(body: bytes) -> Mapping[str, Any] | None:
    if b"jsonrpc" not in body:
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or "jsonrpc" not in value:
        return None
    return cast("Mapping[str, Any]", value)
