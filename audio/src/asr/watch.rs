//! Watching whisper.cpp while it decodes: it is stopped from another thread, and its probabilities are looked at.
#![allow(unsafe_code, reason = "whisper-rs has no sound safe way to set these callbacks")]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use whisper_rs::{FullParams, WhisperError, WhisperState, whisper_rs_sys as sys};

use super::filter;

/// Natural logarithm of a probability that counts as 0, or of one that is above it.
const NEGLIGIBLE_LN: f32 = -5.0;

/// How probable some tokens were at each step of a decode, at the temperature of that decode.
#[derive(Debug)]
pub(super) struct Watched<'a> {
    tokens: &'a [usize],
    /// Length of the vocabulary, in tokens.
    vocabulary: usize,
    /// Probability of any of the tokens, 0 to 1, at each step.
    steps: Vec<f32>,
}

impl<'a> Watched<'a> {
    /// `vocabulary`: how many tokens there are.
    pub(super) fn new(tokens: &'a [usize], vocabulary: usize) -> Self {
        Self { tokens, vocabulary, steps: Vec::new() }
    }

    /// Their probability at a step; 0 if there was no such step.
    pub(super) fn at(&self, step: usize) -> f32 {
        self.steps.get(step).copied().unwrap_or_default()
    }

    fn step(&mut self, step: usize, logits: &[f32]) {
        // Whisper begins anew at another temperature.
        self.steps.truncate(step);
        let highest = logits.iter().copied().fold(f32::MIN, f32::max);
        // The sum over all tokens costs more than the rest.
        let counts = |token: &&usize| logits.get(**token).is_some_and(|logit| logit - highest > NEGLIGIBLE_LN);
        let probable = self.tokens.iter().filter(counts);
        self.steps.push(probable.map(|token| filter::probability_of(*token, logits)).sum());
    }
}

/// Runs Whisper; stops soon after `flag` becomes true (whisper.cpp asks between graph nodes).
///
/// `FullParams::set_abort_callback_safe` of whisper-rs 0.16 passes a doubly boxed closure to a callback that casts it
/// to the closure itself, and leaks it. Hence the callback is set here.
pub(super) fn full(
    state: &mut WhisperState,
    mut params: FullParams<'_, '_>,
    samples: &[f32],
    flag: Option<&AtomicBool>,
    watched: &mut Watched<'_>,
) -> Result<(), WhisperError> {
    if let Some(flag) = flag {
        let data = std::ptr::from_ref(flag).cast_mut().cast::<c_void>();
        // SAFETY: `data` points to an AtomicBool that is borrowed for longer than the call below,
        // which is the only user of `params`; `is_set` only reads it, atomically.
        unsafe {
            params.set_abort_callback(Some(is_set));
            params.set_abort_callback_user_data(data);
        }
    }
    let data = std::ptr::from_mut(watched).cast::<c_void>();
    // SAFETY: `data` points to a `Watched` that is borrowed mutably for longer than the call below, the only user of `params`.
    // With one candidate, which the caller asks for, whisper.cpp calls `look` from the thread of that call alone.
    unsafe {
        params.set_filter_logits_callback(Some(look));
        params.set_filter_logits_callback_user_data(data);
    }
    state.full(params, samples)
}

/// # Safety
/// `data` points to a live `AtomicBool`.
unsafe extern "C" fn is_set(data: *mut c_void) -> bool {
    // SAFETY: see above.
    let flag = unsafe { &*data.cast_const().cast::<AtomicBool>() };
    flag.load(Ordering::Relaxed)
}

/// # Safety
/// `data` points to a live `Watched` that nobody else uses, and `logits` to one number for each token of its vocabulary.
unsafe extern "C" fn look(
    _: *mut sys::whisper_context,
    _: *mut sys::whisper_state,
    _: *const sys::whisper_token_data,
    before: c_int,
    logits: *mut f32,
    data: *mut c_void,
) {
    // SAFETY: see above.
    let watched = unsafe { &mut *data.cast::<Watched<'_>>() };
    // SAFETY: see above; they are read only until this returns.
    let logits = unsafe { std::slice::from_raw_parts(logits.cast_const(), watched.vocabulary) };
    watched.step(usize::try_from(before).unwrap_or_default(), logits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decode_that_begins_anew_is_watched_anew() {
        let mut watched = Watched::new(&[1, 2], 4);
        watched.step(0, &[0.0; 4]);
        watched.step(1, &[0.0; 4]);
        assert_eq!((watched.at(0), watched.at(1), watched.at(2)), (0.5, 0.5, 0.0));
        watched.step(0, &[6.0, 0.0, 0.0, 0.0]);
        assert_eq!((watched.at(0), watched.at(1)), (0.0, 0.0), "nearly never, and no step yet");
    }
}
