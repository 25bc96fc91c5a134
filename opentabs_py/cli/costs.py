"""Token costs of the tool list: `opentabs tools --cost`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

if TYPE_CHECKING:
    from opentabs_py.calling.listing import Listing
    from opentabs_py.core.tool_tokens import ToolTokens


def write_costs(listings: "Sequence[Listing]", *, as_json: bool) -> None:
    """Write the tokens of each tool and of all, the most expensive first, and advice."""
    from opentabs_py.cli.terminal import write_json
    from opentabs_py.core.tool_tokens import advise_on_list, count_tool

    counted = [(each.name, count_tool(each.describe())) for each in listings]
    counted.sort(key=lambda each: (-each[1].total, each[0]))
    advice = advise_on_list([tokens for _, tokens in counted])
    if as_json:
        write_json(_document(counted, advice))
    else:
        _show(counted, advice)


def _document(counted: "Sequence[tuple[str, ToolTokens]]", advice: str | None) -> dict[str, Any]:
    return {
        "tokens": _sum(counted),
        "tools": [
            {"name": name, "tokens": tokens.to_json(), "advice": tokens.advice}
            for name, tokens in counted
        ],
        "advice": advice,
    }


def _sum(counted: "Sequence[tuple[str, ToolTokens]]") -> dict[str, int]:
    total = sum(tokens.total for _, tokens in counted)
    return {
        "total": total,
        "withoutOutputSchemas": total - sum(tokens.output for _, tokens in counted),
    }


def _show(counted: "Sequence[tuple[str, ToolTokens]]", advice: str | None) -> None:
    from opentabs_py.cli.terminal import new_table, out

    table = new_table("tool", "description", "arguments", "result", "tokens")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, tokens in counted:
        parts = (tokens.description, tokens.input, tokens.output, tokens.total)
        table.add_row(f"[cyan]{name}[/]", *(f"{part:,}" for part in parts))
    out.print(table)
    total = _sum(counted)
    out.print(
        f"\nAbout {total['total']:,} tokens in all; {total['withoutOutputSchemas']:,} with "
        "--no-output-schemas. Estimated: models differ.",
        soft_wrap=True,
    )
    lines = [f"{name}: {each}" for name, tokens in counted for each in tokens.advice]
    for line in [*([] if advice is None else [advice]), *lines]:
        out.print(f"[yellow]![/] {escape(line)}", soft_wrap=True)
