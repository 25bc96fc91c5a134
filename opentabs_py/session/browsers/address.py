"""Keep the server's address in an extension that other servers use as well."""

import logging
from typing import Final

import anyio
import anyio.to_thread

from opentabs_py.browser.discovery import listens
from opentabs_py.browser.stage import StagedExtension

logger = logging.getLogger(__name__)

LOOK_AGAIN: Final = 2.0  # s; costs the reading of a short file


async def keep_address(extension: StagedExtension) -> None:
    """Let an extension find this server again after another one has stopped, until cancelled.

    An extension that is loaded by hand connects to the server that was started last. Once that has
    stopped, or was killed, it would look for it for good, and this one would wait for it.

    Args:
        extension: The extension, in a directory that all these servers use.
    """
    while True:
        await anyio.sleep(LOOK_AGAIN)
        try:
            if await anyio.to_thread.run_sync(_is_abandoned, extension):
                await anyio.to_thread.run_sync(extension.write_address)
                logger.info("The extension connects to this server again; another has stopped")
        except OSError as error:  # the user may have removed the directory
            logger.debug("Cannot write where the extension connects to: %s", error)


def _is_abandoned(extension: StagedExtension) -> bool:
    """Return whether an extension connects to another server, which has stopped, or to none."""
    address = extension.read_address()
    return address != extension.server and not listens(address)
