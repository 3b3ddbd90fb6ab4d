// Bytes as the protocol's JSON form and its handshake need them.

/** Base64 (RFC 4648 section 4, padded) of a Uint8Array of at most some kilobytes. */
export function toBase64(bytes) {
  return btoa(String.fromCharCode(...bytes));
}

/** The bytes of a base64 text. */
export function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** One Uint8Array of several parts; texts are ASCII. */
export function joined(...parts) {
  const arrays = parts.map((part) =>
    typeof part === "string" ? new TextEncoder().encode(part) : part,
  );
  const whole = new Uint8Array(arrays.reduce((sum, array) => sum + array.length, 0));
  let at = 0;
  for (const array of arrays) {
    whole.set(array, at);
    at += array.length;
  }
  return whole;
}

export async function sha256(bytes) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

export function toHex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function sameBytes(one, other) {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

/** PCM16 little endian to samples from -1 to 1. */
export function toSamples(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const samples = new Float32Array(bytes.length >> 1);
  for (let index = 0; index < samples.length; index += 1) {
    samples[index] = view.getInt16(index * 2, true) / 32768;
  }
  return samples;
}
