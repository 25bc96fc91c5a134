"""Everything that a recording shows about a site."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from opentabs_py.core.plugins.settings import url_pattern
from opentabs_py.core.recording.exchange import Recording
from opentabs_py.errors import RecordingError
from opentabs_py.generate.auth import Auth, Header, Secrets, find_auth
from opentabs_py.generate.flows import Flows
from opentabs_py.generate.frameworks import frameworks_of
from opentabs_py.generate.html_tools import plan_pages
from opentabs_py.generate.names import camel, unique
from opentabs_py.generate.operations import Operation, operations_of
from opentabs_py.generate.plan import PlannedTool, is_meant, plan_tools
from opentabs_py.generate.samples import Sample, samples_of
from opentabs_py.generate.signing_in import as_signed_in


@dataclass(frozen=True, slots=True)
class KnownSite:
    """What is known of a site.

    Attributes:
        recording: Where from.
        samples: What pages asked it for.
        operations: What it offers.
        auth: How it authenticates its users.
        frameworks: What it is built with.
        storage: The names of what its pages keep in local storage.
        tools: The tools that a plugin for it has.
    """

    recording: Recording
    samples: Sequence[Sample]
    operations: Sequence[Operation]
    auth: Auth
    frameworks: Sequence[str]
    storage: Sequence[str]
    tools: Sequence[PlannedTool]

    @property
    def patterns(self) -> Sequence[str]:
        """The match pattern of its pages.

        Raises:
            RecordingError: No plugin can serve them.
        """
        try:
            return [url_pattern(self.recording.url)]
        except ValueError as error:
            raise RecordingError(
                f"No plugin can serve {self.recording.url}, where the recording begins: {error}."
            ) from error

    @property
    def left_out(self) -> Sequence[Operation]:
        """What it offers and no tool calls."""
        used = [tool.operation for tool in self.tools]
        return [each for each in self.operations if each not in used and each.style != "page"]


def read_site(recording: Recording, chosen: Sequence[str] = ()) -> KnownSite:
    """Return what a recording says about a site.

    Args:
        recording: What passed between its pages and the site.
        chosen: The operations that tools are for, such as `GET /api/messages`; if none, all that
            are useful.

    Raises:
        RecordingError: Something that was chosen is not in the recording, or cannot be sent.
    """
    recording = as_signed_in(recording)
    samples = samples_of(recording)
    flows = Flows(samples)
    operations = operations_of(samples, flows)
    replaced = _replaced(recording)
    secrets = Secrets(recording, samples)
    _check(chosen, operations)
    auth = find_auth(samples, secrets, replaced)
    credentials = {each.url for each in auth.headers if each.url}
    tools: Sequence[PlannedTool] = plan_tools(operations, flows, replaced, chosen, credentials)
    auth = replace(auth, tokens=_find_tokens(tools, secrets, replaced))
    if chosen or not tools:
        tools = [*tools, *plan_pages(operations, samples, flows, replaced, chosen)]
    return KnownSite(
        recording,
        samples,
        operations,
        auth,
        frameworks_of(recording, samples),
        [*secrets.storage],
        tools,
    )


def _find_tokens(
    tools: Sequence[PlannedTool], secrets: Secrets, replaced: Collection[str]
) -> Mapping[str, Header]:
    """Return the secrets in the queries and bodies of requests, by the names that tools use."""
    tokens: dict[str, Header] = {}
    for inputs in (tool.inputs for tool in tools):
        for name, value in {**inputs.query, **inputs.payload}.items():
            if not isinstance(value, str) or value not in replaced:
                continue
            token = secrets.find(name, value) or Header(name, "unknown", value=value)
            known = [each for each, found in tokens.items() if found == token]
            inputs.tokens[name] = known[0] if known else unique(camel(name), tokens)
            tokens[inputs.tokens[name]] = token
    return tokens


def _check(chosen: Sequence[str], operations: Sequence[Operation]) -> None:
    for each in chosen:
        meant = [operation for operation in operations if is_meant(operation, each)]
        if not meant:
            known = "\n".join(f"  {operation}" for operation in operations)
            raise RecordingError(f"The recording has no {each!r}. It has:\n{known}")
        if not all(operation.can_be_sent for operation in meant):
            raise RecordingError(
                f"No tool can be written for {each!r}: it sends something that is neither JSON nor "
                "a URL-encoded form, such as a file. Write the tool yourself."
            )


def _replaced(recording: Recording) -> Collection[str]:
    kinds = {"token", "CSRF token", "authorization", "cookie"}
    return {each.replacement for each in recording.scrubbed if each.kind in kinds} - {""}
