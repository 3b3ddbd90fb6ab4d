// From the first hello to the welcome: handshake, pairing, and what the device says of itself.

import { fromBase64, sameBytes, toBase64, toHex } from "./bytes.js";
import { COLUMNS, HEIGHT_PX, ROWS, WIDTH_PX } from "./display.js";
import { Handshake } from "./identity.js";
import { Link } from "./link.js";
import { OFFERS } from "./tools.js";

export const MICROPHONE_HZ = 16000;
export const SPEAKER_HZ = 24000;

/** Longest handshake, pairing excepted (PROTOCOL.md section 6), in milliseconds. */
const HANDSHAKE_MS_MAX = 10_000;

/** There is no connection, for now. */
export class Unreached extends Error {}
/** The gateway is not the one that this browser was paired with. */
export class WrongGateway extends Error {}
/** The gateway refused; `code` is its reason, `retryAfterMs` when to ask again at the earliest. */
export class Refused extends Error {
  constructor(code, message, retryAfterMs) {
    super(message);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Connects for this session; answers { link, welcome }. `hasMicrophone`: whether the page has one. `on.pairing(code)` tells
 * the code where the operator has to type it, and "" when that was done; `on.frame(frame)` gets every frame behind the
 * welcome, `on.close(code, reason, isOver)` the end.
 */
export function connect(identity, session, hasMicrophone, on) {
  return new Promise((resolve, reject) => {
    const admission = new Admission(identity, session.ask(hasMicrophone), on, resolve, reject);
    // Frames are taken one after the other, though the handshake waits for the browser's keys.
    let before = admission.begin();
    const link = new Link(
      `ws://${location.host}/glasses`,
      session,
      (frame) => {
        if (admission.done) {
          admission.on.frame(frame);
          return;
        }
        before = before
          .then(() => (admission.done ? admission.on.frame(frame) : admission.handle(frame)))
          .catch((error) => admission.fail(error));
      },
      (code, reason, isOver) => {
        if (admission.done) {
          admission.on.close(code, reason, isOver);
        } else {
          admission.fail(new Unreached(`the gateway closed the connection (${`${code} ${reason}`.trim()})`));
        }
      },
    );
    admission.link = link;
    before = before.then(() => link.opened).then(() => admission.hello());
    before = before.catch((error) => admission.fail(error));
    // From pairing on there are heartbeats.
    setTimeout(() => admission.pairing || admission.fail(new Unreached("the gateway does not answer")), HANDSHAKE_MS_MAX);
  });
}

class Admission {
  constructor(identity, asked, on, resolve, reject) {
    this.identity = identity;
    this.asked = asked;
    this.on = on;
    this.resolve = resolve;
    this.reject = reject;
    this.done = false;
    this.pairing = false;
    this.showsCode = false;
  }

  async begin() {
    this.handshake = await Handshake.begin(this.identity.publicKey);
    // A browser that was paired needs no window.
    this.hasWindow = !this.identity.pinnedKey && (await openWindow(this.identity.publicKey));
  }

  hello() {
    const hello = {
      device_key: toBase64(this.identity.publicKey),
      nonce_commitment: toBase64(this.handshake.commitment),
      device_id: "browser",
      model: "Lorgnette page",
      firmware: "1",
      language: navigator.language ?? "",
      capabilities: capabilities(this.asked.hasMicrophone),
      resume: this.asked.resume,
    };
    this.link.send("hello", hello, 0);
  }

  async handle(frame) {
    switch (frame.kind) {
      case "challenge":
        await this.challenged(frame);
        break;
      case "pairing_code":
        await this.pair();
        break;
      case "welcome":
        await this.welcomed(frame);
        break;
      case "reject":
        throw new Refused(frame.code, frame.message, frame.retry_after_ms);
      default:
        throw new Error(`${frame.kind} does not belong in the handshake`);
    }
  }

  async challenged(frame) {
    const gatewayKey = fromBase64(frame.gateway_key);
    const signature = fromBase64(frame.signature);
    if (!(await this.handshake.check(gatewayKey, fromBase64(frame.nonce), signature))) {
      throw new WrongGateway("the gateway's signature is wrong");
    }
    const { pinnedKey } = this.identity;
    if (pinnedKey && !sameBytes(pinnedKey, gatewayKey)) {
      throw new WrongGateway("this is not the gateway that this browser was paired with");
    }
    const proof = {
      nonce: toBase64(this.handshake.deviceNonce),
      signature: toBase64(await this.identity.sign(this.handshake.deviceMessage())),
    };
    this.link.send("proof", proof, 0);
  }

  async pair() {
    this.pairing = true;
    this.link.keepAlive();
    if (!this.hasWindow) {
      this.showsCode = true;
      this.on.pairing(await this.handshake.pairingCode());
    }
  }

  async welcomed(welcome) {
    if (!this.identity.pinnedKey) {
      if (!this.pairing) {
        throw new WrongGateway("a welcome without pairing");
      }
      await this.identity.pin(this.handshake.gatewayKey);
    }
    this.done = true;
    if (this.showsCode) {
      this.on.pairing("");
    }
    this.link.keepAlive(welcome.heartbeat_ms);
    this.resolve({ link: this.link, welcome });
  }

  fail(error) {
    if (this.done) {
      return;
    }
    this.done = true;
    // What the link still says is of no session.
    this.on = { frame() {}, close() {}, pairing() {} };
    this.link?.drop();
    this.reject(error);
  }
}

/**
 * Asks for pairing with the token of the link that the gateway printed, if the page was opened with it; whether the
 * gateway now lets this key in.
 */
async function openWindow(publicKey) {
  const token = /^#([0-9a-f]{32})$/.exec(location.hash)?.[1];
  if (!token) {
    return false;
  }
  const reply = await fetch("/try/pair", {
    method: "POST",
    headers: { "x-lorgnette-try": token },
    body: toHex(publicKey),
  });
  // It works once: it belongs neither into the address of a reload nor into the history.
  history.replaceState(null, "", location.pathname + location.search);
  return reply.ok;
}

function capabilities(hasMicrophone) {
  return {
    codecs_up: hasMicrophone ? ["pcm16"] : [],
    codecs_down: ["pcm16"],
    audio_up_hz: hasMicrophone ? MICROPHONE_HZ : 0,
    audio_down_hz: SPEAKER_HZ,
    display: {
      kind: "pixels",
      width_px: WIDTH_PX,
      height_px: HEIGHT_PX,
      columns: COLUMNS,
      rows: ROWS,
      colour_bits: 8,
      captions: true,
    },
    speakers: 2,
    buttons: ["main", "mute"],
    sensors: ["head_position", "touch"],
    echo_cancelled: true,
    tools: OFFERS.length,
  };
}
