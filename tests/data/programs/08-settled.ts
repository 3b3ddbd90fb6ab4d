// what: of calls of which some fail, the others count
// result: [["Ada", "Ben"], 1]
import { shop } from '@capabilities/shop';
const ends = await Promise.allSettled([0, 99, 1].map((id) => shop.getCustomer({ id })));
const names = ends.flatMap((end) => (end.status === 'fulfilled' ? [(end.value as any).name] : []));
export default [names, ends.length - names.length];
