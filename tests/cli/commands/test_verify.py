"""What `opentabs verify` refuses before it starts a browser."""

from pathlib import Path

import pytest

from tests.cli.in_process import opentabs_here


@pytest.mark.parametrize(
    ("site", "why"),
    [
        ("staging site", "it has spaces"),
        ("ftp://staging.example", "ftp URLs cannot be opened"),
        ("/staging", "such URLs cannot be opened"),
    ],
)
def test_a_site_that_no_page_can_be_at_is_refused(site: str, why: str, tmp_path: Path) -> None:
    done = opentabs_here("verify", "--site", site, cwd=tmp_path)
    assert done.returncode == 2
    assert f"Cannot use --site {site}: {why}" in done.stderr.replace("\n", " ")
