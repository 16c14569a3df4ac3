// A namespace of its own for a test: made, used by its host name with unchanged clients, and dropped.
'use strict';

const crypto = require('crypto');
const dns = require('dns');
const http = require('http');
const {ServiceBusAdministrationClient, ServiceBusClient} = require('@azure/service-bus');
const {check, context, within} = require('./report.js');
const {same, take} = require('./client.js');

// What nss-myhostname, a hosts file or a name server does on the machines of users.
const resolve = dns.lookup;
dns.lookup = (host, ...rest) => resolve(String(host).endsWith('.localhost') ? '127.0.0.1' : host, ...rest);

const broker = () => context.brokers.namespaces;

function ask(method, path) {
  const scope = encodeURIComponent(`http://${broker().host}`);
  const until = Math.floor(Date.now() / 1000) + 600;
  const sign = crypto.createHmac('sha256', 'SAS_KEY_VALUE').update(`${scope}\n${until}`).digest('base64');
  const token = `SharedAccessSignature sr=${scope}&sig=${encodeURIComponent(sign)}&se=${until}` +
    '&skn=RootManageSharedAccessKey';
  return new Promise((good, bad) => {
    const request = http.request({host: '127.0.0.1', port: broker().port, method, path,
      headers: {Authorization: token, Host: broker().host}}, (answer) => {
      let text = '';
      answer.on('data', (part) => text += part);
      answer.on('end', () => good({status: answer.statusCode, text}));
    });
    request.on('error', bad);
    request.end();
  });
}

async function names(pages) {
  const all = [];
  for await (const one of pages) all.push(one.name);
  return all;
}

module.exports = {
  'namespace/own': async () => {
    const made = await ask('PUT', '/$omnibus/namespaces/own-js');
    same(made.status, 201, made.text);
    const mine = JSON.parse(made.text).ConnectionString;
    const options = {retryOptions: {maxRetries: 0, timeoutInMs: 10000}};

    const admin = new ServiceBusAdministrationClient(mine.replace('UseDevelopmentEmulator=true;', ''), options);
    const outside = new ServiceBusAdministrationClient(broker().tls, options);
    same((await admin.getNamespaceProperties()).name, 'own-js', 'the name');
    await admin.createQueue('shared-js');
    await admin.createQueue('only-here-js');
    await outside.createQueue('shared-js');
    same(await names(admin.listQueues()), ['only-here-js', 'shared-js'], 'queues');
    check(!(await names(outside.listQueues())).includes('only-here-js'), 'it is in the default one too');

    const inner = new ServiceBusClient(mine, options);
    const outer = new ServiceBusClient(broker().emulator, options);
    try {
      await inner.createSender('shared-js').sendMessages({body: 'in'});
      await outer.createSender('shared-js').sendMessages({body: 'out'});
      const receiver = inner.createReceiver('shared-js', {receiveMode: 'receiveAndDelete'});
      same((await take(receiver, 1)).map((message) => message.body), ['in'], 'received');
      same((await ask('DELETE', '/$omnibus/namespaces/own-js')).status, 200, 'dropping it');
    } finally {
      for (const client of [inner, outer])
        await within(5000, client.close(), 'close').catch((error) => console.error('close', error));
    }
  },
};
