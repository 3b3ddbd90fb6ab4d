// The timers of a hidden page stand still for a minute: heartbeats go on.
(async () => {
  const { click, isOpen, of, type, until } = gateway;
  click("leave");
  const own = globalThis.setInterval;
  globalThis.setInterval = () => 0;
  gateway.heartbeatMs = 1000;
  const before = of("heartbeat").length;
  type("hello");
  await until(() => of("heartbeat").length > before + 1);
  globalThis.setInterval = own;
  return isOpen();
})();
