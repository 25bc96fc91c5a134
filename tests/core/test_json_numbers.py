"""Numbers are read from JSON as JavaScript reads them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from opentabs_py.core.json_numbers import read_as_javascript

NODE = Path(sys.executable).with_name("node")
INTEGERS = [0, -1, 2**53 - 1, 2**53 + 1, -(2**60), 1234567890123456789, 10**20 + 1, 10**21, 10**30]


def test_an_integer_is_read_as_a_page_would_write_it_again() -> None:
    text = json.dumps(INTEGERS)
    script = f"process.stdout.write(JSON.stringify(JSON.parse({text!r})))"
    done = subprocess.run([NODE, "-e", script], capture_output=True, check=True)
    assert read_as_javascript(text.encode()) == json.loads(done.stdout)


@pytest.mark.parametrize("text", [b"NaN", b'{"a": -Infinity}', b"1" + b"0" * 400, b"{"])
def test_what_is_no_json_of_a_page_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (its text is not shown)
        read_as_javascript(text)
