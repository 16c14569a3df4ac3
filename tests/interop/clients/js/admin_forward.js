// Forwarding that the administration client sets up: to where, and with whose permission.
'use strict';

const {check} = require('./report.js');
const {fails, same, take} = require('./client.js');
const {admin_with, connected, named, with_data} = require('./admin_client.js');

async function bodies(client, queue, count) {
  const receiver = client.createReceiver(queue);
  const got = await take(receiver, count);
  for (const message of got) await receiver.completeMessage(message);
  return got.map((m) => m.body);
}
async function give_up(receiver) {
  const [message] = await take(receiver, 1);
  await receiver.deadLetterMessage(message);
}
const leads_to = (uri, name, what) => check((uri ?? '').endsWith(`/${name}`), `${what}: ${uri}`);

module.exports = {
  'admin/forward': () => with_data(async (client) => {
    const admin = connected();
    const [on, to, dead] = [named('forward'), named('forward-to'), named('forward-dead')];
    await fails('MessageEntityNotFoundError', () => admin.createQueue(on, {forwardTo: to}));
    await admin.createQueue(to);
    await admin.createQueue(dead);
    const made = await admin.createQueue(on, {forwardTo: to, forwardDeadLetteredMessagesTo: dead});
    leads_to(made.forwardTo, to, 'forwardTo');
    leads_to(made.forwardDeadLetteredMessagesTo, dead, 'forwardDeadLetteredMessagesTo');
    await client.createSender(on).sendMessages({body: 'passed on'});
    same(await bodies(client, to, 1), ['passed on'], 'forwarded');
    const {forwardTo, ...rest} = made;
    same((await admin.updateQueue(rest)).forwardTo, undefined, 'no more');
    await client.createSender(on).sendMessages({body: 'given up'});
    await give_up(client.createReceiver(on));
    same(await bodies(client, dead, 1), ['given up'], 'the dead letter');
    for (const one of [on, to, dead]) await admin.deleteQueue(one);
  }),

  'admin/forward-subscription': () => with_data(async (client) => {
    const admin = connected();
    const [on, to, dead] = [named('forward-s'), named('forward-s-to'), named('forward-s-dead')];
    await admin.createTopic(on);
    await fails('MessageEntityNotFoundError', () => admin.createSubscription(on, 's', {forwardTo: to}));
    await admin.createQueue(to);
    await admin.createQueue(dead);
    const made = await admin.createSubscription(on, 's', {forwardTo: to, forwardDeadLetteredMessagesTo: dead});
    leads_to(made.forwardTo, to, 'forwardTo');
    leads_to(made.forwardDeadLetteredMessagesTo, dead, 'forwardDeadLetteredMessagesTo');
    await client.createSender(on).sendMessages({body: 'passed on'});
    same(await bodies(client, to, 1), ['passed on'], 'forwarded');
    const {forwardTo, ...rest} = made;
    const changed = await admin.updateSubscription(rest);
    same(changed.forwardTo, undefined, 'no more');
    leads_to(changed.forwardDeadLetteredMessagesTo, dead, 'the dead letters still');
    await client.createSender(on).sendMessages({body: 'given up'});
    await give_up(client.createReceiver(on, 's'));
    same(await bodies(client, dead, 1), ['given up'], 'the dead letter');
    await admin.deleteTopic(on);
    await admin.deleteQueue(to);
    await admin.deleteQueue(dead);
  }),

  // The client signs for its whole namespace with the key it has; that key must have Send at the target.
  'admin/forward-rights': async () => {
    const admin = connected();
    const [on, to] = [named('rights'), named('rights-to')];
    const mover = (...accessRights) =>
      [{claimType: 'SharedAccessKey', accessRights, keyName: 'mover', primaryKey: 'move-key', secondaryKey: 'spare-key'}];
    const made = await admin.createQueue(on, {authorizationRules: mover('Manage', 'Send', 'Listen')});
    const target = await admin.createQueue(to, {authorizationRules: mover('Listen')});
    const own = admin_with('mover', 'move-key');
    same((await own.updateQueue({...made, maxDeliveryCount: 3})).maxDeliveryCount, 3, 'what it may change');
    const refused = async (code) => {
      for (const field of ['forwardTo', 'forwardDeadLetteredMessagesTo']) {
        const text = await fails('UnauthorizedRequestError', () => own.updateQueue({...made, [field]: to}));
        check(text.includes(code), `no ${code} in ${text}`);
        same((await admin.getQueue(on))[field], undefined, `${field} was set all the same`);
      }
    };
    await refused('40100');
    await admin.updateQueue({...target, authorizationRules: []});
    await refused('40103');
    await admin.updateQueue({...target, authorizationRules: mover('Send')});
    for (const one of [own, admin]) {
      const both = await one.updateQueue({...made, forwardTo: to, forwardDeadLetteredMessagesTo: to});
      leads_to(both.forwardTo, to, 'forwardTo');
      leads_to(both.forwardDeadLetteredMessagesTo, to, 'forwardDeadLetteredMessagesTo');
      const none = await admin.updateQueue(made);
      same(none.forwardTo, undefined, 'no more');
    }
    await admin.deleteQueue(on);
    await admin.deleteQueue(to);
  },
};
