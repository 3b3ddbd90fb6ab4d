//! Packet codecs: PCM16 and Opus.
