"""Qpid Proton (Python) with transactions: its own Transaction, on a connection of its reactor.

The scenarios are small state machines, as programs with this library are: a handler per scenario.
Scenario names: runner/scenarios.py.
"""

from proton import Delivery, Message
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container

from plain_queues import inbox, nothing, put, same, settle, take, with_queue
from report import check, context

LIMIT = 15
TRANSACTIONAL = 0x34


class Work(MessagingHandler, TransactionHandler):
    """Moves the messages of one queue to another, each in a transaction; `commits` says for each how it ends."""

    def __init__(self, source, target, commits):
        super().__init__(prefetch=0, auto_accept=False)
        self.source, self.target, self.commits = source, target, list(commits)
        self.ended, self.trouble = [], None
        self.delivery = self.transaction = None

    def on_start(self, event):
        broker = context["brokers"]["queues"]
        self.container = event.container
        self.connection = event.container.connect(
            f"amqp://{broker['host']}:{broker['port']}", user=context["rule"], password=context["key"],
            allowed_mechs="PLAIN", allow_insecure_mechs=True, reconnect=False)
        self.receiver = event.container.create_receiver(self.connection, self.source)
        self.sender = event.container.create_sender(self.connection, self.target)
        self.watch = event.container.schedule(LIMIT, self)
        self.next()

    def next(self):
        if self.commits:
            self.container.declare_transaction(self.connection, handler=self)
        else:
            self.watch.cancel()
            self.connection.close()

    def on_transaction_declared(self, event):
        self.transaction = event.transaction
        self.receiver.flow(1)

    def on_message(self, event):
        self.delivery = event.delivery
        self.transaction.send(self.sender, Message(body=f"{event.message.body} moved"))
        self.transaction.accept(event.delivery)

    def on_settled(self, event):
        """What was sent has its outcome, within the transaction."""
        if event.link == self.sender:
            if event.delivery.remote_state != TRANSACTIONAL:
                self._fail(f"the outcome of the message is {event.delivery.remote_state}")
            elif self.commits.pop(0):
                self.transaction.commit()
            else:
                self.transaction.abort()

    def on_transaction_committed(self, event):
        self.ended.append("committed")
        self.next()

    def on_transaction_aborted(self, event):
        self.ended.append("aborted")
        self.next()

    def _fail(self, why):
        self.trouble = why
        self.connection.close()

    def on_transaction_declare_failed(self, event):
        self._fail("declare failed")

    def on_transaction_commit_failed(self, event):
        self._fail("commit failed")

    def on_rejected(self, event):
        self._fail(f"rejected: {event.delivery.remote.condition}")

    def on_timer_task(self, event):
        self._fail(f"no end after {LIMIT} s; so far {self.ended}")


def run(source, target, *commits):
    work = Work(source, target, commits)
    Container(work).run()
    check(work.trouble is None, work.trouble)
    return work.ended


def other(name):
    return context["partners"][name]


@with_queue("transaction/move")
def move(connection, queue):
    target = other("transaction/move")
    put(connection, queue, "a", "b")
    same(run(queue, target, True, True), ["committed", "committed"], "ends")
    nothing(connection, inbox(connection, queue))
    arrived = inbox(connection, target)
    same([m.body for m in take(arrived, 2)], ["a moved", "b moved"], "moved")
    for _ in range(2):
        settle(connection, arrived, Delivery.ACCEPTED)


@with_queue("transaction/rollback")
def rollback(connection, queue):
    target = other("transaction/rollback")
    put(connection, queue, "a")
    same(run(queue, target, False), ["aborted"], "ends")
    nothing(connection, inbox(connection, target))
    # The message is its receiver's until the lock ends; then it has been tried once.
    back = inbox(connection, queue)
    [got] = take(back)
    same((got.body, got.delivery_count), ("a", 1), "the message that came back")
    settle(connection, back, Delivery.ACCEPTED)
