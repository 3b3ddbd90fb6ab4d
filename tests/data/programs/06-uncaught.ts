// what: an error that is not caught ends the program, with its line and with what was done before
// error: There is no such customer.
// line: 7
// items: ["before"]
import { shop } from '@capabilities/shop';
await shop.addItem({ item: 'before' });
await shop.getCustomer({ id: 99 });
await shop.addItem({ item: 'behind' });
