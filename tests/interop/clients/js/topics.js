// @azure/service-bus with a topic and its subscriptions. Names: runner/scenarios.py, shapes: runner/topics.py.
'use strict';

const {check, context, sleep} = require('./report.js');
const {dead, fails, nothing, same, sees, send, take, take_one, with_queues} = require('./client.js');

const soon = (milliseconds) => new Date(Date.now() + milliseconds);
const bodies = (messages) => messages.map((m) => m.body);

// Takes and completes exactly these messages, in this order, and sees that nothing else is in the subscription.
async function holds(client, topic, name, expected, options = {}) {
  const receiver = client.createReceiver(topic, name, options);
  const got = expected.length ? await take(receiver, expected.length) : [];
  same(bodies(got), expected, `'${name}'`);
  for (const message of got) await receiver.completeMessage(message);
  await sees(receiver, []);
  await receiver.close();
  return got;
}

const not_allowed = async (action) => {
  const why = await fails('GeneralError', action);
  check(why.startsWith('InvalidOperationError'), `refused for another reason: ${why}`);  // amqp:not-allowed
  return why;
};

module.exports = with_queues({
  'topic/publish': async (client, topic) => {
    await send(client, topic, {body: 'one', messageId: 'm1', subject: 's', applicationProperties: {kept: 'yes'}}, 'two');
    for (const name of ['a', 'b']) {
      const [one, two] = await holds(client, topic, name, ['one', 'two']);
      same([one.messageId, one.subject, one.applicationProperties], ['m1', 's', {kept: 'yes'}], 'message');
      same([one, two].map((m) => [m.sequenceNumber.toNumber(), Number(m.enqueuedSequenceNumber), m.deliveryCount]),
          [[1, 1, 0], [2, 2, 0]], 'numbers');
    }
    await send(client, topic, 'three');
    await holds(client, topic, 'b', ['three']);
    await holds(client, topic, 'a', ['three']);
  },
  'topic/batch': async (client, topic) => {
    const numbers = Array.from({length: 100}, (_, n) => `${n}`);
    const sender = client.createSender(topic);
    const batch = await sender.createMessageBatch();
    for (const n of numbers) check(batch.tryAddMessage({body: n, messageId: `id-${n}`}), `message ${n} did not fit`);
    await sender.sendMessages(batch);
    for (const name of ['a', 'b']) {
      const got = await holds(client, topic, name, numbers);
      same(got.map((m) => m.messageId), numbers.map((n) => `id-${n}`), 'message ids');
      same(got.map((m) => m.sequenceNumber.toNumber()), numbers.map((_, n) => n + 1), 'sequence numbers');
    }
  },
  'topic/settle': async (client, topic) => {
    await send(client, topic, 'complete', 'abandon', 'defer', 'dead-letter');
    const receiver = client.createReceiver(topic, 'a');
    const [complete, abandon, defer, dead_letter] = await take(receiver, 4);
    await receiver.completeMessage(complete);
    await receiver.abandonMessage(abandon, {added: 1});
    await receiver.deferMessage(defer);
    await receiver.deadLetterMessage(dead_letter, {deadLetterReason: 'r', deadLetterErrorDescription: 'd'});
    const again = await take_one(receiver);
    same([again.body, again.deliveryCount, again.applicationProperties], ['abandon', 1, {added: 1}], 'abandoned');
    await receiver.completeMessage(again);
    const [deferred] = await receiver.receiveDeferredMessages(defer.sequenceNumber);
    same([deferred.body, deferred.state], ['defer', 'deferred'], 'deferred');
    await receiver.completeMessage(deferred);
    await sees(receiver, []);
    const [letter] = await holds(client, topic, 'a', ['dead-letter'], dead);
    same([letter.deadLetterReason, letter.deadLetterErrorDescription], ['r', 'd'], 'why');
  },
  'topic/receive-and-delete': async (client, topic) => {
    await send(client, topic, 'one', 'two');
    const got = await take(client.createReceiver(topic, 'a', {receiveMode: 'receiveAndDelete'}), 2);
    same(bodies(got), ['one', 'two'], 'bodies');
    await holds(client, topic, 'a', []);
    await holds(client, topic, 'b', ['one', 'two']);
  },
  'topic/dead-letter': async (client, topic) => {
    await send(client, topic, {body: 'poison', messageId: 'p', applicationProperties: {kept: 'yes'}});
    const receiver = client.createReceiver(topic, 'a');
    const got = await take_one(receiver);
    await receiver.deadLetterMessage(got, {deadLetterReason: 'a reason', deadLetterErrorDescription: 'more'});
    await sees(receiver, []);
    await sees(client.createReceiver(topic, 'b', dead), []);
    const graves = client.createReceiver(topic, 'a', dead);
    await sees(graves, ['poison']);
    const letter = await take_one(graves);
    same([letter.body, letter.messageId, letter.sequenceNumber.toNumber(), letter.applicationProperties.kept],
        ['poison', 'p', got.sequenceNumber.toNumber(), 'yes'], 'message');
    same([letter.deadLetterReason, letter.deadLetterErrorDescription], ['a reason', 'more'], 'why');
    await graves.completeMessage(letter);
    await holds(client, topic, 'a', [], dead);
    await holds(client, topic, 'b', ['poison']);  // its own copy
  },
  'topic/session': async (client, topic) => {
    await send(client, topic, {sessionId: 'x', body: 'x1'}, 'nobody\'s', {sessionId: 'y', body: 'y1'},
        {sessionId: 'x', body: 'x2'});
    const receiver = await client.acceptSession(topic, 's', 'x');
    same(receiver.sessionId, 'x', 'session id');
    await receiver.setSessionState('halfway');
    const got = await take(receiver, 2);
    same(got.map((m) => [m.body, m.sessionId]), [['x1', 'x'], ['x2', 'x']], 'session x');
    for (const message of got) await receiver.completeMessage(message);
    same(await receiver.getSessionState(), 'halfway', 'state');
    await receiver.renewSessionLock();
    await receiver.close();
    const next = await client.acceptNextSession(topic, 's');
    same(next.sessionId, 'y', 'the other session');
    const other = await take_one(next);
    same(other.body, 'y1', 'body');
    await next.completeMessage(other);
    const [letter] = await holds(client, topic, 's', ['nobody\'s'], dead);
    same(letter.deadLetterReason, 'Session ID is null.', 'why');
    await holds(client, topic, 'p', ['x1', 'nobody\'s', 'y1', 'x2']);  // it has no sessions
    await not_allowed(() => client.createReceiver(topic, 's').receiveMessages(1, {maxWaitTimeInMs: 1000}));
  },
  'topic/defer': async (client, topic) => {
    await send(client, topic, 'later', 'now');
    const receiver = client.createReceiver(topic, 'a');
    const first = await take_one(receiver);
    await receiver.deferMessage(first);
    const second = await take_one(receiver);
    same(second.body, 'now', 'after the deferral');
    await receiver.completeMessage(second);
    await nothing(receiver, 300);
    same((await receiver.peekMessages(10)).map((m) => [m.body, m.state]), [['later', 'deferred']], 'peek');
    await fails('MessageNotFound', () => client.createReceiver(topic, 'b').receiveDeferredMessages(first.sequenceNumber));
    const [got] = await receiver.receiveDeferredMessages(first.sequenceNumber);
    same([got.body, got.sequenceNumber.toNumber()], ['later', first.sequenceNumber.toNumber()], 'by number');
    await receiver.completeMessage(got);
    await sees(receiver, []);
    await holds(client, topic, 'b', ['later', 'now']);
  },
  'topic/peek': async (client, topic) => {
    const expected = Array.from({length: 12}, (_, n) => `m${n}`);
    await send(client, topic, ...expected);
    const receiver = client.createReceiver(topic, 'a');
    same(bodies(await receiver.peekMessages(5)), expected.slice(0, 5), 'first page');
    same(bodies(await receiver.peekMessages(50)), expected.slice(5), 'the rest');
    same(bodies(await receiver.peekMessages(5)), [], 'after the last');
    const first = await take_one(receiver);
    await sees(receiver, ['m0', 'm1'], 2);  // a locked message is still seen
    await receiver.completeMessage(first);
    await sees(receiver, ['m1', 'm2'], 2);
    await sees(client.createReceiver(topic, 'b'), ['m0', 'm1'], 2);
  },
  'topic/schedule': async (client, topic) => {
    const due = soon(2000);
    const numbers = await client.createSender(topic).scheduleMessages([{body: 'one'}, {body: 'two'}], due);
    same(numbers.length, 2, 'sequence numbers');
    await sees(client.createReceiver(topic, 'a'), []);  // copies are made when it is due
    for (const name of ['a', 'b']) {
      const got = await holds(client, topic, name, ['one', 'two']);
      check(Date.now() >= due.getTime(), 'it came before its time');
      for (const message of got) {
        same(message.scheduledEnqueueTimeUtc, due, 'scheduled time');
        check(message.enqueuedTimeUtc >= due, `enqueued at ${message.enqueuedTimeUtc}, due ${due}`);
      }
    }
    const dated = soon(1000);
    await send(client, topic, {body: 'dated', scheduledEnqueueTimeUtc: dated});
    await sees(client.createReceiver(topic, 'a'), []);
    for (const name of ['a', 'b']) await holds(client, topic, name, ['dated']);
    check(Date.now() >= dated.getTime(), 'it came before its time');
  },
  'topic/cancel-scheduled': async (client, topic) => {
    const sender = client.createSender(topic);
    const numbers = await sender.scheduleMessages([{body: 'no'}, {body: 'yes'}], soon(2000));
    await sender.cancelScheduledMessages(numbers[0]);
    await fails('MessageNotFound', () => sender.cancelScheduledMessages(numbers[0]));
    for (const name of ['a', 'b']) await holds(client, topic, name, ['yes']);
    await fails('MessageNotFound', () => sender.cancelScheduledMessages(numbers[1]));
  },
  'topic/duplicates': async (client, topic) => {
    const message = (messageId, body) => ({messageId, body});
    await send(client, topic, message('a', 'first'), message('a', 'repeated'));
    await client.createSender(topic).sendMessages(
        [message('b', 'second'), message('a', 'in a batch'), message('b', 'twice in it')]);
    await holds(client, topic, 'a', ['first', 'second']);
    await send(client, topic, message('a', 'after the completion'), message('c', 'third'));
    await holds(client, topic, 'a', ['third']);
    await holds(client, topic, 'b', ['first', 'second', 'third']);
  },
  'topic/sql-filter': async (client, topic) => {
    await send(client, topic,
        {body: 'm1', subject: 'order-1', applicationProperties: {color: 'red', quantity: 5}},
        {body: 'm2', subject: 'order-2', applicationProperties: {color: 'blue', quantity: 50}},
        {body: 'm3', subject: 'other', applicationProperties: {quantity: 1}},
        {body: 'm4', subject: 'Order', applicationProperties: {color: 'RED', quantity: 20}});
    await holds(client, topic, 'red', ['m1']);
    await holds(client, topic, 'large', ['m2']);
    await holds(client, topic, 'colorless', ['m3']);
    await holds(client, topic, 'either', ['m2', 'm3', 'm4']);  // one copy, however many rules match
  },
  'topic/correlation-filter': async (client, topic) => {
    await send(client, topic,
        {body: 'm1', subject: 'order', correlationId: 'c-1', applicationProperties: {region: 'eu', n: 2}},
        {body: 'm2', subject: 'Order', correlationId: 'c-1', applicationProperties: {region: 'us', n: '2'}},
        {body: 'm3', messageId: 'm-1', to: 'there', replyTo: 'back', contentType: 'text/x'});
    await holds(client, topic, 'label', ['m1']);
    await holds(client, topic, 'two-fields', ['m1']);
    await holds(client, topic, 'number', ['m1']);
    await holds(client, topic, 'identity', ['m3']);
  },
  'topic/true-false-filter': async (client, topic) => {
    await send(client, topic, 'm1', {body: 'm2', applicationProperties: {wanted: 'yes'}});
    await holds(client, topic, 'yes', ['m1', 'm2']);
    await holds(client, topic, 'both', ['m1', 'm2']);
    await holds(client, topic, 'no', []);
  },
  'topic/nobody': async (client, topic) => {
    await send(client, topic, 'unwanted');  // accepted and dropped
    await client.createSender(topic).sendMessages([{body: 'u1'}, {body: 'u2'}]);
    await holds(client, topic, 'no', []);
  },
  'topic/action': async (client, topic) => {
    const properties = {color: 'red', quantity: 7, kept: 'yes'};
    await send(client, topic, {body: 'm', subject: 'label', messageId: 'id', applicationProperties: properties});
    const [plain] = await holds(client, topic, 'plain', ['m']);
    same([plain.subject, plain.applicationProperties], ['label', properties], 'another subscription\'s copy');
    const [changed] = await holds(client, topic, 'changed', ['m']);
    same([changed.subject, changed.messageId], ['relabelled', 'id'], 'system properties');
    same(changed.applicationProperties, {quantity: 14, kept: 'yes', added: 'by rule', RuleName: 'change'}, 'changed');
    const copies = await holds(client, topic, 'copies', ['m', 'm', 'm']);
    same(copies.map((m) => m.applicationProperties), [properties, {...properties, mark: 1, RuleName: 'marked-1'},
      {...properties, mark: 2, RuleName: 'marked-2'}], 'one copy for each action');
    same(copies.map((m) => m.sequenceNumber.toNumber()), [1, 2, 3], 'numbers');
  },
  'topic/filter-error': async (client, topic) => {
    await send(client, topic, {body: 'bad', applicationProperties: {quantity: 0}},
        {body: 'good', applicationProperties: {quantity: 10}});
    await holds(client, topic, 'strict', ['good']);
    await holds(client, topic, 'other', ['bad', 'good']);
    const [letter] = await holds(client, topic, 'strict', ['bad'], dead);
    same(letter.deadLetterReason, 'FilterException', 'why');
    check(letter.deadLetterErrorDescription.includes('division'), `no rule: ${letter.deadLetterErrorDescription}`);
    return letter.deadLetterErrorDescription;
  },
  'topic/ttl': async (client, topic) => {
    await send(client, topic, 'by default', {body: 'wanted longer', timeToLive: 3600000});
    const letters = await holds(client, topic, 'short', ['by default', 'wanted longer'], dead);
    for (const letter of letters) {
      same([letter.deadLetterReason, letter.deadLetterErrorDescription],
          ['TTLExpiredException', 'The message expired and was dead lettered.'], 'why');
    }
    await holds(client, topic, 'short', []);
    await holds(client, topic, 'long', ['by default', 'wanted longer']);
  },
  'topic/stream': async (client, topic) => {
    const expected = Array.from({length: 60}, (_, n) => `m${n}`);
    const receiver = client.createReceiver(topic, 'a');
    const came = [];
    const stream = receiver.subscribe({
      processMessage: async (message) => came.push(message.body),
      processError: async ({error}) => came.push(String(error)),
    }, {maxConcurrentCalls: 5});
    await send(client, topic, ...expected);
    for (const end = Date.now() + 10000; came.length < expected.length && Date.now() < end;) await sleep(20);
    await stream.close();  // waits for what is being settled
    same(came.sort(), expected.slice().sort(), 'what came');
    await sees(receiver, []);
    await sees(client.createReceiver(topic, 'b'), expected, 100);
  },
  'topic/forward-to-queue': async (client, topic) => {
    await send(client, topic, {body: 'onward', messageId: 'f', applicationProperties: {kept: 'yes'}});
    const receiver = client.createReceiver(context.destinations['topic/forward-to-queue']);
    const got = await take_one(receiver);
    same([got.body, got.messageId, got.applicationProperties], ['onward', 'f', {kept: 'yes'}], 'forwarded');
    await receiver.completeMessage(got);
    await holds(client, topic, 'b', ['onward']);
    return not_allowed(() => client.createReceiver(topic, 'a').receiveMessages(1, {maxWaitTimeInMs: 1000}));
  },
  'topic/forward-from-queue': async (client, topic) => {
    await send(client, context.sources['topic/forward-from-queue'],
        {body: 'onward', messageId: 'f', applicationProperties: {kept: 'yes'}});
    for (const name of ['a', 'b']) {
      const [got] = await holds(client, topic, name, ['onward']);
      same([got.messageId, got.applicationProperties], ['f', {kept: 'yes'}], 'forwarded');
    }
  },
  'topic/wrong-direction': async (client, topic) => {
    await not_allowed(() => send(client, `${topic}/Subscriptions/a`, 'x'));
    await not_allowed(() => send(client, `${topic}/Subscriptions/a/$DeadLetterQueue`, 'x'));
    await not_allowed(() => client.createReceiver(topic).receiveMessages(1, {maxWaitTimeInMs: 1000}));
    return fails('MessagingEntityNotFound',
        () => client.createReceiver(topic, 'no-such').receiveMessages(1, {maxWaitTimeInMs: 1000}));
  },
  'topic/letter-case': async (client, topic) => {
    await send(client, topic.toUpperCase(), 'shouted');
    const receiver = client.createReceiver(topic.replace('topic', 'ToPiC'), 'aUDIT');
    const got = await take_one(receiver);
    same(got.body, 'shouted', 'body');
    await receiver.deadLetterMessage(got);
    await sees(receiver, []);
    await holds(client, topic.toUpperCase(), 'AUDIT', ['shouted'], dead);
  },
  'exchange/sdk': async (client, exchange) => {
    await send(client, exchange, {body: 'm1', subject: 'order.eu.paid'}, {body: 'm2', subject: 'order.us.open'},
        {body: 'm3'});
    await holds(client, exchange, 'paid', ['m1']);
    await holds(client, exchange, 'eu', ['m1']);
    const all = await holds(client, exchange, 'all', ['m1', 'm2', 'm3']);
    same(all.map((m) => m.subject), ['order.eu.paid', 'order.us.open', undefined], 'subjects');
    const annotations = all.map((m) => m._rawAmqpMessage.messageAnnotations);
    same(annotations.map((a) => [a['x-exchange'], a['x-routing-key']]),
        [[exchange, 'order.eu.paid'], [exchange, 'order.us.open'], [exchange, '']], 'annotations');
  },
});
