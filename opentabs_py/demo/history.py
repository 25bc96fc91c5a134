"""The demo site's messages: made up, varied, and the same every time."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

_LAST: Final = datetime(2026, 11, 20, 17, 42, tzinfo=UTC)

_PEOPLE: Final = ("Amara", "Ben", "Chiara", "Dmitri", "Emi", "Farid", "Greta", "Hugo")

# A conversation is lines of `speaker: text`; A, B and C are assigned at random for each one.
_WORK: Final = (
    """A: deploying {service} {version} to {place}
A: {percent}% of traffic is on it, error rate flat
B: latency looks good too, p95 at {small} ms
A: all of it now. Done in {minutes} minutes
C: 🎉 smoothest one this month""",
    """A: is anyone else seeing timeouts from {service}?
B: yes, for {small} minutes now. Looking
B: connection pool was full. {service} kept {count} connections for a report nobody reads
C: I read it
B: …a report one person reads
C: weekly would do, honestly
A: moved it to Sundays. Thanks both""",
    """A: could somebody review #{ticket}? It is small, I promise
B: {count} lines added, {small} removed. You and I mean different things by small
A: most of it is fixtures
B: approved with two questions, neither urgent""",
    """A: reminder: planning for {topic} is at {clock}
B: I will be five minutes late, start without me
C: notes are in the usual place, add yours before we begin
A: thanks. {count} items already, we will not get through them all""",
    """A: the customer in {city} asks whether {topic} can be ready by {day}
B: the risky half is done. I would say {day} is fair
A: may I tell them so?
B: tell them "{day}, and we will say early if that moves"
A: I like that. Sent""",
    """A: odd one: the test for {topic} fails every {small}th run, and only on {day}s
B: only on {day}s?
A: I have {count} runs that say so
C: does it format a date?
A: …it formats a date
C: 😌""",
    """A: wrote up what we learned from the {service} outage: seven minutes to read
B: "we trusted the dashboard because it was green" should go on a mug
C: ordering {small} of them
A: action items are #{ticket} and the two after it""",
    """A: who owns {service} these days?
B: me since spring. What does it need?
A: a restart in {place} around {clock}, and somebody awake
B: I will be there. Ping me when you begin""",
    """A: today I removed {count} lines from {service} and nothing broke
B: are you sure it was running?
A: …
A: it was running. I checked twice
C: best kind of change""",
    """A: new numbers for {topic}: {percent}% of people finish it, it was {small}% in spring
B: what changed?
A: we ask two questions instead of nine
C: and the button says what it does""",
    """A: welcome Nadia, who joins us from {city} today 👋
B: welcome! Ask anything, the odd questions are the good ones
C: her first change is up already, #{ticket}
A: on day one. No pressure on the rest of us""",
    """A: restored the backups of {place} from nothing: {minutes} minutes, {count} tables, all there
B: when did we last try that?
A: never, which is why I tried
C: put it in the calendar, every quarter""",
    """A: the log says {service} retried {count} times in a row
B: with what pause?
A: none
B: so it was less a retry than a knock on the door
A: pause and jitter are in #{ticket}""",
    """A: can we agree on one name for this? I count "{topic}", "the wizard" and "flow {small}"
B: "{topic}". It is what people write to support
A: renaming it everywhere, see #{ticket}""",
    """A: {service} in {place} now starts in {small} ms, down from {count}
B: how?
A: it read its configuration once for every line of its configuration
B: ah. Thorough""",
    """A: pairing on {topic} after lunch, anyone want to join?
B: me, from {clock}
C: I would listen in, if that is all right
A: more than all right""",
    """A: security notes from {city} are in: {small} findings, none of them urgent
B: may I take the one about {service}?
A: it is yours. #{ticket}
B: fixed by {day}""",
    """A: graphs for {place} moved, old links lead to the new place
B: you even kept the bookmarks working?
A: {minutes} minutes of work against {count} messages asking where they went""",
    """A: somebody wrote in to say that {topic} "just works" and they felt uneasy about it
B: print it, frame it
C: ask them whether they also use {service}""",
    """A: moving the {day} review to {clock}, two of us are on trains
B: fine here
C: from {city}, fine with good coffee""",
    """A: I have a draft for how {service} and {topic} should talk to each other
B: reading… section two, is the order of messages promised?
A: per sender, yes. Between senders, no
B: then say so in bold, somebody will build on it
A: bold it is""",
    """A: disk in {place} at {percent}%
B: it is the traces. {count} GB of them
A: keep {small} days?
B: {small} days is plenty. Done, back to comfortable""",
    """A: question from {city}: does {topic} work with a keyboard alone?
B: all but the date field
C: the date field as of #{ticket}, an hour ago
A: you are quick
C: I am embarrassed, which helps""",
)
_CHATTER: Final = (
    """A: the {city} café has the cardamom buns again
B: save me one?
A: I have saved you {small}
C: this is why I come here""",
    """A: my neighbour's cat now attends our stand-up
B: does it have blockers?
A: a door""",
    """A: found a {count}-piece puzzle of plain white in {city}
B: who would do that to a person
C: I finished one of those. Took {minutes} evenings. I regret nothing""",
    """A: book club on {day}: everybody read up to page {count}?
B: define read
C: I listened to it at {small} times the speed
A: so, no""",
    """A: rode in from {city} this morning, {small} km of headwind
B: and the way home?
A: headwind. It turned round at {clock} exactly""",
    """A: what is the word for when you open the fridge, forget why, and close it again?
B: a cache miss
C: A, you asked this at {clock} yesterday too
A: a warm cache, then""",
)

