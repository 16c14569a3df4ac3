// @azure/service-bus with message sessions. Scenario names: runner/scenarios.py.
'use strict';

const {check, sleep} = require('./report.js');
const {connected, dead, fails, gone, lock_ms, no_auto_renewal, nothing, same, sees, send, take, take_one, with_queues} =
    require('./client.js');

const into = (sessionId, ...bodies) => bodies.map((body) => ({sessionId, body}));

module.exports = with_queues({
  'session/accept-named': async (client, queue) => {
    await send(client, queue, ...into('a', 'for a'), ...into('b', 'for b'));
    const receiver = await client.acceptSession(queue, 'b');
    same(receiver.sessionId, 'b', 'session id');
    check(receiver.sessionLockedUntilUtc > new Date(), 'the lock is over already');
    const got = await take_one(receiver);
    same([got.body, got.sessionId], ['for b', 'b'], 'message');
    await receiver.completeMessage(got);
    await nothing(receiver);
    await nothing(await client.acceptSession(queue, 'empty'));  // a session need not have messages
  },
  'session/accept-next': async (client, queue) => {
    await send(client, queue, ...into('only', 'hello'));
    const receiver = await client.acceptNextSession(queue);
    same(receiver.sessionId, 'only', 'session id');
    const got = await take_one(receiver);
    same(got.body, 'hello', 'body');
    await receiver.completeMessage(got);
  },
  'session/accept-next-time-out': async (_, queue) => {
    const hasty = connected(2000);
    try {
      return await fails('ServiceTimeout', () => hasty.acceptNextSession(queue));
    } finally {
      await hasty.close();
    }
  },
  'session/order': async (client, queue) => {
    const numbers = Array.from({length: 20}, (_, n) => n);
    await send(client, queue, ...numbers.flatMap((n) => [...into('x', `x${n}`), ...into('y', `y${n}`)]));
    for (const session of ['y', 'x']) {
      const receiver = await client.acceptSession(queue, session);
      const got = await take(receiver, numbers.length);
      same(got.map((m) => m.body), numbers.map((n) => session + n), 'order');
      for (const message of got) await receiver.completeMessage(message);
      await sees(receiver, []);
      await receiver.close();
    }
  },
  'session/state': async (client, queue) => {
    const state = {step: 1, text: 'ż'};
    let receiver = await client.acceptSession(queue, 's');
    check(!await receiver.getSessionState(), 'a new session has a state');
    await receiver.setSessionState(state);
    same(await receiver.getSessionState(), state, 'state');
    await receiver.close();
    receiver = await client.acceptSession(queue, 'other');
    check(!await receiver.getSessionState(), 'another session has the state');
    await receiver.close();
    receiver = await client.acceptSession(queue, 's');
    same(await receiver.getSessionState(), state, 'state after accepting again');
    await receiver.setSessionState(null);
    same(await receiver.getSessionState(), null, 'cleared state');
  },
  'session/renew': async (client, queue) => {
    await send(client, queue, ...into('r', 'long work'));
    const receiver = await client.acceptSession(queue, 'r', no_auto_renewal);
    const got = await take_one(receiver);
    const end = Date.now() + lock_ms + 3000;
    for (let until = receiver.sessionLockedUntilUtc; Date.now() < end;) {
      await sleep(1500);
      const renewed = await receiver.renewSessionLock();
      check(renewed > until, `the lock ended ${until}, renewed until ${renewed}`);
      until = renewed;
    }
    await receiver.completeMessage(got);
    await sees(receiver, []);
  },
  'session/locked-by-another': async (client, queue) => {
    const second = connected();
    try {
      const first = await client.acceptSession(queue, 'mine');
      const why = await fails('SessionCannotBeLocked', () => second.acceptSession(queue, 'mine'));
      await first.close();
      same((await second.acceptSession(queue, 'mine')).sessionId, 'mine', 'session id');  // free again
      return why;
    } finally {
      await second.close();
    }
  },
  'session/deferral': async (client, queue) => {
    await send(client, queue, ...into('d', 'later', 'now'));
    const receiver = await client.acceptSession(queue, 'd');
    const first = await take_one(receiver);
    await receiver.deferMessage(first);
    const second = await take_one(receiver);
    same(second.body, 'now', 'after the deferral');
    await receiver.completeMessage(second);
    const got = await receiver.receiveDeferredMessages(first.sequenceNumber);
    same(got.map((m) => [m.body, m.sessionId, m.state]), [['later', 'd', 'deferred']], 'by number');
    await receiver.completeMessage(got[0]);
    await sees(receiver, []);
  },
  'session/dead-letter': async (client, queue) => {
    await send(client, queue, ...into('d', 'poison'));
    const receiver = await client.acceptSession(queue, 'd');
    await receiver.deadLetterMessage(await take_one(receiver),
        {deadLetterReason: 'r', deadLetterErrorDescription: 'd'});
    await sees(receiver, []);
    const graves = client.createReceiver(queue, dead);  // the dead-letter queue has no sessions
    const letter = await take_one(graves);
    same([letter.body, letter.sessionId, letter.deadLetterReason], ['poison', 'd', 'r'], 'dead letter');
    await graves.completeMessage(letter);
    await gone(client, queue, dead);
  },
  'session/missing-id-refused': async (client, queue) => {
    const why = await fails('GeneralError', () => send(client, queue, 'nobody\'s'));
    check(why.startsWith('InvalidOperationError'), `refused for another reason: ${why}`);  // amqp:not-allowed
    await send(client, queue, ...into('s', 'somebody\'s'));
    const receiver = await client.acceptSession(queue, 's');
    const got = await take_one(receiver);
    same(got.body, 'somebody\'s', 'body');
    await receiver.completeMessage(got);
    return why;
  },
});
