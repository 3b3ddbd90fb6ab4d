//! Speech recognition: Whisper, one shared model, a pool of states.
