// Authorization rules on entities, set by the administration client, and the rotation of their keys.
'use strict';

const {check} = require('./report.js');
const {fails, same, take} = require('./client.js');
const {admin_with, all, connected, data_with, named, with_data} = require('./admin_client.js');

const ALL = ['Manage', 'Send', 'Listen'];
const rule = (keyName, accessRights, primaryKey, secondaryKey) =>
  ({claimType: 'SharedAccessKey', accessRights, keyName, primaryKey, secondaryKey});
const shown = (properties) => (properties.authorizationRules ?? [])
  .map((r) => rule(r.keyName, r.accessRights, r.primaryKey, r.secondaryKey));

const send = (client, on, body) => client.createSender(on).sendMessages({body});
async function receive(client, on) {
  const receiver = client.createReceiver(on);
  const [message] = await take(receiver, 1);
  await receiver.completeMessage(message);
  await receiver.close();
  return message.body;
}
const refused = (action) => fails('UnauthorizedAccess', action);

module.exports = {
  'admin/access-rules': async () => {
    const admin = connected();
    const [on, topic] = [named('access'), named('access-t')];
    const writer = rule('writer', ['Send'], 'the-key-of-the-writer', 'another-key-of-it');
    const made = await admin.createQueue(on, {authorizationRules: [writer, rule('owner', ALL)]});
    const [first, owner] = shown(made);
    same(first, writer, 'as it was set');
    same([owner.keyName, owner.accessRights], ['owner', ALL], 'the one without keys');
    same([owner.primaryKey.length, owner.secondaryKey.length], [44, 44], 'keys made by the broker');
    check(owner.primaryKey !== owner.secondaryKey, 'its keys are the same');
    same(shown(await admin.getQueue(on)), [writer, owner], 'read again');
    same(shown((await all(admin.listQueues())).find((q) => q.name === on)), [writer, owner], 'listed');
    await data_with('writer', 'the-key-of-the-writer', async (client) => {
      await send(client, on, 'written');
      await refused(() => receive(client, on));
    });
    await data_with('owner', owner.secondaryKey, async (client) =>
      same(await receive(client, on), 'written', 'with a key that the broker made'));
    await fails('UnauthorizedRequestError', () => admin_with('writer', 'the-key-of-the-writer').getQueue(on));

    const about = await admin.createTopic(topic, {authorizationRules: [rule('reader', ['Listen'], 'one', 'two')]});
    same(shown(about), [rule('reader', ['Listen'], 'one', 'two')], 'of a topic');
    const more = [rule('reader', ['Listen', 'Send'], 'one', 'two')];
    same(shown(await admin.updateTopic({...about, authorizationRules: more})), more, 'of a topic, changed');
    same(shown(await admin.getTopic(topic)), more, 'of a topic, read again');
    same(shown(await admin.updateQueue({...made, authorizationRules: []})), [], 'none any more');
    await data_with('writer', 'the-key-of-the-writer', (client) => refused(() => send(client, on, 'too late')));
    await fails('ServiceError', () => admin.createQueue(named('never'), {authorizationRules: [rule('half', ['Manage'])]}));
    await admin.deleteQueue(on);
    await admin.deleteTopic(topic);
  },

  'admin/key-rotation': async () => {
    const admin = connected();
    const on = named('rotation');
    const made = await admin.createQueue(on, {authorizationRules: [rule('rotor', ALL, 'first-key', 'second-key')]});
    same((await admin_with('rotor', 'first-key').getQueue(on)).name, on, "the entity's key over HTTP");
    await data_with('rotor', 'first-key', async (client) => {
      await send(client, on, 'one');
      const rotated = [rule('rotor', ALL, 'third-key', 'second-key')];
      same(shown(await admin.updateQueue({...made, authorizationRules: rotated})), rotated, 'rotated');
      await refused(() => receive(client, on));  // a new link on the connection that is open
    });
    await data_with('rotor', 'first-key', (client) => refused(() => send(client, on, 'never')));
    await fails('UnauthorizedRequestError', () => admin_with('rotor', 'first-key').getQueue(on));
    await data_with('rotor', 'third-key', (client) => send(client, on, 'two'));
    await data_with('rotor', 'second-key', async (client) =>
      same([await receive(client, on), await receive(client, on)], ['one', 'two'], 'with the secondary key'));
    // The second one, by the client that holds the first.
    await admin_with('rotor', 'third-key').updateQueue(
        {...made, authorizationRules: [rule('rotor', ALL, 'third-key', 'fourth-key')]});
    await data_with('rotor', 'second-key', (client) => refused(() => send(client, on, 'never')));
    await data_with('rotor', 'fourth-key', (client) => send(client, on, 'three'));
    await with_data(async (client) => same(await receive(client, on), 'three', 'what came'));
    await admin.deleteQueue(on);
  },
};
