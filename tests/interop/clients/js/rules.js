// @azure/service-bus: the rule manager of a subscription. Names: runner/scenarios.py, shapes: runner/topics.py.
'use strict';

const {check} = require('./report.js');
const {fails, same, sees, send, take, with_queues} = require('./client.js');

const by_name = (rules) => Object.fromEntries(rules.map(({name, filter, action}) => [name, {filter, action}]));
const names = async (manager) => (await manager.getRules()).map((rule) => rule.name).sort();
// A correlation filter as the SDK reads it, without what was not given.
const given = (filter) => Object.fromEntries(Object.entries(filter).filter(([, v]) => v !== undefined && v !== null));

async function arrives(client, topic, name, expected) {
  const receiver = client.createReceiver(topic, name);
  const got = expected.length ? await take(receiver, expected.length) : [];
  same(got.map((m) => m.body), expected, `'${name}'`);
  for (const message of got) await receiver.completeMessage(message);
  await sees(receiver, []);
  await receiver.close();
  return got;
}

module.exports = with_queues({
  'rule/add-enumerate': async (client, topic) => {
    const manager = client.createRuleManager(topic, 'a');
    const correlation = {correlationId: 'c', messageId: 'm', to: 't', replyTo: 'r', subject: 's', sessionId: 'se',
      replyToSessionId: 'rs', contentType: 'ct',
      applicationProperties: {text: 'ż', whole: 2, half: 0.5, yes: true, day: new Date(Date.UTC(2024, 1, 29))}};
    await manager.createRule('sql', {sqlExpression: 'color = \'żółty\' AND n > 1'}, {sqlExpression: 'SET n = 2'});
    await manager.createRule('true', {sqlExpression: '1=1'});
    await manager.createRule('false', {sqlExpression: '1=0'});
    await manager.createRule('correlation', correlation);
    await manager.createRule('one-field', {subject: 'only'}, {sqlExpression: 'REMOVE color'});
    const rules = by_name(await manager.getRules());
    same(Object.keys(rules).sort(), ['$Default', 'correlation', 'false', 'one-field', 'sql', 'true'], 'names');
    same(rules.$Default, {filter: {sqlExpression: '1=1'}, action: {}}, '$Default');
    same(rules.sql, {filter: {sqlExpression: 'color = \'żółty\' AND n > 1'}, action: {sqlExpression: 'SET n = 2'}}, 'sql');
    same(rules.true, {filter: {sqlExpression: '1=1'}, action: {}}, 'true');
    same(rules.false, {filter: {sqlExpression: '1=0'}, action: {}}, 'false');
    same(given(rules.correlation.filter), correlation, 'correlation');
    same([given(rules['one-field'].filter).subject, rules['one-field'].action],
        ['only', {sqlExpression: 'REMOVE color'}], 'one field');
    same(await names(client.createRuleManager(topic, 'b')), ['$Default'], 'another subscription');
    const pages = [];
    for await (const page of manager.listRules().byPage({maxPageSize: 4})) pages.push(page.length);
    same(pages, [4, 2], 'pages');
  },
  'rule/configured': async (client, topic) => {
    const rules = by_name(await client.createRuleManager(topic, 'a').getRules());
    same(Object.keys(rules).sort(), ['correlation', 'false', 'sql', 'true'], 'names');
    same(rules.sql, {filter: {sqlExpression: 'n > 1'}, action: {sqlExpression: 'SET n = 2'}}, 'sql');
    same([rules.true.filter, rules.false.filter], [{sqlExpression: '1=1'}, {sqlExpression: '1=0'}], 'true, false');
    same(given(rules.correlation.filter),
        {subject: 'l', applicationProperties: {text: 't', whole: 2, half: 0.5, yes: true}}, 'correlation');
  },
  'rule/default-removed': async (client, topic) => {
    const manager = client.createRuleManager(topic, 'a');
    await manager.deleteRule('$Default');
    same(await names(manager), [], 'rules');
    await send(client, topic, 'm1');
    await manager.createRule('red', {sqlExpression: 'color = \'red\''});
    await send(client, topic, {body: 'm2', applicationProperties: {color: 'red'}}, 'm3');
    await arrives(client, topic, 'a', ['m2']);
    await manager.createRule('$Default', {sqlExpression: '1=1'});
    await send(client, topic, 'm4');
    await arrives(client, topic, 'a', ['m4']);
    await arrives(client, topic, 'b', ['m1', 'm2', 'm3', 'm4']);
  },
  'rule/remove': async (client, topic) => {
    const manager = client.createRuleManager(topic, 'a');
    await manager.createRule('Extra', {sqlExpression: '1=0'});
    await manager.deleteRule('eXTRA');  // names are case-insensitive
    same(await names(manager), ['$Default'], 'rules');
    return fails('MessagingEntityNotFound', () => manager.deleteRule('Extra'));
  },
  'rule/duplicate-name': async (client, topic) => {
    const manager = client.createRuleManager(topic, 'a');
    await manager.createRule('once', {sqlExpression: 'n = 1'});
    await fails('MessagingEntityAlreadyExists', () => manager.createRule('once', {sqlExpression: 'n = 1'}));
    const why = await fails('MessagingEntityAlreadyExists', () => manager.createRule('ONCE', {subject: 'x'}));
    same(by_name(await manager.getRules()).once.filter, {sqlExpression: 'n = 1'}, 'the first one');
    return why;
  },
  'rule/bad-sql': async (client, topic) => {
    const manager = client.createRuleManager(topic, 'a');
    const whys = [];
    for (const [filter, action] of [['color ='], ['sys.Nope = 1'], ['1=1', 'SET sys.SequenceNumber = 1'],
      ['1=1', 'DELETE color'], ['x'.repeat(1025)]]) {
      const why = await fails('GeneralError', () => manager.createRule('bad', {sqlExpression: filter},
          ...(action ? [{sqlExpression: action}] : [])));
      check(why.startsWith('ArgumentError: ') && why.length > 'ArgumentError: '.length + 10, `not readable: ${why}`);
      whys.push(why);
    }
    check(whys[1].includes('Nope') && whys[2].includes('SequenceNumber'), `they do not say what is wrong: ${whys}`);
    same(await names(manager), ['$Default'], 'rules');
    return whys.join(' | ');
  },
  'rule/later-messages-only': async (client, topic) => {
    const manager = client.createRuleManager(topic, 'a');
    await send(client, topic, 'before');
    await manager.createRule('none', {sqlExpression: '1=0'});
    await manager.deleteRule('$Default');
    await send(client, topic, 'during');
    await manager.createRule('label', {subject: 'wanted'});
    await send(client, topic, 'other', {body: 'after', subject: 'wanted'});
    await arrives(client, topic, 'a', ['before', 'after']);
  },
  'rule/action': async (client, topic) => {
    const manager = client.createRuleManager(topic, 'a');
    await manager.createRule('mark', {sqlExpression: 'n > 1'}, {sqlExpression: 'SET n = n + 1; SET text = \'it\'\'s\''});
    await send(client, topic, {body: 'm1', applicationProperties: {n: 1}}, {body: 'm2', applicationProperties: {n: 2}});
    const got = await arrives(client, topic, 'a', ['m1', 'm2', 'm2']);
    same(got.map((m) => m.applicationProperties), [{n: 1}, {n: 2}, {n: 3, text: 'it\'s', RuleName: 'mark'}], 'copies');
    const other = await arrives(client, topic, 'b', ['m1', 'm2']);
    same(other.map((m) => m.applicationProperties), [{n: 1}, {n: 2}], 'in another subscription');
  },
  'rule/while-publishing': async (client, topic) => {
    const manager = client.createRuleManager(topic, 'a');
    const expected = Array.from({length: 150}, (_, n) => `m${n}`);
    let publishing = true;
    const published = send(client, topic, ...expected).finally(() => publishing = false);
    let changes = 0;
    for (; publishing; ++changes) {
      await manager.createRule('marked', {sqlExpression: '1=1'}, {sqlExpression: 'SET marked = TRUE'});
      await manager.deleteRule('$Default');
      await manager.createRule('$Default', {sqlExpression: '1=1'});
      await manager.deleteRule('marked');
    }
    await published;
    await sees(client.createReceiver(topic, 'b'), expected, 200);
    // In 'a' each message is there plain, marked or both: there was always a rule that takes everything.
    const seen = await client.createReceiver(topic, 'a').peekMessages(500);
    const kinds = (body) => seen.filter((m) => m.body === body).map((m) => m.applicationProperties?.RuleName ?? 'plain');
    for (const body of expected) {
      check(['plain', 'marked', 'plain,marked'].includes(kinds(body).join()), `${body} is there as ${kinds(body)}`);
    }
    check(seen.every((m) => expected.includes(m.body)), 'there is something else');
    const numbers = seen.map((m) => Number(m.body.slice(1)));
    check(numbers.every((n, i) => i === 0 || n >= numbers[i - 1]), `not in order: ${numbers}`);
    return `${changes} rounds of changes`;
  },
});
