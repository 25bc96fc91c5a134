"""Modules combined into one script, and self-contained pages."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from opentabs_py.tracing.inline import bundle, data_text, data_url, fill, style

HOSTILE = "</script><!--\u2028&"


def modules(directory: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (directory / f"{name}.js").write_text(text)
    return directory


def output(script: str) -> str:
    node = shutil.which("node")
    assert node is not None
    done = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True)
    return done.stdout


def test_modules_share_only_what_they_export(tmp_path: Path) -> None:
    modules(
        tmp_path,
        main='import { two } from "./two.js";\n'
        'import { one as first, Three } from "./deep/one.js";\n'
        "const one = 7;\nconsole.log(first(), two, one, new Three().value);\n",
        two='import { one } from "./one.js";\n'
        "export const two = one() + 1;\nfunction secret() {}\n",
        one="/** @import {X} from './x.js' */\nfunction secret() { return 1; }\n"
        "export function one() {\n  return secret();\n}\n"
        "export class Three { value = 3; }\nexport async function late() {}\n",
    )

    assert output(bundle("main.js", [tmp_path])) == "1 2 7 3\n"


def test_a_module_of_the_first_directory_is_used(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        modules(tmp_path / name, main=f'console.log("{name}");\n')
    modules(tmp_path / "b", only="console.log(1);\n")
    both = [tmp_path / "a", tmp_path / "b"]
    assert output(bundle("main.js", both)) == "a\n"
    assert output(bundle("only.js", both)) == "1\n"


@pytest.mark.parametrize(
    "line", ['import x from "./x.js";', "export { a };", "export default 1;", 'import "./x.js";']
)
def test_other_ways_to_import_and_export_are_refused(tmp_path: Path, line: str) -> None:
    modules(tmp_path, main=f"{line}\n")
    with pytest.raises(ValueError, match=r"main.js has a line that cannot be bundled"):
        bundle("main.js", [tmp_path])
    with pytest.raises(ValueError, match=r"no file gone.js"):
        bundle("gone.js", [tmp_path])


def test_data_end_no_script_and_are_read_as_they_were() -> None:
    text = data_text({"a": HOSTILE})
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text) == {"a": HOSTILE}


def test_a_part_of_a_page_is_not_taken_for_a_place_of_another(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("p {}")
    page = fill("{{title}}|{{style}}|{{script}}", {"title": "{{script}}"}, script="1", style="p")
    assert page == "{{script}}|p|1"
    assert style(["a.css", "a.css"], [tmp_path]) == "p {}p {}"
    assert data_url(b"\xff", "image/jpeg") == "data:image/jpeg;base64,/w=="
