// what: JSON is read and written
// result: "{\"a\":[1,2,{\"b\":null}],\"n\":3}"
import { json } from '@lorgnette/std';
const value = json.parse('{"a": [1, 2, {"b": null}]}') as any;
value.n = value.a.length;
export default json.stringify(value);
