"""Authorization rules on entities, set by administration clients, and the rotation of their keys."""

from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusAuthorizationError
from azure.servicebus.management import AccessRights, AuthorizationRule, ServiceBusAdministrationClient

from admin import broker, connected, data, fails, name, same, take
from report import check, scenario

UNAUTHORIZED = (ServiceBusAuthenticationError, ServiceBusAuthorizationError)
ALL = [AccessRights.MANAGE, AccessRights.SEND, AccessRights.LISTEN]


def rule(key_name, rights, primary=None, secondary=None):
    return AuthorizationRule(type="SharedAccessAuthorizationRule", claim_type="SharedAccessKey", claim_value="None",
                             key_name=key_name, rights=rights, primary_key=primary, secondary_key=secondary)


def shown(properties):
    return [(r.key_name, r.rights, r.primary_key, r.secondary_key) for r in properties.authorization_rules or []]


def keyed(key_name, key):
    endpoint = f"Endpoint=sb://{broker()['host']}:{broker()['port']};"
    return f"{endpoint}SharedAccessKeyName={key_name};SharedAccessKey={key};"


def data_with(key_name, key):
    return ServiceBusClient.from_connection_string(keyed(key_name, key) + "UseDevelopmentEmulator=true;", retry_total=0,
                                                   socket_timeout=10)


def admin_with(key_name, key):
    return ServiceBusAdministrationClient.from_connection_string(keyed(key_name, key), retry_total=0)


def send(client, on, body):
    with client.get_queue_sender(on) as sender:
        sender.send_messages(ServiceBusMessage(body))


def receive(client, on):
    with client.get_queue_receiver(on) as receiver:
        message = take(receiver, 1)[0]
        receiver.complete_message(message)
        return str(message)


def refused(action):
    try:
        value = action()
    except UNAUTHORIZED as e:
        return str(e)
    raise AssertionError(f"it was allowed: {value!r}")


@scenario("admin/access-rules")
def access_rules():
    with connected() as admin:
        on, topic = name("access"), name("access-t")
        writer = rule("writer", [AccessRights.SEND], "the-key-of-the-writer", "another-key-of-it")
        owner = rule("owner", ALL)
        made = admin.create_queue(on, authorization_rules=[writer, owner])
        found = shown(made)
        same(found[0], ("writer", [AccessRights.SEND], "the-key-of-the-writer", "another-key-of-it"), "as it was set")
        same(found[1][:2], ("owner", ALL), "the one without keys")
        same([len(key) for key in found[1][2:]], [44, 44], "keys made by the broker")
        check(found[1][2] != found[1][3], "its keys are the same")
        same(shown(admin.get_queue(on)), found, "read again")
        same([shown(q) for q in admin.list_queues() if q.name == on], [found], "listed")
        with data_with("writer", "the-key-of-the-writer") as client:
            send(client, on, "written")
            refused(lambda: receive(client, on))
        with data_with("owner", found[1][3]) as client:
            same(receive(client, on), "written", "with a key that the broker made")
        with admin_with("writer", "the-key-of-the-writer") as other:
            fails(ClientAuthenticationError, lambda: other.get_queue(on), "40100")

        about = admin.create_topic(topic, authorization_rules=[rule("reader", [AccessRights.LISTEN], "one", "two")])
        wanted = [("reader", [AccessRights.LISTEN], "one", "two")]
        same(shown(about), wanted, "of a topic")
        about.authorization_rules = [rule("reader", [AccessRights.LISTEN, AccessRights.SEND], "one", "two")]
        admin.update_topic(about)
        same(shown(admin.get_topic(topic)), [("reader", [AccessRights.LISTEN, AccessRights.SEND], "one", "two")],
             "of a topic, changed")
        made.authorization_rules = []
        admin.update_queue(made)
        same(shown(admin.get_queue(on)), [], "none any more")
        with data_with("writer", "the-key-of-the-writer") as client:
            refused(lambda: send(client, on, "too late"))
        fails(HttpResponseError, lambda: admin.create_queue(name("never"), authorization_rules=[
            rule("half", [AccessRights.MANAGE])]), "40000")
        admin.delete_queue(on)
        admin.delete_topic(topic)


@scenario("admin/key-rotation")
def key_rotation():
    with connected() as admin:
        on = name("rotation")
        made = admin.create_queue(on, authorization_rules=[rule("rotor", ALL, "first-key", "second-key")])
        with admin_with("rotor", "first-key") as own:
            same(own.get_queue(on).name, on, "the entity's key over HTTP")
        with data_with("rotor", "first-key") as open_before:
            send(open_before, on, "one")
            made.authorization_rules = [rule("rotor", ALL, "third-key", "second-key")]
            admin.update_queue(made)
            same(shown(admin.get_queue(on)), [("rotor", ALL, "third-key", "second-key")], "rotated")
            refused(lambda: receive(open_before, on))  # a new link on the connection that is open
        with data_with("rotor", "first-key") as client:
            refused(lambda: send(client, on, "never"))
        with admin_with("rotor", "first-key") as own:
            fails(ClientAuthenticationError, lambda: own.get_queue(on), "40103")
        with data_with("rotor", "third-key") as client:
            send(client, on, "two")
        with admin_with("rotor", "third-key") as own:
            same(own.get_queue(on).name, on, "the new key over HTTP")
        with data_with("rotor", "second-key") as client:
            same([receive(client, on), receive(client, on)], ["one", "two"], "with the secondary key")
        # The second one, by the client that holds the first.
        with admin_with("rotor", "third-key") as own:
            made.authorization_rules = [rule("rotor", ALL, "third-key", "fourth-key")]
            own.update_queue(made)
        with data_with("rotor", "second-key") as client:
            refused(lambda: send(client, on, "never"))
        with data_with("rotor", "fourth-key") as client:
            send(client, on, "three")
        with data() as client:
            same(receive(client, on), "three", "what came")
        admin.delete_queue(on)
