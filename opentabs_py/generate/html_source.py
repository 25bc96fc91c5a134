"""Write the tools that read pages and send forms, and what they share."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

from opentabs_py.generate.api_source import typed
from opentabs_py.generate.html_tools import NOTICES, HtmlTool
from opentabs_py.generate.inputs import Input
from opentabs_py.generate.names import HAS_MORE, MAX_PAGES, is_identifier
from opentabs_py.generate.source import (
    Language,
    escaped,
    list_variable,
    module_source,
    path_source,
    variable,
)
from opentabs_py.generate.zod import literal, member, schema

_LISTED: Final = ", ".join(['[role="alert"]', '[role="status"]', *(f".{each}" for each in NOTICES)])


def html_tool_source(tool: HtmlTool, language: Language) -> str:
    """Return the module of a tool that reads a page or sends a form."""
    body = _send(tool) if tool.form is not None else _read(tool)
    text = "\n".join(body)
    helpers = [
        each
        for each in ("details", "heading", "nextPage", "notice", "openPage", "rows", "sendForm")
        if f"{each}(" in text
    ]
    imports = f'import {{ {", ".join(helpers)} }} from "../pages.{language}";'
    above = [*_schema(tool), *_fields(tool)]
    return typed(module_source(tool, imports, above, body, has_pages=tool.has_next), language)


def pages_source(language: Language) -> str:
    """Return the module that those tools share."""
    return typed(_PAGES.replace("NOTICES", literal(_LISTED)), language)


def _schema(tool: HtmlTool) -> Sequence[str]:
    members = ["title: z.string()"]
    if tool.form is not None:
        members.append("notice: z.string().nullable()")
    if tool.listing is not None:
        rows = tool.result.members[tool.wrap]
        members.append(f"{member(tool.wrap)}: {schema(rows, name=tool.wrap, indent=2)}")
    members += ["details: z.record(z.string(), z.string())"] if tool.has_details else []
    members += [f"{HAS_MORE}: z.boolean()"] if tool.has_next else []
    return ["const Result = z.object({", *(f"  {each}," for each in members), "});"]


def _fields(tool: HtmlTool) -> Sequence[str]:
    if tool.listing is None:
        return []
    lines = [
        f"  {member(each.name)}: {literal([each.selector, *filter(None, [each.attribute])])},"
        for each in tool.listing.fields
    ]
    return ["", "/** The selector of each member, and the attribute if it is not the text. */",
            "const FIELDS⟦: Record<string, string[]>⟧ = {", *lines, "};"]  # fmt: skip


def _read(tool: HtmlTool) -> Sequence[str]:
    query = _query(tool)
    options = f"{{ {f'query: {query}, ' if query != '{}' else ''}signal: context?.signal }}"
    rows = ""
    if tool.listing is not None:
        kind = f'⟦ as z.infer<typeof Result>["{tool.wrap}"]⟧'
        rows = f"rows(page, {literal(tool.listing.selector)}, FIELDS){kind}"
    if tool.has_next:
        items = list_variable(tool)
        result = tool.wrap if items == tool.wrap else f"{tool.wrap}: {items}"
        return [
            f"let page = await openPage({path_source(tool)}, {options});",
            "const title = heading(page);",
            *(["const found = details(page);"] if tool.has_details else []),
            f"const {items} = {rows};",
            "for (let read = 1; ; read += 1) {",
            "  context?.reportProgress({",
            "    progress: read,",
            f"    message: `${{{items}.length}} {tool.wrap}`,",
            "  });",
            "  const next = nextPage(page);",
            f"  if (next === null || read >= {MAX_PAGES}) {{",
            (
                f"    return {{ title, {result}, "
                f"{'details: found, ' if tool.has_details else ''}{HAS_MORE}: next !== null }};"
            ),
            "  }",
            "  page = await openPage(next, { signal: context?.signal });",
            f"  {items}.push(...({rows}));",
            "}",
        ]
    members = ["title: heading(page)"]
    members += [f"{tool.wrap}: {rows}"] if rows else []
    members += ["details: details(page)"] if tool.has_details else []
    return [
        f"const page = await openPage({path_source(tool)}, {options});",
        "return {",
        *(f"  {each}," for each in members),
        "};",
    ]


def _send(tool: HtmlTool) -> Sequence[str]:
    form = tool.form
    assert form is not None
    fixed = [f"{member(name)}: {literal(value)}" for name, value in tool.fixed.items()]
    given = [_member(each) for each in tool.inputs.arguments if each.place == "payload"]
    return [
        f"const form = {_page_of(tool)};",
        f"const action = {path_source(tool)};",
        (
            f"const page = await sendForm(form, action, {{ {', '.join([*fixed, *given])} }}, "
            "context?.signal);"
        ),
        "return { title: heading(page), notice: notice(page) };",
    ]


def _page_of(tool: HtmlTool) -> str:
    """Return the expression for the URL of the page that has the form."""
    form, sample = tool.form, tool.operation.works[0]
    assert form is not None
    page = urlsplit(form.page)
    ids = {
        sample.path[int(each.key)]: variable(each)
        for each in tool.inputs.arguments
        if each.place == "path"
    }
    segments = [(unquote(each), each) for each in page.path.split("/")]
    if not any(each in ids for each, _ in segments):
        return literal(f"{page.path}?{page.query}" if page.query else page.path)
    path = "/".join(
        f"${{encodeURIComponent({ids[each]})}}" if each in ids else escaped(raw)
        for each, raw in segments
    )
    query = escaped(page.query, safe="%/?@:!$&'()*+,;=~{}|[]") if page.query else ""
    return f"`{path}?{query}`" if query else f"`{path}`"


def _query(tool: HtmlTool) -> str:
    members = [f"{member(name)}: {literal(value)}" for name, value in tool.inputs.query.items()]
    members += [_member(each) for each in tool.inputs.arguments if each.place == "query"]
    return f"{{ {', '.join(members)} }}" if members else "{}"


def _member(given: Input) -> str:
    key = str(given.key)
    name = variable(given)
    return key if key == name and is_identifier(key) else f"{member(key)}: {name}"


_PAGES: Final = """\
import { buildQueryString, httpStatusToToolError, ToolError } from "@opentabs-dev/plugin-sdk";

