"""Long messages in short frames."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opentabs_py.core.chunks import CHUNK, WHOLE, Assembler, split
from opentabs_py.errors import ProtocolError

PAGE, OTHER_PAGE = "d" * 32, "e" * 32


def chunk(part: str, *, stream: int = 0, last: bool = False, page: str = PAGE) -> str:
    return f"~{page}{stream:08x}{'.' if last else '+'}{part}"


def test_a_message_of_a_mebi_character_is_its_own_frame() -> None:
    text = "x" * WHOLE
    assert list(split(text, PAGE, 1)) == [text]


def test_a_longer_message_is_cut_into_parts_of_256_kibi_characters() -> None:
    text = "x" * (WHOLE + 1)
    parts = list(split(text, PAGE, 0xABC))
    assert [len(part) - 42 for part in parts] == [CHUNK, CHUNK, CHUNK, CHUNK, 1]
    assert [part[:42] for part in parts] == [f"~{PAGE}00000abc+"] * 4 + [f"~{PAGE}00000abc."]


def test_a_message_of_whole_parts_ends_with_a_whole_part() -> None:
    parts = list(split("x" * (5 * CHUNK), PAGE, 1))
    assert [part[41] for part in parts] == ["+", "+", "+", "+", "."]
    assert len(parts[-1]) - 42 == CHUNK


def test_the_number_of_a_stream_wraps_around_after_8_digits() -> None:
    first = next(split("x" * (WHOLE + 1), PAGE, 2**32 + 5))
    assert first.startswith(f"~{PAGE}00000005+")


@given(st.text(min_size=1, max_size=40), st.integers(0, 3 * CHUNK))
@settings(max_examples=20)
def test_what_was_split_is_joined_as_it_was(piece: str, more: int) -> None:
    text = json.dumps(
        piece * (WHOLE // len(piece)) + "\U0001f600" * (more // 10), ensure_ascii=False
    )
    assembler = Assembler(limit=10 * WHOLE)
    joined = [assembler.feed(frame) for frame in split(text, PAGE, 1)]
    assert joined[-1] == text
    assert set(joined[:-1]) <= {None}


@given(st.data())
def test_messages_that_arrive_interleaved_are_joined_each_by_itself(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=5), max_size=6))
    waiting = [
        [chunk(part, stream=n, last=i == len(each) - 1, page=f"{n:032x}")
         for i, part in enumerate(each)]
        for n, each in enumerate(parts)
    ]  # fmt: skip
    assembler, joined = Assembler(limit=1000), dict[int, str]()
    while any(waiting):
        n = data.draw(st.sampled_from([n for n, each in enumerate(waiting) if each]))
        text = assembler.feed(waiting[n].pop(0))
        if text is not None:
            joined[n] = text
    assert joined == {n: "".join(each) for n, each in enumerate(parts)}


def test_short_messages_pass_between_the_parts_of_a_long_one() -> None:
    assembler = Assembler(limit=100)
    fed = [assembler.feed(f) for f in (chunk("ab"), '{"short":1}', chunk("cd", last=True))]
    assert fed == [None, '{"short":1}', "abcd"]


# --- bounds ---


def test_a_message_in_one_frame_over_the_limit_is_refused() -> None:
    assembler = Assembler(limit=10)
    assert assembler.feed("x" * 10) == "x" * 10
    with pytest.raises(ProtocolError, match="11 characters is over the limit"):
        assembler.feed("x" * 11)


def test_a_message_in_parts_is_refused_as_soon_as_it_is_over_the_limit() -> None:
    assembler = Assembler(limit=10)
    assert assembler.feed(chunk("x" * 10)) is None
    with pytest.raises(ProtocolError, match="over the limit of 10 characters"):
        assembler.feed(chunk("x"))


def test_a_refused_message_stays_refused_until_its_last_part() -> None:
    assembler = Assembler(limit=10)
    with pytest.raises(ProtocolError):
        assembler.feed(chunk("x" * 11))
    assert assembler.feed(chunk("more")) is None
    assert assembler.feed(chunk("the end", last=True)) is None
    assert assembler.feed(chunk("a new one", last=True)) == "a new one"


def test_a_message_refused_at_its_last_part_leaves_its_stream_free() -> None:
    assembler = Assembler(limit=10)
    assembler.feed(chunk("x" * 10))
    with pytest.raises(ProtocolError):
        assembler.feed(chunk("x", last=True))
    assert assembler.feed(chunk("a new one", last=True)) == "a new one"


def test_a_refused_message_leaves_the_others_alone() -> None:
    assembler = Assembler(limit=10)
    assembler.feed(chunk("good ", page=PAGE))
    with pytest.raises(ProtocolError):
        assembler.feed(chunk("x" * 11, page=OTHER_PAGE))
    assert assembler.feed(chunk("text", page=PAGE, last=True)) == "good text"


def test_one_stream_number_in_two_documents_is_two_messages() -> None:
    assembler = Assembler(limit=100)
    assembler.feed(chunk("mine", page=PAGE))
    assembler.feed(chunk("yours", page=OTHER_PAGE))
    assert assembler.feed(chunk("", page=PAGE, last=True)) == "mine"


def test_the_unfinished_messages_of_any_number_of_documents_are_joined() -> None:
    assembler = Assembler(limit=100)
    pages = [f"{number:032x}" for number in range(1_000)]
    for page in pages:
        assembler.feed(chunk(page, page=page))
    ended = [assembler.feed(chunk(".", page=page, last=True)) for page in pages]
    assert ended == [f"{page}." for page in pages]


def test_a_message_is_dropped_when_its_document_begins_another() -> None:
    assembler = Assembler(limit=100)
    assembler.feed(chunk("abandoned", stream=1))
    assembler.feed(chunk("half, ", stream=2))
    assert assembler.feed(chunk("whole", stream=2, last=True)) == "half, whole"


def test_the_unfinished_messages_of_documents_that_are_gone_are_dropped() -> None:
    assembler = Assembler(limit=100)
    for page in (PAGE, OTHER_PAGE):
        assembler.feed(chunk("a", page=page))
    assembler.keep([OTHER_PAGE])
    ended = [assembler.feed(chunk("b", page=page, last=True)) for page in (PAGE, OTHER_PAGE)]
    assert ended == ["b", "ab"]


def test_without_unfinished_messages_the_documents_are_not_gone_through() -> None:
    assembler = Assembler(limit=100)
    documents = iter([PAGE])
    assembler.keep(documents)
    assert list(documents) == [PAGE]


@pytest.mark.parametrize("frame", ["~", "~" + "d" * 40, f"~{PAGE}00000001?part"])
def test_a_chunk_with_a_malformed_header_is_refused(frame: str) -> None:
    with pytest.raises(ProtocolError, match="header is malformed"):
        Assembler(limit=100).feed(frame)
