// what: a call that needs a yes, and gets it
// answers: ["yes"]
// result: "deleted"
// deleted: ["party"]
import { shop } from '@capabilities/shop';
await shop.deleteList({ list: 'party' });
export default 'deleted';
