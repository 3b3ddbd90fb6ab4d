//! How far captions are behind the voice, with one pair of glasses and with ten, and whether words that were shown change.
//!
//! `cargo xtask bench captions [--glasses 1,10] [--duty 20] [--passages 8] [--voices others|NAME,NAME] [--require]`
//!
//! Glasses that show captions, half of them over QUIC, say passages that are not addressed to the assistant, at times of their own; `--duty`:
//! percent of the time, but one pair alone says one after the other. A passage is made of phrases that are said one by one, cut
//! at their voice and joined. So the end of each phrase's last word is known, and no other word of the passage is like it. The lag of this
//! word is the time from its end to the arrival of the first caption that has it, partial or final. Words that no caption has, since they
//! were misheard or their sound was dropped, are counted.
//!
//! A caption may change the last two words of the one before it and no others; the final one is the text as it was recognised in the end,
//! and is counted by itself, without punctuation and case.
//!
//! The packets are coded beforehand. Needs flite and espeak-ng, unless `--voices hibari`, and what `cargo xtask fetch` fetches. Nothing
//! else may run. `--require`: it ends with an error where a partial caption changes more, and where one pair alone sees less than 95 % of the
//! words within 300 ms.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use common::aims::Aims;
use common::clips::CLIP_HZ;
use common::voices::Speaker;
use common::{TestGateway, argument, clip, number, row};
use firmware_sim::microphone::{Clip, ClipTimes, voiced_begin_us, voiced_end_us};
use firmware_sim::random::Random;
use firmware_sim::transport::Scheme;
use firmware_sim::{Event, Glasses, Seen};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

const PASSAGES: [[&str; 6]; 4] = [
    [
        "The train to the coast",
        "leaves early in the morning,",
        "so we packed our suitcase",
        "and asked my older brother",
        "to water the garden",
        "until we are back on Friday.",
    ],
    [
        "My sister works at a hospital",
        "near the old market,",
        "where she looks after children",
        "and comes home for dinner",
        "with a story about some doctor",
        "who always forgets his umbrella.",
    ],
    [
        "On the first floor of the museum",
        "there is a picture of a river",
        "and a very small mountain",
        "under a dark yellow sky",
        "that a famous painter",
        "finished in a single winter.",
    ],
    [
        "We cooked a soup with potatoes",
        "and a little bit of butter",
        "while the radio played music,",
        "and the dog under the table",
        "waited for a piece of bread",
        "from the youngest of my cousins.",
    ],
];
/// Silence between two phrases, as before a consonant: no pause.
const JOINT: usize = CLIP_HZ as usize * 60 / 1_000;
/// Words at the end of a caption that the next one may change.
const LOOSE_WORDS: usize = 2;
/// How long captions are waited for behind the last voiced sample.
const AFTER: Duration = Duration::from_secs(6);

/// A passage that can be said, and its known words, each with its end in microseconds from the first sample.
struct Passage {
    clip: Clip,
    ends: Vec<(String, u64)>,
}

impl Passage {
    fn new(phrases: &[&str], speaker: Speaker, folder: &Path) -> Result<Self> {
        let (mut pcm, mut ends) = (Vec::new(), Vec::new());
        let all: Vec<String> = phrases.iter().flat_map(|phrase| phrase.split(' ')).map(plain).collect();
        for phrase in phrases {
            let said = speaker.say(phrase, folder)?;
            let voice = samples(voiced_begin_us(&said))..samples(voiced_end_us(&said));
            pcm.extend_from_slice(said.get(voice).context("a phrase without a voice")?);
            let word = phrase.split(' ').next_back().map(plain).context("a phrase without a word")?;
            ensure!(all.iter().filter(|other| **other == word).count() == 1, "{word:?} is twice in a passage");
            ends.push((word, pcm.len() as u64 * 1_000_000 / u64::from(CLIP_HZ)));
            pcm.resize(pcm.len() + JOINT, 0);
        }
        Ok(Self { clip: clip(&phrases.join(" "), &pcm)?, ends })
    }
}

fn samples(us: u64) -> usize {
    (us * u64::from(CLIP_HZ) / 1_000_000) as usize
}

