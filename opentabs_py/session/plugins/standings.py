"""The approval of each plugin: named by the user, reviewed, or neither."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from opentabs_py.config.settings import Settings
from opentabs_py.consent.reviews import Approval, Reviews, find_standing
from opentabs_py.core.consent import Standing, why_unreviewed
from opentabs_py.plugins.build_content import content_digest
from opentabs_py.plugins.plugin import Plugin


def find_standings(
    plugins: Sequence[Plugin],
    settings: Settings,
    reviews: Reviews,
    *,
    named: Collection[Path] = (),
) -> dict[str, Standing]:
    """Return the standing of each plugin, by name.

    Args:
        plugins: The plugins.
        settings: Name plugins, and those that need no review.
        reviews: The builds that were approved.
        named: The directories of plugins that a program or a call has named.
    """
    find_exempt = exempting(settings, named)
    approvals: Mapping[str, Approval] | None = None  # read only if they are needed
    standings: dict[str, Standing] = {}
    for plugin in plugins:
        name = plugin.manifest.name
        standing = find_exempt(plugin.directory)
        if standing is None:
            approvals = reviews.approvals() if approvals is None else approvals
            standing = find_standing(approvals, name, content_digest(plugin))
        standings[name] = standing
    return standings


def exempting(
    settings: Settings, named: Collection[Path] = ()
) -> Callable[[Path], Standing | None]:
    """Return a function that returns a plugin's standing if it needs no review; None if it does.

    Args:
        settings: As for `find_standings`.
        named: As for `find_standings`.
    """
    directories = {each.resolve() for each in named}
    exempt = [each.resolve() for each in settings.no_review]
    is_installed = settings.installed_check()

    def find(plugin: Path) -> Standing | None:
        directory = plugin.resolve()
        if directory in directories or not is_installed(directory):
            return "named"
        if any(directory.is_relative_to(each) for each in exempt):
            return "reviewed"
        return None

    return find


def why_off(name: str, standing: Standing) -> str | None:
    """Return why a plugin's tools are off, and what to do; None if they are not."""
    why = why_unreviewed(standing)
    if why is None:
        return None
    return f"The plugin {name} {why}, so its tools are off. Run: opentabs review {name}"
