// what: two sources joined: what each customer owes
// result: {"Ada": 4500, "Ben": 3500, "Cleo": 2500}
import { shop } from '@capabilities/shop';
type Order = { customer: number; cents: number; open: boolean };
const pages = await Promise.all([1, 2, 3].map((page) => shop.listOrders({ page })));
const orders = pages.flatMap((page: any) => page.orders as Order[]).filter((order) => order.open);
const owed: Record<string, number> = {};
for (const { customer, cents } of orders) {
  const { name } = (await shop.getCustomer({ id: customer })) as { name: string };
  owed[name] = (owed[name] ?? 0) + cents;
}
export default owed;
