// what: CSV with quotes is read, filtered and written
// result: "item,cents\nbread,320\napples,450\n"
import { shop } from '@capabilities/shop';
import { csv } from '@lorgnette/std';
const prices = csv.parse((await shop.readPrices()) as string);
const dear = prices.filter(({ cents }: any) => Number(cents) > 300);
export default csv.stringify(dear).replaceAll('\r\n', '\n');
