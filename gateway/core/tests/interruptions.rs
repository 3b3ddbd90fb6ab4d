//! Interruptions at random moments, on the virtual clock: nothing that was stopped is spoken, and nothing counts as heard
//! that had not begun to play. `INTERRUPTIONS=10000 cargo test -p gateway-core --test interruptions` makes more of them.

mod script;
mod world;

use gateway_core::conversation::Config;
use world::{ModelScript, World};

/// An answer in clauses, each a sentence of its own.
const ANSWER: [&str; 4] = [
    "The capital of France is Paris.",
    "It lies on the river Seine, in the north.",
    "Two million people live there.",
    "In summer it is warm.",
];
/// What is said over it. The first half lets it go on.
const SAID: [&str; 10] = [
    "",
    "Okay.",
    "Mhm.",
    "Right, I see.",
    "Thank you.",
    "And what about Italy?",
    "Stop.",
    "Mentra, set a timer for ten minutes.",
    "No, I meant the other one.",
    "Okay, but how far is it?",
];
/// The world's voice.
const MS_PER_CHAR: u64 = 60;

fn interruptions() -> u64 {
    std::env::var("INTERRUPTIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000)
}

/// A linear congruential generator (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Characters of the answer that have begun to play, by the loudspeaker itself.
struct Loudspeaker {
    /// Clauses of the running speech, in order, as places in the answer.
    clauses: Vec<usize>,
    lines_seen: usize,
    begun: usize,
}

impl Loudspeaker {
    fn watch(&mut self, world: &World) {
        for line in &world.log[self.lines_seen..] {
            let text = line.text.strip_prefix("glasses: ").unwrap_or_default();
            if text == "hush" {
                self.clauses.clear();
            } else if let Some(said) = text.strip_prefix("speak \"") {
                let (said, _from) = said.split_once('"').expect("its end");
                let whole = ANSWER.join(" ");
                self.clauses.extend(whole.find(said));
            }
        }
        self.lines_seen = world.log.len();
        let Some(speech) = &world.devices[0].speech else { return };
        let clause = self.clauses.get(speech.done).zip(speech.clauses.get(speech.done));
        if let (Some((place, (skipped, _))), Some(since)) = (clause, speech.since) {
            let played = (skipped + world.now_ms - since) / MS_PER_CHAR + 1;
            self.begun = self.begun.max(place + usize::try_from(played).expect("short"));
        }
    }
}

#[test]
fn nothing_stopped_is_spoken_and_nothing_counts_as_heard_that_had_not_begun() {
    let (mut paused, mut ended, mut resumed) = (0, 0, 0);
    for seed in 0..interruptions() {
        let mut random = Random(seed);
        let mut world = World::new(Config::default());
        world.add_device("glasses", None, true, true);
        world.connect(0, false);
        world.models.push_back(ModelScript { text: ANSWER.join(" "), ..ModelScript::default() });
        world.models.push_back(ModelScript { text: "Yes.".into(), ..ModelScript::default() });
        world.run_until(1_000);
        world.input(0, gateway_core::input::Input::Text("capital of France".into()));
        let (at, length, pause) = (1_200 + random.below(9_000), 100 + random.below(1_500), random.below(900));
        let index = usize::try_from(random.below(10)).expect("an index");
        let mut speaker = Loudspeaker { clauses: Vec::new(), lines_seen: 0, begun: 0 };
        let mut said = false;
        while world.now_ms < 40_000 {
            let until = if said { 40_000 } else { at };
            if !world.step(until) {
                world.run_until(until);
                if !said {
                    said = true;
                    world.speak(0, &[(0, length, SAID[index]), (pause, 200, "")], None);
                }
            }
            speaker.watch(&world);
        }
        // The world itself checks that a speech that was hushed has no further clause.
        let lines: Vec<&str> = world.log.iter().map(|line| line.text.as_str()).collect();
        let done = lines.iter().find(|line| line.starts_with("glasses: done 1 ")).expect("the turn ends");
        let (_, told) = done.split_once("assistant \"").unwrap_or(("", "\"]"));
        let heard = told.split_once("\"]").map_or(told, |(heard, _)| heard);
        let heard = heard.trim_end_matches("[interrupted]").trim_end();
        let whole = ANSWER.join(" ");
        assert!(whole.starts_with(heard), "{seed}: {heard:?}");
        let last_word = heard.rfind(' ').map_or(0, |at| at + 1);
        assert!(
            heard.is_empty() || last_word < speaker.begun,
            "{seed}: {heard:?} counts as heard, of which {} characters had begun: {lines:#?}",
            speaker.begun
        );
        let was_hushed = lines.contains(&"glasses: hush");
        let completed = done.starts_with("glasses: done 1 completed");
        paused += usize::from(was_hushed);
        ended += usize::from(was_hushed && !completed);
        resumed += usize::from(was_hushed && completed);
        assert!(!completed || heard == whole, "{seed}: a complete answer is heard whole: {heard:?}");
        if index < 5 {
            assert!(completed, "{seed}: {:?} ends the answer: {lines:#?}", SAID[index]);
        }
    }
    println!(
        "of {} interruptions {paused} stopped the sound, {ended} of them for good, {resumed} went on",
        interruptions()
    );
    assert!(ended > 0 && resumed > 0);
}
