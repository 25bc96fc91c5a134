"""Recognize requests that only read."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from opentabs_py.core.recording.exchange import Request
from opentabs_py.core.recording.rpc import is_rpc, rpc_method

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_QUERY: Final = re.compile(r"\s*(?:#[^\n]*\n\s*)*(?:query\b|\{)")
_READS: Final = re.compile(
    r"(?:.*[._/:-])?(?:count|describe|fetch|find|get|has|is|list|load|lookup|query|read|search"
    r"|show|view)(?:$|[A-Z_.-].*)|.*Query"
)
# Operations of GraphQL are often named after what they return, and mutations after what they do.
_RETURNS: Final = re.compile(
    r"[A-Z][a-z]+s(?:[A-Z].*)?"
    r"|.*[a-z](?:By[A-Z]\w*|Count|Details?|Feed|Info|List|Page|Results|Stats|Timeline)"
)


def is_read(request: Request) -> bool:
    """Return whether a request changes nothing at its site.

    That is so for the methods that HTTP calls safe, for GraphQL's queries, and for calls by
    JSON-RPC and persisted queries of GraphQL whose name says so.
    """
    if request.method in _SAFE:
        return True
    if request.method != "POST" or not request.body:
        return False
    try:
        sent = json.loads(request.body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(sent, dict):
        return False
    members = cast("Mapping[str, Any]", sent)
    if isinstance(document := members.get("query"), str):
        return _QUERY.match(document) is not None
    if is_rpc(members):
        return _READS.fullmatch(rpc_method(members)) is not None
    name = members.get("operationName")
    if "extensions" not in members or not isinstance(name, str):
        return False
    return bool(_READS.fullmatch(name) or _RETURNS.fullmatch(name))
