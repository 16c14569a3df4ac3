// @azure/service-bus against the broker. Scenario names: runner/scenarios.py.
'use strict';

const {ServiceBusClient} = require('@azure/service-bus');
const WebSocket = require('ws');
const {ask, check, context, run, sleep, within} = require('./report.js');

const {queue, topic, subscription} = context;
const broker = context.brokers;
const no_retry = {retryOptions: {maxRetries: 0, timeoutInMs: 15000}};

const NOT_FOUND = 'MessagingEntityNotFound';
const UNAUTHORIZED = 'UnauthorizedAccess';

// Each of these opens one link to an entity that does not exist.
const uses = {
  sender: (client) => client.createSender(queue).sendMessages({body: 'x'}),
  receiver: (client) => client.createReceiver(queue).receiveMessages(1, {maxWaitTimeInMs: 1000}),
  subscription: (client) => client.createReceiver(topic, subscription).receiveMessages(1, {maxWaitTimeInMs: 1000}),
  // Not a named session: for that the SDK reports SessionCannotBeLocked whatever the refusal said,
  // because it looks only at the session id missing from the attach reply.
  session: (client) => client.acceptNextSession(queue),
};

async function expect_code(client, use, code) {
  try {
    await use(client);
  } catch (error) {
    check(error.code === code, `expected ${code}, got ${error.name} ${error.code}: ${error.message}`);
    return error.message;
  }
  throw new Error(`expected ${code}, but it worked`);
}

async function with_client(client, body) {
  try {
    return await body(client);
  } finally {
    await within(5000, client.close(), 'close').catch((error) => console.error('close', error));
  }
}

const by_string = (string, code, options = {}) => () => with_client(
    new ServiceBusClient(string, {...no_retry, ...options}), (client) => expect_code(client, uses.sender, code));

function by_jwt(token, code) {
  return () => {
    const credential = {getToken: async () => ({token, expiresOnTimestamp: Date.now() + 3600000})};
    const {host, port} = broker.jwt;
    return with_client(new ServiceBusClient(`${host}:${port}`, credential, no_retry),
        (client) => expect_code(client, uses.sender, code));
  };
}

const scenarios = {
  'connect-tls/untrusted': async () => with_client(new ServiceBusClient(broker.restart.tls, no_retry), async (client) => {
    try {
      await uses.sender(client);
    } catch (error) {
      check(/certificate|self.signed|issuer/i.test(String(error)), `not refused because of the certificate: ${error}`);
      return String(error);
    }
    throw new Error('it trusted a broker it must not trust');
  }),
  'reconnect/restart': async () => {
    const options = {retryOptions: {maxRetries: 6, retryDelayInMs: 500, maxRetryDelayInMs: 1000, timeoutInMs: 5000}};
    return with_client(new ServiceBusClient(broker.restart.emulator, options), async (client) => {
      const sender = client.createSender(queue);
      const use = () => sender.sendMessages({body: 'x'});
      await expect_code(client, use, NOT_FOUND);
      await ask('stop', 'restart');
      const during = use().catch((error) => error.code || String(error));
      await sleep(1000);
      await ask('start', 'restart');
      const outcome = await during;
      await expect_code(client, use, NOT_FOUND);
      return `during: ${outcome}`;
    });
  },
};

if (broker.main) {
  const main = broker.main;
  for (const [name, use] of Object.entries(uses)) {
    scenarios[`connect-tcp/${name}`] = () => with_client(
        new ServiceBusClient(main.emulator, no_retry), (client) => expect_code(client, use, NOT_FOUND));
  }
  Object.assign(scenarios, {
    'connect-tls/trusted': by_string(main.tls, NOT_FOUND),
    'connect-websocket/wss': by_string(main.tls, NOT_FOUND, {webSocketOptions: {webSocket: WebSocket}}),
    'wrong-key/key': by_string(main.wrong_key, UNAUTHORIZED),
    'wrong-key/rule': by_string(main.wrong_rule, UNAUTHORIZED),
    'wrong-key/expired-sas': by_string(main.sas_expired, UNAUTHORIZED),
    'wrong-key/other-entity': by_string(main.sas_other_entity, UNAUTHORIZED),
    'wrong-key/malformed-sas': by_string(main.sas_malformed, UNAUTHORIZED),
    'sas-string/namespace': by_string(main.sas_namespace, NOT_FOUND),
    'sas-string/entity': by_string(main.sas_entity, NOT_FOUND),
  });
}
for (const kind of ['hs256', 'rs256']) scenarios[`jwt/${kind}`] = by_jwt(context.jwt[kind], NOT_FOUND);
for (const kind of ['bad-signature', 'expired']) scenarios[`jwt/${kind}`] = by_jwt(context.jwt[kind], UNAUTHORIZED);

run({...scenarios, ...require('./queues.js'), ...require('./sessions.js'), ...require('./partitions.js'),
  ...require('./topics.js'), ...require('./rules.js'), ...require('./admin.js'), ...require('./admin_methods.js'),
  ...require('./admin_access.js'), ...require('./admin_bearer.js'), ...require('./admin_counts.js'),
  ...require('./admin_forward.js'),
  ...require('./namespaces.js')});
