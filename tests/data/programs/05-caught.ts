// what: an error of a tool is caught, and the program goes on
// result: "done"
// prints: ["EXECUTION_ERROR false There is no such customer."]
import { shop } from '@capabilities/shop';
try {
  await shop.getCustomer({ id: 99 });
} catch (error) {
  console.log(error.code, error.retryable, error.message);
}
export default 'done';
