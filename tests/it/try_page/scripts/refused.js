// A session whose gateway refuses to go on with it, at first for a while, and then because the browser is not paired.
(async () => {
  const { isOpen, of, type, until } = gateway;
  const session = () => document.getElementById("glasses").dataset.session;
  const refuse = async (code, retryAfterMs, meanwhile) => {
    const [sessionBefore, hellosBefore, proofsBefore] = [session(), of("hello").length, of("proof").length];
    gateway.reject = { code, retry_after_ms: retryAfterMs };
    gateway.cut();
    await until(() => of("proof").length > proofsBefore);
    gateway.reject = null;
    meanwhile();
    await until(() => of("proof").length > proofsBefore + 1 && isOpen());
    const [refused, next] = of("hello").slice(hellosBefore);
    const waitedMs = next.atMs - refused.atMs;
    return { waitedMs, token: next.resume?.token ?? null, goesOn: session() === sessionBefore };
  };
  type("hello");
  await until(isOpen);
  const before = of("text_input").length;
  const later = await refuse("shutting_down", 1500, () => type("set a timer"));
  await until(() => of("text_input").length > before);
  const over = await refuse("not_paired", 0, () => {});
  return { later, over, typed: of("text_input").slice(before).map(({ text }) => text) };
})();
