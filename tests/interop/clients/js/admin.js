// What ServiceBusAdministrationClient does, against entities of its own.
'use strict';

const {ask, check, sleep} = require('./report.js');
const {fails, same, take} = require('./client.js');
const {QUEUE, SUBSCRIPTION, TOPIC, all, broker, connected, has, named, with_data} = require('./admin_client.js');

module.exports = {
  'admin/namespace': async () => {
    const found = await connected().getNamespaceProperties();
    has(found, {name: 'sbemulatorns', messagingSku: 'Premium'});
    check(found.createdAt.getFullYear() > 2020, `created ${found.createdAt}`);
  },

  'admin/queue': async () => {
    const admin = connected();
    has(await admin.createQueue(named('queue'), QUEUE), {name: named('queue'), ...QUEUE, status: 'Active',
      availabilityStatus: 'Available'});
    has(await admin.getQueue(named('queue')), QUEUE);
    same(await admin.queueExists(named('queue')), true, 'exists');
    await fails('MessageEntityAlreadyExistsError', () => admin.createQueue(named('queue')));
    has(await admin.createQueue(named('queue-plain')), {lockDuration: 'PT1M', maxSizeInMegabytes: 1024,
      maxDeliveryCount: 10, enableBatchedOperations: true, requiresSession: false, enablePartitioning: false,
      defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S', forwardTo: undefined, userMetadata: undefined});
    await admin.deleteQueue(named('queue'));
    await admin.deleteQueue(named('queue-plain'));
    same(await admin.queueExists(named('queue')), false, 'exists');
    await fails('MessageEntityNotFoundError', () => admin.getQueue(named('queue')));
  },

  'admin/queue-update': async () => {
    const admin = connected();
    const made = await admin.createQueue(named('queue-update'), {userMetadata: 'before'});
    const wanted = {lockDuration: 'PT45S', maxDeliveryCount: 3, defaultMessageTimeToLive: 'PT30M',
      userMetadata: 'after', deadLetteringOnMessageExpiration: true};
    Object.assign(made, wanted);
    has(await admin.updateQueue(made), wanted);
    has(await admin.getQueue(named('queue-update')), wanted);
    const runtime = await admin.getQueueRuntimeProperties(named('queue-update'));
    check(runtime.modifiedAt > runtime.createdAt, 'UpdatedAt did not move');
    await fails('ServiceError', () => admin.updateQueue({...made, requiresSession: true}));
    await admin.deleteQueue(named('queue-update'));
    await fails('MessageEntityNotFoundError', () => admin.updateQueue(made));
  },

  'admin/topic': async () => {
    const admin = connected();
    has(await admin.createTopic(named('topic'), TOPIC), {name: named('topic'), ...TOPIC});
    const found = await admin.getTopic(named('topic'));
    has(found, TOPIC);
    found.defaultMessageTimeToLive = 'P1D';
    found.userMetadata = 'changed';
    has(await admin.updateTopic(found), {defaultMessageTimeToLive: 'P1D', userMetadata: 'changed'});
    same(await admin.topicExists(named('topic')), true, 'exists');
    await admin.createSubscription(named('topic'), 'one');
    same((await admin.getTopicRuntimeProperties(named('topic'))).subscriptionCount, 1, 'subscriptions');
    await admin.deleteTopic(named('topic'));
    same(await admin.topicExists(named('topic')), false, 'exists');
    await fails('MessageEntityNotFoundError', () => admin.getTopic(named('topic')));
    await fails('MessageEntityNotFoundError', () => admin.getSubscription(named('topic'), 'one'));
  },

  'admin/subscription': async () => {
    const admin = connected();
    const on = named('subscription');
    await admin.createTopic(on);
    has(await admin.createSubscription(on, 's', SUBSCRIPTION), {topicName: on, subscriptionName: 's', ...SUBSCRIPTION});
    const found = await admin.getSubscription(on, 's');
    has(found, SUBSCRIPTION);
    has(await admin.updateSubscription({...found, maxDeliveryCount: 9, userMetadata: 'changed'}),
        {maxDeliveryCount: 9, userMetadata: 'changed', requiresSession: true});
    await admin.createSubscription(on, 'a',
        {defaultRuleOptions: {name: 'first', filter: {sqlExpression: 'color = @c', sqlParameters: {'@c': 'red'}}}});
    same((await all(admin.listRules(on, 'a'))).map((r) => r.name), ['first'], 'default rule');
    same((await all(admin.listSubscriptions(on))).map((s) => s.subscriptionName), ['a', 's'], 'list');
    same((await all(admin.listSubscriptionsRuntimeProperties(on))).map((s) => s.subscriptionName), ['a', 's'], 'runtime');
    same((await admin.getSubscriptionRuntimeProperties(on, 's')).totalMessageCount, 0, 'count');
    same(await admin.subscriptionExists(on, 's'), true, 'exists');
    await fails('MessageEntityAlreadyExistsError', () => admin.createSubscription(on, 's'));
    await admin.deleteSubscription(on, 'a');
    same(await admin.subscriptionExists(on, 'a'), false, 'exists');
    await fails('MessageEntityNotFoundError', () => admin.createSubscription(named('no-such'), 's'));
    await admin.deleteTopic(on);
  },

  'admin/rules': async () => {
    const admin = connected();
    const on = named('rules');
    await admin.createTopic(on);
    await admin.createSubscription(on, 's');
    same((await admin.getRule(on, 's', '$Default')).filter.sqlExpression, '1=1', 'default');
    const sql = {sqlExpression: 'price > @limit', sqlParameters: {'@limit': 10}};
    const made = await admin.createRule(on, 's', 'sql', sql, {sqlExpression: 'SET seen = 1'});
    same(made.filter, sql, 'filter');
    same(made.action.sqlExpression, 'SET seen = 1', 'action');
    const correlation = {correlationId: 'c', messageId: 'm', to: 't', replyTo: 'r', subject: 'l', sessionId: 's',
      replyToSessionId: 'rs', contentType: 'ct',
      applicationProperties: {n: 1.5, s: 'text', b: true, d: new Date('2026-01-02T03:04:05Z')}};
    await admin.createRule(on, 's', 'correlation', correlation);
    same((await admin.getRule(on, 's', 'correlation')).filter, correlation, 'correlation');
    same((await all(admin.listRules(on, 's'))).map((r) => r.name), ['$Default', 'correlation', 'sql'], 'list');
    same(await admin.ruleExists(on, 's', 'sql'), true, 'exists');
    const changed = await admin.updateRule(on, 's', {name: 'sql', filter: {sqlExpression: 'price < 5'}, action: {}});
    same(changed.filter.sqlExpression, 'price < 5', 'updated');
    await fails('MessageEntityAlreadyExistsError', () => admin.createRule(on, 's', 'SQL', sql));
    await fails('ServiceError', () => admin.createRule(on, 's', 'bad', {sqlExpression: 'price >'}));
    await admin.deleteRule(on, 's', '$Default');
    same(await admin.ruleExists(on, 's', '$Default'), false, 'exists');
    await fails('MessageEntityNotFoundError', () => admin.deleteRule(on, 's', '$Default'));
    await with_data(async (client) => {
      await client.createSender(on).sendMessages([{body: 'cheap', applicationProperties: {price: 1}},
        {body: 'dear', applicationProperties: {price: 99}}]);
      const got = await client.createReceiver(on, 's').receiveMessages(5, {maxWaitTimeInMs: 3000});
      same(got.map((m) => m.body), ['cheap'], 'what the updated rule lets through');
    });
    await admin.deleteTopic(on);
  },

  'admin/list': async () => {
    const admin = connected();
    const wanted = Array.from({length: 205}, (_, i) => `${named('list')}-${String(i).padStart(3, '0')}`);
    for (const one of wanted) await admin.createQueue(one);
    const mine = (found) => found.map((q) => q.name).filter((n) => n.startsWith(`${named('list')}-`));
    same(mine(await all(admin.listQueues())), wanted, 'queues');
    same(mine(await all(admin.listQueuesRuntimeProperties())), wanted, 'runtime');
    let pages = 0;
    for await (const page of admin.listQueues().byPage({maxPageSize: 50})) pages += page.length > 0 ? 1 : 0;
    check(pages >= 5, `${pages} pages`);
    await admin.createTopic(named('topics'));
    check((await all(admin.listTopics())).some((t) => t.name === named('topics')), 'topics');
    check((await all(admin.listTopicsRuntimeProperties())).some((t) => t.name === named('topics')), 'runtime');
    for (const one of wanted) await admin.deleteQueue(one);
    await admin.deleteTopic(named('topics'));
    same(mine(await all(admin.listQueues())), [], 'after');
  },

  'admin/runtime': () => with_data(async (client) => {
    const admin = connected();
    const on = named('runtime');
    await admin.createQueue(on);
    const sender = client.createSender(on);
    await sender.sendMessages(Array.from({length: 5}, () => ({body: 'x'.repeat(100)})));
    await sender.scheduleMessages({body: 'later'}, new Date(Date.now() + 3600e3));
    const receiver = client.createReceiver(on);
    const [one, two] = await take(receiver, 2);
    await receiver.deadLetterMessage(one);
    await receiver.deferMessage(two);
    const found = await admin.getQueueRuntimeProperties(on);
    has(found, {activeMessageCount: 4, deadLetterMessageCount: 1, scheduledMessageCount: 1, totalMessageCount: 6,
      transferMessageCount: 0, transferDeadLetterMessageCount: 0});
    check(found.sizeInBytes > 500, `size ${found.sizeInBytes}`);
    check(Math.abs(Date.now() - found.accessedAt) < 60e3, `accessed ${found.accessedAt}`);
    await admin.deleteQueue(on);
  }),

  'admin/partitioned': () => with_data(async (client) => {
    const admin = connected();
    const on = named('partitioned');
    const made = await admin.createQueue(on, {enablePartitioning: true});
    has(made, {enablePartitioning: true, maxSizeInMegabytes: 16384});
    has(await admin.updateQueue({...made, maxDeliveryCount: 4}), {maxDeliveryCount: 4, maxSizeInMegabytes: 16384});
    const sender = client.createSender(on);
    for (let i = 0; i < 20; ++i) await sender.sendMessages({body: i});
    same((await admin.getQueueRuntimeProperties(on)).activeMessageCount, 20, 'sum of the partitions');
    await take(client.createReceiver(on), 20);
    await admin.deleteQueue(on);
  }),

  'admin/used': () => with_data(async (client) => {
    const admin = connected();
    const on = named('used/with/slashes');
    same((await admin.createQueue(on)).name, on, 'name');
    await client.createSender(on).sendMessages({body: 'hello'});
    same((await take(client.createReceiver(on), 1))[0].body, 'hello', 'body');
    await admin.createTopic(named('used-topic'));
    await admin.createSubscription(named('used-topic'), 's');
    await client.createSender(named('used-topic')).sendMessages({body: 'published'});
    same((await take(client.createReceiver(named('used-topic'), 's'), 1))[0].body, 'published', 'published');
    await admin.deleteQueue(on);
    await admin.deleteTopic(named('used-topic'));
  }),

  'admin/deleted-link': () => with_data(async (client) => {
    const admin = connected();
    const on = named('deleted');
    await admin.createQueue(on);
    const sender = client.createSender(on);
    await sender.sendMessages({body: 'x'});
    await take(client.createReceiver(on), 1);
    await admin.deleteQueue(on);
    await sleep(500);  // the end of the link comes on another connection than the answer above
    await fails('MessagingEntityNotFound', () => sender.sendMessages({body: 'y'}));
  }),

  'admin/disabled': () => with_data(async (client) => {
    const admin = connected();
    const on = named('disabled');
    const made = await admin.createQueue(on);
    const sender = client.createSender(on);
    await sender.sendMessages({body: 'x'});
    same((await admin.updateQueue({...made, status: 'SendDisabled'})).status, 'SendDisabled', 'status');
    await sleep(500);  // the end of the link comes on another connection than the answer above
    await fails('MessagingEntityDisabled', () => sender.sendMessages({body: 'y'}));
    await admin.updateQueue({...made, status: 'Active'});
    await client.createSender(on).sendMessages({body: 'z'});
    same((await take(client.createReceiver(on), 2)).map((m) => m.body), ['x', 'z'], 'what came');
    await admin.deleteQueue(on);
  }),

  'admin/wrong-key': async () => {
    await fails('UnauthorizedRequestError', () => connected('admin_wrong_key').getQueue('x'));
    await fails('UnauthorizedRequestError', () => connected('admin_send_only').createQueue(named('never')));
    same((await connected('admin_send_only').getNamespaceProperties()).name, 'sbemulatorns', 'any right will do');
  },

  'admin/missing': async () => {
    const admin = connected();
    const nothing = named('nothing');
    for (const action of [() => admin.getQueue(nothing), () => admin.getTopic(nothing),
      () => admin.getQueueRuntimeProperties(nothing), () => admin.deleteQueue(nothing), () => admin.deleteTopic(nothing),
      () => admin.getSubscription(nothing, 's'), () => admin.deleteSubscription(nothing, 's'),
      () => admin.getRule(nothing, 's', 'r'), () => all(admin.listSubscriptions(nothing)),
      () => all(admin.listRules(nothing, 's'))])
      await fails('MessageEntityNotFoundError', action);
    await fails('ServiceError', () => admin.createQueue(named('range'), {maxDeliveryCount: 0}));
    await fails('ServiceError', () => admin.createQueue(named('range'), {maxSizeInMegabytes: 77}));
  },

  // An exchange is made by a document; to this client it is a topic.
  'admin/exchange': () => with_data(async (client) => {
    const admin = connected();
    const on = named('exchange');
    const json = async (method, body) => fetch(`http://${broker().host}:${broker().port}/${on}`, {method, body,
      headers: {Authorization: broker().tokens.namespace, 'Content-Type': 'application/json', Accept: 'application/json'}});
    same((await json('PUT', JSON.stringify({Type: 'Fanout', Subscriptions: [{Name: 's', PrefetchCount: 9}]}))).status, 201, 'made');
    check((await all(admin.listTopics())).some((t) => t.name === on), 'it is not listed');
    const found = await admin.getTopic(on);
    same((await all(admin.listSubscriptions(on))).map((s) => s.subscriptionName), ['s'], 'subscriptions');
    same(await all(admin.listRules(on, 's')), [], 'rules');
    await fails('ServiceError', () => admin.createRule(on, 's', 'r'));
    await fails('MessageEntityAlreadyExistsError', () => admin.createTopic(on));
    await admin.updateTopic({...found, defaultMessageTimeToLive: 'P1D'});
    await admin.updateSubscription({...(await admin.getSubscription(on, 's')), maxDeliveryCount: 4});
    await admin.createSubscription(on, 'other');
    const document = await (await json('GET')).json();
    same(document.Type, 'Fanout', 'type');
    same(document.Broker.DefaultMessageTimeToLive, 'P1D', 'a shared property');
    const own = document.Subscriptions.find((s) => s.Name === 's');
    same([own.PrefetchCount, own.Broker.MaxDeliveryCount], [9, 4], 'the subscription');
    await client.createSender(on).sendMessages({body: 'to all'});
    same((await take(client.createReceiver(on, 'other'), 1))[0].body, 'to all', 'routed');
    await admin.deleteTopic(on);
    same((await json('GET')).status, 404, 'gone');
  }),

  'admin-restart/kept': async () => {
    const on = named('restart');
    const admin = connected();
    await admin.createQueue(on, QUEUE);
    await admin.createTopic(`${on}-t`, TOPIC);
    await admin.createSubscription(`${on}-t`, 's', SUBSCRIPTION);
    await ask('stop', 'admin');
    await ask('start', 'admin');
    const again = connected();
    has(await again.getQueue(on), QUEUE);
    has(await again.getTopic(`${on}-t`), TOPIC);
    has(await again.getSubscription(`${on}-t`, 's'), SUBSCRIPTION);
    await again.deleteQueue(on);
    await again.deleteTopic(`${on}-t`);
  },
};
