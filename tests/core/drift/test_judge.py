"""What is drift, how bad it is, and what is inconclusive."""

from dataclasses import replace
from typing import Any

import pytest

from opentabs_py.core import failures
from opentabs_py.core.drift.judge import judge
from opentabs_py.core.drift.live import LiveRun, StepOutcome
from opentabs_py.core.drift.report import CallVerdict, Finding, RecordingVerdict
from opentabs_py.core.recording.exchange import Exchange, RecordedCall, Recording, Request, Scrubbed
from tests.core.drift.samples import HOME, called, failed, got, lived, recording, sent_on

ITEMS = [{"id": 1, "title": "a"}, {"id": 2, "title": "b"}]
RENAMED = [{"id": 1, "name": "a"}]


def verdict(was: Recording, live: LiveRun, *others: Recording) -> RecordingVerdict:
    return judge("x.har", was, others, live)


def only_call(was: Recording, live: LiveRun, *others: Recording) -> CallVerdict:
    [call] = verdict(was, live, *others).calls
    return call


def texts(found: RecordingVerdict) -> list[str]:
    return [finding.text for request in found.requests for finding in request.findings]


# --- calls ---


def test_a_call_that_returns_the_like_is_the_same() -> None:
    call = only_call(recording(called(ITEMS)), lived(called([{"id": 7, "title": "z"}])))

    assert (call.state, call.severity, call.seconds) == ("same", None, 10.0)


def test_a_result_that_lacks_a_member_breaks_the_tool() -> None:
    call = only_call(recording(called(ITEMS)), lived(called([{"id": 7}])))

    assert (call.state, call.severity) == ("drift", "tool")
    assert [each.text for each in call.findings] == ["[].title is gone (was string)"]


def test_a_result_with_more_than_before_is_harmless() -> None:
    was, now = called([{"id": 1}] * 9), called([{"id": 1, "new": 1}] * 9)

    call = only_call(recording(was), lived(now))

    assert call.severity == "harmless"


def test_a_result_that_breaks_its_schema_is_the_worst() -> None:
    broken = called(RENAMED, {"code": "RESULT_BREAKS_SCHEMA", "message": "title is missing"})

    call = only_call(recording(called(ITEMS)), lived(broken, category="validation"))

    assert call.severity == "schema"
    assert call.findings == [
        Finding("schema", "title is missing"),
        Finding("renamed", "[].title is now called name", "[].title"),
    ]


def test_what_an_agent_reads_about_a_broken_result_is_left_out() -> None:
    error = failures.result_breaks_schema("t", [("title", "is missing")], RENAMED).detail
    broken = called(RENAMED, {"code": error.code, "message": error.message})

    call = only_call(recording(called(ITEMS)), lived(broken, category="validation"))

    said = "t succeeded, but its result does not match its output schema: at title: is missing."
    assert call.findings[0] == Finding("schema", said)


def test_a_call_that_fails_now_breaks_the_tool() -> None:
    call = only_call(recording(called(ITEMS)), lived(called(error={"code": "X", "message": "no"})))

    assert (call.severity, call.findings) == ("tool", [Finding("error", "fails with X: no")])


def test_a_long_error_is_cut() -> None:
    for code in ("X", "RESULT_BREAKS_SCHEMA"):
        error = {"code": code, "message": "x" * 1000}
        call = only_call(recording(called(ITEMS)), lived(called(ITEMS, error)))
        assert len(call.findings[0].text) < 320


def test_an_error_without_a_code_or_a_message_is_reported() -> None:
    call = only_call(recording(called(error={})), lived(called(error={"code": "X"})))

    assert call.findings[0].text == "failed with , and fails with X"
    call = only_call(recording(called(ITEMS)), lived(called(error={"code": "X"})))
    assert call.findings[0].text == "fails with X: "


