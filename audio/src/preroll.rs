//! Ring of the most recent sound.
