// What the queue and session scenarios of @azure/service-bus share: a client, and strict little steps.
'use strict';

const assert = require('assert');
const Long = require('long');
const {ServiceBusClient} = require('@azure/service-bus');
const {check, context, within} = require('./report.js');

// Nothing is retried by the SDK: what the broker answers first is what counts.
const connected = (milliseconds = 15000) => new ServiceBusClient(context.brokers.queues.emulator,
    {retryOptions: {maxRetries: 0, timeoutInMs: milliseconds}});

// The scenarios by name, from functions (client, queue). Each has a queue of its own, empty at the start.
function with_queues(bodies) {
  return Object.fromEntries(Object.entries(bodies).map(([name, body]) => [name, async () => {
    const client = connected();
    try {
      return await body(client, context.queues[name]);
    } finally {
      await within(5000, client.close(), 'close').catch((error) => console.error('close', error));
    }
  }]));
}

function same(got, expected, what) {
  assert.deepStrictEqual(got, expected, `${what}: expected ${show(expected)}, got ${show(got)}`);
}
const show = (value) => JSON.stringify(value, (_, v) => v === undefined ? 'undefined' : v);

async function send(client, queue, ...messages) {
  const sender = client.createSender(queue);
  for (const message of messages) await sender.sendMessages(typeof message === 'string' ? {body: message} : message);
  await sender.close();
}

// Exactly `count` messages, however many calls that needs.
async function take(receiver, count, milliseconds = 10000) {
  const got = [];
  const deadline = Date.now() + milliseconds;
  while (got.length < count) {
    const left = deadline - Date.now();
    check(left > 0, `${got.length} of ${count} messages came within ${milliseconds} ms`);
    got.push(...await receiver.receiveMessages(count - got.length, {maxWaitTimeInMs: left}));
  }
  return got;
}
const take_one = async (receiver) => (await take(receiver, 1))[0];

async function nothing(receiver, milliseconds = 1000) {
  const got = await receiver.receiveMessages(1, {maxWaitTimeInMs: milliseconds});
  same(got.map((m) => m.body), [], 'an empty receive');
}

async function sees(receiver, expected, count = 10) {
  const seen = await receiver.peekMessages(count, {fromSequenceNumber: Long.ONE});
  same(seen.map((m) => m.body), expected, 'peek');
}

// Nothing at all is in the queue, not even locked or deferred.
async function gone(client, queue, options = {}) {
  const receiver = client.createReceiver(queue, options);
  await sees(receiver, []);
  await receiver.close();
}

async function fails(code, action) {
  let value;
  try {
    value = await action();
  } catch (error) {
    check(error.code === code, `expected ${code}, got ${error.name} ${error.code}: ${error.message}`);
    return error.message;
  }
  throw new Error(`expected ${code}, but it worked: ${show(value)}`);
}

const dead = {subQueueType: 'deadLetter'};
const no_auto_renewal = {maxAutoLockRenewalDurationInMs: 0};
const lock_ms = context.lock_seconds * 1000;

module.exports = {connected, dead, fails, gone, lock_ms, no_auto_renewal, nothing, same, sees, send, take, take_one,
  with_queues};
