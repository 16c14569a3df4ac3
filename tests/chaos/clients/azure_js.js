// @azure/service-bus as a client of the chaos run: each role has a connection of its own.
//
// The SDK retries nothing: an answer that did not come is unknown, and the role connects again. Commands come on
// standard input: `quiet` ends the senders, `stop` everything.
'use strict';

const fs = require('fs');
const readline = require('readline');
const {ServiceBusClient} = require('@azure/service-bus');
const {History, now} = require('./history.js');

const ANSWER_MS = 8000;
const REFUSED = ['ServiceBusy', 'QuotaExceeded', 'MessageSizeExceeded'];
const LOST = ['MessageLockLost', 'SessionLockLost'];

const state = {quiet: false, stopped: false};
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const microseconds = (date) => date && date.getTime() * 1000;

// A small generator (mulberry32), so that the seed decides.
function generator(text) {
  let a = 0;
  for (const c of text) a = Math.imul(a ^ c.charCodeAt(0), 0x9E3779B1) >>> 0;
  return () => {
    a = (a + 0x6D2B79F5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// Some calls of the SDK never end when the connection goes away at the wrong time.
async function within(ms, promise) {
  let timer;
  try {
    return await Promise.race([promise, new Promise((_, no) => {
      timer = setTimeout(() => no(new Error('no answer')), ms);
    })]);
  } finally {
    clearTimeout(timer);
  }
}

class Role {
  constructor(spec, history, how, number) {
    this.how = how;
    this.history = history;
    this.who = `${spec.name}-${number}`;
    this.random = generator(`${spec.seed} ${this.who}`);
    this.connection = spec.connection;
    this.number = 0;
    this.troubles = {};
  }

  say(what, fields) {
    this.history.say(this.who, what, fields);
  }

  between(low, high) {
    return low + Math.floor(this.random() * (high - low + 1));
  }

  ended() {
    return this.how.role === 'send' ? state.quiet : state.stopped;
  }

  async run() {
    while (!this.ended()) {
      const client = new ServiceBusClient(this.connection,
          {retryOptions: {maxRetries: 0, timeoutInMs: ANSWER_MS, retryDelayInMs: 1}});
      try {
        await this.work(client);
      } catch (error) {
        const name = error.code || error.name;
        this.troubles[name] = (this.troubles[name] || 0) + 1;
        await sleep(100 + this.random() * 300);
      }
      await within(2000, client.close()).catch(() => {});
    }
  }
}

// `to`, `rate` a second; `sessions`, `keys`, `dedup`, `later`, `mortal` say what else.
class Sender extends Role {
  async work(client) {
    const sender = client.createSender(this.how.to);
    while (!this.ended()) {
      await this.send(sender);
      await sleep(this.random() * 2000 / this.how.rate);
    }
  }

  async send(sender) {
    const count = this.random() < 0.2 && !this.how.dedup ? this.between(2, 5) : 1;
    const shape = this.shape();
    const batch = count > 1 ? `${this.who}.b${this.number}` : undefined;
    const ids = Array.from({length: count}, () => `${this.who}.${++this.number}`);
    const messages = ids.map((id) => ({body: Buffer.from(`${id} ${'x'.repeat(this.size())}`), ...shape.options}));
    for (const id of ids) this.say('send', {id, to: this.how.to, batch, mid: shape.mid, ...shape.told});
    let result = 'unknown';
    try {
      await within(ANSWER_MS + 2000, sender.sendMessages(batch ? messages : messages[0]));
      result = 'accepted';
    } catch (error) {
      if (!REFUSED.includes(error.code)) throw error;
      result = 'refused';
    } finally {
      for (const id of ids) this.say('sent', {id, result});
      this.again = shape.mid && result !== 'accepted' ? shape : undefined;
    }
  }

  size() {
    return this.random() < 0.95 ? this.between(0, 200) : this.between(1000, 150000);
  }

  // What was not answered is sent again where duplicates are found.
  shape() {
    if (this.again) return this.again;
    const told = {}, options = {};
    if (this.how.sessions) told.session = options.sessionId = `s${this.between(0, this.how.sessions - 1)}`;
    if (this.how.keys) told.key = options.partitionKey = `k${this.between(0, this.how.keys - 1)}`;
    const kind = this.random(), later = this.how.later || 0, mortal = this.how.mortal || 0;
    if (kind < later) {
      options.scheduledEnqueueTimeUtc = new Date(Date.now() + this.between(500, 3000));
      told.at = microseconds(options.scheduledEnqueueTimeUtc);
    } else if (kind < later + mortal) {
      options.timeToLive = this.between(500, 3000);
      told.ttl = options.timeToLive * 1000;
    }
    const mid = this.how.dedup ? `${this.who}.m${this.number}` : undefined;
    if (mid) options.messageId = mid;
    return {told, options, mid};
  }
}

// `from`, either a queue or a topic with `subscription`; `dead` for its dead letters.
class Receiver extends Role {
  constructor(...all) {
    super(...all);
    const how = this.how;
    this.place = how.subscription ? `${how.from}/Subscriptions/${how.subscription}` : how.from;
    if (how.dead) this.place += '/$DeadLetterQueue';
    this.deferred = [];
  }

  async work(client) {
    const options = {maxAutoLockRenewalDurationInMs: 0, ...(this.how.dead ? {subQueueType: 'deadLetter'} : {})};
    const receiver = this.how.subscription ?
        client.createReceiver(this.how.from, this.how.subscription, options) :
        client.createReceiver(this.how.from, options);
    while (!this.ended()) {
      const got = await within(ANSWER_MS, receiver.receiveMessages(this.between(1, 8), {maxWaitTimeInMs: 1000}));
      await this.deal_with(receiver, got);
      await this.look_after(receiver);
    }
  }

  // All are told before anything is done with the first: what was delivered before a crash is told soon.
  async deal_with(receiver, messages, until, deferred) {
    const told = messages.map((message) => this.told(message, until || microseconds(message.lockedUntilUtc)));
    for (let n = 0; n < messages.length; ++n) {
      if (told[n]) await this.deal(receiver, messages[n], told[n], deferred);
    }
  }

  // Nothing when its lock was over before it came out of the SDK: nobody counts on it then.
  told(message, until) {
    if (until <= now()) return undefined;
    const what = {id: String(message.body).split(' ')[0], from: this.place, seq: message.sequenceNumber.toNumber()};
    this.say('got', {...what, count: message.deliveryCount + 1, session: message.sessionId, until,
      dead: message.deadLetterReason});
    return what;
  }

  async deal(receiver, message, what, deferred) {
    const kind = this.random();
    const mortal = message.timeToLive < 60000;  // what is deferred expires only when it is fetched
    if (kind < 0.04 && !message.sessionId && !deferred) {
      const renewed = await within(ANSWER_MS, receiver.renewMessageLock(message));
      this.say('renewed', {...what, until: microseconds(renewed)});
    }
    if (kind > 0.97) return;  // left alone, until its lock ends
    let how = 'complete';
    if (!this.how.dead && !deferred) {
      if (kind > 0.92) how = 'abandon';
      else if (kind > 0.88) how = 'dead-letter';
      else if (kind > 0.85 && !message.sessionId && !mortal) how = 'defer';
    }
    await this.settle(what, how, {
      'complete': () => receiver.completeMessage(message),
      'abandon': () => receiver.abandonMessage(message),
      'defer': () => receiver.deferMessage(message),
      'dead-letter': () => receiver.deadLetterMessage(message,
          {deadLetterReason: 'chaos', deadLetterErrorDescription: 'by chance'}),
    }[how]);
    if (how === 'defer') this.deferred.push(message.sequenceNumber);
  }

  async settle(what, how, action) {
    this.say('settle', {...what, how});
    let result = 'unknown';
    try {
      await within(ANSWER_MS + 2000, action());
      result = 'accepted';
    } catch (error) {
      if (!LOST.includes(error.code)) throw error;
      result = 'refused';
    } finally {
      this.say('settled', {...what, how, result});
    }
  }

  // What was deferred is fetched by its number, once there is some of it.
  async look_after(receiver) {
    if (this.deferred.length < 3) return;
    const number = this.deferred[0];
    try {
      const [message] = await within(ANSWER_MS, receiver.receiveDeferredMessages(number));
      this.deferred.shift();
      await this.deal_with(receiver, [message], undefined, true);
    } catch (error) {
      if (error.code !== 'MessageNotFound') throw error;
      this.deferred.shift();
    }
  }
}

// Takes one session after the other, some messages of each.
class Sessions extends Receiver {
  async work(client) {
    while (!this.ended()) {
      let receiver;
      try {
        receiver = await within(ANSWER_MS + 2000,
            client.acceptNextSession(this.how.from, {maxAutoLockRenewalDurationInMs: 0}));
      } catch (error) {
        if (error.code !== 'ServiceTimeout') throw error;
        continue;  // no session has messages
      }
      await this.serve(receiver);
    }
  }

  // By subscription: receiveMessages() may close the link by itself, and with it the session, and tells nobody.
  async serve(receiver) {
    const session = {session: receiver.sessionId, from: this.place};
    let over = false, lost;
    const loss = new Promise((done) => { lost = done; });
    this.say('locked', {...session, until: microseconds(receiver.sessionLockedUntilUtc)});
    const subscription = receiver.subscribe({
      processMessage: async (message) => {
        if (over) return;
        await this.deal_with(receiver, [message], microseconds(receiver.sessionLockedUntilUtc));
      },
      processError: async () => lost(),
    }, {autoCompleteMessages: false, maxConcurrentCalls: 1});
    try {
      for (let round = this.between(1, 4); round > 0 && !this.ended(); --round) {
        const gone = await Promise.race([loss.then(() => true), sleep(this.between(100, 800))]);
        if (gone) break;
        if (this.random() < 0.3) {
          const until = await within(ANSWER_MS, receiver.renewSessionLock());
          this.say('renewed', {...session, until: microseconds(until)});
        }
      }
    } finally {
      over = true;
      this.say('unlocked', session);
    }
    await within(ANSWER_MS, subscription.close());
    await within(ANSWER_MS, receiver.close());
  }
}

async function main(path) {
  const spec = JSON.parse(fs.readFileSync(path));
  const history = new History(spec.log);
  const kinds = {send: Sender, receive: Receiver, sessions: Sessions};
  const roles = spec.roles.map((how, number) => new kinds[how.role](spec, history, how, number));
  const commands = readline.createInterface({input: process.stdin});
  commands.on('line', (line) => {
    state.quiet = true;
    if (line.trim() !== 'quiet') state.stopped = true;
  });
  commands.on('close', () => { state.quiet = state.stopped = true; });
  await Promise.all(roles.map((role) => role.run()));
  for (const role of roles) console.log(`${role.who} ${role.how.role}: ${JSON.stringify(role.troubles)}`);
  process.exit(0);  // connections that the SDK still mourns
}

// The SDK lets errors of connections that were closed long ago escape now and then.
process.on('unhandledRejection', (error) => console.log(`unhandled: ${error && error.message}`));
main(process.argv[2]).catch((error) => {
  console.error(error);
  process.exit(1);
});
