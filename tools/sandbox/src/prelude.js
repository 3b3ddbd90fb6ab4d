// What a program finds besides the language: `console`, `print`, `ToolError` and the module `@lorgnette/bridge`.
// Everything from the language that is needed later is taken here, before the program can change it. New properties are
// defined, not assigned, since a program may put setters on prototypes.
(send, print) => {
  'use strict';
  const { stringify, parse } = JSON;
  const { create, defineProperty, freeze, setPrototypeOf } = Object;
  const { apply, get } = Reflect;
  const [P, E, S, T, Px] = [Promise, Error, String, TypeError, Proxy];
  const promises = P.prototype;
  const toWellFormed = S.prototype.toWellFormed;
  const { toPrimitive, iterator, asyncIterator } = Symbol;

  const text = (value) => apply(toWellFormed, S(value), []);
  const own = (object, key, value) =>
    defineProperty(object, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

  class ToolError extends E {
    constructor(message, code = 'error', retryable = false) {
      super(message);
      own(this, 'code', code);
      own(this, 'retryable', retryable);
    }
  }
  defineProperty(ToolError.prototype, 'name', { __proto__: null, value: 'ToolError' });
  freeze(ToolError.prototype);
  freeze(ToolError);

  // A property of a promise that no promise has: the author has forgotten `await`.
  const forgotten = (name, stack) => ({
    __proto__: null,
    get(target, key, promise) {
      if (key in target) return get(target, key, promise);
      if (typeof key === 'symbol' && key !== toPrimitive && key !== iterator && key !== asyncIterator) return undefined;
      const use = typeof key === 'symbol' || key === 'toJSON' ? 'its value is used' : `.${key} is read`;
      const error = new T(`${name}() returns a promise: write "await ${name}(...)" before ${use}`);
      // Where the call is: there it has to be written.
      own(error, 'stack', stack);
      throw error;
    },
    getPrototypeOf: () => promises,
  });

  // Values that JSON would lose.
  const strict = (key, value) => {
    if (value instanceof P) throw new T(`${key === '' ? 'the value' : `"${key}"`} is a promise: await it first`);
    return value;
  };

  const pending = create(null);
  // The last one, for programs that go on and on.
  let refusal;
  const call = (module, name, argument) => {
    const json = stringify(argument === undefined ? {} : argument, strict);
    const id = send(text(module), text(name), json === undefined ? 'null' : json);
    if (typeof id !== 'number') {
      if (refusal === undefined || refusal.message !== id) refusal = new ToolError(id, 'refused');
      return new P((_, reject) => reject(refusal));
    }
    const waiting = create(null);
    // Made here, for its position in the program.
    waiting.error = new ToolError('');
    const promise = new P((resolve, reject) => {
      waiting.resolve = resolve;
      waiting.reject = reject;
    });
    pending[id] = waiting;
    return setPrototypeOf(promise, new Px(promises, forgotten(text(name), waiting.error.stack)));
  };

  const fail = (waiting, message, code, retryable) => {
    own(waiting.error, 'message', message);
    own(waiting.error, 'code', code);
    own(waiting.error, 'retryable', retryable);
    waiting.reject(waiting.error);
  };

  const settle = (id, json, message, code, retryable) => {
    const waiting = pending[id];
    delete pending[id];
    if (message === undefined) {
      waiting.resolve(parse(json));
    } else {
      fail(waiting, message, code, retryable);
    }
  };

  const inspect = (value) => {
    if (typeof value === 'string') return value;
    if (typeof value === 'bigint') return `${value}n`;
    if (typeof value === 'function') return `[function ${value.name}]`;
    if (value instanceof P) return '[promise: "await" is missing]';
    if (value instanceof E) return `${value.name}: ${value.message}`;
    if (value instanceof Map || value instanceof Set) return inspect([...value]);
    if (typeof value !== 'object' || value === null) return S(value);
    try {
      return stringify(value, (_, inner) => {
        if (typeof inner === 'bigint') return `${inner}n`;
        return inner instanceof P ? '[promise: "await" is missing]' : inner;
      });
    } catch (error) {
      return `[${error.message}]`;
    }
  };
  const log = (...values) => {
    let line = '';
    for (let at = 0; at < values.length; at += 1) {
      line += (at === 0 ? '' : ' ') + inspect(values[at]);
    }
    print(text(line));
  };

  // JSON of the default export, once it is there.
  const finish = async (value) => {
    const result = await value;
    if (result === undefined) return undefined;
    if (typeof result === 'function' || typeof result === 'symbol') {
      throw new T(`the default export is a ${typeof result}: export what it returns, as in "export default await main()"`);
    }
    return stringify(result, strict);
  };

  const fixed = (object, key, value) => defineProperty(object, key, { __proto__: null, value });
  fixed(globalThis, 'console', freeze({ log, info: log, warn: log, error: log, debug: log }));
  fixed(globalThis, 'print', log);
  fixed(globalThis, 'ToolError', ToolError);
  own(globalThis, '$bridge', { call: freeze(call), ToolError });
  return freeze([settle, finish]);
}
