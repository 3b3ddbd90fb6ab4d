// Who this browser is: an Ed25519 key that no script can read, and the gateway's key once pinned.
// PROTOCOL.md section 6 has the messages that are signed.

import { joined, sha256 } from "./bytes.js";

const DATABASE = "lorgnette-try";
const STORE = "identity";
/** Plain ws:// on loopback has no TLS to bind to. */
const NO_BINDING = new Uint8Array(32);

/** Loads this browser's identity, or makes it. */
export async function loadIdentity() {
  if (!globalThis.isSecureContext || !crypto.subtle) {
    throw new Error("Open this page as http://localhost or http://127.0.0.1: keys need that.");
  }
  const database = await open();
  let pair = await request(store(database, "readonly").get("device"));
  if (!pair) {
    pair = await makeKey();
    await request(store(database, "readwrite").put(pair, "device"));
  }
  const publicKey = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
  const pinned = await request(store(database, "readonly").get("gateway"));
  return new Identity(database, pair.privateKey, publicKey, pinned ?? null);
}

/** Forgets key and pin: the next start pairs anew. */
export async function forgetIdentity() {
  const database = await open();
  await request(store(database, "readwrite").clear());
  database.close();
}

class Identity {
  #database;
  #privateKey;

  constructor(database, privateKey, publicKey, pinnedKey) {
    this.#database = database;
    this.#privateKey = privateKey;
    this.publicKey = publicKey;
    /** The gateway's key; null before pairing. */
    this.pinnedKey = pinnedKey;
  }

  async pin(gatewayKey) {
    await request(store(this.#database, "readwrite").put(gatewayKey, "gateway"));
    this.pinnedKey = gatewayKey;
  }

  async sign(message) {
    return new Uint8Array(await crypto.subtle.sign("Ed25519", this.#privateKey, message));
  }
}

/** Everything that one handshake is made of. */
export class Handshake {
  constructor(deviceKey, deviceNonce, commitment) {
    this.deviceKey = deviceKey;
    this.deviceNonce = deviceNonce;
    this.commitment = commitment;
  }

  static async begin(deviceKey) {
    const nonce = crypto.getRandomValues(new Uint8Array(32));
    return new Handshake(deviceKey, nonce, await sha256(nonce));
  }

  /** Takes the challenge; whether the gateway has the key that it names. */
  async check(gatewayKey, gatewayNonce, signature) {
    this.gatewayKey = gatewayKey;
    this.gatewayNonce = gatewayNonce;
    const message = joined(
      "lorgnette-auth-1 gateway",
      this.deviceKey,
      gatewayKey,
      this.commitment,
      gatewayNonce,
      NO_BINDING,
    );
    const key = await crypto.subtle.importKey("raw", gatewayKey, "Ed25519", false, ["verify"]);
    return crypto.subtle.verify("Ed25519", key, signature, message);
  }

  deviceMessage() {
    return joined(
      "lorgnette-auth-1 device",
      this.deviceKey,
      this.gatewayKey,
      this.commitment,
      this.gatewayNonce,
      this.deviceNonce,
      NO_BINDING,
    );
  }

  /** The six digits that both sides compute. */
  async pairingCode() {
    const digest = await sha256(
      joined(
        "lorgnette-pairing-1",
        this.deviceKey,
        this.gatewayKey,
        this.gatewayNonce,
        this.deviceNonce,
        NO_BINDING,
      ),
    );
    const number = new DataView(digest.buffer).getUint32(0, false) % 1_000_000;
    return String(number).padStart(6, "0");
  }
}

async function makeKey() {
  try {
    return await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
  } catch {
    throw new Error("This browser has no Ed25519 keys: use a newer Chromium, Firefox or Safari.");
  }
}

function open() {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  return request(opening);
}

function store(database, mode) {
  return database.transaction(STORE, mode).objectStore(STORE);
}

function request(pending) {
  return new Promise((resolve, reject) => {
    pending.onsuccess = () => resolve(pending.result);
    pending.onerror = () => reject(new Error(`the browser's database failed: ${pending.error}`));
  });
}
