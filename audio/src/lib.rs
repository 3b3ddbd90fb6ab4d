//! Signal processing and speech, synchronous: from microphone packets to voice facts and text, from text to paced
//! packets for the device's speaker. No sockets, no runtime. Time is an argument: a clock is read only to measure
//! durations.

pub mod codec;
#[cfg(feature = "vad")]
pub mod echo;
#[cfg(feature = "vad")]
pub mod end_of_turn;
pub mod fair;
pub mod frame;
pub mod jitter;
#[cfg(feature = "vad")]
pub mod listener;
pub mod meter;
pub mod microphone;
pub mod models;
pub mod packed;
pub mod preroll;
pub mod resample;
pub mod samples;
pub mod scheduling;
pub mod sound_file;
pub mod speaker;
#[cfg(feature = "vad")]
pub mod vad;
#[cfg(feature = "vad")]
pub mod wake;
pub mod wav;

#[cfg(feature = "asr")]
pub mod asr;
#[cfg(feature = "tts")]
pub mod tts;
