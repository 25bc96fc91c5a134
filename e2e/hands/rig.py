"""A shop, a server with the hands, and how tests call them."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.async_api import Page

from opentabs_py.config.settings import Settings, load_settings
from opentabs_py.errors import CallRefusedError, ToolFailedError
from opentabs_py.session.session import OpenTabs

PASSWORD = 'correct "horse\\" battery: {staple}'
PIN = "47110815"
SECRETS = {"SITE_PASSWORD": (), "SHOP_PIN": ("http://127.0.0.1/*",)}

SHOP = """<!doctype html><title>Shop</title><h1>Shop</h1>
<nav><a href="/cart">Cart</a></nav>
<main>
<form onsubmit="event.preventDefault(); out.textContent = 'Sent ' + by.value + ' ' + size.value">
  <label>Name <input id="by"></label>
  <label>Size <select id="size"><option>small<option>large</select></label>
  <label>Photo <input type="file"
    onchange="out.textContent = this.files[0].name"></label>
  <button>Order</button>
</form>
<p id="out"></p>
<label>Search <input onkeydown="keys.textContent += event.key + ' '"></label><p id="keys"></p>
<input type="file" id="picked" hidden onchange="out.textContent = this.files[0].name">
<button onclick="picked.click()">Attach</button>
<button onclick="setTimeout(() => history.pushState(0, '', '/?step=2'), 300)">Next</button>
<button onclick="if (confirm('Really?')) out.textContent = 'Confirmed'">Ask</button>
<button onclick="out.textContent = prompt('Your size?')">Prompt</button>
<button onclick="setTimeout(() => out.textContent = 'Arrived', 900)">Later</button>
<button onclick="console.error('it broke'); fetch('/api/stock').then((r) => r.text())"
>Fetch</button>
<button id="covered">Covered</button>
<div style="position: absolute; inset: 0 0 auto auto">over</div>
<iframe
  srcdoc="<button onclick=&quot;this.textContent = 'Pressed'&quot;>Framed</button>"></iframe>
<div id="host"></div>
</main>
<script>
  host.attachShadow({ mode: "open" }).innerHTML = "<button>Shadowed</button>";
  host.shadowRoot.querySelector("button").onclick = () => (out.textContent = "From the shadow");
</script>
"""

PDF = b"""%PDF-1.1
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj
trailer<</Root 1 0 R>>
"""

LONG = "<!doctype html><title>Long</title><ul>" + "".join(
    f'<li><a href="/{n}">Item {n}</a> with a text that says something about it</li>'
    for n in range(900)
)


@dataclass
class Rig:
    tabs: OpenTabs
    url: str
    page: Page

    async def call(self, name: str, **arguments: Any) -> Any:
        return await self.tabs.call(f"page_{name}", arguments)

    async def open(self, path: str = "") -> str:
        await self.page.goto(self.url + path)
        return str((await self.call("snapshot"))["snapshot"])

    async def fails(self, code: str, name: str, **arguments: Any) -> str:
        with pytest.raises((ToolFailedError, CallRefusedError)) as caught:
            await self.call(name, **arguments)
        assert caught.value.detail.code == code
        return caught.value.detail.message


def ref(snapshot: str, what: str) -> str:
    """Return the reference of an element, such as `button "Order"`."""
    found = re.search(rf"{re.escape(what)}[^\n]*? ((?:f\d+)?e\d+|i\d+)\b", snapshot)
    assert found is not None, snapshot
    return found[1]


def hand_settings(**more: Any) -> Settings:
    settings = load_settings(port=0, profile=None, headed=False)
    allowed = {"permissions": {"default": "auto"}}
    return settings.model_copy(update={"audit": False, "hands": True, **allowed, **more})