@pytest.mark.parametrize(
    ("error", "text"),
    [(None, "failed with X, and succeeds"), ({"code": "Y"}, "failed with X, and fails with Y")],
)
def test_a_call_that_no_longer_fails_as_it_did_is_harmless(error: Any, text: str) -> None:
    call = only_call(recording(called(error={"code": "X"})), lived(called(error=error)))

    assert (call.severity, call.findings) == ("harmless", [Finding("error", text)])


def test_a_call_that_fails_as_it_did_is_the_same() -> None:
    error = {"code": "X"}

    call = only_call(recording(called(error=error)), lived(called(error=error), category="auth"))

    assert call.state == "same"


@pytest.mark.parametrize(
    "category", ["auth", "rate_limit", "timeout", "connection", "lost", "tab", "permission"]
)
def test_an_error_that_says_nothing_of_the_site_is_not_drift(category: str) -> None:
    call = only_call(
        recording(called(ITEMS)), lived(called(error={"code": "X"}), category=category)
    )

    assert (call.state, call.severity) == ("unknown", None)
    assert call.reason


def test_a_plugin_that_does_not_get_ready_is_broken() -> None:
    live = LiveRun(recording(), [StepOutcome(unready="chat"), StepOutcome(unready="mail")])

    found = verdict(recording(called(ITEMS), called(ITEMS, tool="mail_list")), live)

    assert [(call.severity, call.findings) for call in found.calls] == [
        ("tool", [Finding("readiness", "chat does not get ready on the page")]),
        ("tool", [Finding("readiness", "mail does not get ready on the page")]),
    ]


def test_a_call_that_was_not_made_is_skipped_or_unknown() -> None:
    was = recording(called(1), called(2))
    live = LiveRun(
        recording(), [StepOutcome(skipped="It writes."), StepOutcome(barred="A secret.")]
    )

    found = verdict(was, live)

    assert [(each.state, each.reason) for each in found.calls] == [
        ("skipped", "It writes."),
        ("unknown", "A secret."),
    ]


def test_only_calls_with_the_same_arguments_are_compared() -> None:
    was = recording(called({"a": 1}, n=1), called({"b": 1}, n=2), called({"c": 1}, tool="u", n=1))

    found = verdict(
        was, lived(called({"a": 1}, n=1), called({"b": 1}, n=2), called({"c": 1}, tool="u", n=1))
    )

    assert [each.state for each in found.calls] == ["same", "same", "same"]


def test_the_order_of_arguments_does_not_matter() -> None:
    one = recording(RecordedCall("t", {"a": 1, "b": 2}, {"x": 1, "y": 1}, seconds=10))
    other = recording(RecordedCall("t", {"b": 2, "a": 1}, {"x": 1}, seconds=10))

    assert (
        only_call(one, lived(RecordedCall("t", {"a": 1, "b": 2}, {"x": 1})), other).state == "same"
    )


def test_a_member_that_another_recording_lacks_is_optional() -> None:
    one, other = recording(called({"a": 1, "b": 1})), recording(called({"a": 1}))

    assert only_call(one, lived(called({"a": 1})), other).state == "same"


def test_a_value_counts_if_two_recordings_agree_on_it() -> None:
    was, live = recording(called({"plan": "free"})), lived(called({"plan": "paid"}))

    assert only_call(was, live).state == "same"
    call = only_call(was, live, was)
    assert (call.severity, call.findings[0].what) == ("harmless", "value")


def test_what_is_there_in_place_of_a_secret_is_expected_to_change() -> None:
    scrubbed = [Scrubbed("name", "name", "Robin", 1), Scrubbed("cookie", "c", "", 1)]
    was = recording(called({"name": "Robin K"}), scrubbed=scrubbed)

    assert only_call(was, lived(called({"name": "Ada"})), was).state == "same"


# --- lists that are empty ---


def test_a_result_that_is_empty_while_the_site_has_items_breaks_the_tool() -> None:
    was = recording(got("/api", ITEMS), called({"items": ITEMS}))

    call = only_call(was, lived(got("/api", ITEMS), called({"items": []})))

    assert (call.severity, call.findings[0].text) == ("tool", "items had items, and is now empty")


