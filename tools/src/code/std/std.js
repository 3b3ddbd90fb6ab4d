// The module `@lorgnette/std`. What has an effect, or needs the gateway, is a call; all else is computed here. Bytes
// travel as base64. std.d.ts has the declarations.
import { call as bridge } from '@lorgnette/bridge';

const call = (name, argument) => bridge('@lorgnette/std', name, argument);
const fail = (message) => {
  throw new TypeError(message);
};

/** Functions whose promises say where `await` is missing, as those of the bridge do. */
const api = (group, functions) => {
  const marked = (name, run) => (...values) => {
    const promise = run(...values);
    if (Object.getPrototypeOf(promise) !== Promise.prototype) return promise;
    // Where the call is: there it has to be written.
    const { stack } = new Error();
    const get = (target, key, receiver) => {
      if (key in target) return Reflect.get(target, key, receiver);
      const isUse = [Symbol.toPrimitive, Symbol.iterator, Symbol.asyncIterator].includes(key);
      if (typeof key === 'symbol' && !isUse) return undefined;
      const hint = `write "await ${group}.${name}(...)" before its value is used`;
      throw Object.assign(new TypeError(`${group}.${name}() returns a promise: ${hint}`), { stack });
    };
    const prototype = new Proxy(Promise.prototype, { get, getPrototypeOf: () => Promise.prototype });
    return Object.setPrototypeOf(promise, prototype);
  };
  return Object.freeze(Object.fromEntries(Object.entries(functions).map(([name, run]) => [name, marked(name, run)])));
};

// --- bytes ---

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const VALUES = Object.fromEntries([...DIGITS].map((digit, value) => [digit, value]));

const toBase64 = (bytes) => {
  const parts = [];
  for (let at = 0; at < bytes.length; at += 3) {
    const bits = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    parts.push(
      DIGITS[bits >> 18] + DIGITS[(bits >> 12) & 63] +
        (at + 1 < bytes.length ? DIGITS[(bits >> 6) & 63] : '=') + (at + 2 < bytes.length ? DIGITS[bits & 63] : '='),
    );
  }
  return parts.join('');
};

const fromBase64 = (text) => {
  const clean = text.replace(/=+$/, '');
  const bytes = new Uint8Array(Math.floor((clean.length * 3) / 4));
  let bits = 0;
  let have = 0;
  let at = 0;
  for (const digit of clean) {
    bits = ((bits << 6) | (VALUES[digit] ?? fail('no valid base64'))) & 0xffffff;
    have += 6;
    if (have >= 8) {
      have -= 8;
      bytes[at++] = (bits >> have) & 255;
    }
  }
  return bytes;
};

const toUtf8 = (text) => {
  const bytes = [];
  for (const character of text) {
    const code = character.codePointAt(0);
    if (code < 0x80) bytes.push(code);
    else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  }
  return Uint8Array.from(bytes);
};

const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** A text as it is, bytes as base64. */
const content = (data) => {
  if (typeof data === 'string') return { text: data };
  if (data instanceof ArrayBuffer) return { bytes: toBase64(new Uint8Array(data)) };
  if (data instanceof Uint8Array) return { bytes: toBase64(data) };
  return fail('give a string or a Uint8Array; for a value use json.stringify');
};

// --- fs ---

export const fs = api('fs', {
  readFile: (path, part = {}) => call('fs.readFile', { path, ...part }),
  readBytes: async (path, part = {}) => fromBase64(await call('fs.readBytes', { path, ...part })),
  writeFile: async (path, data) => void (await call('fs.writeFile', { path, ...content(data) })),
  appendFile: async (path, data) => void (await call('fs.appendFile', { path, ...content(data) })),
  list: (path = '') => call('fs.list', { path }),
  stat: (path) => call('fs.stat', { path }),
  remove: async (path) => void (await call('fs.remove', { path })),
  mkdir: async (path) => void (await call('fs.mkdir', { path })),
});

// --- http ---

