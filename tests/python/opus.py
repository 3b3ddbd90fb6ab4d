"""Opus through the system's libopus (Debian: libopus0)."""

import ctypes
import ctypes.util

_NAME = ctypes.util.find_library("opus")
if _NAME is None:
    raise SystemExit("libopus is missing: apt-get install libopus0")
_LIB = ctypes.CDLL(_NAME)
for _create in (_LIB.opus_encoder_create, _LIB.opus_decoder_create):
    _create.restype = ctypes.c_void_p
_VOIP = 2048
_PACKET_BYTES_MAX = 4096
_SAMPLES_MAX = 5760  # 120 ms at 48 kHz


class Encoder:
    def __init__(self, rate_hz):
        error = ctypes.c_int()
        self._state = ctypes.c_void_p(_LIB.opus_encoder_create(rate_hz, 1, _VOIP, ctypes.byref(error)))
        if error.value:
            raise ValueError(f"no Opus encoder for {rate_hz} Hz (error {error.value})")

    def encode(self, pcm):
        """One packet of 16-bit samples, little endian."""
        out = ctypes.create_string_buffer(_PACKET_BYTES_MAX)
        size = _LIB.opus_encode(self._state, pcm, len(pcm) // 2, out, len(out))
        if size < 0:
            raise ValueError(f"Opus cannot encode {len(pcm) // 2} samples (error {size})")
        return out.raw[:size]

    def __del__(self):
        _LIB.opus_encoder_destroy(self._state)


class Decoder:
    def __init__(self, rate_hz):
        error = ctypes.c_int()
        self._state = ctypes.c_void_p(_LIB.opus_decoder_create(rate_hz, 1, ctypes.byref(error)))
        if error.value:
            raise ValueError(f"no Opus decoder for {rate_hz} Hz (error {error.value})")

    def decode(self, packet):
        """16-bit samples, little endian."""
        out = (ctypes.c_int16 * _SAMPLES_MAX)()
        samples = _LIB.opus_decode(self._state, packet, len(packet), out, _SAMPLES_MAX, 0)
        if samples < 0:
            raise ValueError(f"not an Opus packet (error {samples})")
        return bytes(out)[: 2 * samples]

    def __del__(self):
        _LIB.opus_decoder_destroy(self._state)
