import json

import pytest

from e2e.bench.table import Measurement, show, to_document

ECHO = Measurement("echo", "ms", beside="echo_floor")
NUMBERS = {"echo": [3.0, 8.0, 2.0], "echo_floor": [1.0, 2.0, 2.0], "build": [1.5]}


@pytest.mark.parametrize(
    ("unit", "ours", "floor"), [("ms", 3, 2), ("/s", 200, 300), ("MiB/s", 20, 30)]
)
def test_times_the_floor_is_above_one_where_ours_is_slower(
    unit: str, ours: float, floor: float
) -> None:
    measurement = Measurement("echo", unit, beside="echo_floor")

    assert measurement.times_floor([ours], [floor]) == 1.5


def test_ours_is_compared_with_the_floor_of_its_own_round() -> None:
    # with the medians it would be 3 / 2
    assert ECHO.times_floor(NUMBERS["echo"], NUMBERS["echo_floor"]) == 3


def test_the_document_has_numbers_for_a_measured_floor_alone() -> None:
    measurements = {"echo": ECHO, "build": Measurement("build", "s", "~1")}

    echo, build = json.loads(json.dumps(to_document(measurements, NUMBERS)))

    assert (echo["floor"], echo["floor_median"], echo["times_floor"]) == ("2.00 here", 2, 3)
    assert (build["floor"], build["floor_median"], build["times_floor"]) == ("~1", None, None)


def test_the_table_says_how_many_times_the_floor(capsys: pytest.CaptureFixture[str]) -> None:
    show({"echo": ECHO}, NUMBERS)

    row = capsys.readouterr().out.splitlines()[1]
    assert row.split() == ["echo", "3.00", "2.00", "8.00", "ms", "2.00", "here", "3.00", "–"]


def test_a_measurement_that_was_not_made_says_what_it_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measurements = {
        "attach": Measurement("attach", "s", needs="Xvfb"),
        "build": Measurement("build", "s"),
    }

    show(measurements, NUMBERS)

    assert capsys.readouterr().out.splitlines()[1].split() == ["attach", "–", "needs", "Xvfb"]
    assert [each["measurement"] for each in to_document(measurements, NUMBERS)] == ["build"]