const request = async (options) => {
  const { url, method = 'GET', headers = {}, body, json: value, ...others } = options;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) fail(`http has no option "${unknown}": url, method, headers, body, json`);
  if (body !== undefined && value !== undefined) fail('give either body or json');
  const named = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  const type = value !== undefined && !named ? { 'content-type': 'application/json' } : {};
  const data = value !== undefined ? JSON.stringify(value) : body;
  const answer = await call('http.request', {
    url: String(url),
    method: String(method).toUpperCase(),
    headers: { ...headers, ...type },
    ...(data === undefined || data === null ? {} : content(data)),
  });
  const text = () => answer.text ?? fail('the body is no text in UTF-8: use bytes()');
  return Object.freeze({
    status: answer.status,
    ok: answer.status >= 200 && answer.status < 300,
    url: answer.url,
    headers: answer.headers,
    text,
    json: () => JSON.parse(text()),
    bytes: () => (answer.bytes === undefined ? toUtf8(answer.text) : fromBase64(answer.bytes)),
  });
};

export const http = api('http', {
  request: (options) => request(options),
  get: (url, options = {}) => request({ ...options, url, method: 'GET' }),
  post: (url, data, options = {}) => {
    const isContent = typeof data === 'string' || data instanceof Uint8Array || data instanceof ArrayBuffer;
    return request({ ...options, url, method: 'POST', ...(isContent ? { body: data } : { json: data }) });
  },
});

// --- json ---

export const json = Object.freeze({
  parse: (text) => JSON.parse(text),
  stringify: (value, indent) => JSON.stringify(value, undefined, indent),
});

// --- csv: RFC 4180, with any separator of one character ---

const rows = (text, separator) => {
  const all = [];
  let row = [];
  let at = text.startsWith('\ufeff') ? 1 : 0;
  const isEnd = () => at >= text.length || text[at] === separator || text[at] === '\n' || text[at] === '\r';
  const quoted = () => {
    let field = '';
    for (let from = at + 1; ; from = at + 1) {
      const close = text.indexOf('"', from);
      if (close < 0) fail(`csv: row ${all.length + 1} has a quote that is not closed`);
      field += text.slice(from, close);
      at = close + 1;
      if (text[at] !== '"') break;
      field += '"';
    }
    return isEnd() ? field : fail(`csv: row ${all.length + 1} has a character after a closing quote`);
  };
  const plain = () => {
    const from = at;
    while (!isEnd()) at += 1;
    return text.slice(from, at);
  };
  while (at < text.length) {
    const isEmpty = row.length === 0 && (text[at] === '\n' || text[at] === '\r');
    if (!isEmpty) row.push(text[at] === '"' ? quoted() : plain());
    if (text[at] === separator) {
      at += 1;
      if (at < text.length && text[at] !== '\n' && text[at] !== '\r') continue;
      row.push('');
    }
    if (row.length > 0) all.push(row);
    row = [];
    at += text[at] === '\r' && text[at + 1] === '\n' ? 2 : 1;
  }
  return all;
};

const separatorOf = ({ separator = ',' }) =>
  typeof separator === 'string' && separator.length === 1 && !'"\r\n'.includes(separator)
    ? separator
    : fail('csv: the separator is one character, neither a quote nor a line break');

const csvParse = (text, options = {}) => {
  const all = rows(String(text), separatorOf(options));
  if (options.header === false) return all;
  const [names = [], ...records] = all;
  names.forEach((name, at) => names.indexOf(name) === at || fail(`csv: the header has "${name}" twice`));
  return records.map((row, at) => {
    if (row.length > names.length) fail(`csv: row ${at + 2} has ${row.length} fields, the header ${names.length}`);
    return Object.fromEntries(names.map((name, column) => [name, row[column] ?? '']));
  });
};

