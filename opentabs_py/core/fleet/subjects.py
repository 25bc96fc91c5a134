"""The subjects of a fleet, and who may use which.

- `opentabs.FLEET.workers`: what each worker announces
- `opentabs.FLEET.endpoints`: what each endpoint announces, for onlookers
- `opentabs.FLEET.who`: asks all workers and endpoints to announce themselves
- `opentabs.FLEET.worker.NAME.INSTANCE.call.ENDPOINT.ID`: packets of a call, to its worker
- `opentabs.FLEET.worker.NAME.INSTANCE.beat.ENDPOINT`: an endpoint is still there
- `opentabs.FLEET.worker.NAME.INSTANCE.drain`: take nothing new, then stop
- `opentabs.FLEET.endpoint.ENDPOINT.call.ID`: packets of a call, to its endpoint
- `opentabs.FLEET.endpoint.ENDPOINT.beat.INSTANCE`: the answer to a heartbeat
- `opentabs.FLEET.endpoint.ENDPOINT.drain`: the answer to a drain
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

INSTANCE_LENGTH: Final = 16
INSTANCE_ID: Final = rf"[0-9a-f]{{{INSTANCE_LENGTH}}}"
"""A pattern of the ids of workers' runs and of endpoints."""
_PACKETS_TO_WORKER: Final = re.compile(
    rf".*\.call\.(?P<endpoint>{INSTANCE_ID})\.(?P<call>[0-9a-f]{{32}})"
)

Role = Literal["worker", "endpoint", "operator"]


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects of one fleet.

    Args:
        fleet: Its name, a NATS token.
    """

    fleet: str

    @property
    def workers(self) -> str:
        """Where workers announce themselves."""
        return f"opentabs.{self.fleet}.workers"

    @property
    def endpoints(self) -> str:
        """Where endpoints announce themselves."""
        return f"opentabs.{self.fleet}.endpoints"

    @property
    def who(self) -> str:
        """What asks all workers and endpoints to announce themselves now."""
        return f"opentabs.{self.fleet}.who"

    def worker(self, name: str, instance: str) -> str:
        """What one run of a worker receives; more tokens follow."""
        return f"opentabs.{self.fleet}.worker.{name}.{instance}"

    def endpoint(self, endpoint: str) -> str:
        """What an endpoint receives; more tokens follow."""
        return f"opentabs.{self.fleet}.endpoint.{endpoint}"


def caller_of(subject: str) -> tuple[str, str] | None:
    """Return the endpoint and the id of the call whose packets a worker receives on a subject.

    None if there is none: anyone may publish there, and a worker announces its callers' ids.
    """
    found = _PACKETS_TO_WORKER.fullmatch(subject)
    return None if found is None else (found["endpoint"], found["call"])


def permissions(fleet: str, role: Role, worker: str = "*") -> dict[str, list[str]]:
    """Return what a role must be allowed to publish and to subscribe to, and nothing more.

    Args:
        fleet: The fleet's name.
        role: `operator` is for `opentabs fleet`.
        worker: The name of the worker; by default, of any.
    """
    own = f"opentabs.{fleet}."
    to_endpoints = f"{own}endpoint.>"
    if role == "worker":
        return {
            "publish": [f"{own}workers", f"{own}who", to_endpoints],
            "subscribe": [f"{own}workers", f"{own}who", f"{own}worker.{worker}.>"],
        }
    if role == "operator":
        return {
            "publish": [f"{own}who", f"{own}worker.*.*.drain"],
            "subscribe": [f"{own}workers", f"{own}endpoints", to_endpoints],
        }
    to_workers = [f"{own}worker.*.*.call.>", f"{own}worker.*.*.beat.*"]
    return {
        "publish": [f"{own}who", f"{own}endpoints", *to_workers],
        "subscribe": [f"{own}who", f"{own}workers", to_endpoints],
    }
