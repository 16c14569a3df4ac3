// Counts, sizes and times that the administration client shows, compared with what is really there.
'use strict';

const {ServiceBusAdministrationClient} = require('@azure/service-bus');
const {check, context} = require('./report.js');
const {same, take} = require('./client.js');
const {all, connected, has, named, no_retry, with_data} = require('./admin_client.js');

const recent = (date, what) => check(Math.abs(Date.now() - date) < 120e3, `${what} ${date}`);
const queue_counts = (active, dead, scheduled, transfer, transfer_dead) => ({activeMessageCount: active,
  deadLetterMessageCount: dead, scheduledMessageCount: scheduled, transferMessageCount: transfer,
  transferDeadLetterMessageCount: transfer_dead, totalMessageCount: active + dead + scheduled + transfer + transfer_dead});
const subscription_counts = (active, dead) => ({activeMessageCount: active, deadLetterMessageCount: dead,
  transferMessageCount: 0, transferDeadLetterMessageCount: 0, totalMessageCount: active + dead});

module.exports = {
  'admin/counts': () => with_data(async (client) => {
    const admin = connected();
    const on = named('counts');
    await admin.createTopic(on);
    await admin.createSubscription(on, 'a');
    await admin.createSubscription(on, 'b', {defaultRuleOptions: {name: 'r', filter: {sqlExpression: 'n = 1'}}});
    const sender = client.createSender(on);
    await sender.sendMessages([0, 1, 2, 3].map((n) => ({body: 'x'.repeat(1000), applicationProperties: {n}})));
    await sender.scheduleMessages([{body: 'later'}, {body: 'later'}], new Date(Date.now() + 3600e3));
    const receiver = client.createReceiver(on, 'a');
    const [one, two] = await take(receiver, 2);
    await receiver.deadLetterMessage(one);
    await receiver.deferMessage(two);
    const topic = await admin.getTopicRuntimeProperties(on);
    has(topic, {subscriptionCount: 2, scheduledMessageCount: 2});
    check(topic.sizeInBytes >= 4000 && topic.sizeInBytes < 8000, `size ${topic.sizeInBytes}`);
    recent(topic.createdAt, 'created');
    recent(topic.accessedAt, 'accessed');
    has((await all(admin.listTopicsRuntimeProperties())).find((t) => t.name === on),
        {subscriptionCount: 2, scheduledMessageCount: 2, sizeInBytes: topic.sizeInBytes});
    // A deferred message is an active one.
    const wanted = {a: subscription_counts(3, 1), b: subscription_counts(1, 0)};
    const listed = await all(admin.listSubscriptionsRuntimeProperties(on));
    same(listed.map((s) => s.subscriptionName), ['a', 'b'], 'listed');
    for (const [name, expected] of Object.entries(wanted)) {
      const found = await admin.getSubscriptionRuntimeProperties(on, name);
      has(found, expected);
      recent(found.createdAt, 'created');
      has(listed.find((s) => s.subscriptionName === name), expected);
    }
    recent((await admin.getSubscriptionRuntimeProperties(on, 'a')).accessedAt, 'accessed');
    await admin.deleteTopic(on);
  }),

  // What the raw client left there before anybody came; see raw/counted.py.
  'admin/transfer-counts': async () => {
    const admin = new ServiceBusAdministrationClient(context.brokers.counts.tls, no_retry);
    const expected = queue_counts(...context.counted.counts);
    const found = await admin.getQueueRuntimeProperties(context.counted.queue);
    has(found, expected);
    check(found.sizeInBytes > 0, `size ${found.sizeInBytes}`);
    check(found.createdAt <= found.modifiedAt && found.createdAt <= found.accessedAt, 'times');
    has((await all(admin.listQueuesRuntimeProperties())).find((q) => q.name === found.name),
        {...expected, sizeInBytes: found.sizeInBytes});
  },
};