def test_only_lists_that_a_tool_asks_for_excuse_its_empty_result() -> None:
    was = recording(got("/api", ITEMS, at=20), called(ITEMS))

    assert only_call(was, lived(got("/api", [], at=20), called([]))).state == "drift"
    assert only_call(was, lived(got("/api", [], at=1), called([]))).state == "unknown"
    was = recording(got("/api", ITEMS, at=1), called(ITEMS))
    assert only_call(was, lived(got("/api", [], at=20), called([]))).state == "unknown"


def test_a_result_that_is_empty_as_the_site_is_cannot_be_compared() -> None:
    was = recording(got("/api", ITEMS), called(ITEMS))

    found = verdict(was, lived(got("/api", []), called([])))

    assert found.calls[0].state == "unknown"
    assert "nothing in the result" in found.calls[0].reason
    assert found.requests == []


def test_what_else_has_changed_is_reported_for_a_result_that_is_empty() -> None:
    was = recording(got("/api", ITEMS), called({"items": ITEMS, "a": 1}))

    call = only_call(was, lived(got("/api", []), called({"items": []})))

    assert [each.what for each in call.findings] == ["went"]


# --- pages that are no longer found ---


def paged(name: str, count: int) -> list[Exchange]:
    last = [got("/api", {"items": ITEMS})] if count > 1 else []
    first = [got(f"/api?p={n}", {"items": ITEMS, name: "2"}) for n in range(max(1, count - 1))]
    return [*first, *last]


def test_a_tool_that_misses_pages_is_broken() -> None:
    was = recording(*paged("next", 3), called({"items": ITEMS}))

    call = only_call(was, lived(*paged("cursor", 1), called({"items": ITEMS})))

    assert call.severity == "tool"
    text = "sends GET /api once (was 3 times), so it may miss further pages"
    assert call.findings == [Finding("requests", text)]


def test_how_often_a_tool_asks_is_counted_for_each_call() -> None:
    was = recording(*paged("next", 2), *paged("next", 2), called(1), called(1, n=1))

    found = verdict(was, lived(*paged("cursor", 1), *paged("cursor", 1), called(1), called(1, n=1)))

    assert "once (was 2 times)" in found.calls[0].findings[0].text
    once = recording(*paged("next", 1), *paged("next", 1), called(1), called(1, n=1))
    found = verdict(
        once, lived(*paged("cursor", 1), *paged("cursor", 1), called(1), called(1, n=1))
    )
    assert [each.state for each in found.calls] == ["same", "same"]


def test_fewer_pages_alone_say_nothing() -> None:
    was = recording(*paged("next", 3), called({"items": ITEMS}))

    assert only_call(was, lived(*paged("next", 1), called({"items": ITEMS}))).state == "same"


# --- requests ---


def test_a_changed_answer_of_a_tool_that_works_is_harmless() -> None:
    was = recording(got("/api", {"a": 1, "b": 1}), called(1))

    found = verdict(was, lived(got("/api", {"a": 1}), called(1)))

    [request] = found.requests
    assert (request.request, request.tools, request.severity) == ("GET /api", ["t"], "harmless")
    assert texts(found) == ["b is gone (was number)"]


def test_a_changed_answer_is_as_bad_as_what_it_breaks() -> None:
    was = recording(got("/api", {"a": 1}), called({"a": 1}), called({"a": 1}, n=1))
    broken = called({}, {"code": "RESULT_BREAKS_SCHEMA", "message": ""}, n=1)

    found = verdict(was, lived(got("/api", {}), called({}), broken, category="validation"))

    assert [request.severity for request in found.requests] == ["schema"]


