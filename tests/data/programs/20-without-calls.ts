// what: what needs no tool: primes by a sieve
// result: [25, 97]
// prints: ["up to 100"]
const up: number = 100;
console.log('up to', up);
const sieve = Array.from({ length: up + 1 }, (_, n) => n > 1);
for (let n = 2; n * n <= up; n += 1) {
  if (sieve[n]) for (let m = n * n; m <= up; m += n) sieve[m] = false;
}
const primes = sieve.flatMap((is, n) => (is ? [n] : []));
export default [primes.length, primes.at(-1)];
