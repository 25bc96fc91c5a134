"""Write the module that sends a plugin's requests, and the one that joins its tools."""

import re
from collections.abc import Collection, Sequence
from typing import Final

from opentabs_py.generate.auth import Auth, Header
from opentabs_py.generate.names import export_name
from opentabs_py.generate.plan import PlannedTool
from opentabs_py.generate.source import Language
from opentabs_py.generate.zod import literal

_READERS: Final = {
    "cookie": "getCookie",
    "localStorage": "getLocalStorage",
    "meta": "getMetaContent",
}


def api_source(tools: Sequence[PlannedTool], auth: Auth, language: Language) -> str:
    """Return the module that sends requests as the site's own pages do."""
    styles = {tool.operation.style for tool in tools}
    linked = [
        tool.pagination for tool in tools if tool.pagination and tool.pagination.kind == "link"
    ]
    has_unread = any(tool.ignores_answer for tool in tools)
    with_links = any(not each.next for each in linked)
    parts = [_request(auth, with_links=with_links, has_unread=has_unread)]
    if linked:
        parts.append(_LINK)
    if "graphql" in styles:
        parts.append(_GRAPHQL)
    if "rpc" in styles:
        parts.append(_RPC)
    names = {"buildQueryString", "fetchJSON"}
    read = _read(auth)
    names |= {_READERS[each.where] for each in read if each.where in _READERS}
    if read or styles & {"graphql", "rpc"}:
        names.add("ToolError")
    if with_links or has_unread:
        names.add("fetchFromPage")
    head = f'import {{ {", ".join(sorted(names))} }} from "@opentabs-dev/plugin-sdk";\n'
    return head + "\n" + typed("".join(parts), language)


def index_source(
    *, name: str, title: str, pascal: str, description: str, patterns: Sequence[str],
    tools: Collection[str], ready: str, language: Language,
) -> str:  # fmt: skip
    """Return the module that joins a plugin's tools.

    Args:
        name: The plugin's name.
        title: Its name for users.
        pascal: The name of its class.
        description: What it is for.
        patterns: The pages it runs on.
        tools: The names of its tools.
        ready: The body of `isReady()`.
        language: Of the module.
    """
    variables = [export_name(each) for each in tools]
    imports = [
        f'import {{ {variable} }} from "./tools/{tool}.{language}";'
        for tool, variable in sorted(zip(tools, variables, strict=True))
    ]
    helpers = [each for each in ("hasSession", "request") if f"{each}(" in ready]
    text = "\n".join(
        [
            'import { OpenTabsPlugin } from "@opentabs-dev/plugin-sdk";',
            *(f'import {{ {each} }} from "./api.{language}";' for each in helpers),
            *imports,
            "",
            f"class {pascal}Plugin extends OpenTabsPlugin {{",
            f"  ⟦override readonly ⟧name = {literal(name)};",
            f"  ⟦override readonly ⟧displayName = {literal(title)};",
            f"  ⟦override readonly ⟧description = {literal(description)};",
            f"  ⟦override readonly ⟧urlPatterns = {literal([*patterns])};",
            f"  ⟦override readonly ⟧tools = [{', '.join(variables)}];",
            "",
            "  /** Whether the tools can run: whether the user is signed in. */",
            "  ⟦override ⟧async isReady()⟦: Promise<boolean>⟧ {",
            *(f"    {line}" for line in ready.split("\n")),
            "  }",
            "}",
            "",
            f"export default new {pascal}Plugin();",
            "",
        ]
    )
    return typed(text, language)


def ready_source(auth: Auth) -> str:
    """Return the body of `isReady()`."""
    if auth.secrets:
        return "return hasSession();"
    if auth.me:
        return (
            "try {\n"
            f'  await request("GET", {literal(auth.me)});\n'
            "  return true;\n"
            "} catch {\n"
            "  return false; // the user is not signed in, or the site does not respond\n"
            "}"
        )
    if auth.logout:
        out = '\'a[href*="out" i], form[action*="out" i]\''
        return f"return document.querySelector({out}) !== null; // the link to sign out"
    return "return document.body !== null;"


def typed(text: str, language: Language) -> str:
    """Return a source whose types are in ⟦…⟧, with or without them."""
    parts = text.split("⟦")
    found = [parts[0]]
    for part in parts[1:]:
        inner, _, rest = part.partition("⟧")
        found += [inner if language == "ts" else "", rest]
    return "".join(found)


