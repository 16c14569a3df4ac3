// What the scenarios of rhea with queues and exchanges share: a connection, and strict little steps.
'use strict';

const {check, context, sleep, within} = require('./report.js');
const {attach, connect} = require('./peer.js');

const WAIT = 8000;

// The scenarios by name, from functions (connection, name of the queue, topic or exchange). Each has its own, empty at
// the start.
function with_queues(bodies) {
  return Object.fromEntries(Object.entries(bodies).map(([name, body]) => [name, async () => {
    const {host, port} = context.brokers.queues;
    const connection = await connect({host, port, username: context.rule, password: context.key});
    try {
      return await body(connection, context.queues[name]);
    } finally {
      connection.close();
    }
  }]));
}

function same(got, expected, what) {
  check(JSON.stringify(got) === JSON.stringify(expected),
      `${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`);
}

// Sends and waits for every outcome; resolves with their names.
async function send(connection, address, messages, options = {}) {
  const {link, condition} = await attach(connection, {target: {address}, ...options});
  check(link, `the sender was refused: ${condition}`);
  const sendable = new Promise((resolve) => link.once('sendable', resolve));
  if (!link.sendable()) await within(WAIT, sendable, 'the first credit');
  const outcomes = [];
  const all = new Promise((resolve) => {
    for (const event of ['accepted', 'rejected', 'released', 'modified']) {
      link.on(event, () => {
        outcomes.push(event);
        if (outcomes.length === messages.length) resolve();
      });
    }
  });
  for (const message of messages) link.send(message);
  if (options.snd_settle_mode !== 1) await within(WAIT, all, 'the outcomes');
  link.close();
  return outcomes;
}
const put = async (connection, address, ...bodies) => same(
    await send(connection, address, bodies.map((body) => ({body}))), bodies.map(() => 'accepted'), 'outcomes');

// A receiver that gives credit only when asked, and keeps what comes.
class Inbox {
  static async open(connection, address, options = {}) {
    const inbox = new Inbox();
    inbox.came = [];
    const {link, condition} = await attach(connection,
        {source: {address}, credit_window: 0, autoaccept: false, ...options});
    check(link, `the receiver was refused: ${condition}`);
    inbox.link = link;
    link.on('message', ({message, delivery}) => inbox.came.push({message, delivery}));
    return inbox;
  }

  async take(count, credit = count) {
    if (credit) this.link.add_credit(credit);
    const deadline = Date.now() + WAIT;
    while (this.came.length < count) {
      check(Date.now() < deadline, `${this.came.length} of ${count} messages came`);
      await sleep(5);
    }
    return this.came.splice(0, count);
  }

  async take_one() {
    return (await this.take(1))[0];
  }

  async nothing(credit = 1) {
    if (credit) this.link.add_credit(credit);
    await sleep(500);
    same(this.came.map((m) => m.message.body), [], 'expected nothing');
  }
}

module.exports = {Inbox, WAIT, put, same, send, with_queues};
