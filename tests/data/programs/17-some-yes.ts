// what: several questions, with an answer each
// answers: ["no", "yes", "no"]
// result: ["b"]
// deleted: ["b"]
import { shop } from '@capabilities/shop';
const gone: string[] = [];
for (const list of ['a', 'b', 'c']) {
  const deleted = await shop.deleteList({ list }).then(() => true, () => false);
  if (deleted) gone.push(list);
}
export default gone;