const csvStringify = (records, options = {}) => {
  const separator = separatorOf(options);
  const quoted = (value) => {
    const text = value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
    const plain = !text.includes(separator) && !/["\r\n]|^\s|\s$|^\ufeff/.test(text);
    return plain ? text : `"${text.replaceAll('"', '""')}"`;
  };
  // A row of one empty field would be an empty line.
  const line = (row) => (row.length === 1 && quoted(row[0]) === '' ? '""' : row.map(quoted).join(separator));
  const lines = [];
  if (records.every((record) => Array.isArray(record))) {
    if (options.columns !== undefined) lines.push(line(options.columns));
    records.forEach((record) => lines.push(line(record)));
  } else {
    const names = options.columns ?? [...new Set(records.flatMap((record) => Object.keys(record)))];
    if (options.header !== false) lines.push(line(names));
    records.forEach((record) => lines.push(line(names.map((name) => record[name]))));
  }
  return lines.map((text) => `${text}\r\n`).join('');
};

export const csv = Object.freeze({ parse: csvParse, stringify: csvStringify });

// --- crypto ---

const randomBytes = async (count) => fromBase64(await call('crypto.randomBytes', { count }));

const utf8 = (bytes) => {
  let escaped = '';
  for (const byte of bytes) escaped += `%${byte.toString(16).padStart(2, '0')}`;
  try {
    return decodeURIComponent(escaped);
  } catch {
    return fail('this is no text in UTF-8: use crypto.decryptBytes');
  }
};

const decryptBytes = async (secret, sealed) => fromBase64(await call('crypto.decrypt', { secret, sealed }));

export const crypto = api('crypto', {
  hash: async (algorithm, data) => toHex(fromBase64(await call('crypto.hash', { algorithm, ...content(data) }))),
  hmac: async (secret, data) => toHex(fromBase64(await call('crypto.hmac', { secret, ...content(data) }))),
  encrypt: (secret, data) => call('crypto.encrypt', { secret, ...content(data) }),
  decrypt: async (secret, sealed) => utf8(await decryptBytes(secret, sealed)),
  decryptBytes,
  randomBytes,
  uuid: async () => {
    const bytes = await randomBytes(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    return toHex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  },
});

// --- time: instants are milliseconds since the Unix epoch ---

const UTC = { name: 'UTC', offsets: [[0, 0]] };
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = [
  'January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November',
  'December',
];
const DAY_MS = 86_400_000;

const instant = (at) => {
  const ms = typeof at === 'string' ? timeParse(at) : Number(at);
  return Number.isFinite(ms) && Math.abs(ms) <= 8.64e15 ? Math.trunc(ms) : fail('time: not an instant in milliseconds');
};

/** The offset of a zone in milliseconds. */
const offsetAt = (ms, zone) => {
  if (!Array.isArray(zone?.offsets)) fail('time: the zone is what "await time.zone()" returns');
  let low = 0;
  let high = zone.offsets.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (zone.offsets[middle][0] * 1000 <= ms) low = middle;
    else high = middle;
  }
  return zone.offsets[low][1] * 1000;
};

/** The instant of a local time. One that is skipped counts from before the change; of one that is there twice, the first. */
const fromLocal = (local, zone) => {
  const [before, after] = [offsetAt(local - DAY_MS, zone), offsetAt(local + DAY_MS, zone)];
  const isRight = (offset) => offsetAt(local - offset, zone) === offset;
  return local - (isRight(before) || !isRight(after) ? before : after);
};

const parts = (at, zone = UTC) => {
  const ms = instant(at);
  const offset = offsetAt(ms, zone);
  const date = new Date(ms + offset);
  return {
    year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate(), hour: date.getUTCHours(),
    minute: date.getUTCMinutes(), second: date.getUTCSeconds(), millisecond: date.getUTCMilliseconds(),
    weekday: date.getUTCDay(), offset: offset / 60_000,
  };
};

const pad = (number, digits = 2) => String(number).padStart(digits, '0');

const offsetText = (offset) => {
  const minutes = Math.round(Math.abs(offset));
  return `${offset < 0 ? '-' : '+'}${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`;
};

const TOKENS = {
  YYYY: (p) => pad(p.year, 4), YY: (p) => pad(p.year % 100), MMMM: (p) => MONTHS[p.month - 1],
  MMM: (p) => MONTHS[p.month - 1].slice(0, 3), MM: (p) => pad(p.month), M: (p) => `${p.month}`, DD: (p) => pad(p.day),
  D: (p) => `${p.day}`, dddd: (p) => DAYS[p.weekday], ddd: (p) => DAYS[p.weekday].slice(0, 3), HH: (p) => pad(p.hour),
  H: (p) => `${p.hour}`, hh: (p) => pad(p.hour % 12 || 12), h: (p) => `${p.hour % 12 || 12}`, mm: (p) => pad(p.minute),
  m: (p) => `${p.minute}`, ss: (p) => pad(p.second), s: (p) => `${p.second}`, SSS: (p) => pad(p.millisecond, 3),
  A: (p) => (p.hour < 12 ? 'AM' : 'PM'), a: (p) => (p.hour < 12 ? 'am' : 'pm'), Z: (p) => offsetText(p.offset),
};

const format = (at, pattern = 'YYYY-MM-DD[T]HH:mm:ssZ', zone = UTC) => {
  const p = parts(at, zone);
  const token = /\[([^\]]*)\]|YYYY|YY|MMMM|MMM|MM|M|DD|D|dddd|ddd|HH|H|hh|h|mm|m|ss|s|SSS|A|a|Z/g;
  return String(pattern).replace(token, (found, literal) => literal ?? TOKENS[found](p));
};

