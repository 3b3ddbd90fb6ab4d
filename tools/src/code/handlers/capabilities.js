// The module `@lorgnette/capabilities`: `defineTool`, and `fetch` for handlers. What the file defines is copied when it
// is defined, so that it stays what it was. All that is needed of the language is taken here, before the file can change
// it.
import { http } from '@lorgnette/std';

const { create, freeze, fromEntries, getPrototypeOf, setPrototypeOf, keys, defineProperty, prototype } = Object;
const { apply } = Reflect;
const { parse } = JSON;
const { isArray } = Array;
const { isFinite } = Number;
const [S, T, iterator] = [String, TypeError, Symbol.iterator];
const request = http.request;

// The file itself is in what errors tell of the calls that led to them.
Error.stackTraceLimit = 64;
const LEVELS_MAX = 40;
const NODES_MAX = 20000;

const fail = (message) => {
  throw new T(message);
};
const put = (object, key, value) =>
  defineProperty(object, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

let nodes = 0;

const isPlain = (value) => {
  if (typeof value !== 'object' || value === null || isArray(value)) return false;
  const parent = getPrototypeOf(value);
  return parent === prototype || parent === null;
};

/** A copy of a JSON value without prototypes; each property is read once. */
const copied = (value, place, level) => {
  nodes += 1;
  if (nodes > NODES_MAX) fail(`the definition has more than ${NODES_MAX} values: define less`);
  if (level > LEVELS_MAX) fail(`${place} nests too deeply, or contains itself`);
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return isFinite(value) ? value : fail(`${place} is a number that JSON does not have`);
  if (isArray(value)) {
    const list = setPrototypeOf([], null);
    const { length } = value;
    for (let at = 0; at < length; at += 1) put(list, at, copied(value[at], `${place}[${at}]`, level + 1));
    return list;
  }
  if (!isPlain(value)) fail(`${place} is no JSON: only handler and approvalMessage may be functions`);
  const object = create(null);
  const names = keys(value);
  for (let at = 0; at < names.length; at += 1) {
    const name = names[at];
    const field = value[name];
    if (field !== undefined) put(object, name, copied(field, `${place}.${name}`, level + 1));
  }
  return object;
};

const functionOf = (name, written) => {
  const place = `functions.${name}`;
  if (!isPlain(written)) fail(`${place} must be an object: { description, parameters, returns, handler }`);
  const known = create(null);
  known.self = written;
  const fields = create(null);
  const names = keys(written);
  for (let at = 0; at < names.length; at += 1) {
    const key = names[at];
    const value = written[key];
    if (key === 'handler') known.handler = value;
    else if (key === 'approvalMessage' && typeof value === 'function') known.ask = value;
    else if (key === 'name') fail(`${place}.name: the key in functions is the name`);
    else if (value !== undefined) put(fields, key, copied(value, `${place}.${key}`, 0));
  }
  if (typeof known.handler !== 'function') fail(`${place} needs a handler: async (params) => { ... }`);
  known.told = create(null);
  put(known.told, 'name', name);
  put(known.told, 'fields', fields);
  put(known.told, 'asks', known.ask !== undefined);
  return known;
};

let fields;
const order = setPrototypeOf([], null);
const functions = create(null);

export const defineTool = (definition) => {
  if (fields !== undefined) fail('defineTool is called twice: a file defines one capability');
  if (!isPlain(definition)) fail('defineTool needs an object: { name, description, functions }');
  const read = create(null);
  const names = keys(definition);
  for (let at = 0; at < names.length; at += 1) {
    const key = names[at];
    const value = definition[key];
    if (key !== 'functions') {
      if (value !== undefined) put(read, key, copied(value, key, 0));
      continue;
    }
    if (!isPlain(value)) fail('functions must be a map: { NAME: { description, parameters, returns, handler } }');
    const own = keys(value);
    for (let number = 0; number < own.length; number += 1) {
      const known = functionOf(own[number], value[own[number]]);
      put(functions, own[number], known);
      put(order, number, known.told);
    }
  }
  fields = read;
  return definition;
};

/** For the sandbox: the definition, the result of a handler, or a question. */
export const $open = async (action, name, json) => {
  if (fields === undefined) fail('the file calls defineTool nowhere: import it from @lorgnette/capabilities');
  if (action === 'define') {
    const told = create(null);
    put(told, 'fields', fields);
    put(told, 'functions', order);
    return told;
  }
  const known = functions[name] ?? fail(`the file has no function ${name} any more`);
  const argument = [parse(json)];
  if (action === 'handle') return await apply(known.handler, known.self, argument);
  const question = await apply(known.ask, known.self, argument);
  return typeof question === 'string' ? question : fail('approvalMessage must return a text');
};

const fetch = async (input, options) => {
  const { method = 'GET', headers = {}, body, redirect = 'follow', ...others } = options ?? {};
  const [unknown] = keys(others);
  if (unknown !== undefined) fail(`fetch has no option "${unknown}" here: method, headers, body`);
  if (redirect !== 'follow') fail('fetch follows redirects within the same scheme, host and port, and no others');
  const list = typeof headers[iterator] === 'function' ? fromEntries(headers) : headers;
  const answer = await request({
    url: S(input),
    method: S(method),
    headers: list,
    ...(body === undefined || body === null ? {} : { body: typeof body === 'object' ? body : S(body) }),
  });
  const names = () => keys(answer.headers);
  const find = (name) => {
    const value = answer.headers[S(name).toLowerCase()];
    return value === undefined ? null : value;
  };
  const pairs = () => names().map((name) => [name, answer.headers[name]]);
  return freeze({
    ok: answer.ok,
    status: answer.status,
    statusText: '',
    url: answer.url,
    headers: freeze({
      get: find,
      has: (name) => find(name) !== null,
      forEach: (run) => pairs().forEach(([name, value]) => run(value, name)),
      keys: () => names().values(),
      values: () => pairs().map(([, value]) => value).values(),
      entries: () => pairs().values(),
      [iterator]: () => pairs().values(),
    }),
    text: async () => answer.text(),
    json: async () => answer.json(),
    bytes: async () => answer.bytes(),
    arrayBuffer: async () => answer.bytes().slice().buffer,
  });
};
defineProperty(globalThis, 'fetch', { __proto__: null, value: fetch, writable: true, configurable: true });
