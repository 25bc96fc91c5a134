"""Ten pages like those of ten kinds of sites, with 50 KB to 1 MB of HTML."""

from collections.abc import Callable, Iterable, Mapping

WORDS = [
    *("the", "quick", "shipment", "of", "blue", "notebooks", "arrived", "before", "noon", "and"),
    *("everyone", "in", "office", "wanted", "to", "know", "who", "had", "ordered", "forty"),
    *("them", "without", "asking", "person", "keeps", "budget", "for", "paper", "this", "year"),
]


def text(seed: int, count: int) -> str:
    return " ".join(WORDS[(seed * 7 + index * 3) % len(WORDS)] for index in range(count))


def wrap(inner: str, *classes: str) -> str:
    for name in classes:
        inner = f'<div class="{name} css-{len(inner) % 97}x1 flex flex-col gap-4 p-2">{inner}</div>'
    return inner


def page(title: str, *parts: str) -> str:
    nav = "".join(
        f'<li class="nav-item"><a href="/{each}">{each.title()}</a></li>' for each in WORDS[:9]
    )
    return (
        f"<!doctype html><html><head><title>{title}</title><style>{'.a{color:red}' * 200}</style>"
        f"</head><body>{wrap(f'<header><nav><ul>{nav}</ul></nav></header>', 'shell', 'top')}"
        f"<main>{''.join(parts)}</main><footer>{wrap(text(3, 40), 'foot')}</footer></body></html>"
    )


def each(count: int, make: Callable[[int], str]) -> str:
    return "".join(map(make, range(count)))


def rows(count: int, cells: Callable[[int], Iterable[str]]) -> str:
    lines = each(
        count, lambda n: "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells(n)) + "</tr>"
    )
    return f"<table><tbody>{lines}</tbody></table>"


def shop() -> str:
    def card(n: int) -> str:
        inner = (
            f'<img src="/i/{n}.jpg" alt="{text(n, 4)}"><h3><a href="/p/{n}?ref=grid&pos={n}">{text(n, 6)}</a></h3>'
            f'<span class="price">{n}.99 €</span><button>Add to cart</button>'
        )
        return wrap(inner, "card", "cell", "col-4")

    return page("Shop", each(150, card))


def article() -> str:
    def section(n: int) -> str:
        paragraphs = each(
            6, lambda m: f"<p>{text(n + m, 60)} <a href='/w/{n}-{m}'>{text(m, 2)}</a>.</p>"
        )
        return f'<h2>{text(n, 4)} <a href="/edit/{n}">edit</a></h2>{paragraphs}'

    return page("Article", each(25, section))


def inbox() -> str:
    def mail(n: int) -> Iterable[str]:
        yield f'<input type="checkbox" aria-label="Select {text(n, 3)}">'
        yield f'<span><a href="/m/{n}">{text(n, 2).title()}</a></span>'
        yield wrap(f"<span>{text(n + 1, 9)}</span>", "subject", "line")
        yield f"{n % 24}:{n % 60:02}"
        yield f'<button aria-label="Delete {n}"><svg viewBox="0 0 9 9"><path d="M0 0h9"/></svg></button>'

    return page("Inbox", rows(120, mail))


def forum() -> str:
    def post(n: int) -> str:
        inner = f'<a href="/u/{n}">{text(n, 1)}</a> {text(n, 80)}<button>Reply</button><button>Like</button>'
        return f"<article>{wrap(inner, 'post', 'body')}</article>"

    return page("Thread", each(90, post))


def settings() -> str:
    def row(n: int) -> str:
        options = each(12, lambda m: f"<option>{text(m, 2)}</option>")
        return wrap(
            f'<label for="f{n}">{text(n, 3)}</label><input id="f{n}"><select aria-label="{text(n, 2)}">'
            f"{options}</select><input type='checkbox' aria-label='{text(n, 2)} on'>",
            "row", "group",
        )  # fmt: skip

    return page("Settings", f"<form>{each(85, row)}<button>Save</button></form>")


def documentation() -> str:
    links = each(
        330, lambda n: f'<li class="toc"><div><a href="/d/{n}#part-{n}">{text(n, 3)}</a></div></li>'
    )
    body = each(
        30,
        lambda n: f"<h3>{text(n, 3)}</h3><pre><code>{text(n, 30)}</code></pre><p>{text(n, 40)}</p>",
    )
    return page("Manual", f"<aside><ul>{links}</ul></aside>", body)


def dashboard() -> str:
    def numbers(n: int) -> Iterable[str]:
        return (wrap(f"<span>{n * m}.{m}</span>", "num", "pad") for m in range(12))

    tiles = each(
        24,
        lambda n: wrap(
            f"<h4>{text(n, 2)}</h4><b>{n * 37}</b><a href='/t/{n}'>More</a>", "tile", "box"
        ),
    )
    return page("Dashboard", tiles, rows(80, numbers))


def search() -> str:
    def hit(n: int) -> str:
        crumbs = each(3, lambda m: f"<span>{text(m, 1)}</span><i> / </i>")
        return wrap(
            f'<a href="https://example.com/{n}?utm={n}"><h3>{text(n, 7)}</h3></a>{crumbs}<p>{text(n, 35)}</p>',
            "hit", "result", "inner",
        )  # fmt: skip

    return page(
        "Search",
        '<form role="search"><input aria-label="Search"><button>Go</button></form>',
        each(90, hit),
    )


def calendar() -> str:
    def week(n: int) -> Iterable[str]:
        return (
            wrap(
                f'<button aria-label="Day {n * 7 + m}">{m}</button><span>{text(n + m, 4)}</span>',
                "day",
                "cell",
            )
            for m in range(7)
        )

    return page("Calendar", rows(38, week))


def news() -> str:
    def teaser(n: int) -> str:
        return wrap(
            f'<a href="/n/{n}/{"-".join(WORDS[:5])}"><img src="/i/{n}.avif" alt=""><h2>{text(n, 9)}</h2></a>'
            f"<p>{text(n, 28)}</p><time>{n % 24}:00</time><a href='/s/{n % 5}'>{text(n % 5, 1)}</a>",
            "teaser", "slot", "grid", "lane",
        )  # fmt: skip

    return page("News", each(400, teaser), f"<script>{'/* bundle */' * 40_000}</script>")


PAGES: Mapping[str, Callable[[], str]] = {
    each.__name__: each
    for each in (
        shop, article, inbox, forum, settings, documentation, dashboard, search, calendar, news,
    )
}  # fmt: skip
