"""Groups of options: a command takes an object, and each of its fields is an option."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, ClassVar, dataclass_transform, get_args

from typer.models import OptionInfo


@dataclass_transform(kw_only_default=True, frozen_default=True)
class OptionGroup:
    """Options that belong together; a subclass annotates each field as Typer wants it.

    Type checkers take it for a frozen dataclass; a real one takes a millisecond to define.
    """

    panel: ClassVar[str | None] = None
    """The heading under which `--help` lists them; without one, among the other options."""

    def __init__(self, **given: Any) -> None:
        """Set the fields that are given; the others have the defaults of the class."""
        vars(self).update(given)

    @property
    def is_given(self) -> bool:
        """Whether any option is given, other than as a flag that is off."""
        return any(vars(self).values())

    def settings(self) -> Mapping[str, Any]:
        """Return the options that are settings, by the settings' names; None if not given.

        Raises:
            ConfigError: A value is not valid.
        """
        return vars(self)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each group that a command takes with an option for each field of the group."""
    flat: list[Parameter] = []
    groups: dict[str, tuple[type[OptionGroup], list[str]]] = {}
    for name, each in inspect.signature(command).parameters.items():
        if isinstance(each.annotation, type) and issubclass(each.annotation, OptionGroup):
            options = [*_options(each.annotation)]
            groups[name] = each.annotation, [option.name for option in options]
            flat += options
        else:
            flat.append(each.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:
        for name, (group, options) in groups.items():
            given[name] = group(**{option: given.pop(option) for option in options})
        command(**given)

    return with_parameters(run, flat)


def with_parameters(
    command: Callable[..., None], parameters: Sequence[Parameter]
) -> Callable[..., None]:
    """Let a command that takes any arguments declare which ones, for Typer to read."""
    declared: Any = command  # to type checkers, a function has no signature that can be set
    declared.__signature__ = inspect.Signature(parameters)
    declared.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _options(group: type[OptionGroup]) -> Iterator[Parameter]:
    for base in reversed(group.__mro__[: group.__mro__.index(OptionGroup)]):
        for name, annotation in inspect.get_annotations(base).items():
            value, option = get_args(annotation)
            assert isinstance(option, OptionInfo)
            in_panel = copy(option)
            in_panel.rich_help_panel = group.panel
            yield Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=getattr(group, name),
                annotation=Annotated[value, in_panel],
            )
