"""A minimal MCP client of the initialize era: HTTP/1.1 on a socket."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

VERSION = "2025-11-25"
_LONGEST = 64 * 1024  # bytes; the limit for headers and for a chunk's size line


class RawClient:
    """One session on one connection, one request at a time; responses are not parsed."""

    def __init__(self, socket: SocketStream, url: str) -> None:
        self._socket = socket
        self._reader = BufferedByteReceiveStream(socket)
        self.url = url
        self._parts = urlsplit(url)
        self._session = ""
        self._last_id = 0

    async def initialize(self) -> None:
        about = {"name": "raw", "version": "0"}
        params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about}
        await self.request("initialize", params)
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def call(self, tool: str, arguments: dict[str, Any]) -> bytes:
        return await self.request("tools/call", {"name": tool, "arguments": arguments})

    async def request(self, method: str, params: dict[str, Any]) -> bytes:
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        answer = await self._post(message)
        assert b'"result":' in answer, answer[:1000]
        return answer

    async def list_tools(self) -> tuple[int, int]:
        """Read the whole list; return its size in bytes, and the number of pages."""
        params: dict[str, Any] = {}
        size = pages = 0
        while True:
            answer = await self.request("tools/list", params)
            size, pages = size + len(answer), pages + 1
            found = re.search(rb'"nextCursor":"([^"]+)"', answer)
            if found is None:
                return size, pages
            params = {"cursor": found[1].decode()}

    async def _post(self, message: dict[str, Any]) -> bytes:
        body = json.dumps(message)
        session = self._session and f"mcp-session-id: {self._session}\r\n"
        await self._socket.send(
            f"POST {self._parts.path} HTTP/1.1\r\nhost: {self._parts.netloc}\r\n"
            "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
            f"{session}content-length: {len(body)}\r\n\r\n{body}".encode()
        )
        head = (await self._reader.receive_until(b"\r\n\r\n", _LONGEST)).decode().lower()
        headers = dict(re.findall(r"^([\w-]+): (.*?)\r?$", head, re.MULTILINE))
        self._session = headers.get("mcp-session-id", self._session)
        if "content-length" in headers:
            return await self._reader.receive_exactly(int(headers["content-length"]))
        if "transfer-encoding" not in headers:
            return b""
        parts: list[bytes] = []
        while size := int(await self._reader.receive_until(b"\r\n", _LONGEST), 16):
            parts.append(await self._reader.receive_exactly(size))
            await self._reader.receive_exactly(2)
        await self._reader.receive_exactly(2)
        return b"".join(parts)


@asynccontextmanager
async def connect_raw(url: str) -> AsyncGenerator[RawClient]:
    parts = urlsplit(url)
    async with await anyio.connect_tcp(parts.hostname or "", parts.port or 80) as socket:
        client = RawClient(socket, url)
        await client.initialize()
        yield client
