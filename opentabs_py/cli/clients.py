"""The MCP clients and agent frameworks that `opentabs config` supports."""

from enum import StrEnum
from typing import Final

from opentabs_py.cli.client_blocks import JsonFile, TextBlock


class ClientName(StrEnum):
    """The supported clients."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CODEX = "codex"
    CURSOR = "cursor"
    INSPECTOR = "inspector"
    VSCODE = "vscode"
    OPENAI_AGENTS = "openai-agents"
    GOOGLE_ADK = "google-adk"
    AUTOGEN = "autogen"
    LLAMA_INDEX = "llama-index"
    TYPESCRIPT_SDK = "typescript-sdk"
    TYPESCRIPT_SDK_1 = "typescript-sdk-1"
    LANGCHAIN_JS = "langchain-js"
    MASTRA = "mastra"


_BEARER: Final = "f\"Bearer {os.environ['OPENTABS_TOKEN']}\""
_PYTHON_HEADERS: Final = f'{{"Authorization": {_BEARER}}}'
_JS_HEADERS: Final = "headers: { Authorization: `Bearer ${process.env.OPENTABS_TOKEN}` }"


def _python(packages: str, started: str, running: str, token: str) -> TextBlock:
    return TextBlock(f"a program with {packages}", started, running, token, "import os\n\n")


def _typescript_sdk(package: str, stdio: str, client: str, http: str, schema: str) -> TextBlock:
    def block(imports: str, transport: str) -> str:
        return f"""{imports}

const client = new Client({{ name: "my-agent", version: "1.0.0" }});
await client.connect({transport});
const patience = {{ timeout: $milliseconds, onprogress: console.log }};
const call = (name, args) => client.callTool({{ name, arguments: args }}, {schema}patience);"""

    return TextBlock(
        f"a program with {package}",
        block(
            f'import {{ Client }} from "{client}";\n'
            f'import {{ StdioClientTransport }} from "{stdio}";',
            "new StdioClientTransport({ command: $command, args: $arguments })",
        ),
        block(
            f'import {{ Client }} from "{client}";\n'
            f'import {{ StreamableHTTPClientTransport }} from "{http}";',
            "new StreamableHTTPClientTransport(new URL($url)$token)",
        ),
        f", {{ requestInit: {{ {_JS_HEADERS} }} }}",
    )


CLIENTS: Final[dict[ClientName, JsonFile | TextBlock]] = {
    ClientName.CLAUDE_CODE: JsonFile(
        ".mcp.json in the project, or ~/.claude.json for all projects", typed=True
    ),
    ClientName.CLAUDE_DESKTOP: JsonFile(
        "claude_desktop_config.json (Settings, Developer, Edit Config)", takes_url=False
    ),
    ClientName.CODEX: TextBlock(
        "~/.codex/config.toml",
        """[mcp_servers.opentabs]
command = $command
args = $arguments
tool_timeout_sec = $seconds""",
        """[mcp_servers.opentabs]
url = $url
${token}tool_timeout_sec = $seconds""",
        'bearer_token_env_var = "OPENTABS_TOKEN"\n',
    ),
    ClientName.CURSOR: JsonFile(
        ".cursor/mcp.json in the project, or ~/.cursor/mcp.json for all projects",
        variable="${env:OPENTABS_TOKEN}",
    ),
    ClientName.INSPECTOR: JsonFile(
        "a file of its own, for mcp-inspector --config FILE --server opentabs",
        typed=True,
        variable=None,
        timeout="requestTimeout",
    ),
    ClientName.VSCODE: JsonFile(
        ".vscode/mcp.json", key="servers", typed=True, variable="${env:OPENTABS_TOKEN}"
    ),
    ClientName.OPENAI_AGENTS: _python(
        "openai-agents",
        """from agents.mcp import MCPServerStdio

