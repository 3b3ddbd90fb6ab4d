// what: a loop of changes, one after another
// result: 3
// items: ["bread 1", "bread 2", "bread 3"]
import { shop } from '@capabilities/shop';
let count = 0;
for (const number of [1, 2, 3]) {
  await shop.addItem({ item: `bread ${number}` });
  count += 1;
}
export default count;
