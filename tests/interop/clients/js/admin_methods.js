// Every public method of ServiceBusAdministrationClient is called here, and what it says is looked at.
'use strict';

const fs = require('fs');
const path = require('path');
const {ServiceBusAdministrationClient} = require('@azure/service-bus');
const {check} = require('./report.js');
const {same} = require('./client.js');
const {all, connected, named} = require('./admin_client.js');

// What the class has, less what its declaration calls private: to JavaScript they are all alike.
function public_methods() {
  const home = require.resolve('@azure/service-bus/package.json');
  const text = fs.readFileSync(path.join(path.dirname(home), require(home).types), 'utf8');
  const start = text.indexOf('export declare class ServiceBusAdministrationClient ');
  check(start >= 0, 'no declaration of the client');
  const hidden = [...text.slice(start, text.indexOf('\n}', start)).matchAll(/^ +private (\w+);/gm)].map((m) => m[1]);
  return Object.getOwnPropertyNames(ServiceBusAdministrationClient.prototype)
    .filter((name) => name !== 'constructor' && !hidden.includes(name)).sort();
}

// The client, which notes what we call; what it calls of itself does not count.
const noting = (client, called) => new Proxy(client, {
  get: (target, name) => (...given) => {
    called.add(name);
    return target[name](...given);
  },
});

module.exports = {
  'admin/methods': async () => {
    const called = new Set();
    const admin = noting(connected(), called);
    const [queue, topic] = [named('methods'), named('methods-t')];
    const mine = (found) => found.map((one) => one.name).filter((name) => name.startsWith(queue));
    same((await admin.getNamespaceProperties()).name, 'sbemulatorns', 'namespace');

    same((await admin.createQueue(queue, {maxDeliveryCount: 3})).maxDeliveryCount, 3, 'createQueue');
    const found = await admin.getQueue(queue);
    same(found.name, queue, 'getQueue');
    same(await admin.queueExists(queue), true, 'queueExists');
    same((await admin.updateQueue({...found, maxDeliveryCount: 4})).maxDeliveryCount, 4, 'updateQueue');
    same((await admin.getQueueRuntimeProperties(queue)).totalMessageCount, 0, 'getQueueRuntimeProperties');
    same(mine(await all(admin.listQueues())), [queue], 'listQueues');
    same(mine(await all(admin.listQueuesRuntimeProperties())), [queue], 'listQueuesRuntimeProperties');

    same((await admin.createTopic(topic, {userMetadata: 'a'})).userMetadata, 'a', 'createTopic');
    const about = await admin.getTopic(topic);
    same(about.name, topic, 'getTopic');
    same(await admin.topicExists(topic), true, 'topicExists');
    same((await admin.updateTopic({...about, userMetadata: 'b'})).userMetadata, 'b', 'updateTopic');
    same((await admin.getTopicRuntimeProperties(topic)).subscriptionCount, 0, 'getTopicRuntimeProperties');
    same(mine(await all(admin.listTopics())), [topic], 'listTopics');
    same(mine(await all(admin.listTopicsRuntimeProperties())), [topic], 'listTopicsRuntimeProperties');

    same((await admin.createSubscription(topic, 's', {maxDeliveryCount: 5})).maxDeliveryCount, 5, 'createSubscription');
    const copy = await admin.getSubscription(topic, 's');
    same([copy.topicName, copy.subscriptionName], [topic, 's'], 'getSubscription');
    same(await admin.subscriptionExists(topic, 's'), true, 'subscriptionExists');
    same((await admin.updateSubscription({...copy, maxDeliveryCount: 6})).maxDeliveryCount, 6, 'updateSubscription');
    same((await admin.getSubscriptionRuntimeProperties(topic, 's')).totalMessageCount, 0, 'runtime of a subscription');
    same((await all(admin.listSubscriptions(topic))).map((s) => s.subscriptionName), ['s'], 'listSubscriptions');
    same((await all(admin.listSubscriptionsRuntimeProperties(topic))).map((s) => s.subscriptionName), ['s'],
        'listSubscriptionsRuntimeProperties');

    same((await admin.createRule(topic, 's', 'r', {sqlExpression: 'a = 1'})).name, 'r', 'createRule');
    const rule = await admin.getRule(topic, 's', 'r');
    same(rule.filter.sqlExpression, 'a = 1', 'getRule');
    same(await admin.ruleExists(topic, 's', 'r'), true, 'ruleExists');
    same((await admin.updateRule(topic, 's', {...rule, filter: {sqlExpression: 'a = 2'}})).filter.sqlExpression, 'a = 2',
        'updateRule');
    same((await all(admin.listRules(topic, 's'))).map((r) => r.name), ['$Default', 'r'], 'listRules');

    await admin.deleteRule(topic, 's', 'r');
    same(await admin.ruleExists(topic, 's', 'r'), false, 'deleteRule');
    await admin.deleteSubscription(topic, 's');
    same(await admin.subscriptionExists(topic, 's'), false, 'deleteSubscription');
    await admin.deleteTopic(topic);
    same(await admin.topicExists(topic), false, 'deleteTopic');
    await admin.deleteQueue(queue);
    same(await admin.queueExists(queue), false, 'deleteQueue');

    const wanted = public_methods();
    check(wanted.length > 25, `${wanted.length} methods found`);
    same([...called].sort(), wanted, 'the methods that were called');
    return `${wanted.length} methods`;
  },
};
