"use strict";

// Whom the page asks: the server that sent it. The pages of the documentation have recorded answers in its place.
const source = (() => {
  async function ask(path, state) {
    const sent = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(state) };
    const reply = await fetch(path, sent);
    if (!reply.ok) throw new Error((await reply.json()).error);
    return reply;
  }

  return {
    isRecorded: false,
    start: async () => (await fetch("start.json")).json(),
    answer: async (state) => (await ask("answer", state)).json(),
    queue: async (asked) => (await ask("queue", asked)).json(),
    topology: async (state) => (await ask("topology.json", state)).text(),
  };
})();