/// A word without punctuation and case.
fn plain(word: &str) -> String {
    word.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What glasses say, and when.
#[derive(Clone)]
struct Plan {
    passages: Arc<[Passage]>,
    /// How many each says.
    count: usize,
    /// Percent of the time that they speak.
    duty: u64,
}

fn main() -> Result<()> {
    common::calibrate("before")?;
    common::runtime()?.block_on(run())?;
    common::calibrate("after")
}

async fn run() -> Result<()> {
    let counts = argument("--glasses").unwrap_or_else(|| "1,10".to_owned());
    let counts = counts.split(',').map(str::parse::<u64>).collect::<Result<Vec<_>, _>>().context("--glasses")?;
    let (duty, count) = (number("--duty", 20)?.clamp(1, 100), usize::try_from(number("--passages", 8)?)?);
    let all = counts.iter().sum::<u64>() + 8;
    let gateway = TestGateway::start(&format!("[limits]\nsessions = {all}\nusers = {all}\n")).await?;
    let (speakers, folder) = (Speaker::asked_for()?, gateway.folder.path().to_owned());
    let passages = tokio::task::spawn_blocking(move || {
        let spoken = PASSAGES.iter().flat_map(|phrases| speakers.iter().map(move |speaker| (phrases, *speaker)));
        spoken.map(|(phrases, speaker)| Passage::new(phrases, speaker, &folder)).collect::<Result<Arc<[Passage]>>>()
    })
    .await??;
    let mut aims = Aims::default();
    for glasses in counts {
        let duty = if glasses == 1 { 100 } else { duty };
        let before = common::busy();
        let tally = speak(&gateway, glasses, &Plan { passages: passages.clone(), count, duty }).await?;
        println!("{glasses} glasses: processor {:.0} % busy", common::busy_percent(before));
        tally.report(glasses, &mut aims);
    }
    gateway.running.stop().await;
    aims.judge()
}

/// So many glasses say their passages.
async fn speak(gateway: &TestGateway, count: u64, plan: &Plan) -> Result<Tally> {
    let silence = common::silence()?;
    let mut tasks = JoinSet::new();
    for one in 0..count {
        let user = format!("captions-{count}-{one}");
        let scheme = if one.is_multiple_of(2) { Scheme::Ws } else { Scheme::Quic };
        let mut options = gateway.options(scheme, &user)?;
        options.profile.captions = true;
        options.decode = false;
        options.silence = Some(silence.clone());
        options.seed = one;
        let glasses = gateway.glasses(options, &user).await?;
        tasks.spawn(live(glasses, one, plan.clone()));
    }
    let mut tally = Tally::default();
    while let Some(done) = tasks.join_next().await {
        tally.add(done??);
    }
    Ok(tally)
}

/// One pair of glasses: each of its passages at its time, and the captions that come.
async fn live(glasses: Glasses, one: u64, plan: Plan) -> Result<Tally> {
    let mut random = Random::new(one + 1);
    let mut tally = Tally::default();
    let mut next = Instant::now();
    let passages = plan.passages.iter().cycle().skip(usize::try_from(one)?).take(plan.count);
    for (at, passage) in passages.enumerate() {
        let voice = Duration::from_micros(passage.clip.voiced_us);
        let period = voice.mul_f64(100.0 / plan.duty as f64).max(voice + AFTER);
        if at == 0 && plan.duty < 100 {
            // Glasses that all spoke at once would measure a queue that no household has.
            next += period.mul_f64(random.unit());
        }
        sleep_until(next).await;
        let mark = glasses.log().mark();
        let said = glasses.say(passage.clip.clone()).await?;
        sleep(AFTER).await;
        tally.take(passage, &said, &glasses.log().since(mark));
        next = (next + period).max(Instant::now());
    }
    glasses.goodbye().await;
    Ok(tally)
}

/// A caption as it came.
struct Caption {
    at_us: u64,
    utterance: u32,
    is_final: bool,
    /// Its words, as they are shown.
    shown: Vec<String>,
    /// The same without punctuation and case.
    words: Vec<String>,
}

impl Caption {
    fn of(event: &Event) -> Option<Self> {
        let Seen::Transcript { utterance, is_final, text, .. } = &event.seen else { return None };
        let shown: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let words = shown.iter().map(|word| plain(word)).collect();
        Some(Self { at_us: event.at_us, utterance: *utterance, is_final: *is_final, shown, words })
    }

    /// Whether it leaves the words of the one before it as they were, but for the last ones.
    fn keeps(&self, before: &Self) -> bool {
        let (now, before) = if self.is_final { (&self.words, &before.words) } else { (&self.shown, &before.shown) };
        now.starts_with(before.get(..before.len().saturating_sub(LOOSE_WORDS)).unwrap_or_default())
    }
}

/// What became of the passages.
#[derive(Default)]
struct Tally {
    /// From the end of each word to the first caption that has it, in microseconds.
    lags: Vec<i64>,
    /// Of these, words that a partial caption had first.
    early: usize,
    /// Words that no caption had.
    unseen: usize,
    /// Partial captions and final ones that followed another one, and those that changed more than they may.
    partials: usize,
    partials_changed: usize,
    finals: usize,
    finals_changed: usize,
}

impl Tally {
    /// Takes a passage and all events since it began.
    fn take(&mut self, passage: &Passage, said: &ClipTimes, events: &[Event]) {
        let captions: Vec<Caption> = events.iter().filter_map(Caption::of).collect();
        for (word, end_us) in &passage.ends {
            let Some(caption) = captions.iter().find(|caption| caption.words.contains(word)) else {
                self.unseen += 1;
                continue;
            };
            self.lags.push(caption.at_us as i64 - (said.begins_us + end_us) as i64);
            self.early += usize::from(!caption.is_final);
        }
        let mut latest = BTreeMap::<u32, &Caption>::new();
        for caption in &captions {
            let Some(before) = latest.insert(caption.utterance, caption) else { continue };
            let (count, changed) = match caption.is_final {
                false => (&mut self.partials, &mut self.partials_changed),
                true => (&mut self.finals, &mut self.finals_changed),
            };
            *count += 1;
            *changed += usize::from(!caption.keeps(before));
        }
    }

    fn add(&mut self, other: Self) {
        self.lags.extend(other.lags);
        self.early += other.early;
        self.unseen += other.unseen;
        self.partials += other.partials;
        self.partials_changed += other.partials_changed;
        self.finals += other.finals;
        self.finals_changed += other.finals_changed;
    }

    fn report(&self, glasses: u64, aims: &mut Aims) {
        row("end of a word -> first caption with it", self.lags.clone());
        println!(
            "  {} of {} words came in a partial caption first, {} words came in none at all",
            self.early,
            self.lags.len(),
            self.unseen
        );
        println!(
            "  changed before the last {LOOSE_WORDS} words: {} of {} partial captions behind another one, {} of {} final \
             ones",
            self.partials_changed, self.partials, self.finals_changed, self.finals
        );
        let name = format!("{glasses} glasses");
        aims.at_most_percent(&format!("{name}, partial captions changed"), self.partials_changed, self.partials, 0.0);
        if glasses == 1 {
            aims.at_most_ms(&format!("{name}, lag"), &self.lags, 0.95, 300);
        }
    }
}
