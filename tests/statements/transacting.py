"""A transaction over AMQP, frame by frame: the Service Bus library for Python has none."""

import contextlib

from transactions import NOT_ALLOWED, ROLLBACK, Transacting, in_transaction
from talk import message
from rule_requests import sql
from wire.values import string


class Transaction:
    """One transaction on a connection of its own."""

    def __init__(self, talk):
        self.talk, self.id, self.senders = talk, talk.begin_one(), {}

    def _sender(self, entity):
        if entity not in self.senders:
            self.senders[entity] = self.talk.sender(entity)
        return self.senders[entity]

    @staticmethod
    def _message(body, partition_key=None, session_id=None, message_id=None):
        annotations = {"x-opt-partition-key": string(partition_key)} if partition_key is not None else None
        return message(body.encode(), message_id=message_id, session=session_id, annotations=annotations)

    def send(self, entity, body, **keys):
        self.talk.send_in(self.id, self._sender(entity), self._message(body, **keys))

    def send_refused(self, entity, body, **keys):
        """The broker says that this is not allowed; what is left is to roll back."""
        self.talk.send_fails(self.id, self._sender(entity), self._message(body, **keys), NOT_ALLOWED)
        self.talk.commit_fails(self.id, ROLLBACK)

    def commit(self):
        self.talk.commit(self.id)

    def roll_back(self):
        self.talk.roll_back(self.id)

    def add_rule_refused(self, subscription, name, expression):
        self.talk.ask(subscription, "add-rule", ("rule-name", string(name)), ("rule-description", sql(expression)),
                      state=in_transaction(self.id)).failed(400, NOT_ALLOWED)


@contextlib.contextmanager
def transaction():
    with Transacting() as talk:
        yield Transaction(talk)
