"""The extension's icons, as its own page draws them."""

from opentabs_py.session.session import OpenTabs

# How much a file may differ from the vector image, of 255 per channel: by antialiasing only.
COMPARED = """async () => {
    const draw = async (src, size) => {
        const image = new Image(size, size);
        image.src = chrome.runtime.getURL(src);
        await image.decode();
        const canvas = new OffscreenCanvas(size, size).getContext("2d");
        canvas.drawImage(image, 0, 0, size, size);
        return [image.naturalWidth, canvas.getImageData(0, 0, size, size).data];
    };
    const { icons, action } = chrome.runtime.getManifest();
    const found = {};
    for (const [size, file] of Object.entries(icons)) {
        const [width, drawn] = await draw(file, Number(size));
        const [, wanted] = await draw("panel/console/icon.svg", Number(size));
        const apart = drawn.reduce((sum, value, at) => sum + Math.abs(value - wanted[at]), 0);
        const inToolbar = action.default_icon[size] === file;
        found[size] = { width, near: apart / drawn.length < 8, inToolbar };
    }
    return found;
}"""


async def test_the_icons_are_the_vector_in_each_size(tabs: OpenTabs) -> None:
    page = await tabs.context.new_page()
    await page.goto(f"{tabs.internals.bridge.origin}/panel/index.html")
    assert await page.evaluate(COMPARED) == {
        str(size): {"width": size, "near": True, "inToolbar": True} for size in (16, 32, 48, 128)
    }
    await page.close()
