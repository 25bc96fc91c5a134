"""The connection to NATS, before it is there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from opentabs_py.config.fleet import FleetOptions
from opentabs_py.errors import ConfigError
from opentabs_py.fleet.link import NatsLink

pytestmark = pytest.mark.anyio

NOWHERE = "tls://127.0.0.1:1"


@pytest.mark.parametrize(
    "with_file",
    [lambda file: FleetOptions(NOWHERE, ca=file), lambda file: FleetOptions(NOWHERE, cert=file)],
    ids=["ca", "cert"],
)
async def test_a_file_without_certificates_is_named_in_the_error(
    with_file: Callable[[Path], FleetOptions], tmp_path: Path
) -> None:
    file = tmp_path / "empty.pem"
    file.touch()
    with pytest.raises(ConfigError, match=r"Cannot use the certificate.*empty\.pem"):
        await NatsLink(with_file(file), version="1").open()
