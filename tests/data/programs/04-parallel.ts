// what: calls at the same time, in the order of their arguments
// result: ["Cleo", "Ada", "Ben"]
import { shop } from '@capabilities/shop';
const names = await Promise.all([2, 0, 1].map(async (id) => ((await shop.getCustomer({ id })) as any).name));
export default names;
