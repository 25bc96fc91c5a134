"""Decide whether a call may run: at once, after the user has allowed it, or not at all."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args

from opentabs_py.core.page_tool_names import PAGE_OWNERS
from opentabs_py.core.plugin_names import own_name
from opentabs_py.core.text import did_you_mean, nearest, shorten

Permission = Literal["off", "ask", "auto"]
Standing = Literal["named", "reviewed", "changed", "unreviewed", "page"]
"""Whether, and how, the user has approved a plugin.

- `named`: they named it for this run, on the command line or in a program; so are Python tools.
- `reviewed`: it is installed, and this build of it was approved, or needs no approval.
- `changed`: it is installed, and another build of it was approved.
- `unreviewed`: it is installed, and no build of it was ever approved.
- `page`: it is not a plugin; the page registered the tool, and its description is not verified.
"""

PERMISSIONS: Final[tuple[Permission, ...]] = get_args(Permission)
DEFAULT: Final = "default"  # the rule for whatever no other rule names; no plugin may be named so
_RULE: Final = re.compile(r"[\w.-]+")  # names of plugins, of Python modules, and of their tools
_NOT_IN_RULES: Final = re.compile(r"[^\w.-]")


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to a tool's calls.

    Attributes:
        permission: `auto` runs them, `ask` asks the user first, `off` refuses them.
        because: Why, as in "it is off because ...".
        needs_review: Whether it is off until its plugin has been reviewed.
    """

    permission: Permission
    because: str
    needs_review: bool = False


@dataclass(frozen=True, slots=True)
class GatedTool:
    """What a decision depends on.

    Attributes:
        owner: The plugin or Python module that it belongs to.
        name: Its MCP name.
        read_only: Whether it says that it changes nothing.
        standing: What the user has said of its owner.
    """

    owner: str
    name: str
    read_only: bool
    standing: Standing

    @property
    def own_name(self) -> str:
        """Its name within its owner."""
        # The owner of a page's tools has two hyphens, which no plugin has.
        return own_name(self.owner.replace("--", "-"), self.name)

    @property
    def rule(self) -> str:
        """The rule that names it alone, for example `slack.send_message`."""
        return f"{self.owner}.{self.own_name}"

    @property
    def rules(self) -> tuple[str, str]:
        """All rules that name it alone, the most specific first; they may be the same."""
        return self.rule, f"{self.owner}.{self.name}"


def rule_name(owner: str) -> str:
    """Return the name that rules have for an owner of tools that may be called anything."""
    return _NOT_IN_RULES.sub("_", owner)


def why_unreviewed(standing: Standing) -> str | None:
    """Return why a plugin must be reviewed, as in "it has ..."; None if it need not be."""
    match standing:
        case "changed":
            return "has changed since it was reviewed"
        case "unreviewed":
            return "has not been reviewed"
        case _:
            return None


def decide(rules: Mapping[str, Permission], tool: GatedTool) -> Decision:
    """Return what happens to a tool's calls; the most specific rule wins.

    A rule cannot stand in for a review, because it says nothing about the build that is there now.
    """
    if (why := why_unreviewed(tool.standing)) is not None:
        return Decision("off", f"the plugin {tool.owner} {why}", needs_review=True)
    for rule in (*tool.rules, tool.owner, DEFAULT):
        if (permission := rules.get(rule)) is not None:
            return Decision(permission, f'the setting permissions."{rule}" is "{permission}"')
    if tool.standing == "named":
        return Decision("auto", f"{tool.owner} was named when the server was started")
    if tool.read_only:
        return Decision("auto", "the tool only reads")
    if tool.standing == "page":
        return Decision("ask", "the page does not say that the tool only reads")
    return Decision("ask", "the tool may change something")


def report_unknown(rules: Iterable[str], tools: Iterable[GatedTool]) -> list[str]:
    """Return a text for each rule that names neither one of these tools nor its owner."""
    known, offered, by_name = {DEFAULT}, set[str](), dict[str, str]()
    for tool in tools:
        known |= {tool.owner, *tool.rules}
        offered |= {tool.owner, tool.rule}
        by_name[tool.name] = tool.rule
    texts: list[str] = []
    # Those of pages may be for a site that is not open.
    for rule in sorted(each for each in {*rules} - known if not each.startswith(PAGE_OWNERS)):
        text = f'permissions."{rule}" has no effect: no plugin or tool of that name is served'
        near = [by_name[rule]] if rule in by_name else nearest(rule, sorted(offered))
        texts.append("; ".join(filter(None, (text, did_you_mean(near)))))
    return texts


class GivenRules:
    """The permissions of the settings, and those given since, which may not be in them yet.

    Args:
        rules: The permissions in the settings.
    """

    def __init__(self, rules: Mapping[str, Permission]) -> None:
        self._settings = dict(rules)
        self._given: dict[str, Permission] = {}

    @property
    def all(self) -> dict[str, Permission]:
        """The permissions that count."""
        return {**self._settings, **self._given}

    def give(self, rule: str, permission: Permission) -> None:
        """Add a permission, which counts until the settings say something new about its rule."""
        self._given[rule] = permission

    def handle_settings(self, rules: Mapping[str, Permission]) -> None:
        """Handle settings that were read again, perhaps before a permission was written."""
        for rule, permission in [*self._given.items()]:
            if rules.get(rule) == permission or rules.get(rule) != self._settings.get(rule):
                del self._given[rule]
        self._settings = dict(rules)


def parse_rules(value: object) -> dict[str, Permission]:
    """Return rules as a settings file has them, with the tables of TOML's dotted keys flattened.

    Raises:
        ValueError: A name or a permission is not valid, or there are two rules of one name.
    """
    if not isinstance(value, Mapping):
        raise ValueError('write a table, such as {default = "ask", slack = "auto"}')  # noqa: TRY004
    rules: dict[str, Permission] = {}
    for name, permission in flat_rules(cast("Mapping[str, Any]", value)).items():
        if not _RULE.fullmatch(name):
            raise ValueError(
                f"{shorten(name)!r} is not a valid name; write `default`, a plugin, or plugin.tool"
            )
        if permission not in PERMISSIONS:
            raise ValueError(f"{name} cannot be {permission!r}; write {', '.join(PERMISSIONS)}")
        rules[name] = permission
    return rules


def flat_rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules of one source by their whole names, whatever their permissions are.

    Raises:
        ValueError: There are two rules of one name, such as `"slack.send"` and `slack.send`, which
            TOML tells apart.
    """
    flat: dict[str, Any] = {}
    for name, permission in _flatten(rules):
        if name in flat:
            raise ValueError(
                f"{name} is there twice, as {flat[name]!r} and as {permission!r}: once in a table "
                "or with dotted keys, and once with its whole name in quotes. Remove one of them"
            )
        flat[name] = permission
    return flat


def _flatten(rules: Mapping[str, Any]) -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for name, permission in rules.items():
        if isinstance(permission, Mapping):
            table = cast("Mapping[str, Any]", permission)
            flat += [(f"{name}.{tool}", each) for tool, each in _flatten(table)]
        else:
            flat.append((name, permission))
    return flat


def parse_rule(text: str) -> tuple[str, Permission]:
    """Return a rule written as `slack.send_message=ask`.

    Raises:
        ValueError: It has another form.
    """
    name, equals, permission = text.partition("=")
    if not equals:
        raise ValueError(
            f"{shorten(text)!r} has no '='; write PLUGIN=ask, PLUGIN.TOOL=off or default=auto"
        )
    [(rule, permission)] = parse_rules({name.strip(): permission.strip()}).items()
    return rule, permission
