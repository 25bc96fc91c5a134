"""Writing a new plugin, complete with its tests."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from opentabs_py.core.plugins import plugin_id
from opentabs_py.errors import ConfigError

_TEMPLATES = Path(__file__).parent / "templates"
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def scaffold(name: str, into: Path, *, language: Literal["ts", "js"]) -> list[Path]:
    """Write a plugin with one tool; give the files, relative to the directory.

    Args:
        name: The plugin's id, as in `my-chat`.
        into: Its directory; is made, and must be empty.
        language: TypeScript or JavaScript.

    Raises:
        ConfigError: The name is no plugin's, or the directory is taken.
    """
    words = _words(name)
    texts = dict(_texts({**words, "ext": language}, language))
    try:
        into.mkdir(parents=True, exist_ok=True)
        if any(into.iterdir()):
            raise ConfigError(f"{into} is not empty. Choose another name, or another directory.")
        for path, text in texts.items():
            file = into / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    except OSError as error:
        raise ConfigError(f"{into} cannot be written: {error.strerror}.") from error
    return sorted(texts)


def _words(name: str) -> dict[str, str]:
    """Give what the templates ask for: a plugin's name in the forms that it takes."""
    try:
        plugin_id(f"opentabs-plugin-{name}")
    except ValueError as error:
        raise ConfigError(f"{error}.") from None
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no plugin's name: begin with a letter, as in 'my-chat'.")
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
            # A leading "_" stands for the dot of what would else be hidden here too.
            path = re.sub(r"(^|/)_", r"\1.", file.relative_to(root).as_posix())
            yield Path(_fill(path.removesuffix(".tmpl"), words)), _fill(file.read_text(), words)


def _fill(text: str, words: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: words[found[1]], text)
