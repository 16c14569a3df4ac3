"""azure-servicebus as a client of the chaos run: each role is a thread with a connection of its own.

The SDK retries nothing: an answer that did not come is unknown, and the role connects again. Commands come
on standard input: `quiet` ends the senders, `stop` everything.

One thing is weaker here than in the other clients: when the answer to a settlement does not come, this SDK settles
once more over the management link, so that "lock lost" may be the answer to the second try. It counts as unknown.
"""

import datetime
import json
import logging
import random
import sys
import threading

from azure.servicebus import (NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue)
from azure.servicebus.exceptions import (MessageNotFoundError, MessageSizeExceededError, OperationTimeoutError,
                                         ServiceBusError, ServiceBusQuotaExceededError, ServiceBusServerBusyError)

from history import History, now

REFUSED = (ServiceBusServerBusyError, ServiceBusQuotaExceededError, MessageSizeExceededError)
ANSWER_SECONDS = 8
UTC = datetime.timezone.utc
# What the SDK raises when its connection goes away under it: its own errors, sockets', and those of its state
# machine, which are of many kinds. None of them says what the broker did, so the result is unknown.
TROUBLE = (ServiceBusError, OSError, ValueError, AttributeError, RuntimeError, TypeError, KeyError, AssertionError)

quiet, stop = threading.Event(), threading.Event()


def microseconds(time_):
    return time_ and int(time_.timestamp() * 1_000_000)


class Role:
    def __init__(self, spec, history, how, number):
        self.how, self.history = how, history
        self.who = f"{spec['name']}-{number}"
        self.random = random.Random(f"{spec['seed']} {self.who}")
        self.connection_string = spec["connection"]
        self.number = 0
        self.troubles = {}

    def say(self, do, **fields):
        self.history.say(self.who, do, **fields)

    def run(self):
        ended = quiet if self.how["role"] == "send" else stop
        while not ended.is_set():
            try:
                with ServiceBusClient.from_connection_string(self.connection_string, retry_total=0,
                                                             socket_timeout=ANSWER_SECONDS) as client:
                    self.work(client, ended)
            except TROUBLE as e:
                name = type(e).__name__
                self.troubles[name] = self.troubles.get(name, 0) + 1
                ended.wait(0.1 + self.random.random() * 0.3)

    def pause(self, ended):
        ended.wait(self.random.random() * 2 / self.how["rate"])


