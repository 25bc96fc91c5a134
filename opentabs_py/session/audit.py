"""Record a session's calls in the audit."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from opentabs_py.audit.writer import AuditWriter
from opentabs_py.config.paths import audit_file
from opentabs_py.config.settings import Settings
from opentabs_py.core.audit.retention import Retention
from opentabs_py.core.excerpts import Excerpts
from opentabs_py.core.plugins.settings import possible_secrets
from opentabs_py.server.tools.tool_calls import ToolCalls
from opentabs_py.session.plugins.plugins import PluginSet


@asynccontextmanager
async def audited(calls: ToolCalls, settings: Settings, plugins: PluginSet) -> AsyncGenerator[None]:
    """Record every call in the audit while the context is open.

    Args:
        calls: The calls.
        settings: What to record, and for how long to keep it.
        plugins: Have settings, some of which are secrets.
    """

    def secrets() -> Iterator[str]:
        if settings.secret_token is not None:
            yield settings.secret_token.get_secret_value()
        for plugin in plugins.plugins:
            yield from possible_secrets(plugin.manifest.config_schema, plugin.config)

    if settings.audit_values:
        calls.records.keep_values(Excerpts(secrets))
    retention = Retention(settings.audit_days, settings.audit_size)
    writer = AuditWriter(audit_file(), retention=retention, with_values=settings.audit_values)
    end = calls.records.observe(writer.write, traced=False)
    try:
        yield
    finally:
        end()
        with anyio.CancelScope(shield=True):  # bounded
            await anyio.to_thread.run_sync(writer.close)
