// What becomes of a list that a screen reader reads, of the focus, and of a wearer who reads further up.
(async () => {
  const { Conversation } = await import("/try/conversation.js");
  const log = document.createElement("div");
  log.className = "log";
  log.style.cssText = "position: fixed; top: 0; height: 120px; overflow-y: auto";
  const list = document.createElement("ol");
  log.append(list);
  document.body.append(log);
  const conversation = new Conversation(list, () => {});
  for (let at = 0; at < 20; at += 1) {
    conversation.asked(`request ${at}`, "typed");
  }
  const isAtEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 2;
  const followed = isAtEnd();
  const say = (clause, text) => conversation.said({ turn: 1, speech: 1, clause, text });
  say(0, "First.");
  conversation.waited(1, "answered in 0.6 s", ["display 600 ms"]);
  const summary = list.querySelector("summary");
  summary.focus();
  const watch = new MutationObserver(() => {});
  watch.observe(list, { subtree: true, childList: true });
  say(1, "Second.");
  const changes = watch.takeRecords().filter(({ target }) => !target.closest("[aria-live=off]"));
  const texts = (nodes) => [...nodes].map(({ textContent }) => textContent);
  const added = changes.flatMap(({ addedNodes }) => texts(addedNodes));
  const removed = changes.flatMap(({ removedNodes }) => texts(removedNodes));
  conversation.waited(1, "answered in 0.7 s", ["display 700 ms"]);
  const hasFocus = document.activeElement === summary && summary.textContent.endsWith("0.7 s");
  conversation.stopped(1, 0, true);
  const unheard = texts(list.querySelectorAll(".unheard"));
  // What is shown beside the list makes it lower, as a question does.
  log.style.height = "60px";
  say(2, "Third.");
  const follows = isAtEnd();
  log.scrollTop = 0;
  say(3, "Fourth.");
  const stays = log.scrollTop === 0;
  log.remove();
  return { followed, added, removed, hasFocus, unheard, follows, stays, text: list.lastElementChild.querySelector("p").textContent };
})();
