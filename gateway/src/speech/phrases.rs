//! The sound of the assistant's own fixed phrases. One that was said before is there at once, whatever the synthesis threads
//! are doing, and no other engine is asked for it again. Nothing else that is said is kept.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Sound that is kept: some 40 phrases.
const BYTES_MAX: usize = 4 << 20;
/// Phrases that are kept: each is looked at to find one.
const PHRASES_MAX: usize = 256;

/// What the sound of a phrase depends on. Volume does not belong to it: it is applied as the sound is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    text: String,
    speed_bits: u32,
    /// The conversation's language, where the voice beside the product's own speaks.
    elsewhere: Option<String>,
}

struct Kept {
    key: Key,
    pcm: Vec<i16>,
}

impl Kept {
    fn bytes(&self) -> usize {
        self.pcm.len() * size_of::<i16>()
    }
}

/// Phrases that were synthesised. When there are too many, those that were not said for the longest time are dropped.
pub(crate) struct PhraseCache {
    fixed: HashSet<String>,
    /// The one that was said last is at the end.
    kept: Mutex<VecDeque<Kept>>,
}

impl Default for PhraseCache {
    fn default() -> Self {
        Self { fixed: gateway_core::fixed_clauses().into_iter().collect(), kept: Mutex::default() }
    }
}

impl PhraseCache {
    /// The key of a clause; `None`: it is none of the fixed ones. `elsewhere`: the conversation's language, unless the
    /// product's own voice speaks.
    pub(super) fn key(&self, text: &str, speed: f32, elsewhere: Option<&str>) -> Option<Key> {
        let key =
            || Key { text: text.to_owned(), speed_bits: speed.to_bits(), elsewhere: elsewhere.map(str::to_owned) };
        self.fixed.contains(text).then(key)
    }

    /// The sound that was kept.
    pub(super) fn find(&self, key: &Key) -> Option<Vec<i16>> {
        let mut all = self.lock();
        let at = all.iter().position(|kept| kept.key == *key)?;
        let found = all.remove(at)?;
        let pcm = found.pcm.clone();
        all.push_back(found);
        Some(pcm)
    }

    /// Keeps the sound, in place of one that another thread has made meanwhile.
    pub(super) fn keep(&self, key: Key, pcm: &[i16]) {
        let mut all = self.lock();
        all.retain(|kept| kept.key != key);
        all.push_back(Kept { key, pcm: pcm.to_vec() });
        let mut bytes: usize = all.iter().map(Kept::bytes).sum();
        while bytes > BYTES_MAX || all.len() > PHRASES_MAX {
            let Some(oldest) = all.pop_front() else { break };
            bytes -= oldest.bytes();
        }
    }

    /// No code that can panic runs under the lock, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHRASE: &str = "Let me check.";

    #[test]
    fn a_phrase_has_a_sound_for_each_voice_language_and_pace() {
        let cache = PhraseCache::default();
        let places = [(1.0, None), (1.5, None), (1.0, Some("en")), (1.0, Some("de"))];
        let key = |(speed, elsewhere)| cache.key(PHRASE, speed, elsewhere).unwrap();
        for (place, sample) in places.into_iter().zip(1..) {
            assert_eq!(cache.find(&key(place)), None);
            cache.keep(key(place), &[sample]);
        }
        for (place, sample) in places.into_iter().zip(1..) {
            assert_eq!(cache.find(&key(place)), Some(vec![sample]));
        }
    }

    #[test]
    fn what_has_a_wearers_words_has_no_key() {
        let cache = PhraseCache::default();
        for text in ["You can say:", "Let me check. Your code is 4711.", "let me check.", ""] {
            assert_eq!(cache.key(text, 1.0, None), None, "{text}");
        }
    }

    #[test]
    fn of_too_many_those_go_that_were_not_said_for_long() {
        let cache = PhraseCache::default();
        let key = |speed: u16| cache.key(PHRASE, f32::from(speed), None).unwrap();
        let kept = |speeds: std::ops::Range<u16>| speeds.filter(|speed| cache.find(&key(*speed)).is_some()).count();
        // Four of them are as much as may be kept.
        let long = vec![0_i16; BYTES_MAX / 8];
        for speed in 0..4 {
            cache.keep(key(speed), &long);
        }
        assert!(cache.find(&key(0)).is_some());
        cache.keep(key(4), &long);
        assert_eq!((kept(0..1), kept(1..2), kept(2..5)), (1, 0, 3));
        cache.keep(key(4), &long);
        assert_eq!(kept(0..5), 4, "one that is made twice counts once");
        cache.keep(key(5), &vec![0_i16; BYTES_MAX]);
        assert_eq!(kept(0..6), 0, "it is too long");
        for speed in 0..300 {
            cache.keep(key(speed), &[0]);
        }
        assert_eq!((kept(0..44), kept(44..300)), (0, PHRASES_MAX));
    }
}
