"""Draw the extension's icons from the console's vector: `python .ci/icons.py`.

Chrome takes an extension's icons only as bitmaps. Chromium draws them, so what is in the vector is
drawn as the console shows it. Chromiums of other versions may smooth edges a little differently;
`e2e/browser/test_icons.py` compares the files with the vector, and allows for that.
"""

from pathlib import Path

from playwright.sync_api import sync_playwright

from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.browser.switches import configured_sandbox
from opentabs_py.config.settings import load_settings

ROOT = Path(__file__).resolve().parent.parent
VECTOR = ROOT / "opentabs_py/console/page/icon.svg"
WRITTEN = ROOT / "extension/icons"
SIZES = (16, 32, 48, 128)  # px; what Chrome asks for


def main() -> None:
    """Write a file of each size."""
    settings = load_settings()
    WRITTEN.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=configured_chromium(settings),
            chromium_sandbox=configured_sandbox(settings),
        )
        page = browser.new_page()
        for size in SIZES:
            page.set_viewport_size({"width": size, "height": size})
            page.set_content(
                f"<style>body {{ margin: 0 }} svg {{ display: block; width: {size}px }}</style>"
                + VECTOR.read_text()
            )
            page.screenshot(path=WRITTEN / f"{size}.png", omit_background=True)
        browser.close()


if __name__ == "__main__":
    main()
