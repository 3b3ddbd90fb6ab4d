#!/usr/bin/env python3
"""Glasses in Python, written from PROTOCOL.md alone: says a WAV to a gateway and reports what came back.

    python3 client.py ws://127.0.0.1:7777/glasses --key device.key --wav question.wav --heard answer.wav

Prints one line of JSON. Exits with 0 if a final transcript, a display and a whole speech came, else with 1.
An unknown device prints its pairing code on standard error and waits for the operator.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import pathlib
import sys
import time
import wave
from array import array

import websockets
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import opus
import protocol

BINARY, JSON = "lorgnette.v1", "lorgnette.v1+json"
START_US, PLAYED_US = 60_000, 200_000  # section 8: buffer before playing, longest pause between two `played`


def public_bytes(key):
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


class Handshake:
    """Section 6."""

    def __init__(self, device_key, gateway_key, device_nonce, gateway_nonce, binding=bytes(32)):
        self.keys, self.nonces, self.binding = device_key + gateway_key, (gateway_nonce, device_nonce), binding
        self.commitment = hashlib.sha256(device_nonce).digest()

    def gateway_message(self):
        return b"lorgnette-auth-1 gateway" + self.keys + self.commitment + self.nonces[0] + self.binding

    def device_message(self):
        return b"lorgnette-auth-1 device" + self.keys + self.commitment + b"".join(self.nonces) + self.binding

    def pairing_code(self):
        digest = hashlib.sha256(b"lorgnette-pairing-1" + self.keys + b"".join(self.nonces) + self.binding).digest()
        return f"{int.from_bytes(digest[:4], 'big') % 1_000_000:06}"

    def invitation(self, code):
        return hashlib.sha256(b"lorgnette-invitation-1" + code + self.keys + b"".join(self.nonces) + self.binding).digest()


class Speech:
    """Section 8, down: what came of one speech, and how much of it the wearer has heard by now."""

    def __init__(self, frame):
        self.turn, self.codec, self.rate_hz = frame["turn"], frame["codec"], frame["rate_hz"]
        self.decoder = opus.Decoder(self.rate_hz) if self.codec == "opus" else None
        self.pcm, self.clauses, self.started_us, self.state = b"", [], None, None
        self.ended = self.hushed = False

    def push(self, chunk, now_us):
        if self.hushed:
            return
        if chunk["position_us"] != self.length_us():
            raise protocol.ProtocolError(f"chunk at {chunk['position_us']} µs, {self.length_us()} µs came before")
        self.clauses.append((chunk["position_us"], chunk["clause"]))
        self.pcm += self.decoder.decode(chunk["payload"]) if self.decoder else chunk["payload"]
        if self.started_us is None and self.length_us() >= START_US:
            self.started_us = now_us

    def length_us(self):
        return len(self.pcm) // 2 * 1_000_000 // self.rate_hz

    def hush(self, now_us):
        self.ended = self.hushed = True
        heard_us = 0 if self.started_us is None else now_us - self.started_us
        self.pcm = self.pcm[: heard_us * self.rate_hz // 1_000_000 * 2]

    def played(self, now_us):
        """Fields of the `played` that is true now; none before it starts and after it is over."""
        if self.ended and self.started_us is None:
            self.started_us = now_us
        if self.started_us is None or self.state in ("finished", "stopped"):
            return None
        if (behind_us := now_us - self.started_us - self.length_us()) > 0 and not self.ended:
            self.started_us += behind_us  # starved: what comes later is heard later
        played_us = min(now_us - self.started_us, self.length_us())
        done = self.ended and played_us == self.length_us()
        over = "stopped" if self.hushed else "finished"
        self.state = over if done else "starved" if behind_us > 0 else "playing"
        clause = max((clause for at_us, clause in self.clauses if at_us <= played_us), default=0)
        return {"clause": clause, "played_us": played_us, "state": self.state}


class Glasses:
    """One session."""

    def __init__(self, socket, options, key):
        self.socket, self.options, self.key = socket, options, key
        self.json = socket.subprotocol == JSON
        self.start = time.monotonic_ns()
        self.sequences, self.received = {"control": 0, "audio": 0}, {"control": 0, "audio": 0}
        self.turn, self.peer, self.speeches, self.seen = 0, (0, 0), {}, {"transcript": [], "display": []}
        self.changed, self.spoke_us, self.times_ms, self.played_count = asyncio.Event(), None, {}, 0

    def now_us(self):
        return (time.monotonic_ns() - self.start) // 1000

    async def send(self, kind, time_us=None, turn=None, **fields):
        number = protocol.NUMBERS[kind, False]
        sequence = 0
        if (sort := protocol.kind_class(number)) != "link":
            self.sequences[sort] += 1
            sequence = self.sequences[sort]
        stamp = {"sequence": sequence, "turn": self.turn if turn is None else turn}
        stamp["time_us"] = self.now_us() if time_us is None else time_us
        frame = {"kind": kind, "kind_number": number} | stamp | fields
        await self.socket.send(json.dumps(protocol.to_json(frame)) if self.json else protocol.encode(frame))

    async def receive(self):
        message = await self.socket.recv()
        if isinstance(message, str) != self.json:
            raise protocol.ProtocolError("a message in the other form")
        frame = protocol.from_json(json.loads(message)) if self.json else protocol.decode(message)
        if (sort := protocol.kind_class(frame["kind_number"])) in self.received:
            if frame["sequence"] != self.received[sort] + 1:
                raise protocol.ProtocolError(f"{sort} {frame['sequence']} after {self.received[sort]}")
            self.received[sort] = frame["sequence"]
            self.turn = max(self.turn, frame["turn"])
        return frame

    async def expect(self, *kinds):
        frame = await self.receive()
        while frame.get("kind") == "heartbeat" and "heartbeat" not in kinds:
            frame = await self.receive()
        if frame.get("kind") not in kinds:
            said = {name: frame[name] for name in ("code", "reason", "message") if name in frame}
            raise protocol.ProtocolError(f"{frame.get('kind')} {said} where {' or '.join(kinds)} is due")
        return frame

    async def open(self, pin):
        nonce = os.urandom(32)
        screen = {"kind": "text", "width_px": 0, "height_px": 0, "columns": 40, "rows": 8, "colour_bits": 1}
        can = {"codecs_up": ["pcm16", "opus"], "codecs_down": ["pcm16", "opus"], "audio_up_hz": 16_000}
        can |= {"audio_down_hz": 24_000, "display": screen, "speakers": 1, "buttons": ["main"], "sensors": []}
        who = {"device_id": "python-1", "model": "Python client", "firmware": "1", "language": "en"}
        can |= {"echo_cancelled": True, "tools": 0}
        keys = {"device_key": public_bytes(self.key), "nonce_commitment": hashlib.sha256(nonce).digest()}
        await self.send("hello", **keys, **who, capabilities=can, resume=None)
        challenge = await self.expect("challenge")
        shared = Handshake(keys["device_key"], challenge["gateway_key"], nonce, challenge["nonce"])
        known = pin.read_bytes() if pin.exists() else None
        if known not in (None, challenge["gateway_key"]):
            raise protocol.ProtocolError(f"the gateway has another key than the one in {pin}")
        Ed25519PublicKey.from_public_bytes(challenge["gateway_key"]).verify(
            challenge["signature"], shared.gateway_message()
        )
        await self.send("proof", nonce=nonce, signature=self.key.sign(shared.device_message()))
        answer = await self.expect("welcome", "pairing_code")
        if answer["kind"] == "pairing_code":
            print(f"pairing code {shared.pairing_code()}", file=sys.stderr, flush=True)
            while answer["kind"] == "pairing_code":
                answer = await self.expect("welcome", "pairing_code")
            pin.write_bytes(challenge["gateway_key"])
        elif known is None:
            raise protocol.ProtocolError("welcome without pairing, but no gateway key is pinned")
        return answer

    async def speak(self, pcm, rate_hz, wanted):
        """Streams 16-bit samples in real time, then a second of silence, in the format that the gateway wants."""
        samples = array("h", pcm)
        count = len(samples) * wanted["rate_hz"] // rate_hz
        samples = array("h", (samples[i * rate_hz // wanted["rate_hz"]] for i in range(count)))
        step = wanted["rate_hz"] * wanted["frame_ms"] // 1000
        samples.extend([0] * (wanted["rate_hz"] * self.options.silence_ms // 1000 - count % step + step))
        encoder = opus.Encoder(wanted["rate_hz"]) if wanted["codec"] == "opus" else None
        begin, duration_us = self.now_us(), wanted["frame_ms"] * 1000
        for index in range(len(samples) // step):
            block = samples[index * step : (index + 1) * step].tobytes()
            captured_us = begin + index * duration_us
            await asyncio.sleep(max(0, (captured_us + duration_us - self.now_us()) / 1e6))
            fields = {"codec": wanted["codec"], "rate_hz": wanted["rate_hz"], "duration_us": duration_us}
            await self.send("audio", captured_us, **fields, payload=encoder.encode(block) if encoder else block)
            if self.spoke_us is None and index * step >= count:
                self.spoke_us = self.now_us()
        await self.send("audio_end", last_audio_sequence=self.sequences["audio"], reason="released")

    async def listen(self):
        while True:
            frame = await self.receive()
            kind = frame.get("kind")
            first = {"transcript": frame.get("is_final"), "display": True, "speech_chunk": True}.get(kind)
            if first and self.spoke_us is not None:
                self.times_ms.setdefault(kind, (self.now_us() - self.spoke_us) // 1000)
            if kind in self.seen:
                self.seen[kind].append(frame)
            elif kind == "heartbeat":
                self.peer = (frame["time_us"], self.now_us())
            elif kind == "speech_start":
                self.speeches[frame["speech"]] = Speech(frame)
            elif kind == "speech_chunk":
                self.speeches[frame["speech"]].push(frame, self.now_us())
            elif kind == "speech_end":
                self.speeches[frame["speech"]].ended = True
            elif kind == "hush":
                for number, speech in self.speeches.items():
                    if frame["speech"] in (0, number):
                        speech.hush(self.now_us())
            elif kind == "goodbye":
                raise protocol.ProtocolError(f"goodbye {frame['reason']} {frame['message']}")
            self.changed.set()

    async def tick(self, heartbeat_ms):
        """What is sent by the clock: `played`, `ack`, `heartbeat`."""
        acked, beat_us, told = dict(self.received), 0, {}
        while True:
            now = self.now_us()
            for number, speech in self.speeches.items():
                before = speech.state
                if (played := speech.played(now)) is None:
                    continue
                at, clause = told.get(number, (-PLAYED_US, None))
                if now - at >= PLAYED_US * 3 // 4 or played["state"] != before or played["clause"] != clause:
                    told[number] = (now, played["clause"])
                    self.played_count += 1
                    await self.send("played", now, speech.turn, speech=number, **played)
                    self.changed.set()
            if now - beat_us >= heartbeat_ms * 1000:
                beat_us = now
                await self.send("heartbeat", echo_us=self.peer[0], held_us=now - self.peer[1] if self.peer[0] else 0)
            if self.received != acked:
                acked = dict(self.received)
                await self.send("ack", **acked)
            await asyncio.sleep(0.02)

    def complete(self):
        final = any(frame["is_final"] for frame in self.seen["transcript"])
        states = [speech.state for speech in self.speeches.values()]
        over = all(state in ("finished", "stopped") for state in states)
        return final and bool(self.seen["display"]) and "finished" in states and over

    def summary(self):
        finals = [frame["text"] for frame in self.seen["transcript"] if frame["is_final"]]
        shown = [f"{frame['content']['first']} {frame['content']['second']}".strip() for frame in self.seen["display"]]
        heard_s = sum(speech.length_us() for speech in self.speeches.values()) / 1e6
        counts = {"partials": len(self.seen["transcript"]) - len(finals), "played_sent": self.played_count}
        return {"transcripts": finals, "displays": shown, "heard_s": round(heard_s, 3), **counts, "ms_after_end": self.times_ms}


async def run(options):
    key_file = pathlib.Path(options.key)
    if not key_file.exists():
        key_file.touch(mode=0o600)
        key_file.write_bytes(os.urandom(32))
    key = Ed25519PrivateKey.from_private_bytes(key_file.read_bytes())
    with wave.open(options.wav) as file:
        if (file.getnchannels(), file.getsampwidth()) != (1, 2):
            raise SystemExit(f"{options.wav}: one channel of 16 bits is needed")
        pcm, rate_hz = file.readframes(file.getnframes()), file.getframerate()
    form = [JSON if options.json else BINARY]
    async with websockets.connect(options.url, subprotocols=form, compression=None) as socket:
        if socket.subprotocol is None:
            raise protocol.ProtocolError("the gateway took no sub-protocol")
        glasses = Glasses(socket, options, key)
        welcome = await glasses.open(key_file.with_suffix(".gateway"))
        result = {"ok": False}
        work = [glasses.listen(), glasses.tick(welcome["heartbeat_ms"]), glasses.speak(pcm, rate_hz, welcome["audio_up"])]
        tasks = [asyncio.create_task(task) for task in work]
        try:
            async with asyncio.timeout(options.timeout):
                while not (tasks[2].done() and glasses.complete()):
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(glasses.changed.wait(), 0.1)
                    glasses.changed.clear()
                    for task in tasks:
                        if task.done():
                            task.result()  # raises what went wrong in it
            result = {"ok": True}
            await glasses.send("goodbye", reason="power_off", message="", retry_after_ms=0)
        except (TimeoutError, protocol.ProtocolError, websockets.ConnectionClosed, KeyError, ValueError) as error:
            result["error"] = f"{type(error).__name__}: {error}" if str(error) else f"nothing more for {options.timeout} s"
        finally:
            for task in tasks:
                task.cancel()
                with contextlib.suppress(BaseException):
                    await task
    if options.heard and (speeches := list(glasses.speeches.values())):
        with wave.open(options.heard, "wb") as file:
            file.setparams((1, 2, speeches[0].rate_hz, 0, "NONE", ""))
            file.writeframes(b"".join(speech.pcm for speech in speeches))
    return result | glasses.summary()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="such as ws://127.0.0.1:7777/glasses")
    parser.add_argument("--key", required=True, help="file of the device key, made if it is not there; the pinned key is beside it")
    parser.add_argument("--wav", required=True, help="what to say: one channel of 16 bits")
    parser.add_argument("--heard", help="WAV file for what was heard")
    parser.add_argument("--json", action="store_true", help="speak the JSON form")
    parser.add_argument("--silence-ms", type=int, default=1500, help="silence streamed behind the WAV")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for the whole turn")
    options = parser.parse_args()
    try:
        result = asyncio.run(run(options))
    except (OSError, protocol.ProtocolError, InvalidSignature, websockets.WebSocketException) as error:
        result = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    print(json.dumps(result, ensure_ascii=False))
    sys.exit(0 if result["ok"] else 1)


if __name__ == "__main__":
    main()