@pytest.mark.parametrize(("answers", "text"), [([1], "200"), ([], "no response")])
def test_a_request_that_was_not_answered_is_not_shown_as_a_status(
    answers: list[int], text: str
) -> None:
    aborted = failed("/api", "net::ERR_ABORTED")
    was = recording(aborted, *[got("/api", each) for each in answers], called(1))

    found = verdict(was, lived(got("/api", {}, status=404), called(1)))

    assert texts(found) == [f"returns 404 (was {text})"]


@pytest.mark.parametrize(
    ("was", "now", "text"),
    [
        (got("/a", {}), sent_on("/a", "/b/7?x=1#y"), "redirects to /b/{id} (it returned 200)"),
        (sent_on("/a", "/b"), sent_on("/a", "/c"), "redirects to /c (it redirected to /b)"),
        (sent_on("/a", "/b/6"), sent_on("/a", "/b/7"), ""),
        (sent_on("/a", "/b"), got("/a", {}), ""),
        (got("/a", {}), sent_on("/a", "https://cdn.example.com/x"), ""),
        (sent_on("/a", "/b/SECRET-1"), sent_on("/a", "/b/s3cr3t"), ""),
    ],
)
def test_a_redirect_to_another_path_is_reported(was: Exchange, now: Exchange, text: str) -> None:
    scrubbed = [Scrubbed("token", "path", "SECRET-1", 1)]
    found = verdict(recording(was, called(1), scrubbed=scrubbed), lived(now, called(1)))
    assert texts(found) == ([text] if text else [])


def test_a_response_with_another_status_or_type_is_reported() -> None:
    was = recording(got("/api", {"a": 1}), got("/b", {"a": 1}), called(1))
    live = lived(got("/api", {}, status=404), got("/b", "<h1>Hello"), called(1))

    assert [each for request in verdict(was, live).requests for each in request.findings] == [
        Finding("status", "returns 404 (was 200)"),
        Finding("media", "returns HTML (was JSON)"),
    ]


@pytest.mark.parametrize(("status", "is_drift"), [(399, False), (400, True), (499, True)])
def test_only_refusals_are_recognized_by_their_status(status: int, is_drift: bool) -> None:
    was = recording(got("/api", {"a": 1}), called(1))

    assert bool(texts(verdict(was, lived(got("/api", {}, status=status), called(1))))) is is_drift


def test_a_site_that_fails_for_the_page_alone_is_not_recognized_by_its_status() -> None:
    was = recording(got("/api", {"a": 1}, at=20), called(1))

    assert texts(verdict(was, lived(got("/api", {}, status=500, at=20), called(1)))) == []


def test_members_that_do_not_count_do_not_distinguish_requests() -> None:
    was = recording(got("/api?sig=1", {"plan": "free"}), called(1))
    live = lived(got("/api?sig=2", {"plan": "paid"}), called(1))

    assert judge("x.har", was, [was], live).requests == []
    assert len(judge("x.har", was, [was], live, ["sig"]).requests) == 1


def test_the_verdict_names_the_recording() -> None:
    was = recording(called(ITEMS))

    for live in (lived(called(ITEMS)), lived(called({}), failure="No.")):
        found = verdict(was, live)
        assert (found.recording, found.url) == ("x.har", HOME)


def test_requests_on_one_side_only_are_not_compared() -> None:
    was = recording(got("/api/old", {"a": 1}), called(1))

    assert texts(verdict(was, lived(got("/api/else/new", {}), called(1)))) == []


def test_an_answer_counts_by_value_if_two_recordings_agree() -> None:
    was = recording(got("/api?q=1", {"plan": "free"}), got("/api?q=2", {"plan": "none"}), called(1))
    live = lived(got("/api?q=1", {"plan": "paid"}), got("/api?q=2", {"plan": "none"}), called(1))

    assert texts(verdict(was, live)) == []
    assert texts(verdict(was, live, was)) == ['plan was always "free", and is now "paid"']


ROWS = '<p class="row">1<p class="row">2'


