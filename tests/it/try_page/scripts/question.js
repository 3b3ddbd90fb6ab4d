// A yes that comes too late, and one that counts.
(async () => {
  const { click, notes, of, send, until } = gateway;
  const before = notes().length;
  const card = document.getElementById("approval");
  for (const [approval, choice] of [[1, "expired"], [2, "yes"]]) {
    send("approval_request", { approval, title: `Question ${approval}?`, message: "", expires_ms: 30_000 });
    await until(() => !card.hidden && card.dataset.ready === "true");
    click("yes");
    await until(() => of("approval_answer").length === approval);
    const shown = notes().length;
    send("approval_settled", { approval, choice });
    await until(() => notes().length > shown);
  }
  return notes().slice(before);
})();
