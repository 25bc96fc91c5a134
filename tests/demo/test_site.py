"""The demo site, requested as by a browser."""

import asyncio
from collections.abc import Iterator

import anyio
import pytest
from httpx2 import ASGITransport, AsyncClient
from starlette.testclient import TestClient

from opentabs_py.demo import create_demo_site
from tests.waiting import PATIENT, until_all_wait

GENERAL = "/api/channels/general/messages"


@pytest.fixture
def visitor() -> Iterator[TestClient]:
    """A client that has not opened the page."""
    with TestClient(create_demo_site(page_delay=0), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def member(visitor: TestClient) -> TestClient:
    """A client that has."""
    assert visitor.get("/").status_code == 200
    return visitor


def read_all(client: TestClient, channel: str) -> list[list[dict[str, str]]]:
    """Read a channel to its end, page by page."""
    pages: list[list[dict[str, str]]] = []
    cursor: str | None = ""
    while cursor is not None:
        url = f"/api/channels/{channel}/messages"
        body = client.get(url, params={"cursor": cursor}).raise_for_status().json()
        pages.append(body["messages"])
        assert len(pages) <= body["totalPages"], "more pages than were promised"
        cursor = body.get("nextCursor")
    return pages


@pytest.mark.parametrize(
    ("method", "url"), [("GET", "/api/channels"), ("GET", GENERAL), ("POST", GENERAL)]
)
def test_the_api_answers_nobody_without_a_session(
    visitor: TestClient, method: str, url: str
) -> None:
    response = visitor.request(method, url, json={"text": "hello"} if method == "POST" else None)
    assert response.status_code == 401
    assert response.json()["error"] == "not_signed_in"


@pytest.mark.parametrize("cookie", ["", "x", "x.y", ".", "ü.ü"])
def test_a_made_up_session_is_refused(visitor: TestClient, cookie: str) -> None:
    headers = {b"cookie": f"demo_session={cookie}".encode()}
    assert visitor.get("/api/channels", headers=headers).status_code == 401


def test_a_session_of_another_site_is_refused(member: TestClient) -> None:
    with TestClient(create_demo_site(), base_url="http://127.0.0.1") as elsewhere:
        elsewhere.cookies = member.cookies
        assert elsewhere.get("/api/channels").status_code == 401


def test_opening_the_page_starts_a_session_that_no_script_can_read(visitor: TestClient) -> None:
    cookie = visitor.get("/").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert visitor.get("/api/channels").status_code == 200


def test_opening_the_page_again_keeps_the_session(member: TestClient) -> None:
    assert "set-cookie" not in member.get("/").headers


def test_no_inline_script_can_run_on_the_page(visitor: TestClient) -> None:
    page = visitor.get("/")
    policy = dict(
        part.split(" ", 1) for part in page.headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert page.text.count("<script") == page.text.count("<script src=") == 1


@pytest.mark.parametrize("file", ["app.js", "style.css", "icon.svg"])
def test_everything_the_page_loads_is_there(visitor: TestClient, file: str) -> None:
    assert f"/static/{file}" in visitor.get("/").text
    response = visitor.get(f"/static/{file}")
    assert response.status_code == 200
    assert response.headers["x-content-type-options"] == "nosniff"


def test_the_channels_are_listed_with_their_size(member: TestClient) -> None:
    assert member.get("/api/channels").json()["channels"] == [
        {"id": "general", "name": "General", "messages": 300},
        {"id": "random", "name": "Random", "messages": 60},
        {"id": "empty", "name": "Empty", "messages": 0},
    ]


def test_the_pages_of_a_channel_are_all_of_it_once_and_newest_first(member: TestClient) -> None:
    pages = read_all(member, "general")
    assert [len(page) for page in pages] == [25] * 12
    times = [message["timestamp"] for page in pages for message in page]
    assert times == sorted(set(times), reverse=True)


def test_history_takes_its_time_except_for_the_page_s_own_scrolling() -> None:
    answered: list[str] = []

    async def ask(client: AsyncClient, query: str) -> None:
        response = await client.get(GENERAL, params=query)
        answered.append(query)
        assert response.status_code == 200

    async def ask_both() -> None:
        transport = ASGITransport(create_demo_site(page_delay=3600))
        async with AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await client.get("/")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, client, "cursor=")
                await until_all_wait()
                with anyio.fail_after(PATIENT):
                    await ask(client, "view=1")
                tasks.cancel_scope.cancel()

    asyncio.run(ask_both())
    assert answered == ["view=1"]


def test_the_last_page_holds_what_is_left(member: TestClient) -> None:
    assert [len(page) for page in read_all(member, "random")] == [25, 25, 10]


def test_an_empty_channel_is_one_empty_page(member: TestClient) -> None:
    body = member.get("/api/channels/empty/messages").json()
    assert body == {"messages": [], "totalPages": 1}


def test_a_message_has_text_author_and_timestamp(member: TestClient) -> None:
    for page in read_all(member, "general"):
        for message in page:
            assert message.keys() == {"text", "author", "timestamp"}
            assert all(message.values())
            assert "{" not in message["text"], "a slot was left open"


def test_two_sites_have_the_same_history(member: TestClient) -> None:
    with TestClient(create_demo_site(page_delay=0), base_url="http://127.0.0.1") as other:
        other.get("/")
        assert read_all(other, "general") == read_all(member, "general")


def test_each_page_says_which_of_how_many_it_is(member: TestClient) -> None:
    first = member.get(GENERAL)
    second = member.get(GENERAL, params={"cursor": first.json()["nextCursor"]})
    assert first.headers["server-timing"] == 'page;desc="1/12"'
    assert second.headers["server-timing"] == 'page;desc="2/12"'


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "²", "9" * 5000])
def test_a_cursor_that_was_never_given_out_is_refused(member: TestClient, cursor: str) -> None:
    response = member.get(GENERAL, params={"cursor": cursor})
    assert response.status_code == 400
    assert response.json()["error"] == "bad_cursor"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_channel_is_not_found(member: TestClient, method: str) -> None:
    url = "/api/channels/attic/messages"
    response = member.request(method, url, json={"text": "hi"} if method == "POST" else None)
    assert response.status_code == 404
    assert response.json() == {
        "error": "no_such_channel",
        "message": "There is no channel 'attic'.",
    }