def test_a_selector_that_finds_nothing_is_reported_with_what_may_replace_it() -> None:
    was = recording(got("/", ROWS, kind="document"), called(1))

    found = verdict(was, lived(got("/", ROWS.replace("row", "line"), kind="document"), called(1)))

    assert texts(found) == ["p.row finds nothing (p.line is new)"]
    assert found.requests[0].findings[0].path == "p.row"


def test_a_selector_that_is_there_only_now_and_then_is_reported_for_a_broken_tool() -> None:
    rare = '<p class="row new">1<p class="row">2'
    was = recording(got("/", rare, kind="document"), called({"a": 1}))
    page = got("/", ROWS, kind="document")

    assert texts(verdict(was, lived(page, called({"a": 1})))) == []
    assert texts(verdict(was, lived(page, called({})))) == ["p.new finds nothing"]


# --- obstacles ---


@pytest.mark.parametrize(
    ("obstacle", "reason"),
    [
        (got("/api", {}, status=401), "GET /api returns 401"),
        (got("/api", {}, status=403), "the browser seems to be signed out"),
        (got("/api", {}, status=429), "the site limits"),
        (got("/api", {}, status=503), "the site does not work"),
        (failed("/api", "net::ERR_CONNECTION_REFUSED"), "cannot be reached: net::ERR_CONNECTION"),
        (got("/login", "<h1>Hello", kind="document"), "asks for a sign-in (GET /login)"),
        (got("/", '<input type="password">', kind="document"), "asks for a sign-in (GET /)"),
    ],
)
def test_an_obstacle_is_not_drift(obstacle: Exchange, reason: str) -> None:
    was = recording(got("/", ROWS, kind="document"), got("/api", ITEMS), called(ITEMS))

    found = verdict(was, lived(obstacle, called({})))

    assert [(each.state, each.severity, each.findings) for each in found.calls] == [
        ("unknown", None, ())
    ]
    assert reason in found.reason
    assert found.calls[0].reason == found.reason
    assert found.requests == ()


def test_calls_that_are_the_same_stay_so_in_spite_of_an_obstacle() -> None:
    was = recording(got("/api", ITEMS), called(ITEMS), called(1, n=1))

    found = verdict(was, lived(got("/api", {}, status=429), called({}), called(1, n=1)))

    assert [each.state for each in found.calls] == ["unknown", "same"]
    assert found.reason == ""


@pytest.mark.parametrize(
    "usual",
    [
        got("/api", {}, status=401),  # as before
        got("/api", {}, status=503),
        failed("/api", "net::ERR_CONNECTION_REFUSED"),
        failed("/api", "net::ERR_ABORTED"),
        got("/log-in", "<h1>Hello", kind="document"),
        got("/", '<input type="password">', kind="document"),
    ],
)
def test_what_was_so_before_does_not_bar_the_way(usual: Exchange) -> None:
    was = recording(usual, called(ITEMS))

    assert only_call(was, lived(usual, called({}))).state == "drift"


def test_what_the_page_asks_for_itself_need_not_work() -> None:
    was = recording(got("/ads", {}, at=20), called(ITEMS))

    for status in (429, 503):
        live = lived(got("/ads", {}, status=status, at=20), called({}))
        assert (only_call(was, live).state == "drift") is (status == 503)
    assert (
        only_call(was, lived(failed("/ads", "net::ERR_FAILED", at=20), called({}))).state == "drift"
    )
    live = lived(got("/new", {}, status=403, at=20), called({}))
    assert only_call(was, live).state == "drift"


def test_a_recording_that_was_made_signed_in_is_not_judged_signed_out() -> None:
    was = recording(called(ITEMS), storage_state={"cookies": [{"name": "a"}]})

    assert only_call(was, lived(called({}))).state == "unknown"
    assert only_call(was, lived(called({}), is_anonymous=False)).state == "drift"


