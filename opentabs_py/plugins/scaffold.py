"""Create a new plugin, complete with tests."""

import re
import shutil
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from opentabs_py.core.plugin_names import plugin_id
from opentabs_py.core.text import shorten
from opentabs_py.errors import ConfigError

_TEMPLATES = Path(__file__).parent / "templates"
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def scaffold(
    name: str,
    into: Path,
    *,
    language: Literal["ts", "js"],
    files: Mapping[str, str] = MappingProxyType({}),
    dropped: Collection[str] = (),
) -> list[Path]:
    """Create a plugin with one tool; return its files, relative to the directory.

    Args:
        name: The plugin's id, for example `my-chat`.
        into: Its directory; created if missing, and must be empty.
        language: TypeScript or JavaScript.
        files: More files, or other ones in place of its own.
        dropped: The files that it does not have after all.

    Raises:
        ConfigError: The name is not valid, or the directory is not empty.
    """
    words = name_forms(name)
    texts = dict(_texts({**words, "ext": language}, language))
    texts |= {Path(file): text for file, text in files.items()}
    texts = {file: text for file, text in texts.items() if file.as_posix() not in dropped}
    try:
        with whole_or_nothing(into):
            into.mkdir(parents=True, exist_ok=True)
            if any(into.iterdir()):
                raise ConfigError(
                    f"{into} exists and is not empty. Choose another name, or another directory."
                )
            for path, text in texts.items():
                file = into / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot write {into}: {error.strerror}.") from error
    return sorted(texts)


@contextmanager
def whole_or_nothing(directory: Path) -> Generator[None]:
    """Remove what the context has created in a new or empty directory, if the context fails.

    Args:
        directory: The directory; one that is not empty is left as it is.
    """
    is_new = not directory.exists()
    if not is_new and not (directory.is_dir() and not any(directory.iterdir())):
        yield
        return
    try:
        yield
    except BaseException:
        for each in directory.glob("*"):
            if each.is_dir():
                shutil.rmtree(each)
            else:
                each.unlink()
        if is_new and directory.is_dir():
            directory.rmdir()
        raise


def name_forms(name: str) -> dict[str, str]:
    """Return the variables of the templates: a plugin's name in its various forms.

    Raises:
        ConfigError: The name is not valid.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{shorten(name)!r} is not a valid plugin name. Use lower-case letters and digits, "
            "with single '-' between them, and start with a letter, for example 'my-chat'."
        )
    try:
        plugin_id(f"opentabs-plugin-{name}")
    except ValueError as error:
        raise ConfigError(f"{error}.") from None
    parts = name.split("-")
    return {
        "name": name,
        "snake": "_".join(parts),
        "title": " ".join(part.capitalize() for part in parts),
        "pascal": "".join(part.capitalize() for part in parts),
    }


def _texts(words: dict[str, str], language: str) -> Iterator[tuple[Path, str]]:
    for root in (_TEMPLATES / "common", _TEMPLATES / language):
        for file in sorted(root.rglob("*.tmpl")):
            # A leading "_" stands for a dot, so that these files are not hidden here too.
            path = re.sub(r"(^|/)_", r"\1.", file.relative_to(root).as_posix())
            text = file.read_text("utf-8")
            yield Path(_fill(path.removesuffix(".tmpl"), words)), _fill(text, words)


def _fill(text: str, words: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: words[found[1]], text)
