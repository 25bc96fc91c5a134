"""Recognize JSON-RPC, and match its responses to requests: each names the id of its request."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from opentabs_py.core.recording.exchange import Exchange, Request, is_json


def is_rpc(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a JSON value is a message of JSON-RPC."""
    return isinstance(value, dict) and "jsonrpc" in value


def rpc_method(value: Any) -> str:
    """Return the method that a JSON value calls by JSON-RPC; an empty string if it calls none."""
    method = value.get("method") if is_rpc(value) else None
    return method if isinstance(method, str) else ""


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
    return value if is_rpc(value) else None
