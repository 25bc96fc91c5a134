"""The plugin builds that the user has approved, and their content at that time.

The list is one small file, which a running server watches; beside it, each plugin's approved files
are kept, so that a later review can show what has changed.
"""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from opentabs_py.config.files import changing, write_whole
from opentabs_py.core.consent import Standing
from opentabs_py.directories import create_private
from opentabs_py.errors import ReviewError

logger = logging.getLogger(__name__)

_LIST: Final = "approved.json"


class Approval(BaseModel):
    """A build of a plugin that the user has approved.

    Attributes:
        digest: Identifies what was approved: its scripts, tools and sites.
        version: The plugin's version.
        at: When, in seconds since the epoch.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    digest: str
    version: str
    at: Annotated[float, Field(allow_inf_nan=False)]


_APPROVALS: TypeAdapter[dict[str, Approval]] = TypeAdapter(dict[str, Approval])


@dataclass(frozen=True, slots=True)
class Reviews:
    """The user's reviews, in a directory of their own.

    Args:
        directory: Created when the first plugin is approved.
    """

    directory: Path

    @property
    def file(self) -> Path:
        """The list of approvals; it changes with each."""
        return self.directory / _LIST

    def approvals(self) -> Mapping[str, Approval]:
        """Return the approvals by plugin; none if the list is missing or damaged."""
        try:
            return _APPROVALS.validate_json(self.file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is damaged"
            logger.warning("No plugin counts as reviewed: cannot read %s, %s.", self.file, why)
            return {}

    def approve(self, plugin: str, version: str, digest: str, files: Mapping[str, bytes]) -> None:
        """Record that the user approves a build of a plugin, instead of any other.

        Args:
            plugin: The plugin's name.
            version: Its version.
            digest: Identifies the build.
            files: What was approved, by name.

        Raises:
            ReviewError: It cannot be recorded.
        """
        try:
            create_private(self.directory)
            with changing(self.file):
                kept = self._kept(plugin)
                kept.mkdir(mode=0o700, exist_ok=True)
                for old in kept.iterdir():
                    old.unlink()
                for name, content in files.items():
                    write_whole(kept / name, content, mode=0o600)
                approval = Approval(digest=digest, version=version, at=time.time())
                self._write({**self.approvals(), plugin: approval})
        except OSError as error:
            raise _cannot_record(error) from None

    def revoke(self, plugin: str) -> bool:
        """Forget that a plugin was approved; return whether it was.

        Raises:
            ReviewError: That cannot be recorded.
        """
        if plugin not in self.approvals():
            return False
        try:
            with changing(self.file):
                approvals = dict(self.approvals())
                approvals.pop(plugin, None)
                self._write(approvals)
                with suppress(FileNotFoundError):
                    for old in self._kept(plugin).iterdir():
                        old.unlink()
                    self._kept(plugin).rmdir()
        except OSError as error:
            raise _cannot_record(error) from None
        return True

    def approved_files(self, plugin: str) -> Mapping[str, bytes]:
        """Return the files of a plugin's approved build, by name; none if they are not kept."""
        try:
            return {each.name: each.read_bytes() for each in self._kept(plugin).iterdir()}
        except OSError:
            return {}

    def _kept(self, plugin: str) -> Path:
        return self.directory / plugin

    def _write(self, approvals: Mapping[str, Approval]) -> None:
        content = _APPROVALS.dump_json(dict(approvals), indent=2)
        write_whole(self.file, content + b"\n", mode=0o600)


def _cannot_record(error: OSError) -> ReviewError:
    if error.filename is None:  # another program holds the lock
        return ReviewError(f"Cannot record the review: {error}.")
    return ReviewError(
        f"Cannot record the review in {error.filename}: {error.strerror}. Free some space there, "
        "or make it writable."
    )


def find_standing(approvals: Mapping[str, Approval], plugin: str, digest: str) -> Standing:
    """Return what the user has said of an installed plugin's build."""
    approval = approvals.get(plugin)
    if approval is None:
        return "unreviewed"
    return "reviewed" if approval.digest == digest else "changed"
