"""What several commands say of a server."""

from typing import Any

from opentabs_py.core.text import quantity


def fleet_text(fleet: dict[str, Any]) -> str:
    """Return what a server says of the fleet that it is an endpoint of."""
    lost = "" if fleet["connected"] else ", [yellow]not connected to NATS[/]"
    return f"endpoint of {quantity(len(fleet['workers']), 'worker')} at {fleet['nats']}{lost}"


def uptime(seconds: float) -> str:
    """Return a time since a start, as users write it: `42 s`, `5 min`, `3 h 20 min`, `2 d 4 h`."""
    seconds = max(0.0, seconds)  # two clocks differ, or one was set back
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 1:
        return f"{seconds:.0f} s"
    if hours < 1:
        return f"{minutes:.0f} min"
    if days < 1:
        return f"{hours:.0f} h {minutes % 60:.0f} min"
    return f"{days:.0f} d {hours % 24:.0f} h"
