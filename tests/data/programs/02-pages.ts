// what: all pages of a list, until there is none any more
// result: {"orders": 12, "cents": 19500}
interface Page { orders: { cents: number }[]; next: number | null }
import { shop } from '@capabilities/shop';
const all: Page['orders'] = [];
let page: number | null = 1;
while (page !== null) {
  const { orders, next } = (await shop.listOrders({ page })) as Page;
  all.push(...orders);
  page = next;
}
export default { orders: all.length, cents: all.reduce((sum, { cents }) => sum + cents, 0) };