SIGNED_OUT = got("/", '<input type="password">', kind="document", at=-3)
SIGNED_IN = got("/", "<h1>Hello", kind="document", at=-1)


def post(path: str, *, status: int = 200, at: float = -2.0) -> Exchange:
    return replace(
        got(path, {}, status=status, at=at),
        request=Request("POST", f"https://example.com{path}", kind="fetch"),
    )


@pytest.mark.parametrize(
    ("first", "again", "reason"),
    [
        ([SIGNED_OUT, post("/session"), SIGNED_IN], [SIGNED_OUT], "asks for a sign-in (GET /)"),
        (
            [got("/api/me", {}, status=401), got("/api/me", {"id": 1})],
            [got("/api/me", {}, status=401)],
            "GET /api/me returns 401, so the browser seems to be signed out",
        ),
        ([post("/api/login", status=401), post("/api/login")], [], "signs in (POST /api/login)"),
    ],
)
def test_a_recording_that_began_signed_out_is_not_judged_signed_out(
    first: list[Exchange], again: list[Exchange], reason: str
) -> None:
    was = recording(*first, called(ITEMS))
    failing = lived(*again, called(error={"code": "X"}))
    unready = replace(failing, outcomes=[StepOutcome(unready="chat")])

    for live in (failing, unready):
        found = verdict(was, live)
        assert [(each.state, each.findings) for each in found.calls] == [("unknown", ())]
        assert reason in found.reason
        assert "--signed-in NAME" in found.reason


@pytest.mark.parametrize(
    ("first", "again", "is_anonymous"),
    [
        ([SIGNED_OUT], [SIGNED_OUT], True),  # a form to sign in that is always there
        ([SIGNED_OUT, SIGNED_IN], [SIGNED_OUT, SIGNED_IN], True),
        ([got("/a", 1, status=403), got("/a", 1)], [got("/a", 1, status=403), got("/a", 1)], True),
        ([post("/login", status=401)], [], True),  # nobody was signed in
        ([post("/login", at=5)], [], True),  # only after the call
        ([post("/login")], [], False),
        ([post("/logs")], [], True),
    ],
)
def test_a_tool_that_needs_no_sign_in_is_judged_without_one(
    first: list[Exchange], again: list[Exchange], is_anonymous: bool
) -> None:
    was = recording(*first, called(ITEMS))

    live = lived(*again, called({}), is_anonymous=is_anonymous)

    assert only_call(was, live).state == "drift"


def test_a_page_that_cannot_be_opened_says_nothing() -> None:
    traffic = Recording("https://staging.example/")
    live = LiveRun(traffic, [StepOutcome()], failure="Cannot open it.")

    found = verdict(recording(called(ITEMS)), live)

    assert (found.calls[0].state, found.reason) == ("unknown", "Cannot open it.")
    assert found.url == "https://staging.example/"


def test_a_call_is_not_the_same_if_its_response_could_not_be_read() -> None:
    read, unread = got("/api", {"id": 1}), unread_answer("/api")

    found = verdict(recording(read, called({})), lived(unread, called({})))

    assert (found.calls[0].state, found.calls[0].reason) == (
        "unknown",
        "The response to GET /api could not be read in time. Try again.",
    )
    assert only_call(recording(unread, called({})), lived(unread, called({}))).state == "same"
    assert only_call(recording(read, called({})), lived(unread, called(None))).state == "drift"


def test_a_call_is_the_same_if_its_page_aborts_some_responses_as_it_did() -> None:
    aborts = [got("/api?q=tea", {"id": 1}), unread_answer("/api?q=t")]

    assert only_call(recording(*aborts, called({})), lived(*aborts, called({}))).state == "same"

    none_read = lived(unread_answer("/api?q=tea"), called({}))
    assert only_call(recording(*aborts, called({})), none_read).state == "unknown"


def unread_answer(path: str) -> Exchange:
    answered = got(path)
    assert answered.response is not None
    return replace(answered, response=replace(answered.response, body=None))
