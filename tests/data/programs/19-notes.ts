// what: built-in tools and a capability together: notes become items of the basket
// result: ["oat milk", "bread"]
// items: ["oat milk", "bread"]
import { noteAdd } from '@capabilities/note-add';
import { noteSearch } from '@capabilities/note-search';
import { shop } from '@capabilities/shop';
for (const text of ['buy bread', 'call the dentist', 'buy oat milk']) await noteAdd({ text });
const { notes } = (await noteSearch({ query: 'buy' })) as { notes: { text: string }[] };
const items = notes.map(({ text }) => text.replace('buy ', ''));
for (const item of items) await shop.addItem({ item });
export default items;
