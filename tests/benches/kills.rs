//! kill -9 of the gateway at random moments, under devices that talk: whether anything is lost or done twice, and how soon it is back.
//!
//! `cargo xtask bench kills [--kills 100] [--glasses 20] [--seed 1] [--pace 20] [--start-ms 2000]`
//!
//! The gateway runs in a process of its own. Each pair of glasses belongs to a user of its own; half of them use QUIC. They
//! say notes, from packets that were coded beforehand (each one every `--pace` seconds), and in between they type notes
//! and take photos. A mini-app stores values all the time. After each kill the store is read as it was left: what was
//! confirmed has to be there, once, and nothing may be there more often than it was asked for. A kill comes up to 5 s
//! after all glasses were back, and one of four up to a second after the start, in the middle of their return.
//!
//! It ends with an error where something confirmed is missing, something was done twice, a start took more than
//! `--start-ms`, glasses did not come back and go on, a session began anew, or the protocol was broken.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use common::process::{Gateway, Place};
use common::{coded, number, quantile};
use firmware_sim::microphone::Clip;
use firmware_sim::random::Random;
use firmware_sim::transport::Scheme;
use firmware_sim::{Event, Glasses, Options, Seen};
use gateway::control::Request;
use gateway::control::apps::{AppsRequest, Given};
use gateway::store::{Kind, Store};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// What spoken notes are about: words that are not taken for one another.
const WORDS: [&str; 12] = [
    "apples",
    "candles",
    "batteries",
    "potatoes",
    "envelopes",
    "umbrellas",
    "strawberries",
    "hammers",
    "blankets",
    "newspapers",
    "tomatoes",
    "pillows",
];
const PACKAGE: &str = "com.example.ledger";
const KEY: &str = "0123456789abcdef";
/// Keys that the app writes in turn.
const KEYS: u64 = 200;
/// How long a request may stay without an answer: glasses may be out of reach for some of it, and keep a sentence for 30 s.
const ANSWER_MAX: Duration = Duration::from_secs(40);
/// How long the confirmation may take after something else was said.
const MORE_MAX: Duration = Duration::from_secs(5);
/// What is said while a tool takes its time.
const FILLER: &str = "let me check.";
/// How long glasses may take to come back, at most, before they count as gone.
const BACK_MAX: Duration = Duration::from_secs(60);

/// What was asked for and confirmed, by user or key, and what it is about.
#[derive(Debug, Default)]
struct Book {
    /// Asked for, and confirmed.
    notes: BTreeMap<(String, String), (u64, u64)>,
    photos: BTreeMap<String, (u64, u64)>,
    /// By key: the last value that was sent, and the last one that was confirmed.
    values: BTreeMap<String, (u64, Option<u64>)>,
    puts: (u64, u64),
    turns: BTreeMap<&'static str, u64>,
    /// What else was said to requests.
    otherwise: BTreeMap<String, u64>,
}

type Shared = Arc<Mutex<Book>>;

fn with<R>(book: &Shared, act: impl FnOnce(&mut Book) -> R) -> R {
    act(&mut book.lock().unwrap_or_else(PoisonError::into_inner))
}

