//! The offline engine on the tables of sentences, and its false positives.

mod apps;
mod dictated;
mod fixture;
mod languages;
mod pauses;
mod questions;
mod sides;
mod tables;
mod turned;

use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    process::Command,
    time::Instant,
};

use chat_models::{
    ChatModel, Request,
    intents::{self, Decision, Engine},
};
use fixture::{is_held_out, request, tool, tools};
use gateway_core::vocab::{Message, ModelEvent, Part, Role, StopReason, ToolResult};
use serde_json::{Value, json};
use tables::Row;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Number of unrelated sentences for the false positive rate.
const UNRELATED: usize = 2_000;

fn rows() -> Vec<Row> {
    tables::rows(include_str!("../../data/intents/sentences.tsv"))
}

/// The call that was decided; the names of several are joined.
fn decide(engine: &Engine, sentence: &str) -> Option<(String, Value)> {
    match engine.decide(&request(sentence, &tools_once())) {
        Decision::Say(_) | Decision::Ask(..) => None,
        Decision::Calls(calls) => {
            let names: Vec<String> = calls.iter().map(|call| call.name.clone()).collect();
            let mut arguments: Vec<Value> = calls.into_iter().map(|call| call.arguments).collect();
            Some((names.join("+"), arguments.swap_remove(0)))
        }
    }
}

fn tools_once() -> chat_models::Tools {
    static TOOLS: std::sync::OnceLock<chat_models::Tools> = std::sync::OnceLock::new();
    TOOLS.get_or_init(tools).clone()
}

#[test]
fn every_template_compiles() {
    for tool in tools_once().iter() {
        assert_eq!(intents::check(tool), [], "{}", tool.name);
    }
}

/// Failures of the development half are printed; of the held-out half only their number is, so that nobody tunes to it.
#[test]
fn sentences_lead_to_the_right_tool_with_the_right_arguments() {
    let engine = Engine::new();
    // Per half: commands, right, wrong tool or arguments; others, false positives.
    let mut counts = [[0_u32; 5]; 2];
    for row in rows() {
        let half = usize::from(is_held_out(row.sentence));
        let got = decide(&engine, row.sentence);
        let got = got.as_ref().map(|(name, arguments)| (name.as_str(), arguments.clone()));
        let count = &mut counts[half];
        match (&row.expected, &got) {
            (None, None) => count[3] += 1,
            (None, Some(_)) => {
                count[3] += 1;
                count[4] += 1;
            }
            (Some(_), _) => {
                count[0] += 1;
                if row.expected == got {
                    count[1] += 1;
                } else if got.is_some() {
                    count[2] += 1;
                }
            }
        }
        if half == 0 && row.expected != got {
            println!("{}\n   want {:?}\n   got  {got:?}", row.sentence, row.expected);
        }
    }
    for (name, [commands, right, wrong, others, fired]) in ["development", "held-out"].into_iter().zip(counts) {
        println!("{name}: {right} of {commands} commands right, {wrong} wrong; {fired} of {others} others fired");
    }
    for [commands, right, wrong, others, fired] in counts {
        assert!(commands >= 150 && others >= 40, "both halves are filled");
        assert!(right * 100 >= commands * 90, "{right} of {commands}");
        assert!(wrong * 100 <= commands * 3, "{wrong} wrong calls");
        assert!(fired * 100 <= others * 5, "{fired} of {others} fired");
    }
}

/// Letters and digits only: "Wi-Fi" equals "wifi".
fn plain(value: &Value) -> String {
    value.to_string().chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Transcripts of the same sentences in three synthetic voices, if they differ from the sentences. No success rate is
/// required, since many cannot be understood; a wrong call is worse.
#[test]
fn misheard_sentences_are_mostly_understood() {
    let engine = Engine::new();
    let expected: HashMap<&str, (&str, Value)> =
        rows().into_iter().filter_map(|row| Some((row.sentence, row.expected?))).collect();
    // Per half: sentences, right, right tool with other arguments, wrong tool.
    let mut counts = [[0_u32; 4]; 2];
    let table = include_str!("../../data/intents/heard.tsv");
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[voice, sentence, heard] = &cells[..] else { panic!("three cells: {line}") };
        let (name, arguments) = &expected[sentence];
        let got = decide(&engine, heard);
        let count = &mut counts[usize::from(is_held_out(sentence))];
        count[0] += 1;
        let kind = match &got {
            Some((tool, given)) if tool == name && plain(given) == plain(arguments) => Some(1),
            Some((tool, _)) if tool == name => Some(2),
            Some(_) => Some(3),
            None => None,
        };
        if let Some(kind) = kind {
            count[kind] += 1;
        }
        if kind != Some(1) && !is_held_out(sentence) {
            println!("{voice}: {sentence}\n   heard {heard}\n   got {got:?}");
        }
    }
    for (name, [sentences, right, others, wrong]) in ["development", "held-out"].into_iter().zip(counts) {
        println!("misheard, {name}: of {sentences} {right} right, {others} with other arguments, {wrong} wrong tools");
    }
    for [sentences, right, _, wrong] in counts {
        assert!(sentences >= 100 && wrong * 100 <= sentences * 3, "{wrong} wrong tools of {sentences}");
        assert!(right * 100 >= sentences * 25, "{right} of {sentences}");
    }
}