def _request(auth: Auth, *, with_links: bool, has_unread: bool) -> str:
    sent = [each for each in auth.headers if each.where != "unknown"]
    lines = [f"    {literal(each.name)}: {_value(each)}," for each in sent]
    is_async = any(each.where == "response" for each in auth.secrets)
    headers = "\n".join(["{", *lines, "  }"]) if lines else "{}"
    holes = {
        "AWAIT ": "await " if is_async else "",
        "ASYNC ": "async " if is_async else "",
        "HEADERS_TYPE": "⟦: Promise<Record<string, string>>⟧" if is_async
        else "⟦: Record<string, string>⟧",
        "BOOLEAN": "⟦: Promise<boolean>⟧" if is_async else "⟦: boolean⟧",
        "COOKIES": _COOKIES.replace("ORIGINS", literal([*auth.without_cookies]))
        if auth.without_cookies else "",
        "JSON_TYPE": literal(auth.json_type),
        "WITH_LINK": _WITH_LINK if with_links else "",
        "LINK_OPTION": _LINK_OPTION if with_links else "",
        "LINK_NAME": ", withLink" if with_links else "",
        "UNREAD_CASE": _UNREAD_CASE if has_unread else "",
        "UNREAD_OPTION": _UNREAD_OPTION if has_unread else "",
        "UNREAD_NAME": ", ignoreAnswer" if has_unread else "",
        "HEADERS": headers,
    }  # fmt: skip
    text = _REQUEST + (_HAS_SESSION if auth.secrets else "")
    # All at once: what fills a hole may have a value of the site, with the name of another hole.
    text = re.sub("|".join(holes), lambda hole: holes[hole[0]], text)
    if auth.tokens:
        lines = [f"  {name}: async () => {_value(each)},\n" for name, each in auth.tokens.items()]
        text += _TOKENS.format("".join(lines))
    read = _read(auth)
    if read:
        text += _NEEDED
    if any(each.where == "script" for each in read):
        text += _IN_SCRIPT
    if any(each.path for each in read):
        text += _AT
    return text


def _read(auth: Auth) -> Sequence[Header]:
    """Return what is read from the page."""
    return [*auth.secrets, *(each for each in auth.tokens.values() if each.where != "unknown")]


def _value(given: Header) -> str:
    if given.where == "random":
        return "`${Date.now()}-${Math.random()}`"
    if given.where in ("constant", "unknown"):
        return literal(given.value)
    prefix = literal(given.prefix) + " + " if given.prefix else ""
    return f"{prefix}needed({_reader(given)}, {literal(_named(given))})"


def _reader(given: Header) -> str:
    key = literal(given.key)
    match given.where:
        case "field":
            selector = literal(f"input[name={literal(given.key)}]")
            return f"document.querySelector⟦<HTMLInputElement>⟧({selector})?.value"
        case "script":
            return f"inScript({key})"
        case "response":
            return (
                f"memberOf(await fetchJSON(urlOf({literal(given.url)})), {literal([*given.path])})"
            )
        case _:
            text = f"{_READERS[given.where]}({key})"
            if given.path:
                return f'memberOf(JSON.parse({text} ?? "null"), {literal([*given.path])})'
            return text


def _named(given: Header) -> str:
    places = {
        "cookie": "the cookie", "localStorage": "the stored item", "meta": "the meta element",
        "field": "the field", "script": "the page's", "response": "the site's",
    }  # fmt: skip
    return f"{places[given.where]} {given.key}"


