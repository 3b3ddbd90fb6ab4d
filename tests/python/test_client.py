"""The client against a small gateway in Python: one turn in both forms, and gateways that it must not trust."""

import argparse
import asyncio
import hashlib
import json
import logging
import math
import os
import pathlib
import struct
import tempfile
import unittest
import wave

import websockets
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

import client
import opus
import protocol

logging.getLogger("websockets").setLevel(logging.CRITICAL)  # connections are meant to break here
RATE_HZ, PACKET_MS, SPEECH_PACKETS = 16_000, 40, 12
STEP = RATE_HZ * PACKET_MS // 1000


def sine(samples, hz):
    return struct.pack(f"<{samples}h", *(int(9000 * math.sin(2 * math.pi * hz * i / RATE_HZ)) for i in range(samples)))


class Gateway:
    """Knows one device after pairing it; answers each utterance with a tone."""

    def __init__(self, key):
        self.key, self.paired, self.heard, self.played, self.codes = key, set(), b"", [], []
        self.sign, self.reject, self.vanish = key.sign, None, False

    async def serve(self, socket):
        counts = {"control": 0, "audio": 0}
        as_json = socket.subprotocol == client.JSON

        async def send(kind, **fields):
            number = protocol.NUMBERS[kind, True]
            sort = protocol.kind_class(number)
            counts[sort] = counts.get(sort, 0) + 1
            stamp = {"sequence": 0 if sort == "link" else counts[sort], "turn": 1, "time_us": 5}
            frame = {"kind": kind, "kind_number": number} | stamp | fields
            await socket.send(json.dumps(protocol.to_json(frame)) if as_json else protocol.encode(frame))

        async def receive():
            message = await socket.recv()
            return protocol.from_json(json.loads(message)) if as_json else protocol.decode(message)

        hello = await receive()
        nonce = os.urandom(32)
        own = client.public_bytes(self.key)
        shared = hello["device_key"] + own + hello["nonce_commitment"] + nonce
        signature = self.sign(b"lorgnette-auth-1 gateway" + shared + bytes(32))
        await send("challenge", nonce=nonce, gateway_key=own, signature=signature)
        proof = await receive()
        assert hashlib.sha256(proof["nonce"]).digest() == hello["nonce_commitment"]
        key = Ed25519PublicKey.from_public_bytes(hello["device_key"])
        key.verify(proof["signature"], b"lorgnette-auth-1 device" + shared + proof["nonce"] + bytes(32))
        if self.reject:
            return await send("reject", code=self.reject, message="not here", retry_after_ms=0)
        if hello["device_key"] not in self.paired:
            await send("pairing_code", method="code", expires_s=120, tries_left=5)
            self.paired.add(hello["device_key"])
        up = {"codec": "opus", "rate_hz": RATE_HZ, "frame_ms": 20}
        names = {"gateway_name": "test", "user_name": "wearer", "resume_token": b"", "resume_ms": 0, "resumed": None}
        down = up | {"frame_ms": PACKET_MS}
        names |= {"session": 1, "heartbeat_ms": 100, "wall_ms": 0, "zone_offset_s": 0, "listening": "idle"}
        await send("welcome", audio_up=up, audio_down=down, **names)
        decoder, self.heard, self.played, beats = opus.Decoder(RATE_HZ), b"", [], 0
        while (frame := await receive())["kind"] != "goodbye":
            if frame["kind"] == "audio":
                self.heard += decoder.decode(frame["payload"])
                if self.vanish:
                    return
            elif frame["kind"] == "played":
                self.played.append(frame)
            elif frame["kind"] == "heartbeat":
                beats += 1
            elif frame["kind"] == "audio_end":
                await self.answer(send)
        assert beats > 0, "no heartbeat"

    async def answer(self, send):
        text = {"utterance": 1, "addressed": True}
        await send("transcript", **text, revision=1, is_final=False, text="set a")
        await send("transcript", **text, revision=2, is_final=True, text="set a timer")
        content = {"layout": "reference_card", "first": "Timer", "second": "10 minutes", "permille": 0}
        view = {"action": "show", "view": "main", "priority": 1, "duration_ms": 0, "revision": 1}
        await send("display", **view, content=content)
        await send("speech_start", speech=1, codec="opus", rate_hz=RATE_HZ, text="Ten minutes.")
        encoder, us = opus.Encoder(RATE_HZ), PACKET_MS * 1000
        tone = sine(STEP * SPEECH_PACKETS, 440)
        for index in range(SPEECH_PACKETS):
            payload = encoder.encode(tone[2 * STEP * index : 2 * STEP * (index + 1)])
            chunk = {"speech": 1, "clause": index // 6, "position_us": index * us, "duration_us": us}
            await send("speech_chunk", **chunk, payload=payload)
        await send("speech_end", speech=1, last_audio_sequence=SPEECH_PACKETS, duration_us=SPEECH_PACKETS * us)


class Turns(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.gateway = Gateway(Ed25519PrivateKey.generate())
        with wave.open(str(self.folder / "say.wav"), "wb") as file:
            file.setparams((1, 2, RATE_HZ, 0, "NONE", ""))
            file.writeframes(sine(RATE_HZ // 2, 300))

    async def turn(self, as_json=False):
        names = {"key": "device.key", "wav": "say.wav", "heard": "heard.wav"}
        files = {name: str(self.folder / file) for name, file in names.items()}
        serve = websockets.serve(self.gateway.serve, "127.0.0.1", 0, subprotocols=[client.BINARY, client.JSON])
        async with serve as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/glasses"
            options = argparse.Namespace(url=url, json=as_json, silence_ms=100, timeout=20, **files)
            return await client.run(options)

    def check(self, result):
        self.assertTrue(result["ok"], result)
        self.assertEqual(result["transcripts"], ["set a timer"])
        self.assertEqual(result["displays"], ["Timer 10 minutes"])
        self.assertEqual(result["heard_s"], SPEECH_PACKETS * PACKET_MS / 1000)
        played = self.gateway.played
        self.assertEqual([frame["state"] for frame in played].count("finished"), 1)
        self.assertEqual(played[-1]["played_us"], SPEECH_PACKETS * PACKET_MS * 1000)
        self.assertEqual({frame["clause"] for frame in played}, {0, 1})
        times = [frame["played_us"] for frame in played]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(len(self.gateway.heard), RATE_HZ * 2 * 6 // 10)
        with wave.open(str(self.folder / "heard.wav")) as file:
            samples = struct.unpack(f"<{file.getnframes()}h", file.readframes(file.getnframes()))
        crossings = sum(a < 0 <= b for a, b in zip(samples, samples[1:]))
        self.assertAlmostEqual(crossings / (len(samples) / RATE_HZ), 440, delta=15)

    async def test_pairs_and_speaks_and_comes_back_in_json(self):
        self.check(await self.turn())
        self.assertEqual((self.folder / "device.gateway").read_bytes(), client.public_bytes(self.gateway.key))
        self.check(await self.turn(as_json=True))

    async def test_refuses_another_key_than_the_pinned_one(self):
        (self.folder / "device.gateway").write_bytes(bytes(32))
        with self.assertRaisesRegex(protocol.ProtocolError, "another key"):
            await self.turn()

    async def test_refuses_a_wrong_signature(self):
        self.gateway.sign = lambda message: self.gateway.key.sign(message[:-1] + b"\1")
        with self.assertRaises(InvalidSignature):
            await self.turn()

    async def test_refuses_a_welcome_without_pairing_while_nothing_is_pinned(self):
        (self.folder / "device.key").write_bytes(bytes(range(32)))
        key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
        self.gateway.paired.add(client.public_bytes(key))
        with self.assertRaisesRegex(protocol.ProtocolError, "without pairing"):
            await self.turn()

    async def test_names_the_reason_of_a_reject(self):
        self.gateway.reject = "revoked"
        with self.assertRaisesRegex(protocol.ProtocolError, "revoked"):
            await self.turn()

    async def test_a_gateway_that_vanishes_is_a_failure(self):
        self.gateway.vanish = True
        result = await self.turn()
        self.assertFalse(result["ok"])
        self.assertIn("ConnectionClosed", result["error"])


class Speeches(unittest.TestCase):
    START = {"turn": 1, "codec": "pcm16", "rate_hz": 16_000}

    def test_a_hush_keeps_what_was_heard_and_says_so_once(self):
        speech = client.Speech(self.START)
        speech.push({"position_us": 0, "clause": 0, "payload": bytes(32_000)}, 1_000)
        self.assertEqual(speech.played(201_000), {"clause": 0, "played_us": 200_000, "state": "playing"})
        speech.hush(301_000)
        speech.push({"position_us": 1_000_000, "clause": 1, "payload": bytes(640)}, 310_000)
        self.assertEqual(speech.played(320_000), {"clause": 0, "played_us": 300_000, "state": "stopped"})
        self.assertIsNone(speech.played(330_000))

    def test_late_chunks_starve_it_and_are_heard_later(self):
        speech = client.Speech(self.START)
        speech.push({"position_us": 0, "clause": 0, "payload": bytes(3_200)}, 0)
        self.assertEqual(speech.played(150_000), {"clause": 0, "played_us": 100_000, "state": "starved"})
        speech.push({"position_us": 100_000, "clause": 1, "payload": bytes(3_200)}, 150_000)
        self.assertEqual(speech.played(200_000), {"clause": 1, "played_us": 150_000, "state": "playing"})
        speech.ended = True
        self.assertEqual(speech.played(260_000), {"clause": 1, "played_us": 200_000, "state": "finished"})


if __name__ == "__main__":
    unittest.main()
