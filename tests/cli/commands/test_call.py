"""`opentabs call`: its output and its exit codes, with Python tools, which need no browser."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.in_process import opentabs_here
from tests.cli.test_authoring import ENVIRONMENT, opentabs

TOOLS = '''
import anyio
from mcp.types import CallToolResult, TextContent
from opentabs_py import Module, Progress, ToolError, tool


@tool
def echo(value: list[int]) -> dict[str, list[int]]:
    """Return what it is given."""
    return {"value": value}


@tool
def export(progress: Progress) -> dict[str, int]:
    """Report twice."""
    progress.report("page 1", progress=1, total=2)
    progress.report("page 2", progress=2, total=2)
    return {"pages": 2}


@tool
def refuse(code: str) -> None:
    """Fail."""
    raise ToolError(
        "slow down", code, category="rate_limit", retryable=True, retry_after=1.5
    )


@tool
def broken() -> dict[str, int]:
    """Return something else."""
    return {"pages": "two"}


@tool
def chat() -> dict[str, int]:
    """Print."""
    print("from the tool")
    return {"said": 1}


@tool
def forward() -> CallToolResult:
    """Return a result of another server, which names a stream there."""
    content = [TextContent(text="forwarded")]
    streams = [{"id": "1", "name": "distant"}]
    return CallToolResult(content=content, _meta={"opentabs/streams": streams})


print("from the module")


class Counter(Module):
    @tool
    def count(self) -> str:
        """Count later."""
        self.start_tool("counting")
        return "started"


@tool
async def wait() -> None:
    """Never end."""
    await anyio.sleep_forever()
'''


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("call")
    (made / "tools.py").write_text(TOOLS)
    return made


def call(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # There is no Chromium, so none can be started.
    chromium = {"OPENTABS_CHROMIUM": "/no/chromium"}
    return opentabs("call", *arguments, "--tools", "tools.py", cwd=directory, **chromium)


def test_call_prints_only_the_result_on_stdout(directory: Path) -> None:
    run = call(directory, "export")

    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {"pages": 2}


def test_call_reads_its_arguments_from_a_file(directory: Path) -> None:
    (directory / "input.json").write_text('{"value": [1, 2]}')

    run = call(directory, "echo", "@input.json")

    assert json.loads(run.stdout) == {"value": [1, 2]}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("source", ["@input.json", "-"])
def test_call_reads_its_arguments_as_other_programs_write_them(
    directory: Path, source: str, encoding: str
) -> None:
    text = '{"code": "é"}'.encode(encoding)
    (directory / "input.json").write_bytes(text)

    run = subprocess.run(
        ["opentabs", "call", "refuse", source, "--json", "--tools", "tools.py"],
        cwd=directory,
        env=ENVIRONMENT,
        input=text,
        capture_output=True,
        check=False,
    )

    assert json.loads(run.stdout)["error"]["code"] == "é", run.stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_what_tools_print_is_not_on_stdout(directory: Path, as_json: bool) -> None:
    run = call(directory, "chat", *["--json"] * as_json)

    document = json.loads(run.stdout)
    assert (document["structuredContent"] if as_json else document) == {"said": 1}
    assert "from the tool" in run.stderr
    assert "from the module" in run.stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_call_says_that_a_stream_ends_with_it_instead_of_how_to_read_it(
    directory: Path, as_json: bool
) -> None:
    run = call(directory, "count", *["--json"] * as_json)

    if as_json:
        assert json.loads(run.stdout)["content"] == [{"type": "text", "text": "started"}]
    else:
        assert run.stdout == "started\n"
    said = " ".join(run.stderr.split())
    assert "warning: The stream counting ends with this command." in said
    assert "opentabs start" in said


def test_call_leaves_nothing_out_of_a_result_but_how_to_read_its_streams(directory: Path) -> None:
    assert call(directory, "forward").stdout == "forwarded\n"


def test_call_exits_1_when_the_tool_fails(directory: Path) -> None:
    run = call(directory, "refuse", '{"code": "RATE_LIMITED"}', "--json")

    assert run.returncode == 1
    assert json.loads(run.stdout)["error"] == {
        "code": "RATE_LIMITED",
        "message": "slow down",
        "category": "rate_limit",
        "retryable": True,
        "retryAfterMs": 1500,
    }


def test_call_shows_the_value_that_breaks_its_schema(directory: Path) -> None:
    run = call(directory, "broken")

    assert run.returncode == 1
    assert "RESULT_BREAKS_SCHEMA" in run.stdout + run.stderr
    assert '{"pages":"two"}' in "".join((run.stdout + run.stderr).split())


def test_call_exits_1_when_the_tool_fails_with_a_code_of_the_chain(directory: Path) -> None:
    assert call(directory, "refuse", '{"code": "TAB_NOT_FOUND"}').returncode == 1


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["ecko"], "did you mean 'echo'"),
        (["echo", "{}"], '"value" is a required property'),
        (["echo", "{"], "The arguments are not valid JSON"),
        (["echo", "[]"], "The arguments are an array; pass a JSON object"),
        (["echo", "null"], "The arguments are null; pass a JSON object"),
        (["echo", "true"], "The arguments are a boolean; pass a JSON object"),
        (["echo", "1.5"], "The arguments are a number; pass a JSON object"),
        (["echo", '"x"'], "The arguments are a string; pass a JSON object"),
        (["echo", '{"value": [], "value": [1]}'], 'The arguments have the key "value" twice'),
        (["echo", '{"value": [{"a\\ud83d": 1, "a\\ud83d": 2}]}'], 'key "a\\ud83d" twice'),
        (["echo", '{"value": "a\\ud83d"}'], "surrogates not allowed"),
        (["echo", f'{{"value": {"[" * 600}{"]" * 600}}}'], "not serializable as JSON: "),
        (
            ["echo", "@/no/such/file"],
            "Cannot read the arguments in /no/such/file: No such file or directory.",
        ),
        (["echo", "--ceiling", "-1"], "ceiling: write more than 0"),
    ],
)
def test_call_exits_2_on_a_usage_error_and_says_what_is_wrong(
    directory: Path, arguments: list[str], hint: str
) -> None:
    run = call(directory, *arguments)

    assert run.returncode == 2
    assert hint in run.stderr
    assert run.stdout == ""


def test_call_exits_3_when_a_timer_ends_it(directory: Path) -> None:
    run = call(directory, "wait", "--idle", "0.5")

    assert run.returncode == 3
    assert "code=TIMEOUT_IDLE" in run.stderr


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ([], "no server is running, and no plugin is named. Start a server (`opentabs start`), or"),
        (["--fresh"], "the call does not use a running server, and no plugin is named. Name the"),
        (["--headed"], "does not use a running server"),
        ([], "the directory of the tool's plugin (--plugin DIR), or the file of a Python tool"),
    ],
)
def test_call_says_what_to_do_where_nothing_can_have_the_tool(
    tmp_path: Path, options: list[str], hint: str
) -> None:
    run = opentabs_here("call", "demo_export", *options, cwd=tmp_path)

    assert run.returncode == 2
    assert "There is no tool 'demo_export'" in run.stderr
    assert hint in run.stderr


def test_call_without_any_tools_is_refused_as_json_too(tmp_path: Path) -> None:
    run = opentabs_here("call", "demo_export", "--json", cwd=tmp_path)

    assert run.returncode == 2
    assert json.loads(run.stdout)["error"]["code"] == "UNKNOWN_TOOL"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_missing_file_of_tools_is_a_usage_error_with_json_too(
    tmp_path: Path, as_json: bool
) -> None:
    run = opentabs_here("call", "t", "--tools", "missing.py", *["--json"] * as_json, cwd=tmp_path)

    assert run.returncode == 2
    assert "missing.py" in (run.stdout if as_json else run.stderr)