#[test]
fn unrelated_sentences_call_nothing() {
    let engine = Engine::new();
    let mut prompts = asterisk_prompts();
    println!("{} telephone prompts", prompts.len());
    prompts.extend(everyday(UNRELATED.saturating_sub(prompts.len())));
    assert!(prompts.len() >= UNRELATED, "{}", prompts.len());
    let mut halves = [(0_u32, 0_u32); 2];
    for sentence in &prompts {
        let half = usize::from(is_held_out(sentence));
        halves[half].0 += 1;
        if let Some(call) = decide(&engine, sentence) {
            halves[half].1 += 1;
            if half == 0 {
                println!("fired: {sentence}\n   {call:?}");
            }
        }
    }
    println!("development, held-out (sentences, fired): {halves:?}");
    for (sentences, fired) in halves {
        assert!(f64::from(fired) <= 0.005 * f64::from(sentences));
    }
}

/// The sentences of the asterisk package if it was fetched, else none.
fn asterisk_prompts() -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let root = std::env::var_os("LORGNETTE_SPEECH")
        .map(PathBuf::from)
        .or_else(|| Some(home?.join(".local/share/lorgnette/speech")));
    let file = "asterisk-core-sounds-en/usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz";
    let Some(path) = root.map(|root| root.join(file)).filter(|path| path.exists()) else {
        return Vec::new();
    };
    let text = Command::new("gzip").arg("-dc").arg(path).output().expect("gzip");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let lines = text.lines().filter(|line| !line.starts_with(';'));
    lines.filter_map(|line| Some(line.split_once(": ")?.1.trim().to_owned())).filter(|text| !text.is_empty()).collect()
}

/// Everyday talk from the patterns of `unrelated.txt`: all patterns in rotation, each time with new words, until there
/// are `count` different sentences.
fn everyday(count: usize) -> Vec<String> {
    let text = include_str!("../../data/intents/unrelated.txt");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let (lists, patterns): (Vec<&str>, Vec<&str>) =
        lines.into_iter().partition(|line| line.split_once(": ").is_some_and(|(name, _)| !name.contains(' ')));
    let lists: HashMap<&str, Vec<&str>> = lists
        .into_iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, words)| (name, words.split(", ").collect()))
        .collect();
    let mut seed = 1_u64;
    let mut next = |below: usize| {
        // Numerical Recipes' generator: any will do, as long as it is the same everywhere.
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) & 0xffff_ffff;
        (seed >> 8) as usize % below
    };
    let mut out = BTreeSet::new();
    for _ in 0..200 {
        for pattern in &patterns {
            if out.len() == count {
                return out.into_iter().collect();
            }
            let mut sentence = (*pattern).to_owned();
            while let Some((before, rest)) = sentence.split_once('{') {
                let (name, after) = rest.split_once('}').expect("a closing brace");
                let words = &lists[name];
                sentence = format!("{before}{}{after}", words[next(words.len())]);
            }
            out.insert(sentence);
        }
    }
    out.into_iter().collect()
}

