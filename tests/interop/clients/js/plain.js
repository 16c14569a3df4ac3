// rhea as a plain AMQP client, without any Service Bus SDK. Scenario names: runner/scenarios.py.
'use strict';

const fs = require('fs');
const WebSocket = require('ws');
const {ask, check, context, run, sleep, within} = require('./report.js');
const {Cbs, attach, connect, expect_refused, rhea, sas} = require('./peer.js');

const {queue, rule, key} = context;
const NOT_FOUND = 'amqp:not-found';
const UNAUTHORIZED = 'amqp:unauthorized-access';

const at = (broker) => ({host: broker.host, port: broker.port});
const main = () => at(context.brokers.main);
const plain = {username: rule, password: key};
const anonymous = {username: 'anonymous'};

async function with_connection(options, body) {
  const connection = await connect(options);
  try {
    return await body(connection);
  } finally {
    connection.close();
    await Promise.race([connection.gone, new Promise((resolve) => connection.once('connection_close', resolve)), sleep(1000)]);
  }
}

async function expect_no_connection(options) {
  let connection;
  try {
    connection = await connect(options);
  } catch (error) {
    check(error.condition === UNAUTHORIZED, `expected a SASL refusal, got ${error.condition}: ${error.message}`);
    return error.message;
  }
  connection.close();
  throw new Error('the connection was accepted');
}

const missing = (connection) => expect_refused(connection, {target: {address: queue}}, NOT_FOUND);

// One request on a fresh $cbs pair, and what its answer must be.
function cbs(body) {
  return () => with_connection({...main(), ...anonymous}, async (connection) => body(await Cbs.open(connection), connection));
}
const name = () => `sb://${context.brokers.main.host}/${queue}`;
const tokens = () => context.brokers.main.tokens;

function expect_answer(answer, code, condition) {
  check(answer.code === code, `expected status ${code}, got ${answer.code} ${answer.text}`);
  check(answer.condition === condition, `expected error-condition ${condition}, got ${answer.condition}`);
  return answer.text;
}

function echoed(id, equal) {
  return cbs(async (client) => {
    const answer = await client.request({operation: 'put-token', type: 'servicebus.windows.net:sastoken', name: name()},
        tokens().namespace, id);
    expect_answer(answer, 202);
    check(equal(answer.correlation_id), `message-id came back as ${typeof answer.correlation_id} ${answer.correlation_id}`);
  });
}

const uuid = Buffer.from('00112233445566778899aabbccddeeff', 'hex');

