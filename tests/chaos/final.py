"""What is left when everything is quiet: seen by peeking, and counted by management."""

import asyncio
import http.client
import xml.etree.ElementTree as ElementTree

from crash import load
from crash.amqp import Connection, Management
from runner import tokens

ATOM = "{http://schemas.microsoft.com/netservices/2010/10/servicebus/connect}"
COUNTS = "{http://schemas.microsoft.com/netservices/2011/06/servicebus}"
SCHEDULED = 2  # x-opt-message-state


def id_of(message):
    return message.body.decode().split()[0]


async def left(port, places):
    """By place, dead letters apart: the messages that peeking shows."""
    connection = await Connection.open(port)
    try:
        return {place: await load.peek_all(Management(connection, place))
                for name in places for place in (name, f"{name}/$DeadLetterQueue")}
    finally:
        connection.close()


def counts(port, place):
    """(active, dead, scheduled) as the management API has them."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", f"/{place}?api-version=2021-05&enrich=False",
                           headers={"Authorization": tokens.sas(f"http://127.0.0.1/{place}")})
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise RuntimeError(f"management answered {answer.status} for {place}")
    details = next(ElementTree.fromstring(body).iter(f"{ATOM}CountDetails"))
    return tuple(int(details.find(f"{COUNTS}{name}MessageCount").text)
                 for name in ("Active", "DeadLetter", "Scheduled"))


async def write(port, places, history, who):
    """Adds `left` and `counts` of every place. Returns how many messages there are."""
    total = 0
    seen = await left(port, places)
    for place, messages in seen.items():
        history.say(who, "left", **{"from": place, "ids": [id_of(m) for m in messages]})
        total += len(messages)
    for place in places:
        active, dead, scheduled = await asyncio.to_thread(counts, port, place)
        history.say(who, "counts", **{"from": place, "active": active, "dead": dead, "scheduled": scheduled})
    return total