#[test]
fn a_tool_registered_at_run_time_can_be_spoken_to() {
    let engine = Engine::new();
    let without = tools();
    let sentence = "Could you water the tomatoes for two and a half minutes, please?";
    assert!(matches!(engine.decide(&request(sentence, &without)), Decision::Say(_)));
    let mut list = without.to_vec();
    let water = tool(
        "garden.water",
        json!({
            "bed": {"type": "string", "enum": ["tomatoes", "herb_garden"]},
            "seconds": {"type": "integer", "maximum": 600},
            "gently": {"type": "boolean"},
        }),
        &["bed"],
        &["[{gently=true} gently] water the {bed} [for {seconds:duration}]"],
    );
    list.push(water.into());
    let with = list.into();
    let ask = |sentence: &str| match engine.decide(&request(sentence, &with)) {
        Decision::Calls(calls) => calls.into_iter().map(|call| (call.name, call.arguments)).collect(),
        Decision::Say(_) | Decision::Ask(..) => Vec::new(),
    };
    let call = |arguments| vec![("garden.water".to_owned(), arguments)];
    assert_eq!(ask(sentence), call(json!({"bed": "tomatoes", "seconds": 150})));
    assert_eq!(ask("Gently water the herb garden."), call(json!({"bed": "herb_garden", "gently": true})));
    // Beyond the schema's bounds, an unknown bed, words after the command.
    assert_eq!(ask("Water the tomatoes for two hours."), []);
    assert_eq!(ask("Water the roses."), []);
    assert_eq!(ask("Water the tomatoes like you did in spring."), []);
}

#[test]
fn a_hostile_tool_costs_bounded_time_and_takes_nobodys_sentences() {
    let mut list = tools().to_vec();
    let greedy = "[a] [b] {x} [c] {y} [d] {z} [e] {x} word {y}";
    let mut hostile = tool(
        "evil",
        json!({"x": {"type": "string"}, "y": {"type": "string"}, "z": {"type": "string"}}),
        &[],
        &["{x}", "the {x}", "do {x}", "((((((((((x))))))))))", "[", greedy],
    );
    let many = (0..1_000).map(|_| greedy.to_owned());
    hostile.phrases[0].templates.extend(many);
    list.push(hostile.into());
    let tools = list.into();
    let engine = Engine::new();
    let long = "set a timer for ten minutes word ".repeat(50);
    assert!(!matches!(engine.decide(&request(&long, &tools)), Decision::Calls(_)));
    let ask = |sentence: &str| match engine.decide(&request(sentence, &tools)) {
        Decision::Calls(calls) => calls[0].name.clone(),
        Decision::Say(_) | Decision::Ask(..) => String::new(),
    };
    assert_eq!(ask("set a timer for ten minutes"), "timer.set");
    assert_eq!(ask("do what you like"), "");
}

