// A gateway inside the page, in place of its WebSocket: it refuses, is late and is gone as a test wishes. It runs before
// the page's own scripts; the page finds nothing else changed.
globalThis.gateway = (() => {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const base64 = (data) => btoa(String.fromCharCode(...data));
  const keys = crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]);
  const gateway = {
    /** What the page has sent, with `atMs`, when it came. */
    frames: [],
    /** Whether new connections are closed at once, and how many were. */
    isDown: false,
    missed: 0,
    /** The `reject` that answers the next handshakes; null: they are welcomed. */
    reject: null,
    heartbeatMs: 5000,
    send: (kind, fields) => live.control(kind, fields),
    cut: () => live.end(1006),
    of: (...kinds) => gateway.frames.filter(({ kind }) => kinds.includes(kind)),
    /** Waits for a condition, which is looked at with each frame, each change of the page, and when somebody `looks`. */
    until: (condition) =>
      new Promise((done) => {
        waits.push({ condition, done });
        gateway.look();
      }),
    look() {
      for (const wait of waits.filter(({ condition }) => condition())) {
        waits.splice(waits.indexOf(wait), 1);
        wait.done();
      }
    },
    click: (id) => document.getElementById(id).click(),
    type(text) {
      document.getElementById("words").value = text;
      document.getElementById("typed").requestSubmit();
    },
    notes: () => [...document.querySelectorAll("#transcript .note-entry")].map(({ textContent }) => textContent),
    isOpen: () => document.getElementById("status").dataset.state === "open",
  };
  const waits = [];
  /** The connection that has the session, and what both sides have of it. */
  let live = null;
  let session = null;
  let isPaired = false;

  globalThis.WebSocket = class Socket {
    static OPEN = 1;
    readyState = 0;
    bufferedAmount = 0;

    constructor() {
      queueMicrotask(() => (gateway.isDown ? this.#miss() : this.#open()));
    }

    send(text) {
      const frame = { ...JSON.parse(text), atMs: performance.now() };
      const frameClass = (frame.kind_number >> 12) & 7;
      if (session && this === live && frameClass > 0) {
        session.received[frameClass] = Math.max(session.received[frameClass], frame.sequence);
      }
      gateway.frames.push(frame);
      this.#answer(frame).then(gateway.look);
    }

    close() {
      this.readyState = 3;
    }

    /** Closes it from this side. */
    end(code) {
      this.readyState = 3;
      this.onclose?.({ code, reason: "" });
    }

    control(kind, fields) {
      session.sent += 1;
      this.#push(kind, fields, session.sent, 0x9000);
    }

    #miss() {
      this.end(1006);
      gateway.missed += 1;
      gateway.look();
    }

    #open() {
      this.readyState = 1;
      this.onopen?.();
    }

    #push(kind, fields, sequence = 0, number = 0x8000) {
      const frame = { kind, kind_number: number, sequence, turn: 0, time_us: 1, ...fields };
      queueMicrotask(() => this.onmessage?.({ data: JSON.stringify(frame) }));
    }

    async #answer(frame) {
      if (frame.kind === "heartbeat") {
        this.#push("heartbeat", { echo_us: 0, held_us: 0 });
      } else if (frame.kind === "hello") {
        this.hello = frame;
        this.#push("challenge", await challenge(frame));
      } else if (frame.kind === "proof" && gateway.reject) {
        this.#push("reject", { message: "not now", ...gateway.reject });
      } else if (frame.kind === "proof") {
        this.#welcome();
      }
    }

    #welcome() {
      if (!isPaired) {
        isPaired = true;
        this.#push("pairing_code", {});
      }
      const isResumed = session !== null && this.hello.resume !== null;
      session = isResumed ? session : { number: (session?.number ?? 0) + 1, sent: 0, received: [0, 0, 0] };
      const [, control, audio] = session.received;
      live = this;
      this.#push("welcome", {
        session: session.number,
        gateway_name: "test",
        user_name: "wearer",
        listening: "idle",
        heartbeat_ms: gateway.heartbeatMs,
        resume_token: "dG9rZW4=",
        resume_ms: 60_000,
        resumed: isResumed ? { control_received: control, audio_received: audio } : null,
        continued: null,
      });
    }
  };

  async function challenge({ device_key: deviceKey, nonce_commitment: commitment }) {
    const { privateKey, publicKey } = await keys;
    const gatewayKey = new Uint8Array(await crypto.subtle.exportKey("raw", publicKey));
    const nonce = crypto.getRandomValues(new Uint8Array(32));
    const title = new TextEncoder().encode("lorgnette-auth-1 gateway");
    const signed = [title, bytes(deviceKey), gatewayKey, bytes(commitment), nonce, new Uint8Array(32)];
    const message = new Uint8Array(signed.flatMap((part) => [...part]));
    const signature = new Uint8Array(await crypto.subtle.sign("Ed25519", privateKey, message));
    return { nonce: base64(nonce), gateway_key: base64(gatewayKey), signature: base64(signature) };
  }

  new MutationObserver(gateway.look).observe(document, {
    subtree: true,
    childList: true,
    attributes: true,
    characterData: true,
  });
  return gateway;
})();
