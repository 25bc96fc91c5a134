"""What clients see of a tool."""

from dataclasses import dataclass
from typing import Any

from opentabs_py.core.consent import GatedTool, Standing


@dataclass(frozen=True, slots=True)
class Listing:
    """The tool's public description.

    Attributes:
        name: Its unique MCP name.
        owner: The plugin or Python module it belongs to; also the logger name of its logs.
        title: Its name for users.
        description: What it does, for agents.
        input_schema: JSON Schema of its arguments.
        output_schema: JSON Schema of its value, of any type; None if it has none.
        annotations: MCP's hints, for example `{"readOnlyHint": true}`.
        summary: What it does, in a few words.
        group: The group of tools that it belongs to, within its plugin.
        icon: The name of its Lucide icon.
        needs_tab: Whether it runs in a page, so that a tab of its plugin's site has to be open.
        is_of_page: Whether a page registered it itself, so that all of this is supplied by the page
            and not verified, and it is listed only while such a page is open.
        meta: More about it for programs, under `_meta`.
    """

    name: str
    owner: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None
    summary: str = ""
    group: str = ""
    icon: str = ""
    needs_tab: bool = False
    is_of_page: bool = False
    meta: dict[str, Any] | None = None

    @property
    def promises_object(self) -> bool:
        """Whether its output schema says that its value is an object."""
        return self.output_schema is not None and self.output_schema.get("type") == "object"

    @property
    def is_read_only(self) -> bool:
        """Whether its annotations say that it changes nothing."""
        return (self.annotations or {}).get("readOnlyHint") is True

    def gated(self, standing: Standing) -> GatedTool:
        """Return what decides whether its calls may run, given what the user said of its owner.

        For this package's own use.
        """
        return GatedTool(self.owner, self.name, self.is_read_only, standing)

    def describe(self, *, output_schema: bool = True) -> dict[str, Any]:
        """Return the tool as it is in the answer to `tools/list`."""
        described: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
        }
        # A root other than an object makes initialize-era clients refuse the whole list.
        if self.promises_object and output_schema:
            described["outputSchema"] = self.output_schema
        if self.annotations is not None:
            described["annotations"] = self.annotations
        if self.meta is not None:
            described["_meta"] = self.meta
        return described
