// @azure/service-bus with a partitioned queue. Scenario names: runner/scenarios.py.
'use strict';

const Long = require('long');
const {check, context} = require('./report.js');
const {dead, fails, gone, nothing, same, send, take, take_one, with_queues} = require('./client.js');

const partitions = 16;
const partition_of = (message) => message.sequenceNumber.shiftRight(48).toNumber();
const numbers = (count) => Array.from({length: count}, (_, n) => n);
const sorted = (messages) => messages.map((m) => Number(m.body)).sort((a, b) => a - b);

// Everything there is, as clients go through it: on from the last number until nothing comes.
async function peeked(receiver) {
  const seen = [];
  for (let from = Long.ONE;;) {
    const page = await receiver.peekMessages(3, {fromSequenceNumber: from});
    if (page.length === 0) return seen;
    seen.push(...page);
    from = page[page.length - 1].sequenceNumber.add(1);
  }
}

module.exports = with_queues({
  'partition/send-receive': async (client, queue) => {
    const count = 2 * partitions;
    await send(client, queue, ...numbers(count).map(String));
    const receiver = client.createReceiver(queue);
    const got = await take(receiver, count);
    same(sorted(got), numbers(count), 'bodies');
    same(new Set(got.map(partition_of)).size, partitions, 'partitions');
    for (const message of got) await receiver.completeMessage(message);
    await gone(client, queue);
  },
  'partition/keyed-order': async (client, queue) => {
    const keys = numbers(8).map((n) => `key ${n}`);
    for (const n of numbers(10)) {
      await send(client, queue, ...keys.map((partitionKey) => ({body: String(n), partitionKey})));
    }
    const got = await take(client.createReceiver(queue), 80);
    for (const key of keys) {
      const mine = got.filter((m) => m.partitionKey === key);
      same(mine.map((m) => m.body), numbers(10).map(String), `order of ${key}`);
      same(new Set(mine.map(partition_of)).size, 1, `partitions of ${key}`);
    }
  },
  'partition/batch': async (client, queue) => {
    const sender = client.createSender(queue);
    await sender.sendMessages(numbers(100).map((n) => ({body: String(n)})));
    const got = await take(client.createReceiver(queue), 100);
    same(got.map((m) => m.body), numbers(100).map(String), 'order');
    same(new Set(got.map(partition_of)).size, 1, 'partitions');
  },
  'partition/mixed-batch': async (client, queue) => {
    const sender = client.createSender(queue);
    await fails('GeneralError',  // InvalidOperationError: it has no code of its own
        () => sender.sendMessages([{body: 'a', partitionKey: 'a'}, {body: 'b', partitionKey: 'b'}]));
    await gone(client, queue);
  },
  'partition/receive-and-delete': async (client, queue) => {
    await send(client, queue, ...numbers(20).map(String));
    const receiver = client.createReceiver(queue, {receiveMode: 'receiveAndDelete'});
    same(sorted(await take(receiver, 20)), numbers(20), 'bodies');
    await gone(client, queue);
  },
  'partition/settle': async (client, queue) => {
    await send(client, queue, 'a', 'b', 'c');
    const receiver = client.createReceiver(queue);
    const by_body = Object.fromEntries((await take(receiver, 3)).map((m) => [m.body, m]));
    await receiver.completeMessage(by_body.a);
    await receiver.deadLetterMessage(by_body.b, {deadLetterReason: 'why', deadLetterErrorDescription: 'because'});
    await receiver.abandonMessage(by_body.c);
    const again = await take_one(receiver);
    same([again.body, again.deliveryCount], ['c', 1], 'abandoned');
    await receiver.completeMessage(again);
    const graves = client.createReceiver(queue, dead);
    const letter = await take_one(graves);
    same([letter.body, letter.deadLetterReason], ['b', 'why'], 'dead letter');
    await graves.completeMessage(letter);
    await gone(client, queue);
  },
  'partition/peek': async (client, queue) => {
    await send(client, queue, ...numbers(40).map(String));
    const receiver = client.createReceiver(queue);
    const seen = await peeked(receiver);
    same(sorted(seen), numbers(40), 'bodies');
    check(seen.every((m, i) => i === 0 || m.sequenceNumber.gt(seen[i - 1].sequenceNumber)), 'numbers do not ascend');
    same((await take(receiver, 40)).length, 40, 'none was locked by it');
  },
  'partition/schedule': async (client, queue) => {
    const sender = client.createSender(queue);
    const later = [];
    for (const n of numbers(6)) {
      later.push(...await sender.scheduleMessages({body: String(n)}, new Date(Date.now() + 3600000)));
    }
    check(new Set(later.map((n) => n.shiftRight(48).toNumber())).size > 1, 'all in one partition');
    await sender.cancelScheduledMessages(later.slice(0, 5));
    await fails('MessageNotFound', () => sender.cancelScheduledMessages(later[0]));
    await sender.scheduleMessages([{body: 'due', partitionKey: 'k'}, {body: 'due', partitionKey: 'k'}],
        new Date(Date.now() + 1000));
    const receiver = client.createReceiver(queue);
    same((await peeked(receiver)).filter((m) => m.body === '5').map((m) => m.state), ['scheduled'], 'state');
    same((await take(receiver, 2)).map((m) => m.body), ['due', 'due'], 'due messages');
  },
  'partition/defer': async (client, queue) => {
    await send(client, queue, ...numbers(8).map(String));
    const receiver = client.createReceiver(queue);
    const got = await take(receiver, 8);
    for (const message of got) await receiver.deferMessage(message);
    await nothing(receiver);
    const asked = got.map((m) => m.sequenceNumber);
    await fails('MessageNotFound', () => receiver.receiveDeferredMessages([asked[0], asked[1].add(1000)]));
    const back = await receiver.receiveDeferredMessages(asked);
    same(back.map((m) => m.sequenceNumber.toString()), asked.map((n) => n.toString()), 'numbers, as asked');
    for (const message of back) await receiver.completeMessage(message);
    await gone(client, queue);
  },
  'partition/renew-lock': async (client, queue) => {
    await send(client, queue, ...numbers(4).map(String));
    const receiver = client.createReceiver(queue);
    for (const message of await take(receiver, 4)) {
      const before = message.lockedUntilUtc;
      check(await receiver.renewMessageLock(message) >= before, 'the lock got shorter');
      await receiver.completeMessage(message);
    }
    await gone(client, queue);
  },
  'partition/duplicates': async (client, queue) => {
    for (let i = 0; i < 3; ++i) {
      await send(client, queue, ...numbers(10).map((n) => ({body: String(n), messageId: `id-${n}`})));
    }
    const receiver = client.createReceiver(queue);
    same(sorted(await take(receiver, 10)), numbers(10), 'bodies');
    await nothing(receiver);
  },
  'partition/empty-receive': async (client, queue) => {
    const receiver = client.createReceiver(queue);
    await nothing(receiver);
    await send(client, queue, 'late');
    same((await take_one(receiver)).body, 'late', 'body');
  },
  'partition/forward': async (client, queue) => {
    await send(client, queue, ...numbers(10).map((n) => ({body: String(n), partitionKey: 'k'})));
    const got = await take(client.createReceiver(context.destinations['partition/forward']), 10);
    same(sorted(got), numbers(10), 'bodies');
    same(got.map((m) => m.partitionKey), got.map(() => 'k'), 'keys');
  },
  'partition-session/accept-named': async (client, queue) => {
    const names = numbers(6).map((n) => `session ${n}`);
    for (const n of numbers(3)) {
      await send(client, queue, ...names.map((sessionId) => ({body: String(n), sessionId})));
    }
    for (const name of names) {
      const receiver = await client.acceptSession(queue, name);
      same((await take(receiver, 3)).map((m) => m.body), ['0', '1', '2'], `order of ${name}`);
      await receiver.close();
    }
  },
  'partition-session/accept-next': async (client, queue) => {
    await send(client, queue, ...numbers(6).map((n) => ({body: String(n), sessionId: `session ${n}`})));
    const seen = [];
    for (let i = 0; i < 6; ++i) {
      const receiver = await client.acceptNextSession(queue);
      const message = await take_one(receiver);
      same(receiver.sessionId, message.sessionId, 'session');
      seen.push(message);
      await receiver.completeMessage(message);
      await receiver.close();
    }
    same(sorted(seen), numbers(6), 'sessions');
  },
  'partition-session/state': async (client, queue) => {
    for (const name of ['a', 'b', 'c']) {
      const receiver = await client.acceptSession(queue, name);
      await receiver.setSessionState(`of ${name}`);
      await receiver.renewSessionLock();
      await receiver.close();
    }
    for (const name of ['a', 'b', 'c']) {
      const receiver = await client.acceptSession(queue, name);
      same(await receiver.getSessionState(), `of ${name}`, 'state');
      await receiver.close();
    }
  },
});
