// what: arguments that do not fit are an error that says what is missing, and reach no server
// result: "INVALID_ARGUMENTS"
// items: []
import { shop } from '@capabilities/shop';
let code = '';
try {
  await shop.addItem({ thing: 'bread' } as any);
} catch (error) {
  code = error.code;
  if (!error.message.includes('item')) code = error.message;
}
export default code;
