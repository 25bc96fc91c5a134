"""The settings of a plugin as a form: read from where they are, written to the user's file.

Texts may be secrets, so they can be written and never read: the page learns only whether one is
set.
"""

import json
import tomllib
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, cast

import anyio.to_thread
from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from opentabs_py.config.paths import user_file
from opentabs_py.config.settings_file import change_settings, table_in
from opentabs_py.config.sources import TOML_ENCODING
from opentabs_py.console.plugins import NoSuchPluginError, ServedPlugins
from opentabs_py.core.plugins.manifest import PluginManifest
from opentabs_py.core.plugins.settings import resolve_values
from opentabs_py.core.schemas.checker import JsonObject
from opentabs_py.errors import PluginError
from opentabs_py.plugins.load import load_plugin
from opentabs_py.server.http.json_requests import BadRequestError, Body, answering, refuse

LONGEST_BODY: Final = 1024 * 1024  # bytes
_TABLE: Final = "plugin_settings"


class SettingsBody(Body):
    """Values to set.

    Attributes:
        plugin: The plugin's name.
        values: By key; null removes a value.
    """

    plugin: str
    values: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class SettingsForm:
    """Shows and changes the settings of plugins.

    Args:
        plugins: The plugins.
    """

    plugins: ServedPlugins

    def routes(self) -> list[BaseRoute]:
        """Return the routes, which only the console's page may use."""
        change = answering(SettingsBody, self._change, limit=LONGEST_BODY)
        return [
            Route("/settings/{plugin}", self._show),
            Route("/settings", change, methods=["POST"]),
        ]

    async def _show(self, request: Request) -> Response:
        name = request.path_params["plugin"]
        try:
            return JSONResponse(await anyio.to_thread.run_sync(self._describe, name))
        except (BadRequestError, PluginError) as error:
            return refuse(str(error), HTTPStatus.NOT_FOUND)

    async def _change(self, body: SettingsBody) -> Mapping[str, Any]:
        await anyio.to_thread.run_sync(self._write, body)
        await self.plugins.reload()
        return await anyio.to_thread.run_sync(self._describe, body.plugin)

    def _describe(self, name: str) -> Mapping[str, Any]:
        manifest, used = self._find(name)
        written = _written(name)
        return {
            "file": str(user_file()),
            "isServed": used is not None,
            "settings": [
                _field(key, about, written, used) for key, about in manifest.config_schema.items()
            ],
        }

    def _write(self, body: SettingsBody) -> None:
        manifest, _ = self._find(body.plugin)
        changed = {**_written(body.plugin), **body.values}
        given = {key: value for key, value in changed.items() if value is not None}
        resolve_values(body.plugin, manifest.config_schema, given)  # refuses what would not work

        def change(settings: MutableMapping[str, Any]) -> None:
            table = table_in(table_in(settings, _TABLE), body.plugin)
            for key, value in body.values.items():
                if value is None:
                    table.pop(key, None)
                else:
                    table[key] = value

        change_settings(change)

    def _find(self, name: str) -> tuple[PluginManifest, Mapping[str, JsonValue] | None]:
        """Return a plugin's manifest, and its settings if it is served."""
        served = self.plugins.find(name)
        if served is not None:
            return served.parsed, served.config
        for skipped in self.plugins.skipped:
            # A setting that is missing may be why it is skipped.
            if skipped.plugin == name:
                return load_plugin(skipped.directory).parsed, None
        raise NoSuchPluginError


def _written(plugin: str) -> Mapping[str, Any]:
    """Return the values of a plugin's settings in the user's file; none if it cannot be read."""
    settings: Any = {}
    with suppress(OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        settings = tomllib.loads(user_file().read_text(encoding=TOML_ENCODING))
    for name in (_TABLE, plugin):
        settings = cast("dict[str, Any]", settings).get(name)
        if not isinstance(settings, dict):
            return {}
    return cast("Mapping[str, Any]", settings)


def _json_or_none(value: Any) -> JsonValue:
    """Return a value of a TOML file; none for what JSON lacks, such as dates and infinities."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return None
    return cast("JsonValue", value)


def _field(
    key: str,
    about: JsonObject,
    written: Mapping[str, Any],
    used: Mapping[str, JsonValue] | None,
) -> dict[str, Any]:
    is_secret = about.get("type") == "string"
    value = _json_or_none(written.get(key)) if used is None else used.get(key)
    shown = ("type", "label", "description", "placeholder", "options")
    return {
        **{name: about.get(name) for name in shown},
        "key": key,
        "required": about.get("required") is True,
        "default": None if is_secret else about.get("default"),
        "isSecret": is_secret,
        "isSet": value is not None,
        "isWritten": key in written,
        # Something else, such as the environment, counts more than the file.
        "isElsewhere": used is not None and key in written and used.get(key) != written[key],
        "value": None if is_secret else value,
    }