_SLOTS: Final[Mapping[str, tuple[str, ...]]] = {
    "service": ("billing", "search", "the mail gateway", "sync", "invites", "the image resizer"),
    "place": ("eu-west", "staging", "the Tokyo region", "production"),
    "topic": ("sign-up", "the export", "offline mode", "the importer", "calendar sharing"),
    "city": ("Lisbon", "Osaka", "Nairobi", "Tallinn", "Porto Alegre", "Leeds"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
}


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a channel.

    Attributes:
        text: What was written.
        author: By whom.
        timestamp: When: ISO 8601, UTC; later messages have later ones.
    """

    text: str
    author: str
    timestamp: str


def timestamp(at: datetime) -> str:
    """Return a UTC time in the format of messages, whose text sorts chronologically."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def past_messages() -> dict[str, list[ChatMessage]]:
    """Return every channel's messages, oldest first."""
    return {
        "general": _history(seed=1, count=300, conversations=_WORK),
        "random": _history(seed=2, count=60, conversations=_CHATTER),
        "empty": [],
    }


def _history(*, seed: int, count: int, conversations: tuple[str, ...]) -> list[ChatMessage]:
    draw = random.Random(seed)  # noqa: S311  # the same chat each time; no secret
    lines = _lines(draw, conversations)
    spoken = [next(lines) for _ in range(count)]
    # Generated from the end, so that the newest message has the same age whatever the count.
    at = _LAST
    messages: list[ChatMessage] = []
    for author, text, pause in reversed(spoken):
        messages.append(ChatMessage(text, author, timestamp(at)))
        at = _at_work(at - pause)
    messages.reverse()
    return messages


def _at_work(at: datetime) -> datetime:
    """Move a time backwards, out of nights and weekends."""
    if at.hour < 8:
        at -= timedelta(hours=14)
    while at.weekday() >= 5:  # Saturday, Sunday
        at -= timedelta(days=1)
    return at


def _lines(
    draw: random.Random, conversations: tuple[str, ...]
) -> Iterator[tuple[str, str, timedelta]]:
    """Yield author, text and the time since the previous line, endlessly."""
    order = draw.sample(conversations, len(conversations))  # the same each round, so far apart
    while True:
        for conversation in order:
            speakers = dict(zip("ABC", draw.sample(_PEOPLE, 3), strict=True))
            words = _words(draw)
            pause = timedelta(minutes=draw.randint(25, 190), seconds=draw.randint(0, 59))
            for line in conversation.splitlines():
                role, _, text = line.partition(": ")
                yield speakers[role], text.format_map(words), pause
                pause = timedelta(seconds=draw.randint(9, 240))


def _words(draw: random.Random) -> dict[str, str]:
    return {
        **{slot: draw.choice(words) for slot, words in _SLOTS.items()},
        "version": f"{draw.randint(2, 5)}.{draw.randint(0, 30)}.{draw.randint(0, 9)}",
        "percent": str(draw.randint(52, 95)),
        "small": str(draw.randint(3, 49)),
        "count": str(draw.randint(90, 940)),
        "minutes": str(draw.randint(4, 38)),
        "ticket": str(draw.randint(1200, 4800)),
        "clock": f"{draw.randint(9, 17)}:{draw.choice(('00', '10', '15', '30', '45'))}",
    }
