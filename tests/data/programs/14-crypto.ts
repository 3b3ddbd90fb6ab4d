// what: a digest, and random values
// result: ["ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 36, 16, true]
import { crypto } from '@lorgnette/std';
const [one, two] = [await crypto.uuid(), await crypto.uuid()];
const bytes = await crypto.randomBytes(16);
export default [await crypto.hash('sha256', 'abc'), one.length, bytes.length, one !== two];
