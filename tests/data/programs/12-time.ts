// what: a time in a zone, over the end of summer time
// result: ["2026-10-24 12:00", "2026-10-25 12:00", 25]
import { time } from '@lorgnette/std';
const zone = await time.zone('Europe/Zurich');
const saturday = time.parse('2026-10-24T12:00:00+02:00');
const sunday = time.add(saturday, { days: 1 }, zone);
const shown = [saturday, sunday].map((at) => time.format(at, 'YYYY-MM-DD HH:mm', zone));
export default [...shown, (sunday - saturday) / 3_600_000];
