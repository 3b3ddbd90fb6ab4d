// A worker that says when to look what is due.

const TICK_MS = 250;

setInterval(() => postMessage(null), TICK_MS);
