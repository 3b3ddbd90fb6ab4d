//! Which words of an answer were heard, judged by the voice itself: how long each beginning of a sentence takes.

use audio::{models, tts::Voice};
use gateway_core::spoken_length::words_spoken;

const SENTENCES: [&str; 10] = [
    "1,234,567 is the population of the city.",
    "It costs $1,250.50, which is more than last year.",
    "The train leaves at 10:35 and arrives at 14:05 in Paris.",
    "25% of them said yes, 75% said no.",
    "The BBC reported it on 24 December 2026.",
    "Call 555-0199 before you go out.",
    "It is 21.5 °C outside, with wind from the west.",
    "The file has 4,096 bytes; the other one has 12.",
    "World War II ended in 1945 and left much of Europe in ruins.",
    "The capital of France is Paris, as you certainly know.",
];

#[test]
fn words_count_as_heard_when_the_voice_has_begun_them_and_not_long_after() {
    let voice = Voice::load(&models::default_dir().join("hibari")).expect("the voice");
    let samples = |text: &str| voice.synthesize(text, 1.0).expect("a sound").len() as f32;
    let (mut said, mut counted) = (0, 0);
    for sentence in SENTENCES {
        let whole = samples(sentence);
        let ends = sentence.match_indices(' ').map(|(at, _)| at);
        for (end, words) in ends.zip(1..).filter(|(_, words)| words % 2 == 1) {
            // The pause behind a sentence that ends here makes it a little late: the next word has begun.
            let part = samples(&sentence[..end]) / whole;
            let heard = words_spoken(sentence, part.min(1.0)).split_whitespace().count();
            assert!(heard <= words + 1, "{words} words of {sentence:?} were said, {heard} count");
            said += words;
            counted += heard;
        }
    }
    assert!(counted * 4 >= said * 3, "of {said} words {counted} count");
}
