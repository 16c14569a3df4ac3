"""Forwarding that administration clients set up: to where, and with whose permission."""

import http.client
import xml.etree.ElementTree as ElementTree

from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.servicebus import ServiceBusMessage
from azure.servicebus.management import AccessRights

from admin import connected, data, fails, name, same, take
from admin_access import ALL, admin_with, rule
from report import check, context, scenario


def publish(client, topic, *bodies):
    with client.get_topic_sender(topic) as sender:
        for body in bodies:
            sender.send_messages(ServiceBusMessage(body))


def bodies(client, queue, count):
    with client.get_queue_receiver(queue) as receiver:
        got = take(receiver, count)
        for message in got:
            receiver.complete_message(message)
        return [str(m) for m in got]


@scenario("admin/forward")
def forward():
    with connected() as admin, data() as client:
        on, to, dead = name("forward"), name("forward-to"), name("forward-dead")
        fails(ResourceNotFoundError, lambda: admin.create_queue(on, forward_to=to))
        admin.create_queue(to)
        admin.create_queue(dead)
        made = admin.create_queue(on, forward_to=to, forward_dead_lettered_messages_to=dead)
        check(made.forward_to.endswith("/" + to), f"forward_to {made.forward_to}")
        check(made.forward_dead_lettered_messages_to.endswith("/" + dead), "forward dead letters")
        with client.get_queue_sender(on) as sender:
            sender.send_messages(ServiceBusMessage("passed on"))
        same(bodies(client, to, 1), ["passed on"], "forwarded")
        made.forward_to = None
        admin.update_queue(made)
        check(admin.get_queue(on).forward_to is None, "still forwards")
        with client.get_queue_sender(on) as sender:
            sender.send_messages(ServiceBusMessage("given up"))
        with client.get_queue_receiver(on) as receiver:
            receiver.dead_letter_message(take(receiver, 1)[0])
        same(bodies(client, dead, 1), ["given up"], "the dead letter")
        fails(HttpResponseError, lambda: admin.create_queue(name("forward-self"), forward_to=name("forward-self")),
              "40000")
        for one in (on, to, dead):
            admin.delete_queue(one)


@scenario("admin/forward-subscription")
def forward_subscription():
    with connected() as admin, data() as client:
        on, to, dead = name("forward-s"), name("forward-s-to"), name("forward-s-dead")
        admin.create_topic(on)
        fails(ResourceNotFoundError, lambda: admin.create_subscription(on, "s", forward_to=to))
        admin.create_queue(to)
        admin.create_queue(dead)
        made = admin.create_subscription(on, "s", forward_to=to, forward_dead_lettered_messages_to=dead)
        check(made.forward_to.endswith("/" + to), f"forward_to {made.forward_to}")
        check(made.forward_dead_lettered_messages_to.endswith("/" + dead), "forward dead letters")
        publish(client, on, "passed on")
        same(bodies(client, to, 1), ["passed on"], "forwarded")
        made.forward_to = None
        admin.update_subscription(on, made)
        found = admin.get_subscription(on, "s")
        check(found.forward_to is None, "still forwards")
        check(found.forward_dead_lettered_messages_to.endswith("/" + dead), "its dead letters no longer")
        publish(client, on, "given up")
        with client.get_subscription_receiver(on, "s") as receiver:
            receiver.dead_letter_message(take(receiver, 1)[0])
        same(bodies(client, dead, 1), ["given up"], "the dead letter")
        admin.delete_topic(on)
        admin.delete_queue(to)
        admin.delete_queue(dead)


