"""Import a package's submodules without all else that the package imports.

Importing `mcp.server.lowlevel` normally imports all of the MCP SDK, because the packages `mcp` and
`mcp.server` do: its client and its high-level server as well, with httpx and cryptography. In a
server, these would be an eighth of its memory. Of a deferred package, the submodules are imported
as ever, but the package's own file runs only when a name that it defines is asked for.
"""

import sys
import threading
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

LARGE: Final = ("mcp", "mcp.server")

_running = threading.RLock()  # held while a package's file runs


def defer_packages(*names: str) -> None:
    """Defer packages, except those that have been imported already.

    Args:
        names: The packages, each after the one that contains it.
    """
    for name in names:
        spec = None if name in sys.modules else find_spec(name)
        if spec is None:
            continue
        package = module_from_spec(spec)
        package.__class__ = _DeferredPackage
        sys.modules[name] = package
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, package)


class _DeferredPackage(ModuleType):
    """A package whose file has not been run yet."""

    def __getattr__(self, name: str) -> Any:
        # Without the lock, because its file may import the same submodule in another thread.
        if (found := find_spec(f"{self.__name__}.{name}")) is not None:
            return import_module(found.name)
        with _running:
            if type(self) is _DeferredPackage:  # another thread may have run its file meanwhile
                _run(self)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None


def _run(package: ModuleType) -> None:
    """Run a package's file, unless this thread is running it already."""
    spec = package.__spec__
    if spec is not None and spec.loader is not None and spec.loader_state is None:
        spec.loader_state = "running"
        try:
            spec.loader.exec_module(package)
        finally:
            spec.loader_state = None
        package.__class__ = ModuleType
