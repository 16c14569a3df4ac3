// The frame of a Node client: runs the wanted scenarios one by one and reports each on stdout.
//
// A scenario is an async function. It passes when it returns (its value is the detail), fails when
// it throws, and is skipped when it throws a Skip. Each has its own time limit.
'use strict';

const fs = require('fs');
const readline = require('readline');

const AT_A_TIME = 4;

class Skip extends Error {}

const context = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const answers = readline.createInterface({input: process.stdin})[Symbol.asyncIterator]();

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Asks the runner to stop or start a broker and waits until it has done so.
async function ask(verb, broker) {
  process.stdout.write(JSON.stringify({ask: verb, broker}) + '\n');
  await answers.next();
}

function check(condition, text) {
  if (!condition) throw new Error(text);
}

// Runs the scenarios one by one, and those that disturb nobody several at a time after that.
async function run(scenarios, milliseconds = 20000) {
  const together = new Set(context.together);
  for (const name of context.scenarios) {
    if (!together.has(name)) await judge(name, scenarios[name], milliseconds);
  }
  const waiting = context.scenarios.filter((name) => together.has(name));
  const worker = async () => {
    while (waiting.length) {
      const name = waiting.shift();
      await judge(name, scenarios[name], milliseconds);
    }
  };
  await Promise.all(Array.from({length: AT_A_TIME}, worker));
  // Sockets a failed scenario left behind must not keep the process alive.
  process.exit(0);
}

async function judge(name, scenario, milliseconds) {
  const verdict = {scenario: name, ok: false, detail: ''};
  try {
    check(scenario, 'this client does not know the scenario');
    verdict.detail = await within(milliseconds, scenario(), 'the scenario') || '';
    verdict.ok = true;
  } catch (error) {
    verdict.skip = error instanceof Skip;
    verdict.detail = error.stack && !error.code ? error.stack.split('\n').slice(0, 3).join(' ') : String(error);
  }
  process.stdout.write(JSON.stringify(verdict) + '\n');
}

process.on('unhandledRejection', (error) => console.error('unhandled rejection', error));

module.exports = {Skip, ask, check, context, run, sleep, within};
