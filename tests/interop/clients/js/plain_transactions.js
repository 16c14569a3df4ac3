// rhea with transactions, by hand: it has no interface for them, and writes no state on a transfer, so that is put in
// as the frame leaves. Scenario names: runner/scenarios.py.
'use strict';

const rhea = require('rhea');
const {check, context, sleep, within} = require('./report.js');
const {Inbox, WAIT, put, same, with_queues} = require('./plain_client.js');

const types = rhea.types;
const [COORDINATOR, DECLARE, DISCHARGE, DECLARED, TRANSACTIONAL] = [0x30, 0x31, 0x32, 0x33, 0x34];
const [ACCEPTED, REJECTED] = [0x24, 0x25];
const STATE = 7;  // its place in a transfer, which rhea has no setter for

const described = (code, ...fields) => types.described(types.wrap_ulong(code), types.wrap_list(fields));
const in_transaction = (id, ...outcome) => described(TRANSACTIONAL, types.wrap_binary(id), ...outcome);

// A described value in an amqp-value, which rhea cannot write: the fields are an encoded list.
const control = (code, fields) => Buffer.from([0x00, 0x53, 0x77, 0x00, 0x53, code, ...fields]);

// A link whose outcomes are read as they come.
class Sender {
  static async open(connection, target) {
    const sender = new Sender();
    // A session of its own: transactions hold on the whole connection.
    const session = connection.create_session();
    session.open();
    sender.link = session.open_sender({name: `sender-${Math.random()}`, target: {address: target || 'x'}});
    if (!target) sender.link.local.attach.target = described(COORDINATOR);
    const output = session.output;
    session.output = (performative, payload) => {
      if (sender.state && 'delivery_tag' in performative) performative.value[STATE] = sender.state;
      output.call(session, performative, payload);
    };
    const ready = new Promise((resolve, reject) => {
      sender.link.once('sendable', resolve);
      sender.link.once('sender_error', () => reject(new Error(`refused: ${sender.link.error}`)));
    });
    await within(WAIT, ready, 'the first credit');
    return sender;
  }

  // What the broker settles it with: {code, fields}.
  async send(message, state) {
    this.state = state;
    const delivery = Buffer.isBuffer(message) ? this.link.send(message, undefined, 0) : this.link.send(message);
    await until(() => delivery.remote_settled, 'an outcome');
    return outcome_of(delivery);
  }
}

async function until(ready, what) {
  const deadline = Date.now() + WAIT;
  while (!ready()) {
    check(Date.now() < deadline, `no end of waiting for ${what}`);
    await sleep(5);
  }
}

// rhea knows the outcomes of messages and hands over the others as they are.
function outcome_of(delivery) {
  const state = delivery.remote_state;
  if (state.descriptor) {
    return {code: Number(state.descriptor.value), fields: state.value.map((v) => v && v.value !== undefined ? v.value : v)};
  }
  const code = {accepted: ACCEPTED, rejected: REJECTED}[state.constructor.composite_type];
  return {code, condition: state.error && state.error.condition};
}

class Transactions {
  static async open(connection) {
    const transactions = new Transactions();
    transactions.controller = await Sender.open(connection, null);
    return transactions;
  }

  async declare() {
    const {code, fields} = await this.controller.send(control(DECLARE, [0x45]));
    same(code, DECLARED, 'the answer to a declare');
    return Buffer.from(fields[0]);
  }

  discharge(id, fail) {
    const fields = [2, 0xa0, id.length, ...id, fail ? 0x41 : 0x42];
    return this.controller.send(control(DISCHARGE, [0xc0, fields.length, ...fields]));
  }
}

// Takes one message and sends another one on its place, in a transaction.
async function move(connection, queue, target, fail) {
  const transactions = await Transactions.open(connection);
  const inbox = await Inbox.open(connection, queue, {snd_settle_mode: 0, rcv_settle_mode: 1});
  const sender = await Sender.open(connection, target);
  const id = await transactions.declare();
  const got = await inbox.take_one();
  const sent = await sender.send({body: `${got.message.body} moved`}, in_transaction(id));
  same(sent.code, TRANSACTIONAL, 'the outcome of the send');
  check(Buffer.from(sent.fields[0]).equals(id), 'the outcome names another transaction');
  got.delivery.update(false, in_transaction(id, described(ACCEPTED)));
  await until(() => got.delivery.remote_settled, 'the answer to the settlement');
  same(outcome_of(got.delivery).code, TRANSACTIONAL, 'the answer to the settlement');
  same(await count(connection, target), 0, 'messages before the commit');
  same((await transactions.discharge(id, fail)).code, ACCEPTED, 'the answer to the discharge');
  inbox.link.close();
}

async function count(connection, queue) {
  const inbox = await Inbox.open(connection, queue);
  inbox.link.add_credit(10);
  await sleep(300);
  const all = inbox.came.splice(0);
  for (const {delivery} of all) delivery.release();
  inbox.link.close();
  return all.length;
}

module.exports = with_queues({
  'transaction/move': async (connection, queue) => {
    const target = context.partners['transaction/move'];
    await put(connection, queue, 'a');
    await move(connection, queue, target, false);
    await (await Inbox.open(connection, queue)).nothing();
    const got = await (await Inbox.open(connection, target)).take_one();
    same(got.message.body, 'a moved', 'at the other queue');
    got.delivery.accept();
  },
  'transaction/rollback': async (connection, queue) => {
    const target = context.partners['transaction/rollback'];
    await put(connection, queue, 'a');
    await move(connection, queue, target, true);
    same(await count(connection, target), 0, 'messages after the rollback');
    const got = await (await Inbox.open(connection, queue)).take_one();  // when the lock has ended
    same([got.message.body, got.message.delivery_count], ['a', 1], 'the message that came back');
    got.delivery.accept();
  },
  'transaction/unknown-id': async (connection, queue) => {
    const nobody = Buffer.from('nobody');
    const sent = await (await Sender.open(connection, queue)).send({body: 'x'}, in_transaction(nobody));
    same([sent.code, sent.condition], [REJECTED, 'amqp:transaction:unknown-id'], 'a send');
    const transactions = await Transactions.open(connection);
    const discharged = await transactions.discharge(nobody, false);
    same([discharged.code, discharged.condition], [REJECTED, 'amqp:transaction:unknown-id'], 'a discharge');
  },
});
