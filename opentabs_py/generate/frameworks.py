"""Recognize the frameworks of a site from its pages."""

import re
from collections.abc import Sequence
from typing import Final

from opentabs_py.core.recording.exchange import Recording, header
from opentabs_py.generate.samples import Sample

_IN_HTML: Final = (
    ("Next.js", r'id="__NEXT_DATA__"|/_next/static/|self\.__next_f'),
    ("Nuxt", r"window\.__NUXT__|/_nuxt/|id=\"__NUXT_DATA__\""),
    ("Gatsby", r'id="___gatsby"'),
    ("Remix", r"window\.__remixContext|__reactRouterContext"),
    ("SvelteKit", r"data-sveltekit-|__sveltekit_|/_app/immutable/"),
    ("Astro", r"<astro-island|/_astro/"),
    ("React", r"data-reactroot|react(?:-dom)?(?:\.production)?(?:\.min)?\.js"),
    ("Vue", r"data-v-app|data-server-rendered|vue(?:\.global)?(?:\.prod|\.min)?\.js"),
    ("Angular", r"ng-version=|<app-root"),
    ("Ember", r"ember-application|/ember"),
    ("htmx", r"\bhx-(?:get|post|target|swap)=|htmx(?:\.min)?\.js"),
    ("Alpine.js", r"\bx-data="),
    ("Hotwire Turbo", r"<turbo-frame|data-turbo"),
    ("jQuery", r"jquery(?:-[\d.]+)?(?:\.slim)?(?:\.min)?\.js"),
    ("Ruby on Rails", r'name="csrf-param"|name="authenticity_token"'),
    ("Django", r'name="csrfmiddlewaretoken"'),
    ("Laravel", r'name="_token"|laravel'),
    ("ASP.NET", r'id="__VIEWSTATE"|name="__RequestVerificationToken"'),
    ("WordPress", r"/wp-content/|/wp-json/"),
    ("Drupal", r"data-drupal-|/sites/default/files/"),
    ("Shopify", r"cdn\.shopify\.com|Shopify\.theme"),
)
_PATTERNS: Final = tuple((name, re.compile(each, re.IGNORECASE)) for name, each in _IN_HTML)
_SERVERS: Final = ("x-powered-by", "x-generator", "x-aspnet-version")


def frameworks_of(recording: Recording, samples: Sequence[Sample]) -> Sequence[str]:
    """Return the names of the frameworks that a site's pages and headers show, without doubles."""
    found: dict[str, None] = {}
    for sample in samples:
        for name, pattern in _PATTERNS if sample.page else ():
            if pattern.search(sample.page):
                found[name] = None
    for exchange in recording.exchanges:
        for name in _SERVERS if exchange.response is not None else ():
            if exchange.response and (value := header(exchange.response.headers, name)):
                found[value] = None
    return [*found]