⟦type Signal = AbortSignal | undefined;
type Row = Record<string, string | null>;

⟧/** Open a page of the site, with the session of the current page, and return its document. */
export async function openPage(
  path⟦: string⟧,
  { query = {}, signal }⟦: { query?: Record<string, unknown>; signal?: Signal }⟧ = {},
)⟦: Promise<Document>⟧ {
  const search = buildQueryString(query);
  return load("GET", search ? `${path}?${search}` : path, null, signal);
}

/** Fill in a form of a page and send it, and return the document that answers it. */
export async function sendForm(
  path⟦: string⟧,
  action⟦: string⟧,
  values⟦: Record<string, unknown>⟧,
  signal⟦: Signal⟧,
)⟦: Promise<Document>⟧ {
  const page = await openPage(path, { signal });
  const base = urlOf(path);
  const forms = [...page.forms].filter((each) => pathOf(each, base) === action);
  const form = forms.find((each) => isMeant(each, values)) ?? forms[0];
  if (form === undefined) {
    throw ToolError.notFound(`The page ${path} no longer has a form for ${action}.`);
  }
  const sent = new URLSearchParams();
  for (const [name, value] of new FormData(form)) sent.append(name, String(value));
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    sent.delete(name);
    for (const each of [value].flat()) sent.append(name, String(each));
  }
  return load("POST", action, sent, signal);
}

/** The path that a form is sent to; none if its address is not valid. */
function pathOf(form⟦: HTMLFormElement⟧, base⟦: string⟧)⟦: string | null⟧ {
  const address = form.getAttribute("action") ?? "";
  return URL.canParse(address, base) ? new URL(address, base).pathname : null;
}