server = MCPServerStdio(
    {"command": $command, "args": $arguments},
    client_session_timeout_seconds=$seconds,
)""",
        """from agents.mcp import MCPServerStreamableHttp

server = MCPServerStreamableHttp(
    {"url": $url$token},
    client_session_timeout_seconds=$seconds,
)""",
        f', "headers": {_PYTHON_HEADERS}',
    ),
    ClientName.GOOGLE_ADK: _python(
        "google-adk and mcp",
        """from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from mcp import StdioServerParameters

server = StdioServerParameters(command=$command, args=$arguments)
toolset = McpToolset(
    connection_params=StdioConnectionParams(server_params=server, timeout=$seconds)
)""",
        """from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams

toolset = McpToolset(
    connection_params=StreamableHTTPConnectionParams(
        url=$url$token, sse_read_timeout=$seconds
    )
)""",
        f", headers={_PYTHON_HEADERS}",
    ),
    ClientName.AUTOGEN: _python(
        "autogen-ext[mcp] and mcp 1.x",
        """from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams

server = StdioServerParams(command=$command, args=$arguments, read_timeout_seconds=$seconds)
workbench = McpWorkbench(server)""",
        """from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams

server = StreamableHttpServerParams(url=$url$token, sse_read_timeout=$seconds)
workbench = McpWorkbench(server)""",
        f", headers={_PYTHON_HEADERS}",
    ),
    ClientName.LLAMA_INDEX: _python(
        "llama-index-tools-mcp",
        """from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

client = BasicMCPClient($command, args=$arguments, timeout=$seconds)
tools = McpToolSpec(client)  # await tools.to_tool_list_async()""",
        """from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

client = BasicMCPClient($url$token, timeout=$seconds, sse_read_timeout=$seconds)
tools = McpToolSpec(client)  # await tools.to_tool_list_async()""",
        f", headers={_PYTHON_HEADERS}",
    ),
    ClientName.TYPESCRIPT_SDK: _typescript_sdk(
        "@modelcontextprotocol/client 2.x",
        stdio="@modelcontextprotocol/client/stdio",
        client="@modelcontextprotocol/client",
        http="@modelcontextprotocol/client",
        schema="",
    ),
    ClientName.TYPESCRIPT_SDK_1: _typescript_sdk(
        "@modelcontextprotocol/sdk 1.x",
        stdio="@modelcontextprotocol/sdk/client/stdio.js",
        client="@modelcontextprotocol/sdk/client/index.js",
        http="@modelcontextprotocol/sdk/client/streamableHttp.js",
        schema="undefined, ",
    ),
    ClientName.LANGCHAIN_JS: TextBlock(
        "a program with @langchain/mcp-adapters",
        """import { MultiServerMCPClient } from "@langchain/mcp-adapters";

const client = new MultiServerMCPClient({
  mcpServers: { opentabs: { transport: "stdio", command: $command, args: $arguments } },
  defaultToolTimeout: $milliseconds,
});
const tools = await client.getTools();""",
        """import { MultiServerMCPClient } from "@langchain/mcp-adapters";

const client = new MultiServerMCPClient({
  mcpServers: { opentabs: { transport: "http", url: $url$token } },
  defaultToolTimeout: $milliseconds,
});
const tools = await client.getTools();""",
        f", {_JS_HEADERS}",
    ),
    ClientName.MASTRA: TextBlock(
        "a program with @mastra/mcp",
        """import { MCPClient } from "@mastra/mcp";

const mcp = new MCPClient({
  servers: { opentabs: { command: $command, args: $arguments } },
  timeout: $milliseconds,
});
const tools = await mcp.getTools();""",
        """import { MCPClient } from "@mastra/mcp";

const mcp = new MCPClient({
  servers: { opentabs: { url: new URL($url)$token } },
  timeout: $milliseconds,
});
const tools = await mcp.getTools();""",
        f", requestInit: {{ {_JS_HEADERS} }}",
    ),
}