def test_a_message_that_is_sent_is_the_newest(member: TestClient) -> None:
    sent = member.post(GENERAL, json={"text": "hello"})
    assert sent.status_code == 201
    message = sent.json()["message"]
    assert (message["text"], message["author"]) == ("hello", "You")
    newest, before, *_ = member.get(GENERAL).json()["messages"]
    assert newest == message
    assert newest["timestamp"] > before["timestamp"]


def test_messages_sent_at_once_keep_their_order(member: TestClient) -> None:
    for number in range(5):
        member.post("/api/channels/empty/messages", json={"text": str(number)})
    messages = member.get("/api/channels/empty/messages").json()["messages"]
    assert [message["text"] for message in messages] == ["4", "3", "2", "1", "0"]
    times = [message["timestamp"] for message in messages]
    assert times == sorted(set(times), reverse=True)


def test_a_message_sent_during_an_export_shifts_no_page(member: TestClient) -> None:
    before = read_all(member, "random")
    first = member.get("/api/channels/random/messages").json()
    member.post("/api/channels/random/messages", json={"text": "hello"})
    cursor = first["nextCursor"]
    second = member.get("/api/channels/random/messages", params={"cursor": cursor}).json()
    assert [first["messages"], second["messages"]] == before[:2]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"text": 7}',
        b'{"text": " "}',
        b'{"text": "' + b"x" * 2001 + b'"}',
        b'{"text": "x", "more": "' + b"x" * 20_000 + b'"}',
        b"[" * 15_000,
    ],
)
def test_an_invalid_message_is_refused(member: TestClient, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    response = member.post(GENERAL, content=body, headers=headers)
    assert response.status_code == 400
    assert response.json()["error"] == "bad_message"
    assert member.get("/api/channels").json()["channels"][0]["messages"] == 300


def test_a_form_of_another_site_cannot_send_messages(member: TestClient) -> None:
    headers = {"content-type": "text/plain"}
    response = member.post(GENERAL, content=b'{"text": "hi"}', headers=headers)
    assert response.status_code == 400


def test_a_message_with_half_a_character_can_still_be_read(member: TestClient) -> None:
    headers = {"content-type": "application/json"}
    member.post(GENERAL, content=rb'{"text": "a\ud800b"}', headers=headers).raise_for_status()
    assert member.get(GENERAL).json()["messages"][0]["text"] == "a?b"
