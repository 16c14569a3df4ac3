// What the administration scenarios of @azure/service-bus share: clients, names and shapes.
'use strict';

const {ServiceBusAdministrationClient, ServiceBusClient} = require('@azure/service-bus');
const {context, within} = require('./report.js');
const {same} = require('./client.js');

const broker = () => context.brokers.admin;
const no_retry = {retryOptions: {maxRetries: 0}};
const connected = (which = 'tls') => new ServiceBusAdministrationClient(broker()[which], no_retry);
// The client that has a key of an entity's own rule, for HTTP and for messages.
const keyed = (rule, key) =>
  `Endpoint=sb://${broker().host}:${broker().port};SharedAccessKeyName=${rule};SharedAccessKey=${key};`;
const admin_with = (rule, key) => new ServiceBusAdministrationClient(keyed(rule, key), no_retry);
const data_with = (rule, key, body) => with_data(body, `${keyed(rule, key)}UseDevelopmentEmulator=true;`);
const named = (name) => `${context.client}-admin-${name}`;

function has(properties, expected) {
  for (const [key, value] of Object.entries(expected)) same(properties[key], value, key);
}

async function all(pages) {
  const names = [];
  for await (const one of pages) names.push(one);
  return names;
}

async function with_data(body, string = broker().emulator) {
  const client = new ServiceBusClient(string, {retryOptions: {maxRetries: 0, timeoutInMs: 10000}});
  try {
    return await body(client);
  } finally {
    await within(5000, client.close(), 'close').catch((error) => console.error('close', error));
  }
}

const QUEUE = {lockDuration: 'PT30S', maxSizeInMegabytes: 2048, requiresDuplicateDetection: true, requiresSession: true,
  defaultMessageTimeToLive: 'P3D', deadLetteringOnMessageExpiration: true,
  duplicateDetectionHistoryTimeWindow: 'PT5M', maxDeliveryCount: 7, enableBatchedOperations: false,
  autoDeleteOnIdle: 'P10D', userMetadata: 'the <first> & "best"', maxMessageSizeInKilobytes: 2048};
const TOPIC = {defaultMessageTimeToLive: 'P2D', maxSizeInMegabytes: 3072, requiresDuplicateDetection: true,
  duplicateDetectionHistoryTimeWindow: 'PT2M', enableBatchedOperations: false, userMetadata: 'topic',
  autoDeleteOnIdle: 'P5D', supportOrdering: true};
const SUBSCRIPTION = {lockDuration: 'PT20S', requiresSession: true, defaultMessageTimeToLive: 'P4D',
  deadLetteringOnMessageExpiration: true, deadLetteringOnFilterEvaluationExceptions: false, maxDeliveryCount: 5,
  enableBatchedOperations: false, userMetadata: 'sub', autoDeleteOnIdle: 'P6D'};

module.exports = {QUEUE, SUBSCRIPTION, TOPIC, admin_with, all, broker, connected, data_with, has, named, no_retry,
  with_data};
