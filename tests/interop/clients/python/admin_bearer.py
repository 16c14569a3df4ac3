"""Administration clients with a credential object: a bearer token of an issuer that the broker trusts."""

import asyncio
import time

from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from azure.servicebus.aio.management import ServiceBusAdministrationClient as AsyncClient
from azure.servicebus.management import ServiceBusAdministrationClient

from admin import fails, name, same
from report import check, context, scenario


class Credential:
    def __init__(self, which):
        self.token = context["jwt"][which]

    def get_token(self, *scopes, **options):
        check(scopes == ("https://servicebus.azure.net//.default",), f"scopes {scopes}")
        return AccessToken(self.token, int(time.time()) + 3600)


class AsyncCredential(Credential):
    async def get_token(self, *scopes, **options):
        return super().get_token(*scopes, **options)

    async def close(self):
        pass


def address():
    return f"{context['brokers']['jwt']['host']}:{context['brokers']['jwt']['port']}"


@scenario("admin/bearer")
def bearer():
    on, to = name("bearer"), name("bearer-to")
    for kind in ("hs256", "rs256"):
        with ServiceBusAdministrationClient(address(), Credential(kind), retry_total=0) as admin:
            admin.create_queue(to)
            made = admin.create_queue(on, forward_to=to, forward_dead_lettered_messages_to=to)
            check(made.forward_to.endswith("/" + to), f"forward_to {made.forward_to}")
            made.max_delivery_count = 3
            admin.update_queue(made)
            same(admin.get_queue(on).max_delivery_count, 3, "updated")
            same([q.name for q in admin.list_queues() if q.name.startswith(on)], [on, to], "listed")
            admin.delete_queue(on)
            admin.delete_queue(to)
    for kind, code in (("send-only", "40100"), ("expired", "40106"), ("other-audience", "40104"),
                       ("bad-signature", "40103")):
        with ServiceBusAdministrationClient(address(), Credential(kind), retry_total=0) as admin:
            fails(ClientAuthenticationError, lambda: admin.create_queue(on), code)
    with ServiceBusAdministrationClient(address(), Credential("send-only"), retry_total=0) as admin:
        same(admin.get_namespace_properties().name, "sbemulatorns", "any right will do")
    asyncio.run(async_bearer(on))


async def async_bearer(on):
    for kind in ("hs256", "expired"):
        async with AsyncClient(address(), AsyncCredential(kind), retry_total=0) as admin:
            try:
                same((await admin.create_queue(on)).name, on, "created")
                await admin.delete_queue(on)
                same(kind, "hs256", "it was allowed")
            except ClientAuthenticationError as e:
                check(kind == "expired" and "40106" in str(e), str(e))
