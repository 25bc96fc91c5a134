"""How commands are made, and what their `--help` looks like beyond what Typer does."""

import inspect
import os
import re
import shlex
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.models import CommandFunctionType


class Command(TyperCommand):
    """A command, whose description wraps at the width of the terminal."""

    def __init__(self, *args: Any, help: str | None = None, **settings: Any) -> None:  # noqa: A002
        super().__init__(*args, help=_unwrapped(help), **settings)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments as they were typed, in `ctx.meta`, and parse them."""
        ctx.meta["arguments"] = [*args]
        takes_more, ctx.allow_extra_args = ctx.allow_extra_args, True
        try:
            more = super().parse_args(ctx, args)
        except typer.BadParameter as error:
            from opentabs_py.core.text import rule_text

            error.message = rule_text(error.message)  # Typer validates with pydantic
            raise
        if more and not takes_more:
            ctx.fail(_unexpected(more[0], {name for each in self.params for name in each.opts}))
        return more

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its arguments and options."""
        return _without_useless_types(super().get_params(ctx))


def _unexpected(argument: str, options: set[str]) -> str:
    """Return what is wrong with an argument too many, and which option it may be the value of."""
    from opentabs_py.core.text import shorten

    message = f"Got unexpected extra argument ({shorten(argument, 200)})."
    # `Path.is_dir` would raise for an argument that is too long, as JSON may be.
    if "--plugin" in options and os.path.isdir(argument):  # noqa: PTH112
        option = "--plugin"
    elif "--tools" in options and argument.endswith(".py"):
        option = "--tools"
    elif "--search" in options:
        option = "--search"
    elif "--name" in options and "--plugin" not in options:
        option = "--name"
    else:
        return message
    return f"{message} Did you mean {option} {shlex.quote(shorten(argument, 200))}?"


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_useless_types(super().get_params(ctx))


class App(typer.Typer):
    """An application or a group of commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=_Group, no_args_is_help=True, **settings)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **settings: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """Return a decorator that registers a command, of the class `Command` by default."""
        return super().command(name, cls=cls or Command, **settings)


def _unwrapped(text: str | None) -> str | None:
    """Return the text of a docstring with one line for each paragraph."""
    return None if text is None else re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(text))


def _without_useless_types(parameters: list[Any]) -> list[Any]:
    """Hide the types of flags, which take no value, and of arguments, which have a name."""
    for each in parameters:
        is_flag = isinstance(each, TyperOption) and each.is_flag
        is_named = isinstance(each, TyperArgument) and not each.type_descriptor.is_choice
        if is_flag or is_named:
            each.display_type_rich = _no_type
    return parameters


def _no_type(ctx: Any) -> None:
    pass