@scenario("admin/forward-rights")
def forward_rights():
    """The client signs for the target with the key it has; that key must have Send there."""
    with connected() as admin:
        on, to = name("rights"), name("rights-to")
        made = admin.create_queue(on, authorization_rules=[rule("mover", ALL, "move-key", "spare-key")])
        target = admin.create_queue(to, authorization_rules=[
            rule("mover", [AccessRights.LISTEN], "move-key", "spare-key")])
        with admin_with("mover", "move-key") as mover:
            for field in ("forward_to", "forward_dead_lettered_messages_to"):
                setattr(made, field, to)
                fails(ClientAuthenticationError, lambda: mover.update_queue(made), "40100")
                check(getattr(admin.get_queue(on), field) is None, "it was set all the same")
                setattr(made, field, None)
            target.authorization_rules = []
            admin.update_queue(target)
            made.forward_to = to
            fails(ClientAuthenticationError, lambda: mover.update_queue(made), "40103")
            target.authorization_rules = [rule("mover", [AccessRights.SEND], "move-key", "spare-key")]
            admin.update_queue(target)
            made.forward_dead_lettered_messages_to = to
            mover.update_queue(made)
        found = admin.get_queue(on)
        check(found.forward_to.endswith("/" + to), "forward_to")
        check(found.forward_dead_lettered_messages_to.endswith("/" + to), "forward dead letters")
        admin.delete_queue(on)
        admin.delete_queue(to)


FORWARD, DEAD = "ServiceBusSupplementaryAuthorization", "ServiceBusDlqSupplementaryAuthorization"
DESCRIPTION = """<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">
<{kind}Description xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">
<ForwardTo>{to}</ForwardTo><ForwardDeadLetteredMessagesTo>{to}</ForwardDeadLetteredMessagesTo>
</{kind}Description></content></entry>"""


@scenario("admin/forward-headers")
def forward_headers():
    """Every form of a token in these headers, as no one client sends them all."""
    jwt, own = context["jwt"], context["brokers"]["jwt"]
    sas = own["tokens"]
    on, to, topic = name("headers"), name("headers-to"), name("headers-t")

    def request(method, path, body=None, **headers):
        connection = http.client.HTTPConnection(own["host"], own["port"], timeout=10)
        try:
            connection.request(method, path, body, {"Authorization": sas["namespace"], **headers})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def put(path, kind, **headers):
        status, text = request("PUT", path, DESCRIPTION.format(kind=kind, to=to), **headers)
        return status, "" if status == 201 else ElementTree.fromstring(text).findtext("Detail").split(".")[0]

    empty = '<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><{0}Description/></content></entry>'
    same(request("PUT", f"/{to}", empty.format("Queue"))[0], 201, "the target")
    same(request("PUT", f"/{topic}", empty.format("Topic"))[0], 201, "the topic")
    good = [sas["namespace"], sas["send_only"], jwt["hs256"], jwt["rs256"], jwt["send-only"], "Bearer " + jwt["hs256"],
            "bearer " + jwt["send-only"]]
    bad = [(sas["listen_only"], "40100"), (jwt["listen-only"], "40100"), ("Bearer " + jwt["listen-only"], "40100"),
           (sas["expired"], "40106"), (jwt["expired"], "40106"), (sas["bad_signature"], "40103"),
           (jwt["bad-signature"], "40103"), (sas["other"], "40104"), (jwt["other-audience"], "40104"),
           ("nonsense", "40105")]
    for path, kind in ((f"/{on}", "Queue"), (f"/{topic}/Subscriptions/s", "Subscription")):
        for token in good:
            same(put(path, kind, **{FORWARD: token, DEAD: token}), (201, ""), f"{kind} with {token[:30]}")
            same(request("DELETE", path)[0], 200, "deleted")
        for token, code in bad:
            for headers in ({FORWARD: token}, {DEAD: token}, {FORWARD: token, DEAD: good[0]}):
                same(put(path, kind, **headers), (401, f"SubCode={code}"), f"{kind} with {token[:30]} in {list(headers)}")
        same(put(path, kind), (201, ""), "without the headers")
        same(request("DELETE", path)[0], 200, "deleted")
    for path in (to, topic):
        request("DELETE", f"/{path}")
    return f"{len(good)} good ones, {len(bad)} bad ones"
