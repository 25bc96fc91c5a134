"""The cookies and local storage of a recording's sites."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from opentabs_py.core.recording.exchange import Recording
from opentabs_py.core.sites.origins import origin_of


def without_other_sites(recording: Recording) -> Recording:
    """Return a recording without the cookies and local storage of sites that do not occur in it.

    A profile that the user has kept has those of every site that they have visited.
    """
    urls = {
        recording.url,
        *(each.request.url for each in recording.exchanges),
        *(each.url for each in recording.sockets),
    }
    origins = {origin_of(url) for url in urls}
    hosts = {urlsplit(url).hostname or "" for url in urls}
    return replace(
        recording,
        storage_state=_of_sites(recording.storage_state, origins, hosts),
        storage_at_end=_of_sites(recording.storage_at_end, origins, hosts),
    )


def _of_sites(
    state: Mapping[str, Any] | None, origins: Container[str], hosts: Iterable[str]
) -> Mapping[str, Any] | None:
    if state is None:
        return None
    cookies = [
        each
        for each in state.get("cookies", ())
        if any(_is_sent_to(host, each["domain"]) for host in hosts)
    ]
    stored = [each for each in state.get("origins", ()) if each["origin"] in origins]
    return {**state, "cookies": cookies, "origins": stored}


def _is_sent_to(host: str, domain: str) -> bool:
    """Return whether a cookie is sent to a host: only one with a dot also to those below it."""
    # That of an address of IPv6 is in brackets.
    return host == domain.strip(".[]") or (domain.startswith(".") and host.endswith(domain))
