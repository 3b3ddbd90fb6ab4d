//! Voice activity: webrtc-vad as gate, Silero to decide.
