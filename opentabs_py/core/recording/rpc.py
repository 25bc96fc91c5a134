"""JSON-RPC numbers its requests, and each answer names the one that it is for."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from opentabs_py.core.recording.exchange import Exchange, Request, is_json


def with_id_of(request: Request, exchange: Exchange) -> Exchange:
    """Return the recorded exchange, whose answer is for this request if it is one of JSON-RPC."""
    response = exchange.response
    if response is None or not response.body or not is_json(response.mime):
        return exchange
    sent, answer = _message(request.body), _message(response.body)
    if sent is None or answer is None or sent.get("id") == answer.get("id"):
        return exchange
    body = json.dumps({**answer, "id": sent.get("id")}, ensure_ascii=False).encode()
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