/// The longest utterance of words that a template takes, skips or splits at. On a thread with the stack size of a
/// runtime's worker.
#[test]
fn long_utterances_neither_overflow_nor_hang() {
    let pieces = [
        "the ",
        "please ",
        "help and ",
        "a timer for ",
        "5 ",
        "one ",
        "half past ",
        "remind me to ",
        "set a ten minute timer and ",
        "take a note ",
        "at 5 pm tomorrow in ten minutes ",
    ];
    let run = move || {
        let engine = Engine::new();
        for piece in pieces {
            for start in ["", "take a note ", "remind me to ", "set a timer "] {
                let room = intents::UTTERANCE_BYTES_MAX - start.len();
                let text = format!("{start}{}", piece.repeat(room / piece.len()));
                let begun = Instant::now();
                decide(&engine, &text);
                let took = begun.elapsed();
                if took.as_millis() > 20 {
                    println!("{start:?} and many {piece:?}: {took:?}");
                }
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run);
    thread.expect("a thread").join().expect("no overflow");
}

#[test]
fn one_misheard_word_is_forgiven() {
    let engine = Engine::new();
    let cases = [
        ("Set a time for ten minutes.", Some("timer.set")),
        ("Said a timer for ten minutes.", Some("timer.set")),
        ("Turn up the volumes.", Some("audio.volume")),
        ("Take a phot of this.", Some("camera.photo")),
        ("Can sell the pasta timer.", Some("timer.cancel")),
        ("Red my notes.", Some("note.list")),
        ("Right down that the keys are under the mat.", Some("note.add")),
        ("Set a timer for hour and a half.", Some("timer.set")),
        ("Which timers they're running?", Some("timer.list")),
        ("New timer, for minutes.", Some("timer.set")),
        // Another word, or too few other words.
        ("Dim the displays.", Some("display.brightness")),
        ("Dim the lights.", None),
        // Two wrong words, or one next to free text: anything could have been said.
        ("Sett a time for ten minutes.", None),
        ("Make a vote that Anna likes tulips.", None),
        ("Cancel the dinner.", None),
        ("He set the egg timer for ten minutes.", None),
    ];
    for (sentence, expected) in cases {
        let got = decide(&engine, sentence).map(|(name, _)| name);
        assert_eq!(got.as_deref(), expected, "{sentence}");
    }
}

#[test]
fn two_commands_in_one_breath() {
    let engine = Engine::new();
    let tools = tools_once();
    let Decision::Calls(calls) =
        engine.decide(&request("Set a timer for five minutes and turn the volume up, please.", &tools))
    else {
        panic!("not understood")
    };
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["timer.set", "audio.volume"]);
    assert_ne!(calls[0].id, calls[1].id);
}

#[test]
fn what_is_not_understood_gets_an_example() {
    let engine = Engine::new();
    let said = |sentence: &str| match engine.decide(&request(sentence, &tools_once())) {
        Decision::Say(text) => text,
        other => panic!("{other:?}"),
    };
    let near = said("Set the timer to purple");
    assert!(near.contains("timer") && near.contains("ten minutes"), "{near}");
    let unknown = said("Who painted the Mona Lisa?");
    assert!(unknown.contains("no command that I know") && unknown.contains("what time is it"), "{unknown}");
    for text in ["", "...", "\u{1f600}"] {
        assert!(!said(text).is_empty());
    }
}

#[tokio::test]
async fn the_engine_is_a_chat_model() {
    let engine = Engine::new();
    let first = request("Set a timer for ten minutes", &tools_once());
    let events = stream(&engine, first.clone()).await;
    let [ModelEvent::ToolCall(call), ModelEvent::Done { stop, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(*stop, StopReason::ToolCalls);
    assert_eq!(call.arguments, json!({"seconds": 600}));
    let again = stream(&engine, first.clone()).await;
    assert_ne!(events, again, "ids differ");

    let mut second = first;
    second.messages.push(Message { role: Role::Assistant, parts: vec![Part::ToolCall { call: call.clone() }] });
    second.messages.push(Message {
        role: Role::Tool,
        parts: vec![Part::ToolResult {
            call_id: call.id.clone(),
            result: ToolResult::said("Ten minutes, starting now"),
        }],
    });
    let events = stream(&engine, second).await;
    let [ModelEvent::Text(text), ModelEvent::Done { stop, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(text, "Ten minutes, starting now.");
    assert_eq!(*stop, StopReason::End);
}

async fn stream(engine: &Engine, request: Request) -> Vec<ModelEvent> {
    let (sender, mut receiver) = mpsc::channel(8);
    engine.stream(request, sender, CancellationToken::new()).await;
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        events.push(event);
    }
    events
}

/// Prints the microseconds of one decision among 60 tools; without an assertion on time.
#[test]
fn speed_among_sixty_tools() {
    let mut list = tools().to_vec();
    for copy in 0..42 {
        let mut tool = gateway_core::vocab::ToolSpec::clone(&list[copy % 18]);
        tool.name = format!("copy{copy}.{}", tool.name);
        list.push(tool.into());
    }
    let tools = list.into();
    let engine = Engine::new();
    let start = Instant::now();
    let templates = engine.prepare(&tools, "en");
    println!("{templates} templates compiled in {:?}", start.elapsed());
    let mut times: Vec<_> = rows()
        .iter()
        .map(|row| {
            let request = request(row.sentence, &tools);
            // The best of some runs, to exclude other load of the machine.
            let run = || {
                let start = Instant::now();
                std::hint::black_box(engine.decide(&request));
                start.elapsed()
            };
            let best = (0..5).map(|_| run()).min().unwrap_or_default();
            (best, row.sentence)
        })
        .collect();
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("median {:?}, p99 {:?}, max {:?}", at(50).0, at(99), at(100));
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config {
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    })]

    #[test]
    fn no_text_panics(text in "\\PC{0,120}") {
        decide(shared(), &text);
    }

    #[test]
    fn no_word_salad_panics(words in proptest::collection::vec("(set|remind|me|timer|for|at|in|to|half|past|quarter|and|a|an|of|ten|5|17:30|hour|minutes|pm|friday|may|third|times|percent|-|note|about|,|point|hundred)", 0..25)) {
        decide(shared(), &words.join(" "));
    }
}

fn shared() -> &'static Engine {
    static ENGINE: std::sync::OnceLock<Engine> = std::sync::OnceLock::new();
    ENGINE.get_or_init(Engine::new)
}
