// Writes golden bytes made by rhea: values, messages and performatives, one per line on stdout.
//
//   node make_rhea.js values | messages | frames
//
// A line is `name hex meaning`. In `values` and `messages` the meaning is written down here from
// the input, never read back from the bytes; `frames` leaves it to describe.py (see README.md).
// The output is the same on every run. Needs `rhea` on NODE_PATH.
'use strict';

const path = require('path');
const rhea = require('rhea');
const lib = path.join(path.dirname(require.resolve('rhea')), '.');
const types = rhea.types;
const frames = require(path.join(lib, 'frames.js'));
const terminus = require(path.join(lib, 'terminus.js'));

function line(name, buffer, meaning) {
  process.stdout.write([name, buffer.toString('hex'), meaning].filter(Boolean).join(' ') + '\n');
}

function encoded(typed) {
  const writer = new types.Writer();
  writer.write(typed);
  return Buffer.from(writer.toBuffer());
}

const quoted = (s) => '"' + s.replace(/["\\]/g, (c) => '\\' + c).replace(/[\u0000-\u001f\u007f]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0')) + '"';
const hex = (s) => Buffer.from(s, 'hex');
const uuid_bytes = hex('00112233445566778899aabbccddeeff');
const uuid_text = 'uuid:00112233-4455-6677-8899-aabbccddeeff';

function values() {
  const one = (name, typed, meaning) => line(name, encoded(typed), meaning);
  const many = (prefix, make, kind, numbers) => numbers.forEach((n) =>
      one(`${prefix}_${String(n).replace('-', 'minus_')}`, make(n), `${kind}:${n}`));

  one('null', types.Null(), 'null');
  one('true', types.True(), 'true');
  one('false', types.False(), 'false');
  one('boolean_wide_true', types.Boolean(1), 'true');
  one('boolean_wide_false', types.Boolean(0), 'false');
  many('ubyte', types.Ubyte, 'ubyte', [0, 1, 127, 128, 255]);
  many('ushort', types.Ushort, 'ushort', [0, 1, 255, 256, 32768, 65535]);
  one('uint_zero', types.Uint0(), 'uint:0');
  many('uint_small', types.SmallUint, 'uint', [0, 1, 127, 128, 255]);
  many('uint_wide', types.Uint, 'uint', [0, 1, 255, 256, 2147483648, 4294967295]);
  one('ulong_zero', types.Ulong0(), 'ulong:0');
  many('ulong_small', types.SmallUlong, 'ulong', [0, 1, 127, 128, 255]);
  many('ulong_wide', types.Ulong, 'ulong', [0, 1, 256, 4294967296, 9007199254740991]);
  one('ulong_wide_max', types.Ulong(hex('ffffffffffffffff')), 'ulong:18446744073709551615');
  many('byte', types.Byte, 'byte', [0, 1, 127, -1, -128]);
  many('short', types.Short, 'short', [0, 1, 32767, -1, -32768]);
  many('int_small', types.SmallInt, 'int', [0, 1, 127, -1, -128]);
  many('int_wide', types.Int, 'int', [0, 1, 128, 2147483647, -1, -129, -2147483648]);
  many('long_small', types.SmallLong, 'long', [0, 1, 127, -1, -128]);
  many('long_wide', types.Long, 'long', [0, 1, 4294967296, 9007199254740991, -1, -4294967297]);
  one('long_wide_max', types.Long(hex('7fffffffffffffff')), 'long:9223372036854775807');
  one('long_wide_min', types.Long(hex('8000000000000000')), 'long:-9223372036854775808');
  one('float_one', types.Float(1), 'float:0x3f800000');
  one('float_minus_zero', types.Float(-0), 'float:0x80000000');
  one('float_infinity', types.Float(Infinity), 'float:0x7f800000');
  one('float_minus_two_and_half', types.Float(-2.5), 'float:0xc0200000');
  one('double_one', types.Double(1), 'double:0x3ff0000000000000');
  one('double_tenth', types.Double(0.1), 'double:0x3fb999999999999a');
  one('double_minus_infinity', types.Double(-Infinity), 'double:0xfff0000000000000');
  one('decimal32', types.Decimal32(hex('22500001')), 'decimal32:0x22500001');
  one('decimal64', types.Decimal64(hex('2238000000000001')), 'decimal64:0x2238000000000001');
  one('decimal128', types.Decimal128(hex('22080000000000000000000000000001')),
      'decimal128:0x22080000000000000000000000000001');
  one('char_ascii', types.CharUTF32(0x41), 'char:0x41');
  one('char_emoji', types.CharUTF32(0x1f600), 'char:0x1f600');
  one('timestamp_epoch', types.Timestamp(0), 'timestamp:0');
  one('timestamp_2026', types.Timestamp(1767225600123), 'timestamp:1767225600123');
  one('timestamp_before_epoch', types.Timestamp(-1), 'timestamp:-1');
  one('timestamp_no_expiry', types.Timestamp(253402243199000), 'timestamp:253402243199000');
  one('uuid', types.Uuid(uuid_bytes), uuid_text);
  one('binary_empty', types.Vbin8(Buffer.alloc(0)), 'binary:');
  one('binary_small', types.Vbin8(hex('00ff10')), 'binary:00ff10');
  one('binary_wide', types.Vbin32(hex('00ff10')), 'binary:00ff10');
  one('binary_255', types.wrap_binary(Buffer.alloc(255, 0xab)), 'binary:' + 'ab'.repeat(255));
  one('binary_256', types.wrap_binary(Buffer.alloc(256, 0xab)), 'binary:' + 'ab'.repeat(256));
  one('string_empty', types.Str8(''), 'string:""');
  one('string_small', types.Str8('queue'), 'string:"queue"');
  one('string_wide', types.Str32('queue'), 'string:"queue"');
  one('string_utf8', types.Str8('zażółć 😀 Жук'), 'string:"zażółć 😀 Жук"');
  one('string_escapes', types.Str8('a"b\\c\n'), 'string:' + quoted('a"b\\c\n'));
  // The length counts bytes, not characters: 128 two-byte letters do not fit the short form.
  one('string_256_bytes', types.wrap_string('ż'.repeat(128)), `string:"${'ż'.repeat(128)}"`);
  one('symbol_small', types.Sym8('amqp:accepted:list'), 'symbol:"amqp:accepted:list"');
  one('symbol_wide', types.Sym32('amqp:accepted:list'), 'symbol:"amqp:accepted:list"');
  one('symbol_empty', types.Sym8(''), 'symbol:""');

  one('list_zero', types.List0(), '[]');
  one('list_small_empty', types.List8([]), '[]');
  one('list_wide_empty', types.List32([]), '[]');
  one('list_small', types.List8([types.Uint0(), types.Null(), types.Str8('x')]), '[uint:0, null, string:"x"]');
  one('list_wide', types.List32([types.Uint0(), types.Null(), types.Str8('x')]), '[uint:0, null, string:"x"]');
  one('list_nested', types.List8([types.List8([types.List0()]), types.Map8([])]), '[[[]], {}]');
  one('map_small_empty', types.Map8([]), '{}');
  one('map_wide_empty', types.Map32([]), '{}');
  one('map_small', types.Map8([types.Sym8('a'), types.SmallInt(1), types.Sym8('b'), types.Null()]),
      '{symbol:"a": int:1, symbol:"b": null}');
  one('map_wide', types.Map32([types.Str8('a'), types.True(), types.Uuid(uuid_bytes), types.False()]),
      `{string:"a": true, ${uuid_text}: false}`);
  one('map_nested', types.Map32([types.Str8('m'), types.Map8([types.Str8('l'),
    types.List8([types.Map32([types.Ulong0(), types.Byte(-1)])])])]),
      '{string:"m": {string:"l": [{ulong:0: byte:-1}]}}');
  one('map_of_every_kind', types.Map32([
    types.Str8('bool'), types.True(), types.Str8('ubyte'), types.Ubyte(1), types.Str8('ushort'), types.Ushort(2),
    types.Str8('uint'), types.Uint(3), types.Str8('ulong'), types.Ulong(4), types.Str8('byte'), types.Byte(-5),
    types.Str8('short'), types.Short(-6), types.Str8('int'), types.Int(-7), types.Str8('long'), types.Long(-8),
    types.Str8('float'), types.Float(0.5), types.Str8('double'), types.Double(0.25),
    types.Str8('char'), types.CharUTF32(0x17c), types.Str8('time'), types.Timestamp(9),
    types.Str8('uuid'), types.Uuid(uuid_bytes), types.Str8('bin'), types.Vbin8(hex('0a')),
    types.Str8('sym'), types.Sym8('s')]),
      '{string:"bool": true, string:"ubyte": ubyte:1, string:"ushort": ushort:2, string:"uint": uint:3, ' +
      'string:"ulong": ulong:4, string:"byte": byte:-5, string:"short": short:-6, string:"int": int:-7, ' +
      'string:"long": long:-8, string:"float": float:0x3f000000, string:"double": double:0x3fd0000000000000, ' +
      `string:"char": char:0x17c, string:"time": timestamp:9, string:"uuid": ${uuid_text}, ` +
      'string:"bin": binary:0a, string:"sym": symbol:"s"}');

  const small = (items, code, descriptor) => types.Array8(items, code, descriptor);
  const wide = (items, code, descriptor) => types.Array32(items, code, descriptor);
  one('array_small_symbol', small(['PLAIN', 'ANONYMOUS'], 0xa3), 'array(symbol)[symbol:"PLAIN", symbol:"ANONYMOUS"]');
  one('array_wide_symbol', wide(['PLAIN', 'ANONYMOUS'], 0xb3), 'array(symbol)[symbol:"PLAIN", symbol:"ANONYMOUS"]');
  one('array_small_uint', small([1, 4294967295], 0x70), 'array(uint)[uint:1, uint:4294967295]');
  one('array_small_uint_small', small([1, 255], 0x52), 'array(uint)[uint:1, uint:255]');
  one('array_wide_long', wide([1, -1], 0x81), 'array(long)[long:1, long:-1]');
  one('array_wide_uuid', wide([uuid_bytes, uuid_bytes], 0x98), `array(uuid)[${uuid_text}, ${uuid_text}]`);
  one('array_wide_timestamp', wide([0, 1767225600123], 0x83), 'array(timestamp)[timestamp:0, timestamp:1767225600123]');
  one('array_wide_string', wide(['a', 'ż'], 0xb1), 'array(string)[string:"a", string:"ż"]');
  one('array_wide_boolean', wide([1, 0], 0x56), 'array(boolean)[true, false]');
  one('array_small_empty', small([], 0xa3), 'array(symbol)[]');
  one('array_of_lists', wide([[types.Uint0()], []], 0xc0), 'array(list)[[uint:0], []]');
  one('array_described', wide([7, 8], 0x70, types.SmallUlong(5)), 'array(@ulong:5 uint)[uint:7, uint:8]');

  one('described_ulong', types.described(types.SmallUlong(0x24), types.List0()), '@ulong:36 []');
  one('described_ulong_wide', types.described(types.Ulong(0x24), types.List8([])), '@ulong:36 []');
  one('described_symbol', types.described(types.Sym8('amqp:accepted:list'), types.List0()), '@symbol:"amqp:accepted:list" []');
  one('described_session_filter', types.described(types.Ulong(0x137000000C), types.Str8('session-1')),
      '@ulong:83483426828 string:"session-1"');
  one('described_timespan', types.described(types.Sym8('com.microsoft:timespan'), types.Long(600000000)),
      '@symbol:"com.microsoft:timespan" long:600000000');
  one('described_in_map', types.Map8([types.Sym8('com.microsoft:session-filter'),
    types.described(types.Ulong(0x137000000C), types.Null())]),
      '{symbol:"com.microsoft:session-filter": @ulong:83483426828 null}');
}

function messages() {
  const one = (name, message, ...sections) =>
      line(name, Buffer.from(rhea.message.encode(message)), sections.join(' / '));
  // rhea always writes header and properties, as empty lists when nothing is in them.
  const bare = ['@ulong:112 []', '@ulong:115 []'];
  const section = rhea.message;

  one('body_null', {}, ...bare, '@ulong:119 null');
  one('body_string', {body: 'hello'}, ...bare, '@ulong:119 string:"hello"');
  one('body_list', {body: [1, 'two', null]}, ...bare, '@ulong:119 [uint:1, string:"two", null]');
  one('body_map', {body: {a: -1, b: {c: true}}}, ...bare, '@ulong:119 {string:"a": int:-1, string:"b": {string:"c": true}}');
  one('body_data', {body: section.data_section(hex('00ff'))}, ...bare, '@ulong:117 binary:00ff');
  one('body_data_empty', {body: section.data_section(Buffer.alloc(0))}, ...bare, '@ulong:117 binary:');
  one('body_data_300', {body: section.data_section(Buffer.alloc(300, 0x7e))}, ...bare, '@ulong:117 binary:' + '7e'.repeat(300));
  one('body_data_several', {body: section.data_sections([hex('01'), hex('0203')])}, ...bare,
      '@ulong:117 binary:01', '@ulong:117 binary:0203');
  one('body_sequence', {body: section.sequence_section([1, false])}, ...bare, '@ulong:118 [uint:1, false]');
  one('body_sequences', {body: section.sequence_sections([[1], ['b']])}, ...bare, '@ulong:118 [uint:1]', '@ulong:118 [string:"b"]');
  one('header_durable', {durable: true, body: 'x'}, '@ulong:112 [true]', '@ulong:115 []', '@ulong:119 string:"x"');
  one('header_all', {durable: true, priority: 9, ttl: 4294967295, first_acquirer: true, delivery_count: 3, body: 'x'},
      '@ulong:112 [true, ubyte:9, uint:4294967295, true, uint:3]', '@ulong:115 []', '@ulong:119 string:"x"');
  one('message_id_ulong', {message_id: 7, body: 'x'}, '@ulong:112 []', '@ulong:115 [ulong:7]', '@ulong:119 string:"x"');
  one('message_id_uuid', {message_id: uuid_bytes, body: 'x'}, '@ulong:112 []', `@ulong:115 [${uuid_text}]`, '@ulong:119 string:"x"');
  one('message_id_binary', {message_id: types.wrap_binary(hex('beef')), body: 'x'}, '@ulong:112 []',
      '@ulong:115 [binary:beef]', '@ulong:119 string:"x"');
  one('every_section', {
    durable: false, priority: 4, ttl: 60000, first_acquirer: false, delivery_count: 0,
    delivery_annotations: {'x-opt-lock-token': types.wrap_uuid(uuid_bytes)},
    message_annotations: {
      'x-opt-enqueued-time': types.wrap_timestamp(1767225600123),
      'x-opt-sequence-number': types.wrap_long(42),
      'x-opt-partition-key': 'p',
    },
    message_id: 'm-1', user_id: Buffer.from('user'), to: 'queue', subject: 'label', reply_to: 'replies',
    correlation_id: 'c-1', content_type: 'application/json', content_encoding: 'utf-8',
    absolute_expiry_time: 253402243199000, creation_time: 1767225600123, group_id: 'session-1',
    group_sequence: 5, reply_to_group_id: 'session-2',
    application_properties: {text: 't', number: 300, flag: true, half: 0.5, none: null},
    body: section.data_section(Buffer.from('{"a":1}')),
    footer: {crc: types.wrap_uint(1)},
  },
      '@ulong:112 [false, ubyte:4, uint:60000, false, uint:0]',
      `@ulong:113 {symbol:"x-opt-lock-token": ${uuid_text}}`,
      '@ulong:114 {symbol:"x-opt-enqueued-time": timestamp:1767225600123, symbol:"x-opt-sequence-number": long:42, ' +
      'symbol:"x-opt-partition-key": string:"p"}',
      '@ulong:115 [string:"m-1", binary:75736572, string:"queue", string:"label", string:"replies", string:"c-1", ' +
      'symbol:"application/json", symbol:"utf-8", timestamp:253402243199000, timestamp:1767225600123, ' +
      'string:"session-1", uint:5, string:"session-2"]',
      '@ulong:116 {string:"text": string:"t", string:"number": uint:300, string:"flag": true, ' +
      'string:"half": double:0x3fe0000000000000, string:"none": null}',
      '@ulong:120 {string:"crc": uint:1}',  // rhea writes the footer before the body
      '@ulong:117 binary:7b2261223a317d');
}

function frame_lines() {
  const amqp = (name, channel, performative, payload) =>
      line(name, frames.write_frame(frames.amqp_frame(channel, performative, payload)));
  const sasl = (name, performative) => line(name, frames.write_frame(frames.sasl_frame(performative)));
  const error = (condition, description, info) => ({condition, description, info});

  for (const [name, id] of [['header_amqp', 0], ['header_tls', 2], ['header_sasl', 3]]) {
    const buffer = Buffer.alloc(8);
    frames.write_header(buffer, {protocol_id: id, major: 1, minor: 0, revision: 0});
    line(name, buffer);
  }
  amqp('empty', 0);
  sasl('sasl_mechanisms_array', frames.sasl_mechanisms({sasl_server_mechanisms: ['MSSBCBS', 'PLAIN', 'ANONYMOUS']}));
  sasl('sasl_mechanisms_one', frames.sasl_mechanisms({sasl_server_mechanisms: 'ANONYMOUS'}));
  sasl('sasl_init_plain', frames.sasl_init({mechanism: 'PLAIN', initial_response: Buffer.from('\0rule\0key'), hostname: 'h'}));
  sasl('sasl_init_anonymous', frames.sasl_init({mechanism: 'ANONYMOUS'}));
  sasl('sasl_challenge', frames.sasl_challenge({challenge: hex('01')}));
  sasl('sasl_response', frames.sasl_response({response: hex('02')}));
  sasl('sasl_outcome_ok', frames.sasl_outcome({code: 0}));
  sasl('sasl_outcome_auth', frames.sasl_outcome({code: 1}));

  amqp('open_least', 0, frames.open({container_id: 'c'}));
  amqp('open_full', 0, frames.open({
    container_id: 'container', hostname: 'host.example', max_frame_size: 65536, channel_max: 4999, idle_time_out: 240000,
    outgoing_locales: ['en-US'], incoming_locales: ['en-US', 'pl-PL'], offered_capabilities: ['a'],
    desired_capabilities: ['b', 'c'], properties: {product: 'golden', version: 1}}));
  amqp('open_single_capability', 0, frames.open({container_id: 'c', desired_capabilities: 'ANONYMOUS-RELAY'}));
  amqp('begin_least', 0, frames.begin({next_outgoing_id: 0, incoming_window: 2048, outgoing_window: 4294967295}));
  amqp('begin_reply', 7, frames.begin({remote_channel: 65535, next_outgoing_id: 4294967295, incoming_window: 5000,
    outgoing_window: 100, handle_max: 255, offered_capabilities: ['x'], properties: {p: true}}));
  amqp('attach_sender', 1, frames.attach({
    name: 'sender', handle: 0, role: false, snd_settle_mode: 2, rcv_settle_mode: 0,
    source: terminus.source({address: 'me'}).described(), target: terminus.target({address: 'queue'}).described(),
    initial_delivery_count: 0, max_message_size: 1048576}));
  amqp('attach_session_receiver', 1, frames.attach({
    name: 'receiver', handle: 255, role: true, snd_settle_mode: 0, rcv_settle_mode: 1,
    source: terminus.source({address: 'queue', durable: 1, expiry_policy: 'never', timeout: 30, dynamic: false,
      distribution_mode: 'move', filter: {'com.microsoft:session-filter': 'session-1'},
      default_outcome: rhea.message.released().described(),
      outcomes: ['amqp:accepted:list', 'amqp:rejected:list'], capabilities: ['queue']}).described(),
    target: terminus.target({address: 'me', capabilities: ['queue', 'shared']}).described(),
    unsettled: {}, incomplete_unsettled: false,
    properties: {'com.microsoft:timeout': types.wrap_uint(60000), 'com.microsoft:receiver-name': 'me'}}));
  amqp('attach_dynamic', 1, frames.attach({name: 'd', handle: 2, role: true,
    source: terminus.source({dynamic: true, dynamic_node_properties: {'lifetime-policy':
      types.described(types.Sym8('amqp:delete-on-close:list'), types.List0())}}).described(),
    target: terminus.target({}).described()}));
  amqp('attach_refused', 1, frames.attach({name: 'sender', handle: 0, role: true}));
  amqp('flow_session', 2, frames.flow({next_incoming_id: 1, incoming_window: 2048, next_outgoing_id: 2, outgoing_window: 3}));
  amqp('flow_link', 2, frames.flow({next_incoming_id: 4294967295, incoming_window: 2048, next_outgoing_id: 0,
    outgoing_window: 4294967295, handle: 3, delivery_count: 10, link_credit: 1000, available: 5, drain: true, echo: true,
    properties: {k: 'v'}}));
  const payload = Buffer.from(rhea.message.encode({body: 'payload'}));
  amqp('transfer_unsettled', 1, frames.transfer({handle: 0, delivery_id: 1, delivery_tag: Buffer.from('1'), message_format: 0,
    settled: false}), payload);
  amqp('transfer_batch_settled', 1, frames.transfer({handle: 0, delivery_id: 2, delivery_tag: uuid_bytes,
    message_format: 0x80013700, settled: true, more: false, batchable: true}), payload);
  amqp('transfer_more', 1, frames.transfer({handle: 0, delivery_id: 3, delivery_tag: hex('00'), message_format: 0, more: true}),
      payload.subarray(0, 5));
  amqp('transfer_rest', 1, frames.transfer({handle: 0, more: false}), payload.subarray(5));
  amqp('transfer_aborted', 1, frames.transfer({handle: 0, delivery_id: 3, aborted: true}));
  const disposition = (name, state, extra) => amqp(name, 1,
      frames.disposition(Object.assign({role: true, first: 1, settled: true, state: state && state.described()}, extra)));
  disposition('disposition_accepted', rhea.message.accepted());
  disposition('disposition_range', rhea.message.accepted(), {last: 4294967295, settled: false, batchable: true});
  disposition('disposition_released', rhea.message.released());
  disposition('disposition_rejected', rhea.message.rejected({error: error('com.microsoft:dead-letter', 'bad',
      {DeadLetterReason: 'r', DeadLetterErrorDescription: 'd'})}));
  disposition('disposition_modified', rhea.message.modified({delivery_failed: true, undeliverable_here: true,
    message_annotations: {k: 1}}));
  disposition('disposition_received', rhea.message.received({section_number: 0, section_offset: 12}), {settled: false});
  disposition('disposition_settle_only', undefined);
  amqp('detach_plain', 1, frames.detach({handle: 0}));
  amqp('detach_error', 1, frames.detach({handle: 0, closed: true,
    error: error('amqp:not-found', "The messaging entity 'q' could not be found")}));
  amqp('end_plain', 1, frames.end({}));
  amqp('end_error', 1, frames.end({error: error('amqp:session:window-violation', 'w', {a: 'b'})}));
  amqp('close_plain', 0, frames.close({}));
  amqp('close_error', 0, frames.close({error: error('amqp:connection:forced', 'bye')}));
}

({values, messages, frames: frame_lines})[process.argv[2]]();
