// @azure/service-bus with a queue: send, receive, settle, schedule, peek. Names: runner/scenarios.py.
'use strict';

const crypto = require('crypto');
const {check, context, sleep} = require('./report.js');
const {dead, fails, gone, lock_ms, no_auto_renewal, nothing, same, sees, send, take, take_one, with_queues} =
    require('./client.js');

// The messages are there as scheduled, then come out, at their time and not before.
async function arrives_when_due(client, queue, expected, due) {
  const receiver = client.createReceiver(queue);
  const peeked = await receiver.peekMessages(10);
  same(peeked.map((m) => [m.body, m.state]), expected.map((body) => [body, 'scheduled']), 'peek');
  await nothing(receiver, 500);
  const got = await take(receiver, expected.length);
  check(Date.now() >= due.getTime(), 'it came before its time');
  same(got.map((m) => m.body), expected, 'bodies');
  for (const message of got) {
    same(message.scheduledEnqueueTimeUtc, due, 'scheduled time');
    check(message.enqueuedTimeUtc >= due, `enqueued at ${message.enqueuedTimeUtc}, due ${due}`);
    await receiver.completeMessage(message);
  }
  await gone(client, queue);
  return peeked;
}

const soon = (milliseconds) => new Date(Date.now() + milliseconds);

module.exports = with_queues({
  'queue/send-receive-complete': async (client, queue) => {
    const before = Date.now() - 1000;
    await send(client, queue, 'hello');
    const receiver = client.createReceiver(queue);
    const got = await take_one(receiver);
    const now = Date.now() + 1000;
    same([got.body, got.sequenceNumber.toNumber(), got.deliveryCount, got.state], ['hello', 1, 0, 'active'], 'message');
    check(before <= got.enqueuedTimeUtc && got.enqueuedTimeUtc <= now, `enqueued at ${got.enqueuedTimeUtc}`);
    check(got.lockedUntilUtc > now, `locked until ${got.lockedUntilUtc}`);
    check(/^[0-9a-f-]{36}$/.test(got.lockToken), `lock token ${got.lockToken}`);
    check(/^[0-9a-f]{32}$/.test(got.messageId), `message id ${got.messageId}`);  // the SDK sends none
    await receiver.completeMessage(got);
    await gone(client, queue);
  },
  'queue/batch': async (client, queue) => {
    const numbers = Array.from({length: 250}, (_, n) => n);
    const sender = client.createSender(queue);
    const batch = await sender.createMessageBatch();
    for (const n of numbers) {
      check(batch.tryAddMessage({body: `${n} ${'x'.repeat(100)}`, messageId: `id-${n}`}), `message ${n} did not fit`);
    }
    await sender.sendMessages(batch);
    await sender.sendMessages([{body: 'list 0'}, {body: 'list 1'}]);
    const receiver = client.createReceiver(queue);
    const got = await take(receiver, numbers.length + 2);
    same(got.slice(0, -2).map((m) => m.body.split(' ')[0]), numbers.map(String), 'order');
    same(got.slice(0, -2).map((m) => m.messageId), numbers.map((n) => `id-${n}`), 'message ids');
    same(got.map((m) => m.sequenceNumber.toNumber()), got.map((_, n) => n + 1), 'sequence numbers');
    same(got.slice(-2).map((m) => m.body), ['list 0', 'list 1'], 'the list');
    await Promise.all(got.map((m) => receiver.completeMessage(m)));
    await gone(client, queue);
  },
  'queue/receive-and-delete': async (client, queue) => {
    await send(client, queue, 'a', 'b', 'c');
    const got = await take(client.createReceiver(queue, {receiveMode: 'receiveAndDelete'}), 3);
    same(got.map((m) => m.body), ['a', 'b', 'c'], 'bodies');
    await gone(client, queue);
  },
  'queue/abandon': async (client, queue) => {
    await send(client, queue, 'again', 'second');
    const receiver = client.createReceiver(queue);
    for (let count = 0; count < 3; ++count) {
      const got = await take_one(receiver);
      // A returned message regains its place, so it is before the second one.
      same([got.body, got.deliveryCount, got.sequenceNumber.toNumber()], ['again', count, 1], `delivery ${count}`);
      await (count < 2 ? receiver.abandonMessage(got) : receiver.completeMessage(got));
    }
    const other = await take_one(receiver);
    same([other.body, other.deliveryCount], ['second', 0], 'the other message');
    await receiver.completeMessage(other);
    await gone(client, queue);
  },
  'queue/abandon-properties': async (client, queue) => {
    await send(client, queue, {body: 'm', applicationProperties: {kept: 'yes', changed: 'before'}});
    const receiver = client.createReceiver(queue);
    await receiver.abandonMessage(await take_one(receiver), {changed: 'after', added: 7});
    const second = await take_one(receiver);
    same(second.applicationProperties, {kept: 'yes', changed: 'after', added: 7}, 'after abandoning');
    await receiver.deferMessage(second, {deferred: true});
    const [third] = await receiver.receiveDeferredMessages(second.sequenceNumber);
    same(third.applicationProperties, {kept: 'yes', changed: 'after', added: 7, deferred: true}, 'after deferring');
    same(third.body, 'm', 'body');
    await receiver.completeMessage(third);
    await gone(client, queue);
  },
  'queue/defer': async (client, queue) => {
    await send(client, queue, 'later', 'now');
    const receiver = client.createReceiver(queue);
    const first = await take_one(receiver);
    await receiver.deferMessage(first);
    const second = await take_one(receiver);
    same(second.body, 'now', 'after the deferral');
    await receiver.completeMessage(second);
    await nothing(receiver);
    same((await receiver.peekMessages(10)).map((m) => [m.body, m.state]), [['later', 'deferred']], 'peek');
    const got = await receiver.receiveDeferredMessages(first.sequenceNumber);
    same(got.map((m) => [m.body, m.sequenceNumber.toNumber(), m.state]),
        [['later', first.sequenceNumber.toNumber(), 'deferred']], 'by number');
    await receiver.completeMessage(got[0]);
    await fails('MessageNotFound', () => receiver.receiveDeferredMessages(first.sequenceNumber));
    await gone(client, queue);
  },
  'queue/dead-letter': async (client, queue) => {
    await send(client, queue, {body: 'poison', applicationProperties: {kept: 'yes'}, messageId: 'p'});
    const receiver = client.createReceiver(queue);
    const got = await take_one(receiver);
    await receiver.deadLetterMessage(got,
        {deadLetterReason: 'a reason', deadLetterErrorDescription: 'what was wrong with it'});
    await gone(client, queue);
    const graves = client.createReceiver(queue, dead);
    const letter = await take_one(graves);
    same([letter.body, letter.messageId, letter.sequenceNumber.toNumber()],
        ['poison', 'p', got.sequenceNumber.toNumber()], 'message');
    same([letter.deadLetterReason, letter.deadLetterErrorDescription, letter.deadLetterSource],
        ['a reason', 'what was wrong with it', undefined], 'why');
    same(letter.applicationProperties.kept, 'yes', 'property');
    await send(client, queue, {body: `${letter.body}, mended`});
    await graves.completeMessage(letter);
    await gone(client, queue, dead);
    const again = await take_one(receiver);
    same(again.body, 'poison, mended', 'resubmitted');
    await receiver.completeMessage(again);
    await gone(client, queue);
  },
  'queue/dead-letter-properties': async (client, queue) => {
    await send(client, queue, {body: 'poison', applicationProperties: {kept: 'yes', changed: 'before'}});
    const receiver = client.createReceiver(queue);
    await receiver.deadLetterMessage(await take_one(receiver),
        {deadLetterReason: 'r', deadLetterErrorDescription: 'd', changed: 'after', added: 7});
    const graves = client.createReceiver(queue, dead);
    const letter = await take_one(graves);
    same(letter.applicationProperties, {kept: 'yes', changed: 'after', added: 7, DeadLetterReason: 'r',
      DeadLetterErrorDescription: 'd'}, 'properties');
    await graves.completeMessage(letter);
    await gone(client, queue, dead);
  },
  'queue/schedule': async (client, queue) => {
    const due = soon(3000);
    const numbers = await client.createSender(queue).scheduleMessages([{body: 'one'}, {body: 'two'}], due);
    same(numbers.length, 2, 'sequence numbers');
    const peeked = await arrives_when_due(client, queue, ['one', 'two'], due);
    same(peeked.map((m) => m.sequenceNumber.toString()), numbers.map(String), 'numbers in peek');
  },
  'queue/cancel-scheduled': async (client, queue) => {
    const sender = client.createSender(queue);
    const numbers = await sender.scheduleMessages([{body: 'no'}, {body: 'yes'}], soon(3000));
    await sender.cancelScheduledMessages(numbers[0]);
    await fails('MessageNotFound', () => sender.cancelScheduledMessages(numbers[0]));
    const receiver = client.createReceiver(queue);
    const got = await take_one(receiver);
    same(got.body, 'yes', 'what was not cancelled');
    await receiver.completeMessage(got);
    await nothing(receiver);
    await gone(client, queue);
  },
  'queue/schedule-by-annotation': async (client, queue) => {
    const due = soon(3000);
    await send(client, queue, {body: 'dated', scheduledEnqueueTimeUtc: due});
    await arrives_when_due(client, queue, ['dated'], due);
  },
  'queue/peek': async (client, queue) => {
    const bodies = Array.from({length: 25}, (_, n) => `m${n}`);
    await send(client, queue, ...bodies);
    const receiver = client.createReceiver(queue);
    const pages = [];
    for (;;) {
      const page = await receiver.peekMessages(10);
      check(page.length <= 10, `a page of ${page.length}`);
      if (!page.length) break;
      pages.push(...page);
    }
    same(pages.map((m) => m.body), bodies, 'all pages');
    const numbers = pages.map((m) => m.sequenceNumber.toNumber());
    check(numbers.every((n, i) => i === 0 || n > numbers[i - 1]), `not ascending: ${numbers}`);
    same(pages.map((m) => m.deliveryCount), bodies.map(() => 0), 'delivery counts');
    const middle = await receiver.peekMessages(2, {fromSequenceNumber: pages[7].sequenceNumber});
    same(middle.map((m) => m.body), ['m7', 'm8'], 'from a number on');
    const first = await take_one(receiver);
    await sees(receiver, ['m0', 'm1'], 2);  // a locked message is still seen
    await receiver.completeMessage(first);
    await sees(receiver, ['m1', 'm2'], 2);
  },
  'queue/renew-lock': async (client, queue) => {
    await send(client, queue, 'mine');
    const receiver = client.createReceiver(queue, no_auto_renewal);
    const got = await take_one(receiver);
    const end = Date.now() + lock_ms + 3000;
    for (let until = got.lockedUntilUtc; Date.now() < end;) {
      await sleep(1500);
      const renewed = await receiver.renewMessageLock(got);
      check(renewed > until, `the lock ended ${until}, renewed until ${renewed}`);
      until = renewed;
    }
    await nothing(client.createReceiver(queue, no_auto_renewal));
    await receiver.completeMessage(got);
    await gone(client, queue);
  },
  'queue/lock-lost': async (client, queue) => {
    await send(client, queue, 'slow');
    const receiver = client.createReceiver(queue, no_auto_renewal);
    const got = await take_one(receiver);
    same(got.deliveryCount, 0, 'delivery count');
    await sleep(lock_ms + 700);
    await fails('MessageLockLost', () => receiver.completeMessage(got));
    await fails('MessageLockLost', () => receiver.renewMessageLock(got));
    const again = await take_one(receiver);
    same([again.body, again.deliveryCount], ['slow', 1], 'second delivery');
    check(again.lockToken !== got.lockToken, 'the same lock token');
    await receiver.completeMessage(again);
    await gone(client, queue);
  },
  'queue/max-delivery': async (client, queue) => {
    await send(client, queue, 'unwanted');
    const receiver = client.createReceiver(queue);
    for (let n = 0; n < 2; ++n) await receiver.abandonMessage(await take_one(receiver));
    await nothing(receiver);
    const graves = client.createReceiver(queue, dead);
    const letter = await take_one(graves);
    same([letter.body, letter.deadLetterReason, letter.deadLetterErrorDescription, letter.deliveryCount],
        ['unwanted', 'MaxDeliveryCountExceeded', 'Message could not be consumed after 2 delivery attempts.', 2],
        'dead letter');
    await graves.completeMessage(letter);
    await gone(client, queue);
    await gone(client, queue, dead);
  },
  'queue/ttl-dead-letter': async (client, queue) => {
    await send(client, queue, 'by default', {body: 'wanted longer', timeToLive: 3600000});
    const graves = client.createReceiver(queue, dead);
    const letters = await take(graves, 2);
    same(letters.map((m) => m.body), ['by default', 'wanted longer'], 'expired');
    for (const letter of letters) {
      same([letter.deadLetterReason, letter.deadLetterErrorDescription],
          ['TTLExpiredException', 'The message expired and was dead lettered.'], 'why');
      await graves.completeMessage(letter);
    }
    await gone(client, queue);
  },
  'queue/duplicates': async (client, queue) => {
    const message = (messageId, body) => ({messageId, body});
    const sender = client.createSender(queue);
    await sender.sendMessages(message('a', 'first'));
    await sender.sendMessages(message('a', 'repeated'));
    await sender.sendMessages([message('b', 'second'), message('a', 'in a batch'), message('b', 'twice in it')]);
    const receiver = client.createReceiver(queue);
    const got = await take(receiver, 2);
    same(got.map((m) => m.body), ['first', 'second'], 'without duplicates');
    for (const one of got) await receiver.completeMessage(one);
    await send(client, queue, message('a', 'after the completion'), message('c', 'third'));
    const last = await take_one(receiver);
    same(last.body, 'third', 'after the completion');
    await receiver.completeMessage(last);
    await gone(client, queue);
  },
  'queue/large-message': async (client, queue) => {
    const body = crypto.randomBytes(900 * 1024);
    await send(client, queue, {body});
    const receiver = client.createReceiver(queue);
    const got = await take_one(receiver);
    check(Buffer.isBuffer(got.body) && got.body.equals(body), 'the body came back different');
    await receiver.completeMessage(got);
    await gone(client, queue);
  },
  'queue/too-large': async (client, queue) => {
    const sender = client.createSender(queue);
    const why = await fails('MessageSizeExceeded', () => sender.sendMessages({body: Buffer.alloc(1200 * 1024)}));
    await sender.sendMessages({body: 'small'});
    const receiver = client.createReceiver(queue);
    const got = await take_one(receiver);
    same(got.body, 'small', 'after the refusal');
    await receiver.completeMessage(got);
    await gone(client, queue);
    return why;
  },
  'queue/properties-round-trip': async (client, queue) => {
    const applicationProperties = {text: 'zażółć 漢字 🚀', empty: '', yes: true, no: false, zero: 0, int: 42,
      negative: -7, uint: 4000000000, largest: Number.MAX_SAFE_INTEGER, smallest: Number.MIN_SAFE_INTEGER, double: 3.141592653589793,
      tiny: 5e-324, date: new Date('2024-02-29T12:30:15.123Z'), none: null, 'klucz ż': 'in the key too'};
    const sent = {body: {text: 'body ż', list: [1, null, true]}, messageId: 'the id', correlationId: 'the correlation',
      contentType: 'application/json; charset=utf-8', subject: 'subject ż', to: 'to/somewhere', replyTo: 'reply/to',
      replyToSessionId: 'reply session', partitionKey: 'key'};
    const id = crypto.randomBytes(16);
    await send(client, queue, {...sent, applicationProperties, timeToLive: 300000},
        {body: 'ids', messageId: 4294967297, correlationId: id});
    const receiver = client.createReceiver(queue, {skipConvertingDate: true});
    const [got, ids] = await take(receiver, 2);
    for (const [name, value] of Object.entries(sent)) same(got[name], value, name);
    same(got.applicationProperties, applicationProperties, 'application properties');
    same(got.sessionId, undefined, 'session id');
    // The SDK takes the time from its own creation-time to the broker's expiry for it.
    check(got.timeToLive >= 300000 && got.timeToLive < 310000, `time to live ${got.timeToLive}`);
    check(Math.abs(got.expiresAtUtc - got.enqueuedTimeUtc - 300000) < 10000, `expires at ${got.expiresAtUtc}`);
    same(ids.messageId, 4294967297, 'a number as id');
    check(Buffer.isBuffer(ids.correlationId) && ids.correlationId.equals(id), `binary id ${ids.correlationId}`);
    for (const message of [got, ids]) await receiver.completeMessage(message);
    await gone(client, queue);
  },
  'queue/body-kinds': async (client, queue) => {
    const bodies = [['value', {a: 1, b: [1, 'x', true]}], ['value', 'a string'], ['sequence', [1, 'two', 3.5]],
      ['data', Buffer.from('bytes')], ['data', Buffer.alloc(0)]];
    await send(client, queue, ...bodies.map(([bodyType, body]) => ({bodyType, body})));
    const receiver = client.createReceiver(queue, {skipParsingBodyAsJson: true});
    const got = await take(receiver, bodies.length);
    for (const [n, message] of got.entries()) {
      const [kind, body] = bodies[n];
      same(message._rawAmqpMessage.bodyType, kind, 'kind of body');
      same(Buffer.isBuffer(body) ? message.body.toString('hex') : message.body,
          Buffer.isBuffer(body) ? body.toString('hex') : body, `body ${n}`);
      await receiver.completeMessage(message);
    }
    await gone(client, queue);
  },
  'queue/empty-receive': async (client, queue) => {
    const receiver = client.createReceiver(queue);
    for (const body of ['m0', 'm1']) {
      await nothing(receiver);
      await send(client, queue, body);
      const got = await take_one(receiver);
      same([got.body, got.deliveryCount], [body, 0], 'after the empty receive');
      await receiver.completeMessage(got);
    }
    await gone(client, queue);
  },
  'queue/forward': async (client, queue) => {
    await send(client, queue, {body: 'onward', messageId: 'f', applicationProperties: {kept: 'yes'}});
    const receiver = client.createReceiver(context.destinations['queue/forward']);
    const got = await take_one(receiver);
    same([got.body, got.messageId, got.applicationProperties], ['onward', 'f', {kept: 'yes'}], 'forwarded');
    same([got.sequenceNumber.toNumber(), Number(got.enqueuedSequenceNumber)], [1, 1], 'numbers');
    await receiver.completeMessage(got);
  },
  'queue/forward-dead-letters': async (client, queue) => {
    await send(client, queue, 'poison');
    const receiver = client.createReceiver(queue);
    await receiver.deadLetterMessage(await take_one(receiver),
        {deadLetterReason: 'r', deadLetterErrorDescription: 'd'});
    const graves = client.createReceiver(context.destinations['queue/forward-dead-letters']);
    const got = await take_one(graves);
    same([got.body, got.deadLetterReason, got.deadLetterErrorDescription, got.deadLetterSource],
        ['poison', 'r', 'd', queue], 'forwarded dead letter');
    await graves.completeMessage(got);
    await gone(client, queue);
  },
});
