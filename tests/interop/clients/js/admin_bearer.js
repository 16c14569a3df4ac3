// The administration client with a credential object: a bearer token of an issuer that the broker trusts.
'use strict';

const {ServiceBusAdministrationClient} = require('@azure/service-bus');
const {check, context} = require('./report.js');
const {fails, same} = require('./client.js');
const {all, named, no_retry} = require('./admin_client.js');

function with_token(kind) {
  const {host, port} = context.brokers.jwt;
  const getToken = async () => ({token: context.jwt[kind], expiresOnTimestamp: Date.now() + 3600000});
  return new ServiceBusAdministrationClient(`${host}:${port}`, {getToken}, no_retry);
}

module.exports = {
  'admin/bearer': async () => {
    const [on, to] = [named('bearer'), named('bearer-to')];
    for (const kind of ['hs256', 'rs256']) {
      const admin = with_token(kind);
      await admin.createQueue(to);
      const made = await admin.createQueue(on, {forwardTo: to, forwardDeadLetteredMessagesTo: to});
      check(made.forwardTo.endsWith(`/${to}`), `forwardTo ${made.forwardTo}`);
      same((await admin.updateQueue({...made, maxDeliveryCount: 3})).maxDeliveryCount, 3, 'updated');
      same((await admin.getQueue(on)).maxDeliveryCount, 3, 'read again');
      same((await all(admin.listQueues())).map((q) => q.name).filter((n) => n.startsWith(on)), [on, to], 'listed');
      await admin.deleteQueue(on);
      await admin.deleteQueue(to);
    }
    for (const [kind, code] of Object.entries(
        {'send-only': '40100', 'expired': '40106', 'other-audience': '40104', 'bad-signature': '40103'})) {
      const text = await fails('UnauthorizedRequestError', () => with_token(kind).createQueue(on));
      check(text.includes(code), `${kind}: no ${code} in ${text}`);
    }
    same((await with_token('send-only').getNamespaceProperties()).name, 'sbemulatorns', 'any right will do');
  },
};