_REQUEST: Final = """\
⟦/** What a request sends besides its URL. */
export interface Options {
  query?: Record<string, unknown>;
  body?: unknown;
  form?: Record<string, unknown>;
  signal?: AbortSignal | undefined;LINK_OPTIONUNREAD_OPTION
}

⟧/**
 * Send a request as the site's own pages do, with the session of the page, and return the JSON of
 * its answer. An error status becomes a ToolError.
 */
export async function request⟦<T>⟧(
  method⟦: string⟧,
  path⟦: string⟧,
  { query = {}, body, form, signalLINK_NAMEUNREAD_NAME }⟦: Options⟧ = {},
)⟦: Promise<T>⟧ {
  const search = buildQueryString(query);
  const address = urlOf(path);
  const url = search ? `${address}${address.includes("?") ? "&" : "?"}${search}` : address;
  const headers = AWAIT headersOfPages();
  const init⟦: RequestInit & { signal: AbortSignal | undefined }⟧ = { method, headers, signal };
  if (form !== undefined) {
    init.body = new URLSearchParams(buildQueryString(form));
  } else if (body !== undefined) {
    init.headers = { ...headers, "content-type": JSON_TYPE };
    init.body = JSON.stringify(body);
  }
COOKIESWITH_LINKUNREAD_CASE  return (await fetchJSON(url, init))⟦ as T⟧;
}

/** The URL of a path of the site, which may begin with two slashes; another URL as it is. */
function urlOf(path⟦: string⟧)⟦: string⟧ {
  return path.startsWith("/") ? `${location.origin}${path}` : path;
}

/** The headers that the site's own pages send. */
ASYNC function headersOfPages()HEADERS_TYPE {
  return HEADERS;
}
"""
_COOKIES: Final = """\
  if (ORIGINS.includes(new URL(url, location.href).origin)) {
    init.credentials = "omit"; // these do not allow cookies
  }
"""
_LINK_OPTION: Final = "\n  withLink?: boolean;"
_WITH_LINK: Final = """\
  if (withLink) {
    const response = await fetchFromPage(url, init);
    const link = /<([^<>]+)>\\s*;[^,<]*\\brel="?next"?/.exec(response.headers.get("link") ?? "");
    return Object.assign(await response.json(), { link: link?.[1] });
  }
"""
_UNREAD_OPTION: Final = "\n  ignoreAnswer?: boolean;"
_UNREAD_CASE: Final = """\
  if (ignoreAnswer) {
    await fetchFromPage(url, init); // it answers with nothing, or not with JSON
    return undefined⟦ as T⟧;
  }
"""
_TOKENS: Final = """
/** What the site's own pages send in their queries and bodies. */
export const tokens = {{
{}}};
"""
_HAS_SESSION: Final = """
/** Whether the page has what its requests need. */
export ASYNC function hasSession()BOOLEAN {
  try {
    AWAIT headersOfPages();
    return true;
  } catch {
    return false;
  }
}
"""
_NEEDED: Final = """
/** A value that only a page of a signed-in user has. */
function needed(value⟦: unknown⟧, what⟦: string⟧)⟦: string⟧ {
  if (typeof value !== "string" || value === "") {
    throw ToolError.auth(`The page has no value for ${what}. Sign in to the site, and call again.`);
  }
  return value;
}
"""
_IN_SCRIPT: Final = """
/** The value that a script in the page assigns to a name, as in `{"csrfToken": "…"}`. */
function inScript(name⟦: string⟧)⟦: string | undefined⟧ {
  const plain = name.replace(/[.$]/g, "\\\\$&");
  const pattern = new RegExp(`["']?\\\\b${plain}["']?\\\\s*[:=]\\\\s*["']([^"']+)`);
  for (const script of document.scripts) {
    const found = pattern.exec(script.text);
    if (found) return found[1];
  }
  return undefined;
}
"""
_AT: Final = """
/** A member of a member, and so on, of a JSON value. */
function memberOf(value⟦: any⟧, path⟦: string[]⟧)⟦: unknown⟧ {
  return path.reduce((inner, name) => inner?.[name], value);
}
"""
_LINK: Final = """
/** The URL of the next page; without one, that of the first. */
export function link(next⟦: unknown⟧, first⟦: string⟧)⟦: string⟧ {
  return next === undefined ? first : new URL(String(next), urlOf(first)).href;
}
"""
_GRAPHQL: Final = """
/** Run an operation of the site's GraphQL API, and return its data. */
export async function graphql⟦<T>⟧(
  method⟦: string⟧,
  path⟦: string⟧,
  operation⟦: Record<string, unknown>⟧,
  variables⟦: Record<string, unknown> | undefined⟧,
  signal⟦: AbortSignal | undefined⟧,
)⟦: Promise<T>⟧ {
  const sent⟦: Record<string, unknown>⟧ = { ...operation, ...(variables && { variables }) };
  const encoded = () =>
    Object.fromEntries(
      Object.entries(sent).map(([name, value]) => [
        name,
        typeof value === "string" ? value : JSON.stringify(value),
      ]),
    );
  const answer = await request⟦<any>⟧(method, path, {
    ...(method === "GET" ? { query: encoded() } : { body: sent }),
    signal,
  });
  const [error] = answer?.errors ?? [];
  if (error !== undefined) {
    const code = String(error.extensions?.code ?? "GRAPHQL_ERROR");
    if (code === "UNAUTHENTICATED") throw ToolError.auth(error.message);
    throw new ToolError(error.message, code);
  }
  return answer?.data;
}
"""
_RPC: Final = """
let calls = 0;

/** Call a method of the site by JSON-RPC, and return its result. */
export async function call⟦<T>⟧(
  path⟦: string⟧,
  method⟦: string⟧,
  params⟦: unknown⟧,
  signal⟦: AbortSignal | undefined⟧,
)⟦: Promise<T>⟧ {
  calls += 1;
  const body = { jsonrpc: "2.0", id: calls, method, params };
  const answer = await request⟦<any>⟧("POST", path, { body, signal });
  if (answer?.error != null) {
    throw new ToolError(answer.error.message, `RPC_${answer.error.code}`);
  }
  return answer?.result; // nothing answers a notification
}
"""
