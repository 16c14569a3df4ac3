// rhea with exchanges, as a plain AMQP client. Names: runner/scenarios.py, shapes: runner/topics.py.
'use strict';

const {types} = require('rhea');
const {expect_refused} = require('./peer.js');
const {Inbox, put, same, send, with_queues} = require('./plain_client.js');

const below = (name, subscription) => `${name}/Subscriptions/${subscription}`;
const keyed = (subject, body = subject) => subject === undefined ? {body: 'no key'} : {subject, body};
const headed = (body, application_properties) => ({body, application_properties});

async function accepted(connection, address, ...messages) {
  same(await send(connection, address, messages), messages.map(() => 'accepted'), 'outcomes');
}

// Takes and accepts exactly these messages, in this order; nothing else is there.
async function holds(connection, address, ...expected) {
  const inbox = await Inbox.open(connection, address);
  const got = await inbox.take(expected.length, expected.length + 5);
  same(got.map((m) => m.message.body), expected, address);
  for (const one of got) one.delivery.accept();
  await inbox.nothing(0);
  inbox.link.close();
  return got.map((m) => m.message);
}

const routed_by = (message) => [message.message_annotations['x-exchange'], message.message_annotations['x-routing-key']];

module.exports = with_queues({
  'exchange/direct': async (connection, name) => {
    await accepted(connection, name, keyed('red'), keyed('blue'), keyed('Red'), keyed('green'), keyed(undefined));
    for (const [subscription, ...expected] of [['red', 'red'], ['red2', 'red'], ['blue', 'blue'], ['no-key', 'no key']]) {
      await holds(connection, below(name, subscription), ...expected);
    }
  },
  'exchange/topic': async (connection, name) => {
    const keys = ['order.eu.paid', 'order.us.paid', 'order.eu', 'order.eu.late.paid', 'invoice'];
    await accepted(connection, name, ...keys.map((key) => keyed(key)), keyed(undefined));
    await holds(connection, below(name, 'all'), ...keys, 'no key');
    await holds(connection, below(name, 'paid'), 'order.eu.paid', 'order.us.paid');
    await holds(connection, below(name, 'eu'), 'order.eu.paid', 'order.eu', 'order.eu.late.paid');
  },
  'exchange/fanout': async (connection, name) => {
    await accepted(connection, name, keyed('some'), keyed(undefined));
    await accepted(connection, `${name}/other`, {body: 'to a key'});
    for (const subscription of ['a', 'b', 'c']) await holds(connection, below(name, subscription), 'some', 'no key', 'to a key');
  },
  'exchange/headers-all': async (connection, name) => {
    await accepted(connection, name,
        headed('h1', {site: 'gdansk', severity: 1, other: 'x'}), headed('h2', {site: 'gdansk'}),
        headed('h3', {ticket: 'T'}), headed('h4', {urgent: true, severity: types.wrap_double(1)}),
        headed('h5', {urgent: 'true'}), headed('h6', {site: 'gdansk', severity: types.wrap_double(1), ticket: ''}),
        headed('h7', {site: 'gdansk', severity: '1'}), {body: 'h8'});
    await holds(connection, below(name, 'two'), 'h1', 'h6');
    await holds(connection, below(name, 'present'), 'h3', 'h6');
    await holds(connection, below(name, 'flag'), 'h4');
  },
  'exchange/headers-any': async (connection, name) => {
    await accepted(connection, name, headed('h1', {site: 'gdansk'}), headed('h2', {severity: 1}),
        headed('h3', {site: 'sopot', severity: 2}), headed('h4', {site: 'gdansk', severity: 1}), {body: 'h5'});
    await holds(connection, below(name, 'any'), 'h1', 'h2', 'h4');
    await holds(connection, below(name, 'none'));
  },
  'exchange/key-in-address': async (connection, name) => {
    await accepted(connection, `${name}/red`, {body: 'm1', subject: 'blue'}, {body: 'm2'});
    await accepted(connection, `/${name}/red`, {body: 'm3'});
    await accepted(connection, `${name.toUpperCase()}/red`, {body: 'm4'});
    await accepted(connection, `${name}/eu.paid`, {body: 'm5'});
    await accepted(connection, `${name}/eu%2Epaid`, {body: 'm6'});
    await accepted(connection, `${name}/RED`, {body: 'for nobody'});  // keys have a letter case
    const [first] = await holds(connection, below(name, 'red'), 'm1', 'm2', 'm3', 'm4');
    same(first.subject, 'blue', 'subject');  // plain data here
    await holds(connection, below(name, 'dotted'), 'm5', 'm6');
    await holds(connection, below(name, 'no-key'));
  },
  'exchange/exchanges-address': async (connection, name) => {
    await accepted(connection, `/exchanges/${name}/red`, {body: 'm1', subject: 'blue'});
    await accepted(connection, `/exchanges/${name}/r%65d`, {body: 'm2'});
    await accepted(connection, `/exchanges/${name}`, {body: 'm3', subject: 'red'});  // no key, whatever the subject
    await holds(connection, below(name, 'red'), 'm1', 'm2');
    await holds(connection, below(name, 'no-key'), 'm3');
    await expect_refused(connection, {target: {address: `/exchanges/${name}/red/more`}}, 'amqp:invalid-field');
    await expect_refused(connection, {target: {address: `/queues/${name}/more`}}, 'amqp:invalid-field');
    return expect_refused(connection, {target: {address: '/exchanges/no-such/red'}}, 'amqp:not-found');
  },
  'exchange/annotations': async (connection, name) => {
    await accepted(connection, name, keyed('a.b'), keyed(undefined),
        {body: 'forged', subject: 'c', message_annotations: {'x-exchange': 'other', 'x-routing-key': 'other', 'x-mine': 'kept'}});
    await accepted(connection, `${name}/by.address`, {body: 'address', subject: 's', application_properties: {kept: 'yes'}});
    const got = await holds(connection, below(name, 'all'), 'a.b', 'no key', 'forged', 'address');
    same(got.map(routed_by), ['a.b', '', 'c', 'by.address'].map((key) => [name, key]), 'annotations');
    same(got[2].message_annotations['x-mine'], 'kept', 'the sender\'s own annotation');
    same([got[3].subject, got[3].application_properties], ['s', {kept: 'yes'}], 'the message itself');
    same(Number(got[3].message_annotations['x-opt-sequence-number']), 4, 'sequence number');
  },
  'exchange/unroutable-accept': async (connection, name) => {
    await accepted(connection, name, keyed('green'), keyed('red'));
    await holds(connection, below(name, 'red'), 'red');
  },
  'exchange/unroutable-release': async (connection, name) => {
    const outcomes = [];
    for (const key of ['green', 'red', undefined]) outcomes.push(...await send(connection, name, [keyed(key)]));
    same(outcomes, ['released', 'accepted', 'released'], 'outcomes');
    await holds(connection, below(name, 'red'), 'red');
  },
  'exchange/alternate': async (connection, name) => {
    const outcomes = [];
    for (const key of ['blue', 'red', 'green.1', 'grey']) outcomes.push(...await send(connection, name, [keyed(key)]));
    same(outcomes, ['accepted', 'accepted', 'accepted', 'released'], 'outcomes');
    await accepted(connection, `${name}/green.2`, keyed('red', 'by address'));
    await accepted(connection, `${name}-1`, keyed('green.3'));
    await holds(connection, below(name, 'red'), 'red');
    const [blue] = await holds(connection, below(`${name}-1`, 'blue'), 'blue');
    same(routed_by(blue), [`${name}-1`, 'blue'], 'annotations');
    const got = await holds(connection, below(`${name}-2`, 'green'), 'green.1', 'by address', 'green.3');
    same(got.map(routed_by), [1, 2, 3].map((n) => [`${name}-2`, `green.${n}`]), 'annotations');
  },
  'exchange/prefetch': async (connection, name) => {
    await put(connection, name, 'm0', 'm1', 'm2', 'm3', 'm4', 'm5');
    const first = await Inbox.open(connection, below(name, 'two'));
    const [m0, m1] = await first.take(2, 10);
    same([m0.message.body, m1.message.body], ['m0', 'm1'], 'held');
    await first.nothing(0);  // there is credit, but it holds two
    const second = await Inbox.open(connection, below(name, 'two'));
    same((await second.take(2, 10)).map((m) => m.message.body), ['m2', 'm3'], 'another consumer');
    m0.delivery.accept();
    same((await first.take(1, 0))[0].message.body, 'm4', 'after one was settled');
    await first.nothing(0);
    m1.delivery.release();  // it is free for a consumer that may hold one more
    same((await first.take(1, 0))[0].message.body, 'm1', 'after one was released');
    const settled = await Inbox.open(connection, below(name, 'two'), {snd_settle_mode: 1});
    same((await settled.take(1, 5)).map((m) => m.message.body), ['m5'], 'pre-settled');
    const unlimited = await Inbox.open(connection, below(name, 'unlimited'));
    same((await unlimited.take(6, 10)).length, 6, 'without a limit');
  },
  'exchange/queues-address': async (connection, name) => {
    await put(connection, name, 'm0', 'm1');
    const inbox = await Inbox.open(connection, `/queues/${encodeURIComponent(below(name, 'a'))}`);
    const [m0] = await inbox.take(1);
    same(m0.message.body, 'm0', 'body');
    m0.delivery.reject({condition: 'my:condition', description: 'my words'});
    inbox.link.close();
    await holds(connection, `/queues/${encodeURIComponent(`${below(name, 'a')}/$DeadLetterQueue`)}`, 'm0');
    await holds(connection, `/${below(name, 'a')}`, 'm1');
    return expect_refused(connection, {source: {address: '/queues/no-such'}}, 'amqp:not-found');
  },
  'exchange/dead-letter': async (connection, name) => {
    await put(connection, name, 'bad');
    const inbox = await Inbox.open(connection, below(name, 'a'));
    (await inbox.take_one()).delivery.reject({condition: 'my:condition', description: 'my words'});
    await inbox.nothing();
    const [letter] = await holds(connection, `${below(name, 'a')}/$DeadLetterQueue`, 'bad');
    same(letter.application_properties, {DeadLetterReason: 'my:condition', DeadLetterErrorDescription: 'my words'}, 'why');
    same(routed_by(letter), [name, ''], 'annotations');
    await holds(connection, `${below(name, 'b')}/$DeadLetterQueue`);
    await holds(connection, below(name, 'b'), 'bad');
  },
  'topic/publish': async (connection, name) => {
    await accepted(connection, name, {body: 'm0', subject: 's', application_properties: {n: 1.5}}, {body: 'm1'});
    for (const subscription of ['a', 'b']) {
      const [first] = await holds(connection, below(name, subscription), 'm0', 'm1');
      same([first.subject, first.application_properties], ['s', {n: 1.5}], 'message');
      same(routed_by(first), [undefined, undefined], 'annotations of an exchange');
    }
    await expect_refused(connection, {source: {address: name}}, 'amqp:not-allowed');
    await expect_refused(connection, {target: {address: below(name, 'a')}}, 'amqp:not-allowed');
    await expect_refused(connection, {target: {address: `${name}/key`}}, 'amqp:not-found');  // a topic has no keys
    return expect_refused(connection, {source: {address: below(name, 'no-such')}}, 'amqp:not-found');
  },
});
