"""Tools in the browsers of other machines, over NATS. See docs/fleet.md."""