class Sender(Role):
    """`to`, `rate` a second; `topic`, `sessions`, `keys`, `dedup`, `later`, `mortal` say what else."""

    def work(self, client, ended):
        open_ = client.get_topic_sender if self.how.get("topic") else client.get_queue_sender
        with open_(self.how["to"]) as sender:
            while not ended.is_set():
                self.send(sender)
                self.pause(ended)

    def send(self, sender):
        count = self.random.randint(2, 5) if self.random.random() < 0.2 and not self.how.get("dedup") else 1
        batch = f"{self.who}.b{self.number}" if count > 1 else None
        one = self.shape()
        ids = [self.new_id() for _ in range(count)]
        messages = [self.message(id_, one) for id_ in ids]
        for id_ in ids:
            self.say("send", id=id_, to=self.how["to"], batch=batch, mid=one.get("mid"), **one["told"])
        result = "unknown"
        try:
            sender.send_messages(messages if batch else messages[0], timeout=ANSWER_SECONDS)
            result = "accepted"
        except REFUSED:
            result = "refused"
        finally:
            for id_ in ids:
                self.say("sent", id=id_, result=result)
            self.again = one if one.get("mid") and result != "accepted" else None

    again = None

    def shape(self):
        """What messages of one call have in common; what was not answered is sent again where duplicates are found."""
        if self.again:
            return self.again
        told, options = {}, {}
        if self.how.get("sessions"):
            told["session"] = options["session_id"] = f"s{self.random.randrange(self.how['sessions'])}"
        if self.how.get("keys"):
            told["key"] = options["partition_key"] = f"k{self.random.randrange(self.how['keys'])}"
        kind = self.random.random()
        if kind < self.how.get("later", 0):
            due = datetime.datetime.now(UTC) + datetime.timedelta(seconds=self.random.uniform(0.5, 3))
            due = due.replace(microsecond=due.microsecond // 1000 * 1000)
            options["scheduled_enqueue_time_utc"], told["at"] = due, microseconds(due)
        elif kind < self.how.get("later", 0) + self.how.get("mortal", 0):
            life = self.random.randint(500, 3000)
            options["time_to_live"], told["ttl"] = datetime.timedelta(milliseconds=life), life * 1000
        one = {"told": told, "options": options}
        if self.how.get("dedup"):
            one["mid"] = options["message_id"] = f"{self.who}.m{self.number}"
        return one

    def new_id(self):
        self.number += 1
        return f"{self.who}.{self.number}"

    def message(self, id_, one):
        size = self.random.randint(0, 200) if self.random.random() < 0.95 else self.random.randint(1_000, 150_000)
        return ServiceBusMessage(f"{id_} " + "x" * size, **one["options"])


class Receiver(Role):
    """`from`, either a queue or a topic with `subscription`; `dead` for its dead letters."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.deferred = []
        how = self.how
        self.place = f"{how['from']}/Subscriptions/{how['subscription']}" if "subscription" in how else how["from"]
        if how.get("dead"):
            self.place += "/$DeadLetterQueue"

    def open(self, client, **options):
        if self.how.get("dead"):
            options["sub_queue"] = ServiceBusSubQueue.DEAD_LETTER
        if "subscription" in self.how:
            return client.get_subscription_receiver(self.how["from"], self.how["subscription"], **options)
        return client.get_queue_receiver(self.how["from"], **options)

    def work(self, client, ended):
        with self.open(client) as receiver:
            while not ended.is_set():
                self.deal_with(receiver, receiver.receive_messages(self.random.randint(1, 8), max_wait_time=1))
                self.look_after(receiver)

    def deal_with(self, receiver, messages, **how):
        """All are told before anything is done with the first: what was delivered before a crash is told soon."""
        for message, what in [(message, self.told(message, **how)) for message in messages]:
            if what:
                self.deal(receiver, message, what, **how)

    def told(self, message, until=None, deferred=False):
        """None when its lock was over before it came out of the SDK: nobody counts on it then."""
        until = until or microseconds(message.locked_until_utc)
        if until <= now():
            return None
        id_ = b"".join(message.body).decode().split()[0]
        what = {"id": id_, "from": self.place, "seq": message.sequence_number}
        self.say("got", **what, count=message.delivery_count + 1, session=message.session_id, until=until,
                 dead=message.dead_letter_reason)
        return what

    def deal(self, receiver, message, what, until=None, deferred=False):
        kind = self.random.random()
        # What is deferred expires only when it is fetched, which nobody may do.
        mortal = message.time_to_live and message.time_to_live < datetime.timedelta(minutes=1)
        if kind < 0.04 and not message.session_id and not deferred:
            renewed = receiver.renew_message_lock(message)
            self.say("renewed", **what, until=microseconds(renewed))
        if kind > 0.97:
            return  # left alone, until its lock ends
        how, settle = "complete", receiver.complete_message
        if not self.how.get("dead") and not deferred:
            if kind > 0.92:
                how, settle = "abandon", receiver.abandon_message
            elif kind > 0.88:
                how, settle = "dead-letter", self.bury(receiver)
            elif kind > 0.85 and not message.session_id and not mortal:
                how, settle = "defer", receiver.defer_message
        if not message.session_id and until is None and microseconds(message.locked_until_utc) <= now():
            return  # the SDK would refuse to ask
        self.settle(what, how, settle, message)
        if how == "defer":
            self.deferred.append(message.sequence_number)

    @staticmethod
    def bury(receiver):
        return lambda message: receiver.dead_letter_message(message, reason="chaos", error_description="by chance")

    def settle(self, what, how, settle, message):
        self.say("settle", **what, how=how)
        result = "unknown"
        try:
            settle(message)
            result = "accepted"
        finally:
            self.say("settled", **what, how=how, result=result)

    def look_after(self, receiver):
        """What was deferred is fetched by its number, once there is some of it."""
        if len(self.deferred) < 3:
            return
        number = self.deferred.pop(0)
        try:
            [message] = receiver.receive_deferred_messages([number])
        except (MessageNotFoundError, ValueError):
            return
        except TROUBLE:
            self.deferred.append(number)
            raise
        self.deal_with(receiver, [message], deferred=True)


class Sessions(Receiver):
    """Takes one session after the other, some messages of each."""

    def work(self, client, ended):
        while not ended.is_set():
            try:
                with self.open(client, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=2) as receiver:
                    self.serve(receiver, ended)
            except OperationTimeoutError:
                continue  # no session has messages

    def serve(self, receiver, ended):
        session = receiver.session.session_id
        until = microseconds(receiver.session.locked_until_utc)
        self.say("locked", session=session, **{"from": self.place}, until=until)
        try:
            for _ in range(self.random.randint(1, 4)):
                if ended.is_set():
                    return
                if self.random.random() < 0.3:
                    until = microseconds(receiver.session.renew_lock())
                    self.say("renewed", session=session, **{"from": self.place}, until=until)
                messages = receiver.receive_messages(self.random.randint(1, 6), max_wait_time=0.5)
                self.deal_with(receiver, messages, until=until)
        finally:
            self.say("unlocked", session=session, **{"from": self.place})


ROLES = {"send": Sender, "receive": Receiver, "sessions": Sessions}


def main(path):
    logging.disable(logging.CRITICAL)
    broken = []

    def report(what):
        broken.append(what)
        threading.__excepthook__(what)

    threading.excepthook = report
    with open(path, encoding="utf-8") as file:
        spec = json.load(file)
    history = History(spec["log"])
    roles = [ROLES[how["role"]](spec, history, how, number) for number, how in enumerate(spec["roles"])]
    threads = [threading.Thread(target=role.run) for role in roles]
    for thread in threads:
        thread.start()
    for line in sys.stdin:
        if line.strip() == "quiet":
            quiet.set()
        else:
            break
    quiet.set()
    stop.set()
    for thread in threads:
        thread.join()
    for role in roles:
        print(f"{role.who} {role.how['role']}: {role.troubles}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
