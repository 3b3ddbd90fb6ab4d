"""The independent reading of PROTOCOL.md gives the golden vectors, byte for byte. Run: python3 -m unittest discover tests/python"""

import hashlib
import json
import pathlib
import random
import unittest

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

import client
import protocol

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "device-protocol/vectors/v1"


def hex_of(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return bytes.fromhex("".join(line for line in lines if not line.startswith("#")))


def cases_of(name):
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def frame_of(path):
    return json.loads(path.read_text(encoding="utf-8"))["frame"]


class Vectors(unittest.TestCase):
    def test_frames_both_ways(self):
        paths = sorted(VECTORS.glob("frames/*.hex"))
        self.assertGreater(len(paths), 40)
        for path in paths:
            with self.subTest(path.name):
                data, frame = hex_of(path), frame_of(path.with_suffix(".json"))
                self.assertEqual(protocol.encode(protocol.from_json(frame)).hex(" "), data.hex(" "))
                self.assertEqual(protocol.to_json(protocol.decode(data)), frame)

    def test_every_kind_has_one(self):
        seen = {frame_of(path)["kind_number"] for path in VECTORS.glob("frames/*.json")}
        self.assertEqual(seen, set(protocol.KINDS))

    def test_manifests_of_firmware(self):
        for case in cases_of("firmware.json"):
            with self.subTest(case["note"]):
                fields = case["fields"] | {"hash": bytes.fromhex(case["fields"]["hash"])}
                manifest = b"lorgnette-firmware-1" + protocol.put_fields(protocol.RECORDS["Manifest"], fields)
                self.assertEqual(manifest.hex(), case["manifest"])
                key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(case["maker_seed"]))
                self.assertEqual(key.sign(manifest).hex(), case["signature"])
                self.assertEqual(key.public_key().public_bytes_raw().hex(), case["maker_key"])

    def test_frames_of_later_versions(self):
        for path in VECTORS.glob("newer/*.hex"):
            with self.subTest(path.name):
                self.assertEqual(protocol.to_json(protocol.decode(hex_of(path))), frame_of(path.with_suffix(".json")))

    def test_bad_frames(self):
        paths = list(VECTORS.glob("bad/*.hex"))
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(path.name), self.assertRaises(protocol.ProtocolError):
                protocol.decode(hex_of(path))

    def test_no_bytes_raise_anything_else(self):
        chance = random.Random(7)
        whole = [hex_of(path) for path in sorted(VECTORS.glob("frames/*.hex"))]
        for data in whole:
            for _ in range(200):
                changed = bytearray(data)
                changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                try:
                    protocol.decode(bytes(changed[: chance.randrange(len(data)) + 1]))
                    protocol.decode(bytes(changed))
                except protocol.ProtocolError:
                    pass


class Handshakes(unittest.TestCase):
    def test_messages_signatures_and_codes(self):
        cases = [case for name in ("handshake.json", "handshake.tls.json") for case in cases_of(name)]
        self.assertGreater(len(cases), 5)
        for case in cases:
            words = ("note", "pairing_code", "cipher_suite")
            raw = {name: bytes.fromhex(case[name]) for name in case if name not in words}
            device = Ed25519PrivateKey.from_private_bytes(raw["device_seed"])
            gateway = Ed25519PrivateKey.from_private_bytes(raw["gateway_seed"])
            shared = client.Handshake(
                raw["device_key"], raw["gateway_key"], raw["device_nonce"], raw["gateway_nonce"], raw["binding"]
            )
            self.assertEqual(client.public_bytes(device), raw["device_key"])
            self.assertEqual(client.public_bytes(gateway), raw["gateway_key"])
            self.assertEqual(hashlib.sha256(raw["device_nonce"]).digest(), raw["nonce_commitment"])
            self.assertEqual(shared.gateway_message(), raw["gateway_message"])
            self.assertEqual(shared.device_message(), raw["device_message"])
            self.assertEqual(shared.pairing_code(), case["pairing_code"])
            self.assertEqual(device.sign(raw["device_message"]), raw["device_signature"])
            key = Ed25519PublicKey.from_public_bytes(raw["gateway_key"])
            key.verify(raw["gateway_signature"], raw["gateway_message"])

    def test_invitations(self):
        cases = cases_of("handshake.invitation.json")
        self.assertTrue(cases)
        for case in cases:
            raw = {name: bytes.fromhex(case[name]) for name in case if name != "note"}
            names = ("device_key", "gateway_key", "device_nonce", "gateway_nonce", "binding")
            shared = client.Handshake(*(raw[name] for name in names))
            self.assertEqual(shared.invitation(raw["invitation_code"]), raw["invitation_digest"])
            self.assertEqual(shared.device_message(), raw["device_message"])

    def test_bindings(self):
        seen = set()
        for case in cases_of("handshake.tls.json"):
            if suite := case.get("cipher_suite"):
                digest = {"TLS_AES_128_GCM_SHA256": "sha256", "TLS_AES_256_GCM_SHA384": "sha384"}[suite]
                derived, binding = protocol.exporter(bytes.fromhex(case["exporter_master_secret"]), digest)
                self.assertEqual(derived.hex(), case["derived_secret"])
                seen.add(suite)
            else:
                binding = hashlib.sha256(bytes.fromhex(case["certificate"])).digest()
                seen.add("certificate")
            self.assertEqual(binding.hex(), case["binding"])
        self.assertEqual(len(seen), 3)


if __name__ == "__main__":
    unittest.main()