const civil = (year, month, day, hour = 0, minute = 0, second = 0, millisecond = 0) => {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, millisecond);
  return date.getTime();
};

const timeParse = (text, zone = UTC) => {
  const iso = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|z|[+-]\d\d:?\d\d)?)?$/;
  const wrong = () => fail(`time: "${String(text).slice(0, 64)}" is no date or time such as 2026-11-21T17:20:00+01:00`);
  const [, year, month, day, hour, minute, second, fraction, offset] = iso.exec(String(text).trim()) ?? wrong();
  const millisecond = Number((fraction ?? '').padEnd(3, '0').slice(0, 3));
  const fields = [year, month, day, hour ?? 0, minute ?? 0, second ?? 0].map(Number);
  const local = civil(...fields, millisecond);
  const p = parts(local);
  if ([p.year, p.month, p.day, p.hour, p.minute, p.second].some((field, at) => field !== fields[at])) wrong();
  if (offset === undefined) return fromLocal(local, zone);
  if (/^z$/i.test(offset)) return local;
  const [hours, minutes] = [Number(offset.slice(1, 3)), Number(offset.slice(-2))];
  if (hours > 23 || minutes > 59) wrong();
  return local - (offset[0] === '-' ? -1 : 1) * (hours * 60 + minutes) * 60_000;
};

const UNITS = ['years', 'months', 'weeks', 'days', 'hours', 'minutes', 'seconds', 'milliseconds'];

const add = (at, span, zone = UTC) => {
  const unknown = Object.keys(span).find((unit) => !UNITS.includes(unit));
  if (unknown !== undefined) fail(`time: there is no unit "${unknown}": ${UNITS.join(', ')}`);
  const of = (unit) => (Number.isFinite(span[unit] ?? 0) ? span[unit] ?? 0 : fail(`time: "${unit}" is no number`));
  let ms = instant(at);
  const [years, months, days] = [of('years'), of('months'), of('weeks') * 7 + of('days')];
  if (years !== 0 || months !== 0 || days !== 0) {
    if (![years, months, days].every(Number.isInteger)) fail('time: years, months, weeks and days are whole numbers');
    const p = parts(ms, zone);
    const month = p.year * 12 + p.month - 1 + years * 12 + months;
    const [year, index] = [Math.floor(month / 12), ((month % 12) + 12) % 12];
    // The 31st of a shorter month is its last day.
    const last = new Date(civil(year, index + 2, 0)).getUTCDate();
    const day = Math.min(p.day, last) + days;
    ms = fromLocal(civil(year, index + 1, day, p.hour, p.minute, p.second, p.millisecond), zone);
  }
  return instant(ms + of('hours') * 3_600_000 + of('minutes') * 60_000 + of('seconds') * 1000 + of('milliseconds'));
};

export const time = Object.freeze({
  now: () => call('time.now', {}),
  zone: (name) => call('time.zone', name === undefined ? {} : { name }),
  parts,
  format,
  parse: timeParse,
  add,
});
