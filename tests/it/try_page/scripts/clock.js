// Capture times of packets of 20 ms, as how far they are from the truth: over a page that was held up, and behind a clock
// of sound that has stood still.
(async () => {
  const { CaptureClock } = await import("/try/clock.js");
  const clock = new CaptureClock(20);
  let [soundMs, trueMs] = [0, 1000];
  const packet = (journeyMs) => {
    const captured = clock.capturedMs(soundMs, trueMs + 20 + journeyMs);
    const error = Math.round(captured - trueMs);
    soundMs += 20;
    trueMs += 20;
    return error;
  };
  const packets = (count, journeyMs) => Array.from({ length: count }, (_, at) => packet(journeyMs(at)));
  const even = packets(100, (at) => at % 7);
  const heldUp = packets(150, (at) => 3000 - at * 20);
  const afterwards = packets(100, () => 0);
  trueMs += 3000;
  const stood = packets(100, (at) => at % 7);
  const wrong = stood.filter((error) => Math.abs(error) > 10);
  return {
    even: Math.max(...even.map(Math.abs)),
    heldUp: Math.max(...heldUp.map(Math.abs)),
    afterwards: Math.max(...afterwards.map(Math.abs)),
    wrong: wrong.length,
    last: stood.at(-1),
  };
})();
