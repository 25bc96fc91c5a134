"""The connection to NATS, before it is there."""

from pathlib import Path

import pytest

from opentabs_py.config.fleet import FleetOptions
from opentabs_py.errors import ConfigError
from opentabs_py.fleet.link import NatsLink

pytestmark = pytest.mark.anyio

NOWHERE = "tls://127.0.0.1:1"


@pytest.mark.parametrize("option", ["ca", "cert"])
async def test_a_file_without_certificates_is_named_in_the_error(
    option: str, tmp_path: Path
) -> None:
    file = tmp_path / "empty.pem"
    file.touch()
    options = FleetOptions(NOWHERE, **{option: file})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"Cannot use the certificate.*empty\.pem"):
        await NatsLink(options, version="1").open()
