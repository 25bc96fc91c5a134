"""What Prometheus reads from `/metrics`."""

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families


class Scraped:
    """A response, read by Prometheus's own parser.

    Args:
        text: The response.
    """

    def __init__(self, text: str) -> None:
        self.families: list[Metric] = list(text_string_to_metric_families(text))
        self.samples = [sample for family in self.families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float | None:
        """Return the value of the only sample with this name and at least these labels, if any."""
        found = [
            each.value
            for each in self.samples
            if each.name == name and labels.items() <= each.labels.items()
        ]
        assert len(found) <= 1, f"several samples: {name} {labels}"
        return found[0] if found else None

    def labels(self, name: str, label: str) -> set[str]:
        """Return the values of a label in the samples with this name."""
        return {each.labels[label] for each in self.samples if each.name == name}
