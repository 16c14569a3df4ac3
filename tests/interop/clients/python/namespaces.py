"""A namespace of its own for a test: made, used by its host name with unchanged clients, and dropped."""

import base64
import hashlib
import hmac
import http.client
import json
import os
import socket
import time
import urllib.parse

from azure.core.exceptions import ResourceExistsError
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError
from azure.servicebus.management import ServiceBusAdministrationClient

from report import check, context, scenario

# What nss-myhostname, a hosts file or a name server does on the machines of users.
_resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **named: _resolve(
    "127.0.0.1" if str(host).endswith(".localhost") else host, *rest, **named)


def ask(method, path):
    broker = context["brokers"]["namespaces"]
    scope, until = urllib.parse.quote_plus(f"http://{broker['host']}"), int(time.time()) + 600
    sign = hmac.new(b"SAS_KEY_VALUE", f"{scope}\n{until}".encode(), hashlib.sha256).digest()
    token = (f"SharedAccessSignature sr={scope}&sig={urllib.parse.quote_plus(base64.b64encode(sign))}&se={until}"
             "&skn=RootManageSharedAccessKey")
    connection = http.client.HTTPConnection("127.0.0.1", broker["port"], timeout=20)
    connection.request(method, path, headers={"Authorization": token, "Host": broker["host"]})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def data(connection_string):
    return ServiceBusClient.from_connection_string(connection_string, retry_total=0, socket_timeout=10)


@scenario("namespace/own")
def own():
    broker = context["brokers"]["namespaces"]
    os.environ["REQUESTS_CA_BUNDLE"] = context["ca_bundle"]
    status, text = ask("PUT", "/$omnibus/namespaces/own-python")
    check(status == 201, f"making it: {status} {text}")
    mine = json.loads(text)["ConnectionString"]
    over_tls = mine.replace("UseDevelopmentEmulator=true;", "")

    with ServiceBusAdministrationClient.from_connection_string(over_tls, retry_total=0) as admin, \
            ServiceBusAdministrationClient.from_connection_string(broker["tls"], retry_total=0) as outside:
        check(admin.get_namespace_properties().name == "own-python", "the name")
        admin.create_queue("shared")
        admin.create_queue("only-here")
        try:
            outside.create_queue("shared")
        except ResourceExistsError:
            pass  # another client was here
        names = [queue.name for queue in admin.list_queues()]
        check(names == ["only-here", "shared"], f"queues: {names}")
        check("only-here" not in [queue.name for queue in outside.list_queues()], "it is in the default one too")

    with data(mine) as inside, data(broker["emulator"]) as outside:
        for client, body in ((inside, "in"), (outside, "out")):
            with client.get_queue_sender("shared") as sender:
                sender.send_messages(ServiceBusMessage(body))
        with inside.get_queue_receiver("shared") as receiver:
            got = [str(message) for message in receiver.receive_messages(max_message_count=5, max_wait_time=3)]
        check(got == ["in"], f"received {got}")
        with inside.get_queue_sender("shared") as sender:
            check(ask("DELETE", "/$omnibus/namespaces/own-python")[0] == 200, "dropping it")
            try:
                sender.send_messages(ServiceBusMessage("late"))
                check(False, "a message went to a namespace that is gone")
            except ServiceBusError:
                pass
