//! Interruptions at random moments, on the virtual clock, of answers and of announcements, on glasses of several
//! kinds: nothing that was stopped is spoken, and nothing counts as heard that had not begun to play.
//! `INTERRUPTIONS=10000 cargo test -p gateway-core --test interruptions` makes more of them.

mod script;
mod world;

use gateway_core::{
    conversation::Config,
    input::{Announcement, AnnouncementId, AnnouncementVoice, Input},
    vocab::{Content, DisplaySize, VoiceFact},
};
use world::{Event, ModelScript, World};

/// What is interrupted, in clauses, each a sentence of its own.
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

/// Characters of what is said that have begun to play, by the loudspeaker itself.
struct Loudspeaker {
    /// Clauses of the running speech, in order, as places in it.
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

/// An interruption, as its seed has drawn it.
struct Case {
    seed: u64,
    /// Whether the glasses cancel their echo, or hear themselves.
    cancels: bool,
    /// Whether they have a display.
    shows: bool,
    /// Whether an announcement is interrupted, and not an answer.
    is_notice: bool,
    /// How long after its beginning the voice is found to be like what is played, and whether it is found unlike it later.
    echo: Option<(u64, bool)>,
    /// When somebody speaks, for how long, and the pause before he makes another noise.
    at: u64,
    length: u64,
    pause: u64,
    /// Which of [`SAID`].
    said: usize,
}

impl Case {
    fn draw(seed: u64) -> Self {
        let mut random = Random(seed);
        let (at, length, pause) = (1_200 + random.below(9_000), 100 + random.below(1_500), random.below(900));
        let said = usize::try_from(random.below(10)).expect("an index");
        let (cancels, shows, is_notice) = (random.below(3) > 0, random.below(2) == 0, random.below(4) == 0);
        let has_echo = cancels && random.below(3) == 0;
        let echo = has_echo.then(|| (random.below(800), random.below(2) == 0));
        Self { seed, cancels, shows, is_notice, echo, at, length, pause, said }
    }

    /// What is interrupted begins with this.
    fn beginning(&self) -> Input {
        if !self.is_notice {
            return Input::Text("capital of France".into());
        }
        let voice = AnnouncementVoice::Words(ANSWER.join(" "));
        let show = self.shows.then(|| Content::Text { text: ANSWER.join(" ") });
        Input::Announce(Announcement { id: AnnouncementId::App(1), voice, show })
    }

    fn speak(&self, world: &mut World) {
        world.speak(0, &[(0, self.length, SAID[self.said]), (self.pause, 200, "")], None);
        let Some((after, ends)) = self.echo else { return };
        let look = |likeness| Event::Voice(0, VoiceFact::Echo { utterance: 1, likeness });
        world.after(after, look(0.9));
        // As many as tell that it is no echo any more.
        for later in [200, 300].into_iter().filter(|_| ends) {
            world.after(after + later, look(0.1));
        }
    }

    /// What was logged, and how many characters of what was interrupted have begun to play.
    fn run(&self) -> (Vec<String>, usize) {
        let mut world = World::new(Config::default());
        let display = self.shows.then(|| DisplaySize::new(40, 4));
        world.add_device("glasses", display, true, self.cancels);
        world.connect(0, false);
        if !self.is_notice {
            world.models.push_back(ModelScript { text: ANSWER.join(" "), ..ModelScript::default() });
        }
        world.models.push_back(ModelScript { text: "Yes.".into(), ..ModelScript::default() });
        world.run_until(1_000);
        world.input(0, self.beginning());
        let mut speaker = Loudspeaker { clauses: Vec::new(), lines_seen: 0, begun: 0 };
        let mut said = false;
        while world.now_ms < 40_000 {
            let until = if said { 40_000 } else { self.at };
            if !world.step(until) {
                world.run_until(until);
                if !said {
                    said = true;
                    self.speak(&mut world);
                }
            }
            speaker.watch(&world);
        }
        // The world itself checks that a speech that was hushed has no further clause.
        (world.log.into_iter().map(|line| line.text).collect(), speaker.begun)
    }

    /// Checks what counts as heard of an answer; whether all of it was given.
    fn check_answer(&self, lines: &[String], begun: usize) -> bool {
        let seed = self.seed;
        let done = lines.iter().find(|line| line.starts_with("glasses: done 1 ")).expect("the turn ends");
        let (_, told) = done.split_once("assistant \"").unwrap_or(("", "\"]"));
        let heard = told.split_once("\"]").map_or(told, |(heard, _)| heard);
        let heard = heard.trim_end_matches("[interrupted]").trim_end();
        let whole = ANSWER.join(" ");
        assert!(whole.starts_with(heard), "{seed}: {heard:?}");
        let last_word = heard.rfind(' ').map_or(0, |at| at + 1);
        assert!(
            heard.is_empty() || last_word < begun,
            "{seed}: {heard:?} counts as heard, of which {begun} characters had begun: {lines:#?}"
        );
        let completed = done.starts_with("glasses: done 1 completed");
        assert!(!completed || heard == whole, "{seed}: a complete answer is heard whole: {heard:?}");
        if self.said < 5 {
            assert!(completed, "{seed}: {:?} ends the answer: {lines:#?}", SAID[self.said]);
        }
        completed
    }

    /// Checks that an announcement counts as heard only if half of it was, in time, or if it was dismissed.
    fn check_notice(&self, lines: &[String], begun: usize) {
        let seed = self.seed;
        let told: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("glasses: announced app-1 ")).collect();
        assert_eq!(told.len(), 1, "{seed}: its end is told once: {lines:#?}");
        // Letters do not take the same time: less than half of them may be half of the time.
        let is_half_heard = begun * 5 >= ANSWER.join(" ").len() * 2;
        let is_dismissed = SAID[self.said] == "Stop.";
        assert!(
            told == ["unheard"] || is_half_heard || is_dismissed,
            "{seed}: it counts as heard, of which {begun} characters had begun: {lines:#?}"
        );
    }
}

#[test]
fn nothing_stopped_is_spoken_and_nothing_counts_as_heard_that_had_not_begun() {
    let (mut paused, mut ended, mut resumed, mut notices) = (0, 0, 0, 0);
    for seed in 0..interruptions() {
        let case = Case::draw(seed);
        let (lines, begun) = case.run();
        if case.is_notice {
            case.check_notice(&lines, begun);
            notices += 1;
            continue;
        }
        let completed = case.check_answer(&lines, begun);
        let was_hushed = lines.iter().any(|line| line == "glasses: hush");
        paused += usize::from(was_hushed);
        ended += usize::from(was_hushed && !completed);
        resumed += usize::from(was_hushed && completed);
    }
    println!(
        "of {} interruptions ({notices} of announcements) {paused} stopped an answer, {ended} of them for good, {resumed} went on",
        interruptions()
    );
    assert!(ended > 0 && resumed > 0 && notices > 0);
}
