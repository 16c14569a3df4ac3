// What a client saw, one JSON object per line: docs/formats/history.md.
'use strict';

const fs = require('fs');
// Microseconds of the one clock that all files share, which is also that of `locked until`. Dates have milliseconds
// only, and the origin of the precise clock is off by some of them; so it is set at the moment at which a date changes.
const precise = () => Number(process.hrtime.bigint() / 1000n);
let offset = 0;
function set_clock() {
  const before = Date.now();
  let date;
  do date = Date.now(); while (date === before);
  offset = date * 1000 - precise();
}
set_clock();
setInterval(set_clock, 5000).unref();
const now = () => precise() + offset;

class History {
  constructor(path) {
    this.file = fs.openSync(path, 'a');
  }

  // A line is one write, at once: what happened before a crash of this process is there.
  say(who, what, fields) {
    fs.writeSync(this.file, JSON.stringify({t: now(), who, do: what, ...fields}) + '\n');
  }
}

module.exports = {History, now};