const scenarios = {
  'plain/right-key': () => with_connection({...main(), ...plain}, missing),
  'plain/wrong-key': () => expect_no_connection({...main(), username: rule, password: 'not-the-key'}),
  'plain/unknown-rule': () => expect_no_connection({...main(), username: 'NoSuchRule', password: key}),
  'plain/tls': () => with_connection({...main(), ...plain, transport: 'tls', ca: fs.readFileSync(context.brokers.main.ca)}, missing),
  'plain/websocket': () => {
    const {host, port} = main();
    const connect_ws = rhea.create_container().websocket_connect(WebSocket);
    const details = connect_ws(`ws://${host}:${port}/$servicebus/websocket`, ['AMQPWSB10'], {});
    return with_connection({...plain, connection_details: details}, missing);
  },
  'anonymous/no-token': () => with_connection({...main(), ...anonymous}, (connection) =>
      expect_refused(connection, {target: {address: queue}}, UNAUTHORIZED)),
  // Without a user name rhea sends no SASL header at all, as the JS SDK does with a ready-made token.
  'no-sasl/attach-refused': () => with_connection(main(), (connection) =>
      expect_refused(connection, {target: {address: queue}}, UNAUTHORIZED)),
  'no-sasl/cbs': () => with_connection(main(), async (connection) => {
    const client = await Cbs.open(connection);
    expect_answer(await client.put_token(name(), tokens().namespace), 202);
    return missing(connection);
  }),
  'external/client-certificate': () => with_connection({
    ...at(context.brokers.certificates), transport: 'tls', ca: fs.readFileSync(context.brokers.certificates.ca),
    cert: fs.readFileSync(context.client_certificate), key: fs.readFileSync(context.client_key), enable_sasl_external: true,
  }, missing),

  'cbs/put-token': cbs(async (client, connection) => {
    await expect_refused(connection, {target: {address: queue}}, UNAUTHORIZED);
    expect_answer(await client.put_token(name(), tokens().entity), 202);
    await missing(connection);
    // The token covers its entity only.
    return expect_refused(connection, {target: {address: 'another-queue'}}, UNAUTHORIZED);
  }),
  'cbs/renewal': cbs(async (client, connection) => {
    expect_answer(await client.put_token(name(), sas(name(), rule, key, 60)), 202);
    expect_answer(await client.put_token(name(), sas(name(), rule, key, 600)), 202);
    return missing(connection);
  }),
  'cbs/unknown-type': cbs(async (client) => expect_answer(
      await client.put_token(name(), tokens().namespace, {type: 'amqp:swt'}), 400, 'com.microsoft:argument-error')),
  'cbs/missing-name': cbs(async (client) => expect_answer(
      await client.request({operation: 'put-token', type: 'jwt'}, tokens().namespace), 400, 'com.microsoft:argument-error')),
  'cbs/bad-signature': cbs(async (client, connection) => {
    expect_answer(await client.put_token(name(), tokens().bad_signature), 401, 'com.microsoft:auth-failed');
    return expect_refused(connection, {target: {address: queue}}, UNAUTHORIZED);
  }),
  'cbs/expired': cbs(async (client) => expect_answer(
      await client.put_token(name(), tokens().expired), 401, 'com.microsoft:auth-failed')),
  'cbs/id-string': echoed('text-id', (id) => id === 'text-id'),
  'cbs/id-ulong': echoed(4294967297, (id) => id === 4294967297),
  'cbs/id-uuid': echoed(uuid, (id) => Buffer.isBuffer(id) && id.equals(uuid)),
  'cbs/two-pairs': cbs(async (client, connection) => {
    const second = await Cbs.open(connection);
    const answers = await Promise.all([client.put_token(name(), tokens().entity), second.put_token(name(), tokens().bad_signature)]);
    expect_answer(answers[0], 202);
    return expect_answer(answers[1], 401, 'com.microsoft:auth-failed');
  }),
  'cbs/expiry-detaches-one-link': cbs(async (client, connection) => {
    const resource = `sb://${context.brokers.main.host}/`;
    expect_answer(await client.put_token(resource, sas(resource, rule, key, 2)), 202);
    const {link, condition} = await attach(connection, {source: {address: '$management'}, target: {address: 'r'}});
    check(link, `the $management link was refused: ${condition}`);
    const outcome = await within(8000, link.detached, 'the detach after expiry');
    check(outcome.condition === UNAUTHORIZED, `expected ${UNAUTHORIZED}, got ${outcome.condition}`);
    // The $cbs links of the same connection live on and take a new token.
    expect_answer(await client.put_token(resource, tokens().namespace), 202);
    return outcome.description;
  }),

  'idle/keep-alive': async () => {
    const connection = await connect({...main(), ...plain, idle_time_out: 1000});
    // rhea gives up after twice the advertised time without a frame from the broker.
    const outcome = await Promise.race([connection.gone, sleep(4000)]);
    connection.close();
    check(outcome === undefined, `the connection ended: ${outcome}`);
  },
  'reconnect/restart': async () => {
    const options = {...at(context.brokers.restart), ...plain};
    const connection = await connect({...options, reconnect: true, initial_reconnect_delay: 100, max_reconnect_delay: 300});
    await missing(connection);
    const dropped = new Promise((resolve) => connection.once('disconnected', resolve));
    await ask('stop', 'restart');
    await within(5000, dropped, 'noticing the stop');
    const again = new Promise((resolve) => connection.once('connection_open', resolve));
    await ask('start', 'restart');
    await within(8000, again, 'reconnecting');
    const text = await missing(connection);
    connection.close();
    return text;
  },
};

run({...scenarios, ...require('./plain_queues.js'), ...require('./plain_exchanges.js'),
  ...require('./plain_transactions.js')});
