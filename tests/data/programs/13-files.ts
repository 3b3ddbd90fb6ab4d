// what: files are written, read, listed and removed
// result: {"text": "one\ntwo\n", "names": ["log.txt"], "left": 0}
import { fs } from '@lorgnette/std';
await fs.mkdir('logs');
await fs.writeFile('logs/log.txt', 'one\n');
await fs.appendFile('logs/log.txt', 'two\n');
const text = await fs.readFile('logs/log.txt');
const names = (await fs.list('logs')).map(({ name }) => name);
await fs.remove('logs/log.txt');
const left = (await fs.list('logs')).length;
await fs.remove('logs');
export default { text, names, left };
