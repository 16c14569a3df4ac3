// rhea with a queue, as a plain AMQP client: links, credit and outcomes. Scenario names: runner/scenarios.py.
'use strict';

const {within} = require('./report.js');
const {expect_refused} = require('./peer.js');
const {Inbox, WAIT, put, same, send, with_queues} = require('./plain_client.js');

const count = (m) => m.message.delivery_count || 0;

module.exports = with_queues({
  'plain-queue/send-receive': async (connection, queue) => {
    const bodies = Array.from({length: 20}, (_, n) => `m${n}`);
    const outcomes = await send(connection, queue, bodies.map((body) => (
      {body, message_id: `id-${body}`, subject: 's', application_properties: {n: 1.5, text: 'ż'}})));
    same(outcomes, bodies.map(() => 'accepted'), 'outcomes');
    const inbox = await Inbox.open(connection, queue);
    const got = await inbox.take(20);
    same(got.map((m) => m.message.body), bodies, 'order');
    for (const [n, {message, delivery}] of got.entries()) {
      same([message.message_id, message.subject, message.application_properties],
          [`id-m${n}`, 's', {n: 1.5, text: 'ż'}], 'properties');
      same(Number(message.message_annotations['x-opt-sequence-number']), n + 1, 'sequence number');
      delivery.accept();
    }
    await inbox.nothing();
  },
  'plain-queue/pre-settled': async (connection, queue) => {
    await send(connection, queue, [{body: 'a'}, {body: 'b'}], {snd_settle_mode: 1});
    const inbox = await Inbox.open(connection, queue, {snd_settle_mode: 1});
    const got = await inbox.take(2);
    same(got.map((m) => [m.message.body, m.delivery.remote_settled]), [['a', true], ['b', true]], 'deliveries');
    await (await Inbox.open(connection, queue)).nothing();
  },
  'plain-queue/accept': async (connection, queue) => {
    await put(connection, queue, 'a', 'b');
    const inbox = await Inbox.open(connection, queue);
    const [a] = await inbox.take(1);
    a.delivery.accept();
    const other = await Inbox.open(connection, queue);
    const [b] = await other.take(1);
    same(b.message.body, 'b', 'after the first was accepted');
    b.delivery.accept();
    await other.nothing();
  },
  'plain-queue/release': async (connection, queue) => {
    await put(connection, queue, 'again');
    const inbox = await Inbox.open(connection, queue);
    for (let n = 0; n < 3; ++n) {
      const got = await inbox.take_one();
      same([got.message.body, count(got)], ['again', 0], `delivery ${n}`);  // a release is not counted
      got.delivery.release();
    }
    const other = await Inbox.open(connection, queue);
    const got = await other.take_one();
    same([got.message.body, count(got)], ['again', 0], 'at another receiver');
    got.delivery.accept();
  },
  'plain-queue/modify': async (connection, queue) => {
    await put(connection, queue, 'failed', 'next');
    const inbox = await Inbox.open(connection, queue);
    for (let n = 0; n < 2; ++n) {
      const got = await inbox.take_one();
      same([got.message.body, count(got)], ['failed', n], `delivery ${n}`);
      got.delivery.modified({delivery_failed: true});
    }
    const got = await inbox.take_one();
    same([got.message.body, count(got)], ['failed', 2], 'last delivery');
    got.delivery.modified({undeliverable_here: true});  // this defers it
    const next = await inbox.take_one();
    same(next.message.body, 'next', 'after the deferral');
    next.delivery.accept();
    await inbox.nothing();
  },
  'plain-queue/reject': async (connection, queue) => {
    await put(connection, queue, 'bad');
    const inbox = await Inbox.open(connection, queue);
    (await inbox.take_one()).delivery.reject({condition: 'my:condition', description: 'my words'});
    await inbox.nothing();
    const graves = await Inbox.open(connection, `${queue}/$DeadLetterQueue`);
    const dead = await graves.take_one();
    same([dead.message.body, dead.message.application_properties],
        ['bad', {DeadLetterReason: 'my:condition', DeadLetterErrorDescription: 'my words'}], 'dead letter');
    dead.delivery.accept();
  },
  'plain-queue/credit': async (connection, queue) => {
    const bodies = Array.from({length: 10}, (_, n) => `m${n}`);
    await put(connection, queue, ...bodies);
    const inbox = await Inbox.open(connection, queue);
    await inbox.nothing(0);  // no credit, no transfer
    const first = await inbox.take(3);
    await inbox.nothing(0);
    const rest = await inbox.take(7, 20);
    same([...first, ...rest].map((m) => m.message.body), bodies, 'order');
    // 13 of the 20 are left: what comes later comes at once.
    await put(connection, queue, 'late');
    const [late] = await inbox.take(1, 0);
    same(late.message.body, 'late', 'a message that found credit waiting');
  },
  'plain-queue/drain': async (connection, queue) => {
    await put(connection, queue, 'only');
    const inbox = await Inbox.open(connection, queue);
    for (const expected of [['only'], []]) {
      const drained = new Promise((resolve) => inbox.link.once('receiver_drained', resolve));
      inbox.link.add_credit(5);
      inbox.link.drain_credit();
      await within(WAIT, drained, 'the answer to the drain');
      same(inbox.came.splice(0).map((m) => m.message.body), expected, 'drained');
      same(inbox.link.credit, 0, 'credit');
    }
    inbox.link.drain = false;
    await put(connection, queue, 'later');
    same((await inbox.take_one()).message.body, 'later', 'after the drain');
  },
  'plain-queue/dlq-address': async (connection, queue) => {
    const dead = `${queue}/$DeadLetterQueue`;
    await expect_refused(connection, {target: {address: dead}}, 'amqp:not-allowed');
    await put(connection, queue, 'bad');
    (await (await Inbox.open(connection, queue)).take_one()).delivery.reject();
    for (const address of [dead, dead.toLowerCase(), `/${dead}`]) {
      const graves = await Inbox.open(connection, address);
      const got = await graves.take_one();
      same(got.message.body, 'bad', address);
      got.delivery.release();
      graves.link.close();
    }
  },
});
