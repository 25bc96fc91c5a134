"""Tools in Python for `conformance.py`: what a page cannot return, and a stream as a resource."""

import base64

from mcp.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

from opentabs_py import Module, skill, tool

PNG = base64.b64encode(
    base64.b16decode(
        "89504E470D0A1A0A0000000D49484452000000010000000108020000009077"
        "53DE0000000C49444154789C63F8CFC0000003010100C9FE92EF0000000049"
        "454E44AE426082"
    )
).decode()
WAV = base64.b64encode(
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0"
).decode()


def _resource(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


@tool
def test_image_content() -> ImageContent:
    """Return a red pixel."""
    return ImageContent(data=PNG, mime_type="image/png")


@tool
def test_audio_content() -> AudioContent:
    """Return a sound without samples."""
    return AudioContent(data=WAV, mime_type="audio/wav")


@tool
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource."""
    return _resource(
        "test://embedded-resource", "text/plain", "This is an embedded resource content."
    )


@tool
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Return content of three kinds."""
    return [
        TextContent(text="Multiple content types test:"),
        ImageContent(data=PNG, mime_type="image/png"),
        _resource(
            "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
        ),
    ]


class Streams(Module):
    """Makes the server offer resources."""

    @skill
    def open_stream(self) -> str:
        """Open a stream."""
        self.start_tool("open_stream").update("begun")
        return "Begun."