/** Whether a form is the one of the entry that is meant: each entry of a list may have one. */
function isMeant(form⟦: HTMLFormElement⟧, values⟦: Record<string, unknown>⟧)⟦: boolean⟧ {
  const hidden = [...form.querySelectorAll⟦<HTMLInputElement>⟧('input[type="hidden" i]')];
  return hidden.every(({ name, value }) => !(name in values) || value === String(values[name]));
}

/** The heading of a page, or else its title. */
export function heading(page⟦: Document⟧)⟦: string⟧ {
  for (const element of [...page.querySelectorAll("h1"), ...page.querySelectorAll("title")]) {
    const text = textOf(element);
    if (text) return text;
  }
  return "";
}

/** What a page says about what was just done. */
export function notice(page⟦: Document⟧)⟦: string | null⟧ {
  const texts = [...page.querySelectorAll(NOTICES)].map(textOf);
  return texts.find(Boolean) ?? null;
}

/** The entries of a list. */
export function rows(
  page⟦: Document⟧,
  selector⟦: string⟧,
  fields⟦: Record<string, string[]>⟧,
)⟦: Row[]⟧ {
  const entries = [...page.querySelectorAll(selector)].filter(
    (entry) => entry.tagName !== "TR" || entry.querySelector(":scope > td") !== null,
  );
  return entries.map((entry) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, [inner = "", attribute]]) => {
        const element = inner === "" ? entry : entry.querySelector(inner);
        if (element === null) return [name, null];
        return [name, attribute ? element.getAttribute(attribute) : textOf(element)];
      }),
    ),
  );
}

/** What a page shows with labels. */
export function details(page⟦: Document⟧)⟦: Record<string, string>⟧ {
  const found⟦: Record<string, string>⟧ = {};
  for (const element of page.querySelectorAll("dt, tr")) {
    const isTerm = element.tagName === "DT";
    const pair = isTerm ? [element, element.nextElementSibling] : element.children;
    const [label, value] = pair;
    if (pair.length !== 2 || !label || !value) continue;
    const kinds = `${label.tagName} ${value.tagName}`;
    if (kinds === "DT DD" || kinds === "TH TD") {
      const name = textOf(label).replace(/:$/, "").trim();
      if (name) found[name] = textOf(value);
    }
  }
  return found;
}

/** The URL of the link to the next page of a list. */
export function nextPage(page⟦: Document⟧)⟦: string | null⟧ {
  const link = page.querySelector⟦<HTMLAnchorElement>⟧(
    'a[rel~="next"][href], a.next[href], .next > a[href]',
  );
  return link?.href ?? null;
}

/** The URL of a path of the site, which may begin with two slashes; another URL as it is. */
function urlOf(path⟦: string⟧)⟦: string⟧ {
  return path.startsWith("/") ? `${location.origin}${path}` : path;
}

function textOf(element⟦: Element⟧)⟦: string⟧ {
  return (element.textContent ?? "").replace(/\\s+/g, " ").trim();
}

/** XMLHttpRequest parses HTML itself, which sites with Trusted Types allow no script to do. */
function load(
  method⟦: string⟧,
  path⟦: string⟧,
  body⟦: URLSearchParams | null⟧,
  signal⟦: Signal⟧,
)⟦: Promise<Document>⟧ {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const request = new XMLHttpRequest();
    request.responseType = "document";
    request.open(method, urlOf(path));
    const stop = () => {
      request.abort();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", stop);
    request.onerror = () => reject(ToolError.internal(`${method} ${path} could not be sent.`));
    request.onload = () => {
      const page = request.responseXML;
      if (request.status >= 400) {
        const status = `${request.status} ${request.statusText}`.trim();
        reject(httpStatusToToolError(request.status, `${method} ${path} answered ${status}`));
      } else if (page === null) {
        reject(ToolError.internal(`${method} ${path} did not answer with a page.`));
      } else if (page.querySelector('input[type="password"]') !== null) {
        reject(ToolError.auth("The site asks for a sign-in. Sign in, and call again."));
      } else {
        resolve(page);
      }
    };
    request.onloadend = () => signal?.removeEventListener("abort", stop);
    request.send(body);
  });
}
"""
