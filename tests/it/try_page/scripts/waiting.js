// Five requests that are typed while there is no gateway, and a wearer who gives up.
(async () => {
  const { click, isOpen, notes, of, type, until } = gateway;
  click("leave");
  gateway.isDown = true;
  for (const number of ["one", "two", "three", "four", "five"]) {
    type(number);
  }
  const refused = notes();
  click("leave");
  const dropped = notes().slice(refused.length);
  // Where the first attempt fails, others follow.
  const before = { sent: of("text_input").length, missed: gateway.missed };
  click("talk");
  await until(() => gateway.missed > before.missed);
  gateway.isDown = false;
  await until(isOpen);
  return { refused, dropped, sent: of("text_input").length - before.sent };
})();
