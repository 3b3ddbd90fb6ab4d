// what: a call that needs a yes, and does not get it: the program does something else
// answers: ["no"]
// result: "APPROVAL_DENIED"
// items: ["a cake instead"]
import { shop } from '@capabilities/shop';
let end = 'deleted';
try {
  await shop.deleteList({ list: 'party' });
} catch (error) {
  end = error.code;
  await shop.addItem({ item: 'a cake instead' });
}
export default end;
