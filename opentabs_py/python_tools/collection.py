"""The Python tools of one server, and their shared state."""

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from opentabs_py.calling.tool import Tool
from opentabs_py.core.consent import GatedTool
from opentabs_py.core.plugin_names import OURSELVES, same_name
from opentabs_py.errors import ConfigError
from opentabs_py.python_tools.declare import declaration_of, within_partial
from opentabs_py.python_tools.module import Module
from opentabs_py.python_tools.python_tool import PythonTool
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.python_tools.stream import Streams
from opentabs_py.python_tools.stream_tools import stream_tools

logger = logging.getLogger(__name__)


class PythonTools:
    """All the tools passed to a server.

    Args:
        given: Functions, partials, methods of objects, and modules: instances, or classes that
            need no arguments.
        host: Their shared state.

    Raises:
        ConfigError: Something cannot be served, or two tools have the same name or permission, or a
            tool has the permission of a module.

    Attributes:
        tools: One for each function.
        host: Their shared state.
    """

    def __init__(self, given: Iterable[Any], host: ToolHost) -> None:
        self.host = host
        self.tools: list[Tool] = []
        self._modules: list[Module] = []
        names: dict[str, str] = {}
        owned: list[tuple[Callable[..., Any], str | None]]
        owned = [(function, None) for function in self._functions(given)]
        if self._modules:
            host.streams.is_served = True
            owned += [(function, OURSELVES) for function in stream_tools(host.streams)]
        for function, owner in owned:
            served = PythonTool(function, host, owner=owner)
            name, where = served.listing.name, _where(function)
            if name in names:
                raise same_name(name, f"{names[name]} and {where}")
            names[name] = where
            self.tools.append(served)
        _check_rules(self.tools)

    @property
    def streams(self) -> Streams:
        """The streams of the modules, and of those that take their place."""
        return self.host.streams

    def close(self) -> None:
        """End all streams, and stop the handlers."""
        self.stop_modules()
        self.host.streams.close()
        self.host.handlers.close()

    def stop_modules(self) -> None:
        """End the streams of all modules, because others take their place."""
        for module in self._modules:
            try:
                module.stop()
            except Exception:
                logger.exception("The module %s failed to stop", type(module).__name__)

    def _functions(self, given: Iterable[Any]) -> Iterator[Callable[..., Any]]:
        for each in given:
            if isinstance(each, type) and issubclass(each, Module):
                yield from self._skills(_make(each))
            elif isinstance(each, Module):
                yield from self._skills(each)
            elif isinstance(each, type):
                raise ConfigError(
                    f"The class {each.__name__} cannot be served. Derive it from "
                    "opentabs_py.Module, or pass methods of an object of it."
                )
            elif not callable(each):
                raise ConfigError(
                    f"{each!r} cannot be served as a tool. Pass functions, methods of objects, or "
                    "modules (subclasses of opentabs_py.Module)."
                )
            else:
                yield each

    def _skills(self, module: Module) -> list[Callable[..., Any]]:
        self._modules.append(module)
        kind = type(module)
        # Looked up on the class, so that none of the module's properties run.
        names = [name for name in dir(kind) if _is_marked(inspect.getattr_static(kind, name))]
        if not names:
            raise ConfigError(f"{kind.__name__} has no tools: mark its methods with @skill.")
        return [cast(Callable[..., Any], getattr(module, name)) for name in names]


def _check_rules(tools: Iterable[Tool]) -> None:
    """Check that no permission of a single tool is also that of another, or of a whole module.

    Raises:
        ConfigError: One is.
    """
    gated = [tool.listing.gated("named") for tool in tools]
    modules = {tool.owner for tool in gated}
    named: dict[str, GatedTool] = {}
    for tool in gated:
        for rule in tool.rules:
            other = named.setdefault(rule, tool)
            if rule in modules:
                also = f"all tools of the module {rule}"
            elif other is not tool:
                also = f"the tool {other.name} of the module {other.owner}"
            else:
                continue
            raise ConfigError(
                f'The permission "{rule}" would mean the tool {tool.name} of the module '
                f"{tool.owner}, and {also}. Give the tool another name: "
                '@tool(name="another_name").'
            )


def _is_marked(member: Any) -> bool:
    return declaration_of(getattr(member, "__func__", member)).is_tool


def _make(kind: type[Module]) -> Module:
    try:
        return kind()
    except TypeError as error:
        raise ConfigError(
            f"Cannot create {kind.__name__} without arguments: {error}. Pass an instance instead."
        ) from error


def _where(function: Callable[..., Any]) -> str:
    function = within_partial(function)
    module = getattr(function, "__module__", None)
    return f"{module}.{getattr(function, '__qualname__', type(function).__qualname__)}"
