"""Whatever a site's names and responses are, a plugin is generated, and its modules parse."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import run
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opentabs_py.core.recording.exchange import Exchange
from opentabs_py.generate.plugin import write_plugin
from tests.generate.recorded import ask, site_of

ODD = """
    id name page page_ next results items data class default tabId instance context z Result null
    undefined request call link title details rows notice found heading maxPages hasMore await
    __proto__ constructor FIELDS OPERATION answer 1 - _ $ a-b a[0] `b` ${c} "d" \\ */ // </script>
    &lt; é 日本 ⟦x ⟧ BOOLEAN a00 A-7 4711 deadbeef01 2024 q1w2e3r4t5
""".split()  # noqa: SIM905 (one name per line would be no clearer)
CHECK = """
const vm = require("node:vm");
for (const text of JSON.parse(require("node:fs").readFileSync(0))) {
  try {
    new vm.SourceTextModule(text);
  } catch (error) {
    console.log(`${error.message}\\n${text}`);
    process.exit(1);
  }
}
"""

names = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
leaves = st.none() | st.booleans() | st.integers(-9, 10**6) | names
values = st.recursive(
    leaves, lambda each: st.lists(each, max_size=3) | st.dictionaries(names, each, max_size=3)
)
paths = st.lists(names.map(lambda name: quote(name, safe="")), min_size=1, max_size=3)


@st.composite
def api_requests(draw: st.DrawFn) -> list[Exchange]:
    """Requests of one operation: a list page by page, or anything else."""
    method = draw(st.sampled_from(["GET", "GET", "POST", "PUT", "DELETE"]))
    path, listed = "/".join(draw(paths)), draw(names)
    queries = draw(st.lists(st.dictionaries(names, names, max_size=3), min_size=1, max_size=3))
    made: list[Exchange] = []
    for number, query in enumerate(queries, 1):
        items = [draw(st.dictionaries(names, leaves, max_size=2)) for _ in range(3)]
        paged = {listed: items, "total": 9}
        answer = draw(st.just(paged) | st.dictionaries(names, values, max_size=3))
        body = None if method == "GET" else draw(st.dictionaries(names, values, max_size=3))
        sent = {"x-csrf-token": draw(names.filter(str.isprintable))}
        status = draw(st.sampled_from([200, 200, 200, 404]))
        asked = f"{method} /{path}?{urlencode({**query, 'page': number})}"
        made.append(ask(asked, answer, status=status, sent=sent, body=body))
    return made


@st.composite
def operations(draw: st.DrawFn) -> list[Exchange]:
    """Requests that resemble those of GraphQL or JSON-RPC."""
    asked = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "query": st.just("query Items($first: Int) { items }") | values,
                "operationName": names | values,
                "variables": st.dictionaries(names, values, max_size=2) | values,
                "extensions": st.just({"persistedQuery": {"sha256Hash": "abc"}}) | values,
                "jsonrpc": st.just("2.0") | values,
                "method": names | values,
                "params": st.dictionaries(names, values, max_size=2) | values,
                "id": values,
            },
        )
    )
    body = draw(st.just(asked) | st.just([asked]))
    answer = draw(st.dictionaries(st.sampled_from(["data", "errors", "result"]), values))
    by_get = urlencode({name: json.dumps(each) for name, each in asked.items()})
    return [ask("POST /graphql", answer, body=body), ask(f"GET /graphql?{by_get}", answer)]


@st.composite
def pages(draw: st.DrawFn) -> list[Exchange]:
    """A page with a list, a link to the next page, and a form that was submitted."""
    tag = draw(st.sampled_from(["li", "tr", "div"]))
    entry = "".join(_field(draw) for _ in range(draw(st.integers(0, 3))))
    rows = "".join(f"<{tag} class=row>{number}{entry}</{tag}>" for number in range(3))
    link = draw(st.sampled_from(["/x?page=2", "?page=2", "http://[", "javascript:x", "//other"]))
    fields = "".join(f"<input name={json.dumps(_html(draw(names)))}>" for _ in range(2))
    form = f'<form method=post action="{link}">{fields}</form><a rel=next href="{link}">more</a>'
    page = f"<title>{_html(draw(names))}</title><ul><table>{rows}</table></ul>{form}"
    posted: Mapping[str, Any] = draw(st.dictionaries(names, names, max_size=2))
    moved = {"location": link}
    return [
        ask(f"GET /{'/'.join(draw(paths))}?page=1", page),
        ask("POST /x", page, form=posted, status=draw(st.sampled_from([200, 302])), headers=moved),
    ]


def _field(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["class", "id", "itemprop", "data-x"]))
    return f"<b {kind}={json.dumps(_html(draw(names)))}>{_html(draw(names))}</b>"


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def check(sources: Sequence[str]) -> None:
    """Parse modules with Node, in one process for all of them."""
    node = str(Path(sys.executable).with_name("node"))
    done = run(
        [node, "--experimental-vm-modules", "--no-warnings", "-e", CHECK],
        input=json.dumps(sources), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stdout + done.stderr


def test_there_is_a_plugin_for_any_site() -> None:
    sources: list[str] = []

    @settings(max_examples=150, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(api_requests() | operations() | pages(), min_size=1, max_size=3))
    def write(sites: list[list[Exchange]]) -> None:
        recorded = [each for some in sites for each in some]
        files = write_plugin(site_of(*recorded), "x", "js").files
        sources.extend(text for name, text in files.items() if name.endswith(".js"))

    write()
    assert len(sources) > 100  # several for almost every site
    check(sources)