fn main() -> ExitCode {
    if let Some(code) = common::process::serve() {
        return code;
    }
    let run = common::runtime().and_then(|runtime| runtime.block_on(run()));
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    common::calibrate("before")?;
    drop(rustls::crypto::ring::default_provider().install_default());
    let (kills, count, seed) = (number("--kills", 100)?, number("--glasses", 20)?, number("--seed", 1)?);
    let (pace, start_ms) = (Duration::from_secs(number("--pace", 20)?), number("--start-ms", 2_000)?);
    let folder = tempfile::tempdir()?;
    let place = Arc::new(Place::new(folder.path())?);
    let say = |word: &&str| coded(&format!("Hey Mentra, take a note: buy {word}."), folder.path());
    let clips: Arc<[Clip]> = WORDS.iter().map(say).collect::<Result<_>>()?;
    let mut gateway = place.start().await?;
    println!("{kills} kills, {count} glasses, seed {seed}; first start {} ms", gateway.start.as_millis());
    let glasses = let_in(&place, folder.path(), count).await?;
    install(&place).await?;

    let (book, stop) = (Shared::default(), CancellationToken::new());
    let mut tasks = JoinSet::new();
    for (one, glasses) in (0..).zip(&glasses) {
        let wearer = Wearer { glasses: glasses.clone(), user: user(one), book: book.clone() };
        let random = Random::new(seed.wrapping_mul(1_000_003) ^ (one << 8));
        let living = wearer.live(clips.clone(), pace, random, stop.clone());
        tasks.spawn(async move { living.await.with_context(|| user(one)) });
    }
    tasks.spawn(app(place.clone(), book.clone(), stop.clone()));

    let mut random = Random::new(seed);
    let (mut starts, mut back, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    let mut returns = Returns::of(&glasses);
    for kill in 0..kills {
        // In the middle of the return from the last kill, or behind it.
        let early = kill > 0 && random.below(4) == 0;
        if !early {
            returns.wait(&glasses, &mut back, &mut broken).await?;
        }
        sleep(Duration::from_millis(random.below(if early { 1_000 } else { 5_000 }))).await;
        gateway.kill().await?;
        returns.kills(kill, &glasses);
        broken.extend(check(&place.data, &book)?.into_iter().map(|what| format!("kill {kill}: {what}")));
        gateway = place.start().await.inspect_err(|_| tell(&broken))?;
        starts.push(i64::try_from(gateway.start.as_micros())?);
        returns.starts(&glasses);
        println!("  {} of {kills} kills{}", kill + 1, if early { ", early" } else { "" });
    }
    returns.wait(&glasses, &mut back, &mut broken).await?;
    stop.cancel();
    while let Some(ended) = tasks.join_next().await {
        broken.extend(ended?.err().map(|error| format!("{error:#}")));
    }
    broken.extend(afterwards(&place, gateway, &glasses, &book).await?);
    returns.look(&glasses, &mut broken);
    report(&book, &glasses, starts.clone(), back);
    tell(&broken);
    ensure!(broken.is_empty(), "{} requirements broken", broken.len());
    let longest = quantile(&mut starts, 1.0).unwrap_or(0) / 1_000;
    ensure!(longest <= i64::try_from(start_ms)?, "a start took {longest} ms");
    Ok(())
}

fn tell(broken: &[String]) {
    for what in broken {
        println!("BROKEN: {what}");
    }
}

/// What glasses do after kills.
struct Returns {
    /// The last kill, the glasses' events until then, and their times when the next gateway was ready; `None`: no kill.
    last: Option<(u64, Vec<u64>, Vec<u64>)>,
    /// The glasses' events that were looked at.
    seen: Vec<u64>,
}

impl Returns {
    fn of(glasses: &[Arc<Glasses>]) -> Self {
        Self { last: None, seen: glasses.iter().map(|one| one.log().mark()).collect() }
    }

    fn kills(&mut self, kill: u64, glasses: &[Arc<Glasses>]) {
        self.last = Some((kill, glasses.iter().map(|one| one.log().mark()).collect(), Vec::new()));
    }

    fn starts(&mut self, glasses: &[Arc<Glasses>]) {
        if let Some((_, _, ready)) = &mut self.last {
            *ready = glasses.iter().map(|one| one.now_us()).collect();
        }
    }

    /// Waits until all are back, and notes how long each took.
    async fn wait(&mut self, glasses: &[Arc<Glasses>], back: &mut Vec<i64>, broken: &mut Vec<String>) -> Result<()> {
        if let Some((kill, marks, ready)) = &self.last {
            // What is over does not come back: it is told once, by the one who lives with it.
            for (at, one) in glasses.iter().enumerate().filter(|(_, one)| !one.is_over()) {
                match timeout(BACK_MAX, one.log().find(marks[at], is_welcome)).await {
                    Ok((welcome, _)) => back.push(i64::try_from(welcome.at_us.saturating_sub(ready[at]))?),
                    Err(_) => broken.push(format!("kill {kill}: glasses {at} did not come back")),
                }
            }
        }
        self.look(glasses, broken);
        Ok(())
    }

    /// Notes the sessions that began anew since the last look, and what broke the protocol.
    fn look(&mut self, glasses: &[Arc<Glasses>], broken: &mut Vec<String>) {
        let kill = self.last.as_ref().map_or(0, |(kill, ..)| *kill);
        for (at, one) in glasses.iter().enumerate() {
            let events = one.log().since(self.seen[at]);
            self.seen[at] += events.len() as u64;
            for event in events {
                let what = match event.seen {
                    Seen::Welcome { continued: false, resumed: false, .. } => "began anew".to_owned(),
                    Seen::Violation { what } => format!("saw the protocol broken: {what}"),
                    _ => continue,
                };
                broken.push(format!("up to kill {kill}: glasses {at} {what}"));
            }
        }
    }
}

fn user(number: u64) -> String {
    format!("user-{number}")
}

fn is_welcome(event: &Event) -> bool {
    matches!(event.seen, Seen::Welcome { .. })
}

/// Switches glasses on, and pairs each with a user of its own.
async fn let_in(place: &Place, folder: &Path, count: u64) -> Result<Vec<Arc<Glasses>>> {
    let silence = common::silence()?;
    let mut all = Vec::new();
    for number in 0..count {
        let scheme = if number % 2 == 0 { Scheme::Wss } else { Scheme::Quic };
        let mut options = Options::new(place.target(scheme)?, &folder.join(format!("glasses-{number}")));
        options.decode = false;
        options.silence = Some(silence.clone());
        options.seed = number;
        let mut glasses = Glasses::start(options)?;
        let fingerprint = glasses.fingerprint().to_owned();
        place.ask(Request::PairFingerprint { fingerprint, user: user(number), name: String::new() }).await?;
        timeout(BACK_MAX, glasses.welcomed()).await.context("no welcome")??;
        all.push(Arc::new(glasses));
    }
    Ok(all)
}

/// Installs the app; nobody answers at its address, it only stores.
async fn install(place: &Place) -> Result<()> {
    let url = "http://127.0.0.1:1".to_owned();
    let manifest = json!({"packageName": PACKAGE, "name": "Ledger", "description": "Stores numbers.", "version": "1",
        "publicUrl": url, "settings": [], "permissions": []});
    let api_key = Some(KEY.to_owned());
    let given = Given { manifest: manifest.to_string(), url: Some(url), api_key, ..Given::default() };
    place.ask(Request::Apps { request: AppsRequest::Add(given) }).await?;
    // From now on it has something to do with this user.
    drop(place.ask(Request::Apps { request: AppsRequest::Start { package: PACKAGE.to_owned(), user: user(0) } }).await);
    Ok(())
}

/// Stores one value after the other.
async fn app(place: Arc<Place>, book: Shared, stop: CancellationToken) -> Result<()> {
    let client = reqwest::Client::builder().timeout(ANSWER_MAX).build()?;
    for value in 1.. {
        if stop.is_cancelled() {
            break;
        }
        let key = format!("key-{}", value % KEYS);
        with(&book, |book| {
            book.values.entry(key.clone()).or_default().0 = value;
            book.puts.0 += 1;
        });
        let url = place.url(&format!("/api/sdk/simple-storage/{}/{key}", user(0)));
        let put = client.put(url).bearer_auth(format!("{PACKAGE}:{KEY}")).json(&json!({ "value": value }));
        if put.send().await.is_ok_and(|answer| answer.status().is_success()) {
            with(&book, |book| {
                book.values.entry(key).or_default().1 = Some(value);
                book.puts.1 += 1;
            });
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Someone with glasses.
struct Wearer {
    glasses: Arc<Glasses>,
    user: String,
    book: Shared,
}

impl Wearer {
    /// Speaks, types and takes photos until `stop`.
    async fn live(self, clips: Arc<[Clip]>, pace: Duration, mut random: Random, stop: CancellationToken) -> Result<()> {
        let mut spoken = Instant::now() + pace.mul_f64(random.unit());
        for number in 0.. {
            if stop.is_cancelled() {
                break;
            }
            if Instant::now() >= spoken {
                spoken += pace;
                let at = random.below(WORDS.len() as u64) as usize;
                let saying = self.glasses.say(clips[at].clone());
                self.note(WORDS[at], async { saying.await.map(drop) }).await?;
            } else if random.below(5) == 0 {
                self.photo().await?;
            } else {
                let about = format!("parcel {number} is late");
                let request = format!("take a note: {about}");
                self.note(&about, self.glasses.text(&request)).await?;
            }
            sleep(Duration::from_millis(random.below(2_000))).await;
        }
        Ok(())
    }

    async fn note(&self, about: &str, asking: impl Future<Output = Result<(), firmware_sim::Error>>) -> Result<()> {
        let key = (self.user.clone(), about.to_owned());
        with(&self.book, |book| book.notes.entry(key.clone()).or_default().0 += 1);
        let mark = self.glasses.log().mark();
        asking.await?;
        if self.turn(mark, &["noted", about]).await {
            with(&self.book, |book| book.notes.entry(key).or_default().1 += 1);
        }
        Ok(())
    }

    async fn photo(&self) -> Result<()> {
        with(&self.book, |book| book.photos.entry(self.user.clone()).or_default().0 += 1);
        let mark = self.glasses.log().mark();
        self.glasses.text("take a photo").await?;
        if self.turn(mark, &["photo taken"]).await {
            with(&self.book, |book| book.photos.entry(self.user.clone()).or_default().1 += 1);
        }
        Ok(())
    }

    /// Waits for the end of a turn: whether it was confirmed, with all these words. Answers to earlier requests may come
    /// first, since glasses send again what was not dealt with.
    async fn turn(&self, mark: u64, words: &[&str]) -> bool {
        let (mut next, mut ends, mut outcome) = (mark, Instant::now() + ANSWER_MAX, "without a word");
        let is_told = |event: &Event| {
            matches!(event.seen, Seen::SpeechStart { .. } | Seen::Display { .. } | Seen::LinkSound { sound: "error" })
        };
        while let Ok((event, after)) = timeout_at(ends, self.glasses.log().find(next, is_told)).await {
            next = after;
            let (text, is_speech) = match event.seen {
                Seen::SpeechStart { text, .. } => (text.to_lowercase(), true),
                Seen::Display { text, .. } => (text.to_lowercase(), false),
                // It may be about something else that was said: an answer may still follow.
                _ => {
                    if outcome == "without a word" {
                        outcome = "told by a sound";
                    }
                    continue;
                }
            };
            if words.iter().all(|word| text.contains(word)) {
                outcome = "confirmed";
                break;
            } else if text.contains("i was restarted") {
                outcome = "told of the restart";
            } else if is_speech && !text.contains("noted") && text != FILLER {
                outcome = "answered otherwise";
                with(&self.book, |book| *book.otherwise.entry(text).or_default() += 1);
            } else {
                continue;
            }
            ends = ends.min(Instant::now() + MORE_MAX);
        }
        with(&self.book, |book| *book.turns.entry(outcome).or_default() += 1);
        if outcome == "without a word" {
            println!("WITHOUT A WORD: {} {words:?}", self.user);
            for event in self.glasses.log().since(mark) {
                println!("  {:10.3} s {:?}", event.at_us as f64 / 1e6, event.seen);
            }
        }
        outcome == "confirmed"
    }
}

/// Compares what a killed gateway has left with what it has confirmed.
fn check(data: &Path, book: &Shared) -> Result<Vec<String>> {
    // A copy, so that the next start finds what the kill has left, and no more.
    let copy = tempfile::tempdir()?;
    for file in std::fs::read_dir(data.join("store"))? {
        let file = file?;
        std::fs::copy(file.path(), copy.path().join(file.file_name()))?;
    }
    let store = Store::open(copy.path(), 1_024)?;
    with(book, |book| {
        let mut broken = Vec::new();
        let mut notes = BTreeMap::<&str, Vec<String>>::new();
        for (user, _) in book.notes.keys() {
            if !notes.contains_key(user.as_str()) {
                let found = store.disk().notes(user, 100_000, |_| true)?;
                notes.insert(user, found.into_iter().map(|(_, note)| note.text.to_lowercase()).collect());
            }
        }
        for ((user, about), (asked, confirmed)) in &book.notes {
            let found = notes[user.as_str()].iter().filter(|text| text.contains(about)).count() as u64;
            if found < *confirmed || found > *asked {
                broken.push(format!(
                    "notes of {user} about {about}: {asked} asked, {confirmed} confirmed, {found} found"
                ));
            }
        }
        for (key, (sent, confirmed)) in &book.values {
            let row = store.disk().row(Kind::AppStorage, &user(0), format!("{PACKAGE}\0{key}").as_bytes())?;
            let found = row.and_then(|bytes| serde_json::from_slice::<u64>(&bytes).ok());
            if found < *confirmed || found > Some(*sent) {
                broken.push(format!("{key}: {sent} sent, {confirmed:?} confirmed, {found:?} found"));
            }
        }
        for (user, (asked, confirmed)) in &book.photos {
            let folder = data.join("photos").join(user);
            let whole = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let found = whole.filter(|file| file.path().extension().is_some_and(|end| end == "png")).count() as u64;
            if found < *confirmed || found > *asked {
                broken.push(format!("photos of {user}: {asked} asked, {confirmed} confirmed, {found} found"));
            }
        }
        Ok(broken)
    })
}

/// When it is over: a turn of each pair of glasses, and the store once more.
async fn afterwards(place: &Place, gateway: Gateway, glasses: &[Arc<Glasses>], book: &Shared) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for (at, one) in glasses.iter().enumerate() {
        let mark = one.log().mark();
        if let Err(error) = one.text("what is twelve times three?").await {
            broken.push(format!("glasses {at} did not go on: {error}"));
            continue;
        }
        let answer = |event: &Event| matches!(&event.seen, Seen::SpeechStart { text, .. } if text.contains("36"));
        if timeout(BACK_MAX, one.log().find(mark, answer)).await.is_err() {
            broken.push(format!("glasses {at} did not go on"));
        }
    }
    gateway.kill().await?;
    broken.extend(check(&place.data, book)?);
    Ok(broken)
}

fn report(book: &Shared, glasses: &[Arc<Glasses>], mut starts: Vec<i64>, mut back: Vec<i64>) {
    let ms = |us: Option<i64>| us.unwrap_or(0) as f64 / 1e3;
    println!(
        "start, process to ready: median {:.0} ms, longest {:.0} ms",
        ms(quantile(&mut starts, 0.5)),
        ms(quantile(&mut starts, 1.0))
    );
    println!(
        "from ready to welcomed, {} times: median {:.0} ms, 95 % {:.0} ms, longest {:.0} ms",
        back.len(),
        ms(quantile(&mut back, 0.5)),
        ms(quantile(&mut back, 0.95)),
        ms(quantile(&mut back, 1.0))
    );
    let events: Vec<Event> = glasses.iter().flat_map(|one| one.log().since(0)).collect();
    let count = |wanted: &dyn Fn(&Seen) -> bool| events.iter().filter(|event| wanted(&event.seen)).count();
    println!(
        "sessions: {} went on, {} began anew; protocol violations {}",
        count(&|seen| matches!(seen, Seen::Welcome { continued: true, .. } | Seen::Welcome { resumed: true, .. })),
        count(&|seen| matches!(seen, Seen::Welcome { continued: false, resumed: false, .. }))
            .saturating_sub(glasses.len()),
        count(&|seen| matches!(seen, Seen::Violation { .. }))
    );
    with(book, |book| {
        let sum = |(asked, confirmed): (u64, u64), (more, and): &(u64, u64)| (asked + more, confirmed + and);
        let (notes, photos) = (book.notes.values().fold((0, 0), sum), book.photos.values().fold((0, 0), sum));
        for (name, (asked, confirmed)) in [("notes", notes), ("photos", photos), ("values of the app", book.puts)] {
            println!("{name}: {asked} asked for, {confirmed} confirmed");
        }
        println!("turns: {:?}", book.turns);
        for (text, count) in &book.otherwise {
            println!("  {count:4} {text}");
        }
    });
}
