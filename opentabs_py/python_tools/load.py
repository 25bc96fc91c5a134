"""Find the tools in a file or module named with `--tools`."""

import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Sequence
from importlib import import_module, invalidate_caches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from opentabs_py.errors import ConfigError
from opentabs_py.python_tools.declare import declaration_of, within_partial
from opentabs_py.python_tools.module import Module

# What is not the user's own, even if it is in the directory of a tool: a `.venv`, for example.
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_PACKAGE: Final = Path(__file__).resolve().parents[1]
_LIBRARIES: Final = (
    _PACKAGE,
    *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")),
)


def load_tools(sources: Iterable[str]) -> list[Any]:
    """Return tools in the form that `Server(tools=...)` accepts.

    Args:
        sources: Each is `FILE.py` or `package.module`, for every function marked with `@tool`
            and every `Module` defined there; add `:NAME` for a single one.

    Raises:
        ConfigError: A source cannot be loaded, or has no tools.
    """
    return [tool for source in sources for tool in _load(source)]


def source_directories(sources: Iterable[str]) -> set[Path]:
    """Return the directories that contain the code of these sources.

    Raises:
        ConfigError: A source cannot be loaded.
    """
    found: set[Path] = set()
    for source in sources:
        path = source.partition(":")[0]
        module = _import_file(Path(path)) if path.endswith(".py") else _import_module(path)
        if module.__file__ is not None:
            found.add(Path(module.__file__).resolve().parent)
    return found


def reload_tools(sources: Sequence[str], directories: Iterable[Path]) -> list[Any]:
    """Return the tools as their files are now; see `load_tools`.

    Args:
        sources: As for `load_tools`.
        directories: Modules whose files are in there are imported again, but not those of Python,
            of installed packages and of this one, and not the main program.

    Raises:
        ConfigError: A source cannot be loaded, or has no tools. The modules are then what they
            were.
    """
    within = [*directories]
    kept: dict[str, ModuleType] = {}
    for name, module in [*sys.modules.items()]:
        if name == "__main__":
            continue  # the command itself, perhaps of a `.venv` in there; it is never imported
        file = getattr(module, "__file__", None)
        if file and any(_is_own(Path(file).resolve(), each) for each in within):
            kept[name] = sys.modules.pop(name)
    invalidate_caches()
    try:
        return load_tools(sources)
    except BaseException:
        sys.modules.update(kept)
        raise


def _is_own(file: Path, directory: Path) -> bool:
    """Return whether a file in a directory is the user's, not one of a library in there."""
    if not file.is_relative_to(directory):
        return False
    if not _INSTALLED.isdisjoint(file.relative_to(directory).parts):
        return False
    libraries = (each for each in _LIBRARIES if each.is_relative_to(directory))
    return not any(file.is_relative_to(each) for each in libraries)


def _load(source: str) -> list[Any]:
    path, _, name = source.partition(":")
    module = _import_file(Path(path)) if path.endswith(".py") else _import_module(path)
    if not name:
        found = _defined_in(module)
        if not found:
            raise ConfigError(
                f"{source} has no tools. Mark functions with @tool, or name one: {source}:NAME."
            )
        return found
    try:
        value: Any = module
        for part in name.split("."):
            value = getattr(value, part)
    except AttributeError as error:
        raise ConfigError(f"{path} has no {name}: {error}.") from None
    return [*cast(Iterable[Any], value)] if isinstance(value, list | tuple) else [value]


def _import_file(file: Path) -> ModuleType:
    file = file.resolve()
    if not file.is_file():
        raise ConfigError(f"There is no file {file} to load tools from.")
    name = file.stem
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) != str(file):
        name += f"_{abs(hash(file)):x}"  # another module has that one
        loaded = sys.modules.get(name)
    if loaded is not None:
        return loaded
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{file} is not a Python file.")
    module = module_from_spec(spec)
    _look_in(file.parent)  # as for a script, so that it can import its neighbours
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        raise _not_loaded(str(file), error) from error
    return module


def _import_module(name: str) -> ModuleType:
    if not all(name.split(".")) or os.sep in name:
        raise ConfigError(
            f"{name!r} names neither a file (FILE.py) nor a module (package.module) of tools."
        )
    _look_in(Path.cwd())
    try:
        return import_module(name)
    except BaseException as error:
        raise _not_loaded(name, error) from error


def _look_in(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))


def _not_loaded(what: str, error: BaseException) -> BaseException:
    if not isinstance(error, Exception | SystemExit):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    places = [frame for frame in frames if not _is_of_library(frame.filename)]
    where = ""
    if places and not isinstance(error, SyntaxError):  # which says itself where it is
        where = f" ({places[-1].filename}, line {places[-1].lineno})"
    return ConfigError(f"Cannot load the tools of {what}: {type(error).__name__}: {error}{where}.")


def _is_of_library(filename: str) -> bool:
    """Return whether code is not of a tool: of Python, of this package, or made at run time."""
    file = Path(filename).resolve()
    if filename.startswith("<") or file.is_relative_to(_PACKAGE):
        return True
    # Tools may be installed, too, in a directory within that of Python's own modules.
    is_installed = not _INSTALLED.isdisjoint(file.parts)
    return not is_installed and any(file.is_relative_to(each) for each in _LIBRARIES)


def _defined_in(module: ModuleType) -> list[Any]:
    values = list({id(value): value for value in vars(module).values()}.values())
    ours = [value for value in values if getattr(value, "__module__", None) == module.__name__]
    classes = [each for each in ours if inspect.isclass(each) and issubclass(each, Module)]
    instances = [each for each in values if isinstance(each, Module)]
    # Skip a class that others here derive from, and one that already has an instance.
    made = {type(each) for each in instances}
    leaves = [
        each
        for each in classes
        if each not in made and not any(each in other.__mro__[1:] for other in classes)
    ]
    functions = [
        value
        for value in values
        if declaration_of(value).is_tool and (value in ours or within_partial(value) is not value)
    ]
    return [*functions, *instances, *leaves]
