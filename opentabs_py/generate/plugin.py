"""Write a whole plugin for a site: its tools, and their tests on the recording."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from opentabs_py.core.plugin_names import mcp_name
from opentabs_py.core.recording.exchange import RecordedCall, Recording
from opentabs_py.core.text import one_line
from opentabs_py.generate.api_source import api_source, index_source, ready_source
from opentabs_py.generate.calls import AnsweredCall, calls_of
from opentabs_py.generate.html_source import html_tool_source, pages_source
from opentabs_py.generate.html_tools import HtmlTool
from opentabs_py.generate.names import pascal
from opentabs_py.generate.site import KnownSite
from opentabs_py.generate.source import Language, tool_source

RECORDING: Final = "site.har"


@dataclass(frozen=True, slots=True)
class Generated:
    """A plugin that has been written.

    Attributes:
        files: The text of each file, by its path in the plugin's directory. They take the place
            of those of a new plugin.
        dropped: Those of a new plugin that it does not have.
        recording: What its tests replay, with the calls that they make, for `tests/site.har`.
        calls: Those calls.
    """

    files: Mapping[str, str]
    dropped: Sequence[str]
    recording: Recording
    calls: Sequence[AnsweredCall]


def write_plugin(site: KnownSite, name: str, language: Language) -> Generated:
    """Return a plugin for a site.

    Args:
        site: What is known of the site.
        name: The plugin's name.
        language: That of its source.

    Raises:
        RecordingError: No plugin can serve the site.
    """
    calls = [call for tool in site.tools for call in calls_of(tool)]
    title = " ".join(part.capitalize() for part in name.split("-"))
    description = f"The tools of {site.recording.url}"
    names = [tool.name for tool in site.tools]
    snake = name.replace("-", "_")
    index = index_source(
        name=name,
        title=title,
        pascal=pascal(name),
        description=description,
        patterns=site.patterns,
        tools=names,
        ready=ready_source(site.auth),
        language=language,
    )
    files = {
        f"src/index.{language}": index,
        "package.json": _package(site, name, title, description),
        f"tests/test_{snake}.py": _tests(name, site, calls),
        "README.md": _readme(name, title, site, language),
    }
    for tool in site.tools:
        text = (
            html_tool_source(tool, language)
            if isinstance(tool, HtmlTool)
            else tool_source(tool, language)
        )
        files[f"src/tools/{tool.name}.{language}"] = text
    if any(isinstance(tool, HtmlTool) for tool in site.tools):
        files[f"src/pages.{language}"] = pages_source(language)
    api = [tool for tool in site.tools if not isinstance(tool, HtmlTool)]
    if api or 'from "./api' in index:
        files[f"src/api.{language}"] = api_source(api, site.auth, language)
    if volatile := _volatile(site):
        files["pyproject.toml"] = _PYPROJECT.format(volatile=_toml(volatile))
    # JavaScript reads the escapes of lone surrogates, which no file can have, as what they were.
    files = {
        file: text.encode("utf-8", "backslashreplace").decode() for file, text in files.items()
    }
    dropped = [
        f"src/tools/hello.{language}", f"tests/hello.test.{language}", "playground/index.html",
    ]  # fmt: skip
    recorded = [
        RecordedCall(
            mcp_name(name, call.tool),
            call.arguments,
            call.value,
            {"code": call.code, "message": ""} if call.code else None,
        )
        for call in calls
    ]
    return Generated(files, dropped, replace(site.recording, calls=recorded), calls)


def _volatile(site: KnownSite) -> Sequence[str]:
    """Return the hidden fields of forms that are others each time a page is opened."""
    return sorted(
        {
            each.name
            for tool in site.tools
            if isinstance(tool, HtmlTool) and tool.form is not None
            for each in tool.form.fields
            if each.is_token
        }
    )


def _toml(texts: Sequence[str]) -> str:
    """Return texts as TOML, whose escapes are those of JSON, without surrogates."""
    return json.dumps(texts, ensure_ascii=False).replace("\x7f", "\\u007f")


def _code(text: str) -> str:
    """Return what a site calls something as Markdown that shows it, also in a table."""
    plain = one_line(text).replace("`", "'").replace("|", "\\|")
    return f"`{plain}`"


def _escaped(text: str) -> str:
    """Return a text as Markdown that shows it, and nothing else."""
    return re.sub(r"[^\w .-]", lambda found: f"&#{ord(found[0])};", one_line(text))


def _package(site: KnownSite, name: str, title: str, description: str) -> str:
    return (
        json.dumps(
            {
                "name": f"opentabs-plugin-{name}",
                "version": "0.1.0",
                "description": f"{title} for OpenTabs",
                "private": True,
                "type": "module",
                "opentabs": {
                    "displayName": title,
                    "description": description,
                    "urlPatterns": site.patterns,
                    "homepage": site.recording.url,
                },
            },
            indent=2,
        )
        + "\n"
    )


def _tests(name: str, site: KnownSite, calls: Sequence[AnsweredCall]) -> str:
    tools = [mcp_name(name, tool.name) for tool in site.tools]
    called = [each for each in tools if any(mcp_name(name, call.tool) == each for call in calls)]
    changing = sorted({mcp_name(name, call.tool) for call in calls if not call.is_stable})
    paged = [
        mcp_name(name, tool.name)
        for tool in site.tools
        if any(call.tool == tool.name and call.pages for call in calls)
    ]
    text = _TESTS.format(
        recording=RECORDING,
        tools=_listed(called),
        changing=_CHANGING.format(changing=_listed(changing)) if changing else "",
        otherwise=_OTHERWISE if changing else "",
    )
    if paged:
        text += _PAGED.format(paged=_listed(paged))
    return text


def _listed(tools: Sequence[str]) -> str:
    """Return names as the lines of a list."""
    return "\n".join(f'    "{each}",' for each in tools)


def _readme(name: str, title: str, site: KnownSite, language: Language) -> str:
    rows = "\n".join(
        f"| `{mcp_name(name, tool.name)}` | {'reads' if tool.is_read else 'changes something'} "
        f"| {_code(str(tool.operation))} |"
        for tool in site.tools
    )
    missing = "".join(
        f"- Nothing in the recording says where the value of {_escaped(each)} comes from: set it "
        f"in `src/api.{language}`.\n"
        for each in site.auth.missing
    )
    return _README.format(
        title=title,
        rows=rows,
        url=_code(site.recording.url),
        language=language,
        todo=f"\n## To do\n\n{missing}" if missing else "",
    )


_PYPROJECT: Final = """\
[tool.opentabs]
# Hidden fields of forms that have another value at each visit: replays do not compare them.
volatile = {volatile}
"""
_TESTS: Final = '''\
"""The tools on a recording of the site: no site, no account, no network."""

from collections.abc import Sequence

import pytest

from opentabs_py.testing import RecordedCall, SyncOpenTabs, expect

{changing}recorded = pytest.mark.opentabs(recording="{recording}")


@pytest.fixture
def ready(opentabs: SyncOpenTabs) -> SyncOpenTabs:
    opentabs.page.goto(opentabs.recording.url)
    expect(opentabs.plugin()).to_be_ready()
    return opentabs


def calls_of(opentabs: SyncOpenTabs, tool: str) -> Sequence[RecordedCall]:
    return [each for each in opentabs.recording.calls if each.tool == tool]


TOOLS = [
{tools}
]


@recorded
@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_returns_what_the_site_answered(ready: SyncOpenTabs, tool: str) -> None:
    calls = calls_of(ready, tool)
    assert calls
    for each in calls:
        call = ready.start(tool, each.arguments)
        if each.error is not None:
            expect(call).to_fail(code=each.error["code"])
{otherwise}        else:
            expect(call).to_return(each.value)
'''
_CHANGING: Final = """\
# The recording has several responses to their requests.
CHANGING = [
{changing}
]
"""
_OTHERWISE: Final = """\
        elif tool in CHANGING:
            expect(call).to_succeed()
"""
_PAGED: Final = """

PAGED = [
{paged}
]


@recorded
@pytest.mark.parametrize("tool", PAGED)
def test_a_tool_reports_each_page(ready: SyncOpenTabs, tool: str) -> None:
    call = ready.start(tool, calls_of(ready, tool)[0].arguments)
    expect(call).to_succeed()
    progress = [report.progress for report in call.progress]
    assert progress
    assert progress == sorted(progress)
"""
_README: Final = """\
# {title}

An OpenTabs plugin for {url}: its tools run in the page, as the user who is signed in there. It was
generated from a recording of the site, `tests/site.har`.

| tool | | calls |
|---|---|---|
{rows}

```sh
opentabs build
opentabs test           # on the recording: no site, no account
opentabs verify         # at the site: has it changed?
```
{todo}
| to | edit |
|---|---|
| change a tool's name, description or schema | `src/tools/` |
| change how requests are sent | `src/api.{language}` |
| say when the tools are ready | `isReady()` in `src/index.{language}` |
"""
