"""Wrong histories, made of the one that was just found right: a checker that finds nothing wrong in these is of no use.

Each story changes one thing, as a broker with that fault would have it, and says by which letter it must be found.
"""

import collections
import json


class Story:
    """One history; `of` gives the events of a kind with these values."""

    def __init__(self, events):
        self.events = [dict(event) for event in events]

    def of(self, do, **values):
        return [event for event in self.events if event["do"] == do
                and all(event.get(name) == value for name, value in values.items())]

    def drop(self, *gone):
        names = {id(event) for event in gone}
        self.events = [event for event in self.events if id(event) not in names]


def completed(story, **values):
    """(got, settled) of a delivery that was completed outside of a transaction, with an answer; the send had one too,
    and the message may neither come later nor go by itself."""
    accepted = {event["id"] for event in story.of("sent", result="accepted")}
    lasting = {event["id"] for event in story.of("send") if "ttl" not in event and "at" not in event} & accepted
    answers = {(e["who"], e["id"], e["seq"]): e for e in story.of("settled", how="complete", result="accepted")
               if not e["from"].endswith("$DeadLetterQueue")}
    in_transactions = {e["id"] for e in story.of("settle") if "tx" in e}
    for event in story.of("got", **values):
        answer = answers.get((event["who"], event["id"], event["seq"]))
        if answer and event["id"] in lasting and event["id"] not in in_transactions and "until" in event:
            yield event, answer


def lost(story):
    """The broker forgot a message: nobody got it, nobody sees it."""
    event, _ = next(completed(story, **{"from": "plain"}))
    story.drop(*(e for e in story.events if e.get("id") == event["id"] and e["do"] not in ("send", "sent")))


def ghost(story):
    """A message comes back after it was completed."""
    event, answer = next(completed(story))
    story.events.append({**event, "t": answer["t"] + 20_000_000, "until": answer["t"] + 25_000_000})


def doubled(story):
    """Two receivers have the same message at once."""
    for event in story.of("got"):
        if event.get("until", 0) - event["t"] > 4_500_000 and not event.get("session"):
            story.events.append({**event, "t": event["t"] + 1, "who": "somebody-else"})
            return


def miscounted(story):
    """Management counts one more than there is."""
    story.of("counts", **{"from": "plain"})[0]["active"] += 1


def halved(story):
    """A transaction was committed, and one of what it sent is nowhere."""
    done = {event["tx"] for event in story.of("end", how="commit", result="accepted")}
    event = next(event for event in story.of("send", to="inbox") if event.get("tx") in done)
    story.drop(*(e for e in story.events if e.get("id") == event["id"] and e["do"] not in ("send", "sent")))
    for left in story.of("left"):
        left["ids"] = [id_ for id_ in left["ids"] if id_ != event["id"]]


def duplicated(story):
    """A message that was sent twice is there twice, where duplicates are looked for."""
    event, _ = next(completed(story, **{"from": "dedup"}))
    send = story.of("send", id=event["id"])[0]
    again = {"id": "again", "t": send["t"] + 1000}
    story.events += [{**send, **again}, {"t": again["t"] + 1, "who": send["who"], "do": "sent", "id": "again",
                                         "result": "accepted"},
                     {**event, **again, "t": event["t"] + 1000, "seq": event["seq"] + 1_000_000}]
    story.events.append({**event, **again, "t": event["t"] + 1001, "do": "settle", "how": "complete",
                         "seq": event["seq"] + 1_000_000})


def disordered(story):
    """The second message of a session is delivered long before the first."""
    by_session = collections.defaultdict(list)
    accepted = {event["id"] for event in story.of("sent", result="accepted")}
    got = {event["id"] for event in story.of("got", **{"from": "sessions"})}
    for event in story.of("send", to="sessions"):
        if event["id"] in accepted and event["id"] in got:
            by_session[event["who"], event["session"]].append(event["id"])
    first, *_, last = next(ids for ids in by_session.values() if len(ids) > 2)
    times = {}
    for event in story.of("got", **{"from": "sessions"}):
        times.setdefault(event["id"], event["t"])
    late = max(times[first], times[last]) + 60_000_000
    for event in story.events:
        if event.get("id") == first and event["do"] in ("got", "settle", "settled"):
            event["t"] += late - times[first]
            if "until" in event:
                event["until"] += late - times[first]


def early(story):
    """A scheduled message comes before its time."""
    got = {event["id"]: event for event in reversed(story.of("got"))}
    for event in story.of("send"):
        if "at" in event and event["id"] in got:
            event["at"] = got[event["id"]]["t"] + 10_000_000
            return
    raise LookupError("no scheduled message was received")


def expired(story):
    """A message is delivered a minute after its time to live."""
    event, _ = next(completed(story, **{"from": "plain"}))
    story.of("send", id=event["id"])[0]["ttl"] = 1000
    for each in story.events:
        if each.get("id") == event["id"] and each["do"] in ("got", "settle", "settled"):
            each["t"] += 60_000_000
            if "until" in each:
                each["until"] += 60_000_000


STORIES = {"L": lost, "G": ghost, "D": doubled, "C": miscounted, "T": halved, "U": duplicated, "O": disordered,
           "S": early, "X": expired}


def write(events, letter, path):
    """The history of a story, as one file."""
    story = Story(events)
    STORIES[letter](story)
    story.events.sort(key=lambda event: event["t"])
    path.write_text("".join(json.dumps(event) + "\n" for event in story.events))
