//! The declarations of the standard library before the compiler of TypeScript, with programs that use it rightly and
//! wrongly.

use tools::code::std::DECLARATIONS;

use super::types::judged;

const RIGHT: &str = "import { fs, http, json, csv, crypto, time } from '@lorgnette/std';
import { csv as other, type Zone } from '@agent-spaces/std';
interface Trip { to: string; departure: number }
const response = await http.get('https://api.example.com/', { headers: { authorization: 'Bearer ${secret:TRAINS}' } });
const trips: Trip[] = response.ok ? response.json() : [];
const zone: Zone = await time.zone('Europe/Berlin');
const rows = trips.map((trip) => ({ to: trip.to, at: time.format(trip.departure, 'HH:mm', zone) }));
await fs.writeFile('trips.csv', csv.stringify(rows, { separator: ';' }) + csv.stringify(trips));
const first: string | undefined = csv.parse(await fs.readFile('trips.csv', { length: 100 }))[0]?.to;
const cells: string[][] = other.parse('a,b', { header: false });
const digest: string = await crypto.hash('sha256', await fs.readBytes('trips.csv'));
await http.post('https://a.example/', { first, cells, digest, at: time.add(await time.now(), { days: 1 }, zone) });
await http.request({ url: 'https://a.example/', method: 'PUT', body: await crypto.randomBytes(4) });
const big = (await fs.list()).filter((entry) => entry.bytes > 10 && !entry.isFolder).map((entry) => entry.name);
export default { big, text: json.stringify(big, 2) };
";

/// Lines of which each must be refused by itself.
const WRONG: [&str; 13] = [
    "fs.readFile('a').length;",
    "await fs.writeFile('a', { b: 1 });",
    "await fs.chmod('a');",
    "(await http.get('u')).body;",
    "await http.request({ method: 'GET' });",
    "await http.request({ url: 'u', method: 'CONNECT' });",
    "await http.get('u', { timeout: 1 });",
    "const n: number = csv.parse('a')[0]!.a;",
    "await crypto.hash('md5', 'a');",
    "await crypto.hmac('K', 5);",
    "time.format(time.now());",
    "time.add(0, { day: 1 });",
    "time.format(0, 'YYYY', 'Europe/Berlin');",
];

#[test]
fn the_declarations_accept_right_programs_and_refuse_wrong_ones() {
    let mut programs = vec![("std.d".to_owned(), DECLARATIONS.to_owned()), ("right".to_owned(), RIGHT.to_owned())];
    let import = "import { fs, http, csv, crypto, time } from '@lorgnette/std';";
    programs.extend(
        WRONG.iter().enumerate().map(|(at, line)| (format!("wrong{at}"), format!("{import}\n{line}\nexport {{}};\n"))),
    );
    let words = judged(&[], &programs);
    for (at, line) in WRONG.iter().enumerate() {
        assert!(words.contains(&format!("wrong{at}.ts(2,")), "accepted: {line}\n{words}");
    }
    assert!(!words.contains("right.ts(") && !words.contains(".d.ts("), "{words}");
}
