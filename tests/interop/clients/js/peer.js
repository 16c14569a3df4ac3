// rhea with promises: just enough to say "connect", "attach", "put this token" in a scenario.
'use strict';

const crypto = require('crypto');
const rhea = require('rhea');
const {check, within} = require('./report.js');

const WAIT = 8000;

// Resolves with the connection once the broker's open arrived. Rejects with an Error that carries
// `condition` when the broker refuses (SASL included) or drops the connection.
function connect(options) {
  const container = rhea.create_container();
  const connection = container.connect({reconnect: false, ...options});
  connection.gone = new Promise((resolve) => {
    connection.on('connection_error', (event) => resolve(event.connection.get_error() || event.error));
    connection.on('disconnected', (event) => resolve(event.error || connection.get_error() || new Error('disconnected')));
  });
  for (const event of ['error', 'protocol_error']) connection.on(event, (error) => console.error(event, String(error)));
  const opened = new Promise((resolve) => connection.once('connection_open', () => resolve(connection)));
  const refused = connection.gone.then((error) => {
    throw Object.assign(new Error(`connection refused: ${describe(error)}`), {condition: error.condition});
  });
  refused.catch(() => {});
  return within(WAIT, Promise.race([opened, refused]), 'connecting');
}

const describe = (error) => error ? `${error.condition || error.code || ''} ${error.description || error.message || error}` : 'no error';

// Attaches a link and resolves with {link} when it stays open, or {condition, description} when
// the broker refused it. `terminus` has a source for a receiver; a sender has a target only.
function attach(connection, terminus) {
  const is_sender = !('source' in terminus);
  const link = is_sender ? connection.open_sender(terminus) : connection.open_receiver(terminus);
  const kind = is_sender ? 'sender' : 'receiver';
  link.detached = new Promise((resolve) => {
    link.on(`${kind}_error`, () => resolve({condition: link.error.condition, description: link.error.description}));
    link.on(`${kind}_close`, () => resolve({condition: undefined, description: 'closed without an error'}));
  });
  const opened = new Promise((resolve) => link.once(`${kind}_open`, () => {
    const remote = is_sender ? link.target : link.source;
    // A null terminus in the reply announces the refusal; its detach follows.
    if (remote && remote.address !== undefined && remote.address !== null) resolve({link});
  }));
  return within(WAIT, Promise.race([opened, link.detached]), `attaching ${JSON.stringify(terminus)}`);
}

async function expect_refused(connection, terminus, condition) {
  const outcome = await attach(connection, terminus);
  check(!outcome.link, `the link was accepted, expected ${condition}`);
  check(outcome.condition === condition, `expected ${condition}, got ${outcome.condition}: ${outcome.description}`);
  return outcome.description;
}

// A hand-made $cbs client on its own pair of links.
class Cbs {
  static async open(connection) {
    const cbs = new Cbs();
    cbs.waiting = [];
    cbs.reply_to = `reply-${crypto.randomUUID()}`;
    const replies = await attach(connection, {source: {address: '$cbs'}, target: {address: cbs.reply_to}});
    check(replies.link, `$cbs receiver refused: ${replies.condition}`);
    replies.link.on('message', (event) => cbs.waiting.shift()(event.message));
    const requests = await attach(connection, {target: {address: '$cbs'}});
    check(requests.link, `$cbs sender refused: ${requests.condition}`);
    cbs.sender = requests.link;
    return cbs;
  }

  async request(properties, body, message_id = crypto.randomUUID()) {
    if (!this.sender.sendable()) {
      await within(WAIT, new Promise((resolve) => this.sender.once('sendable', resolve)), 'waiting for $cbs credit');
    }
    const reply = new Promise((resolve) => this.waiting.push(resolve));
    this.sender.send({message_id, reply_to: this.reply_to, application_properties: properties, body});
    const message = await within(WAIT, reply, 'the $cbs reply');
    const answer = message.application_properties || {};
    check(typeof answer['status-description'] === 'string', 'status-description is not a string');
    return {code: answer['status-code'], condition: answer['error-condition'], text: answer['status-description'],
      correlation_id: message.correlation_id};
  }

  put_token(name, token, extra = {}) {
    return this.request({operation: 'put-token', type: 'servicebus.windows.net:sastoken', name, ...extra}, token);
  }
}

function sas(resource, rule, key, seconds) {
  const sr = encodeURIComponent(resource);
  const expiry = Math.floor(Date.now() / 1000) + seconds;
  const signature = crypto.createHmac('sha256', key).update(`${sr}\n${expiry}`).digest('base64');
  return `SharedAccessSignature sr=${sr}&sig=${encodeURIComponent(signature)}&se=${expiry}&skn=${rule}`;
}

module.exports = {Cbs, attach, connect, expect_refused, rhea, sas};
