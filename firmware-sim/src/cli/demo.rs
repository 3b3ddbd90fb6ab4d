//! `lorgnette-sim demo`: spoken turns over both transports, in the simulator's voice.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use firmware_sim::latency::{self, Latency};
use firmware_sim::microphone::{Clip, ClipTimes};
use firmware_sim::transport::Target;
use firmware_sim::{Event, Glasses, Options, Seen, record};

use super::options::Common;
use super::show::{self, Style, plain};
use super::{pair, say};

/// Run the demo with glasses that are already paired.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Address of the WebSocket.
    #[arg(long)]
    gateway_ws: Target,
    /// Address of QUIC.
    #[arg(long)]
    gateway_quic: Target,
    /// Call the example of a mini-app, too (`reminders` of the kit), which the gateway must have.
    #[arg(long)]
    with_app: bool,
    /// Call the example of an MCP server, too (`shopping_list`), which the gateway must have.
    #[arg(long)]
    with_server: bool,
    /// Run a routine, too, which the gateway must have: a program, kept under the phrase "run my evening summary".
    #[arg(long)]
    with_routine: bool,
    /// Folder for what was heard, a WAV file for each turn.
    #[arg(long, default_value = ".")]
    out: PathBuf,
    /// Seconds to wait for an answer.
    #[arg(long, default_value_t = 30)]
    wait_s: u64,
    /// Also ask what only a language model can answer.
    #[arg(long)]
    with_model: bool,
}

/// What a turn must result in.
enum Proof {
    /// The answer contains one of these.
    Answer(&'static [&'static str]),
    /// This device tool is called with these arguments.
    Tool(&'static str, &'static str),
}

struct Scene {
    title: &'static str,
    name: &'static str,
    sentence: &'static str,
    proof: Proof,
}

const OVER_WEBSOCKET: [Scene; 3] = [
    Scene {
        title: "a timer",
        name: "timer",
        sentence: "Hey Mentra, set a timer for ten minutes.",
        proof: Proof::Answer(&["ten minute", "10 minute", "10:00"]),
    },
    Scene {
        title: "a note",
        name: "note",
        sentence: "Hey Mentra, take a note: call the dentist on Friday.",
        proof: Proof::Answer(&["dentist"]),
    },
    Scene {
        title: "a tool of the glasses themselves",
        name: "brightness",
        sentence: "Hey Mentra, set the brightness to forty percent.",
        proof: Proof::Tool("display.brightness", "40"),
    },
];

const OF_AN_APP: Scene = Scene {
    title: "a mini-app, started by the call",
    name: "app",
    sentence: "Hey Mentra, keep in mind the train at noon.",
    proof: Proof::Answer(&["keep in mind the train"]),
};

const OF_A_SERVER: Scene = Scene {
    title: "a tool of an MCP server",
    name: "mcp",
    sentence: "Hey Mentra, put apples on my shopping list.",
    proof: Proof::Answer(&["on the shopping list"]),
};

/// The program reads the note of the second turn. It was written by hand: no model takes part.
const OF_A_ROUTINE: Scene = Scene {
    title: "a program, written by hand and kept as a routine",
    name: "routine",
    sentence: "Hey Mentra, run my evening summary.",
    proof: Proof::Answer(&["dentist"]),
};

const OVER_QUIC: Scene = Scene {
    title: "the time, over QUIC",
    name: "time",
    sentence: "Hey Mentra, what time is it?",
    proof: Proof::Answer(&["it", "time", "clock"]),
};

/// Only a language model can answer this.
const OF_A_MODEL: Scene = Scene {
    title: "a question to the language model",
    name: "question",
    sentence: "Hey Mentra, what is the capital of France?",
    proof: Proof::Answer(&["paris"]),
};

/// A question with a long answer, and the interruption.
const LONG_QUESTION: &str = "Hey Mentra, what can I say?";
const INTERRUPTION: &str = "Mentra, stop.";
/// How much of the long answer plays before the interruption.
const LISTEN: Duration = Duration::from_millis(1_200);

/// Pause between two turns, so that they can be told apart by ear.
const REST: Duration = Duration::from_millis(600);

pub(super) async fn run(common: &Common, arguments: &Arguments) -> Result<()> {
    let folder = arguments.out.clone();
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let began = Instant::now();
    let mut stage = Stage {
        style: Style::detect(),
        folder,
        wait: Duration::from_secs(arguments.wait_s),
        scenes: 0,
        total: OVER_WEBSOCKET.len()
            + 2
            + [arguments.with_app, arguments.with_server, arguments.with_routine, arguments.with_model]
                .map(usize::from)
                .iter()
                .sum::<usize>(),
        rows: Vec::new(),
        failures: Vec::new(),
    };
    let options = |target: &Target| -> Result<Options> {
        let mut options = common.options()?;
        options.target = target.clone();
        options.profile.echo_cancelled = true;
        options.profile.captions = true;
        options.reconnect = false;
        Ok(options)
    };
    println!("{}", stage.style.bold("\n  Simulated glasses talk to the gateway; every sentence is real sound.\n"));
    // Loads the voice before the first turn, so that its time does not count.
    say::spoken(INTERRUPTION).await?;

    let mut glasses = pair::connect_at(options(&arguments.gateway_ws)?, false).await?;
    stage.introduce(&glasses);
    for scene in &OVER_WEBSOCKET {
        stage.play(&mut glasses, scene).await?;
    }
    if arguments.with_app {
        stage.play(&mut glasses, &OF_AN_APP).await?;
    }
    if arguments.with_server {
        stage.play(&mut glasses, &OF_A_SERVER).await?;
    }
    if arguments.with_routine {
        stage.play(&mut glasses, &OF_A_ROUTINE).await?;
    }
    glasses.goodbye().await;

    let mut glasses = pair::connect_at(options(&arguments.gateway_quic)?, false).await?;
    stage.introduce(&glasses);
    stage.play(&mut glasses, &OVER_QUIC).await?;
    // Before the interruption: a very small model repeats the interrupted answer that it finds in the conversation.
    if arguments.with_model {
        stage.play(&mut glasses, &OF_A_MODEL).await?;
    }
    stage.interrupt(&mut glasses).await?;
    glasses.goodbye().await;

    println!("\n{}\n", indent(&show::table(stage.style, &stage.rows)));
    if !stage.failures.is_empty() {
        let (failed, total) = (stage.failures.len(), stage.total);
        bail!("{failed} of {total} turns did not come through: {}", stage.failures.join("; "));
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("  {}", stage.style.green(&format!("all {} turns came through in {seconds:.1} s", stage.total)));
    println!("  what was heard: {}\n", stage.folder.display());
    Ok(())
}

struct Stage {
    style: Style,
    folder: PathBuf,
    wait: Duration,
    scenes: usize,
    total: usize,
    rows: Vec<(String, Latency)>,
    failures: Vec<String>,
}

impl Stage {
    fn introduce(&self, glasses: &Glasses) {
        for event in glasses.log().since(0) {
            if let Seen::Welcome { gateway, user, transport, up, down, .. } = event.seen {
                let words = format!(
                    "  connected to {} over {transport}: microphone {} at {} Hz, speech {} at {} Hz, glasses of {}",
                    plain(&gateway),
                    up.0,
                    up.1,
                    down.0,
                    down.1,
                    plain(&user),
                );
                println!("{}", self.style.dim(&words));
            }
        }
    }

    fn headline(&mut self, title: &str) {
        self.scenes += 1;
        let head = format!("━━ {} of {} · {title} ", self.scenes, self.total);
        let rule = "━".repeat(74usize.saturating_sub(head.chars().count()));
        println!("\n  {}", self.style.bold(&(head + &rule)));
    }

    /// Runs one turn: said, understood, answered.
    async fn play(&mut self, glasses: &mut Glasses, scene: &Scene) -> Result<()> {
        self.headline(scene.title);
        let clip = say::spoken(scene.sentence).await?;
        self.tell("you say", &self.style.bold(&format!("“{}”", scene.sentence)));
        let heard_before = glasses.heard().len();
        let mark = glasses.log().mark();
        let mut narrator = Narrator::new(self.style, mark);
        let said = narrator.while_saying(glasses, clip, self.wait).await?;
        let narrated = narrator.until_heard(glasses, said.t0_us, self.wait).await;
        let events = glasses.log().since(mark);
        self.show_display(glasses);
        self.keep(glasses, heard_before, scene.name)?;
        self.rows.push((scene.title.to_owned(), latency::measure(&events, said.t0_us)));
        if let Err(what) = narrated.and_then(|()| proven(&scene.proof, &events)) {
            self.fail(scene.title, &what);
        }
        tokio::time::sleep(REST).await;
        Ok(())
    }

    /// The wearer interrupts a long answer.
    async fn interrupt(&mut self, glasses: &mut Glasses) -> Result<()> {
        let title = "an interruption";
        self.headline(title);
        let (question, stop) = (say::spoken(LONG_QUESTION).await?, say::spoken(INTERRUPTION).await?);
        self.tell("you say", &self.style.bold(&format!("“{LONG_QUESTION}”")));
        let heard_before = glasses.heard().len();
        let mark = glasses.log().mark();
        let mut narrator = Narrator::new(self.style, mark);
        let asked = narrator.while_saying(glasses, question, self.wait).await?;
        let speaks = |seen: &Seen| matches!(seen, Seen::FirstSound { .. });
        let outcome = narrator.until(glasses, self.wait, |event| speaks(&event.seen)).await;
        self.rows.push((title.to_owned(), latency::measure(&glasses.log().since(mark), asked.t0_us)));
        if outcome.is_err() {
            self.fail(title, "the long answer did not begin");
            return Ok(());
        }
        tokio::time::sleep(LISTEN).await;
        self.tell("you interrupt", &self.style.bold(&format!("“{INTERRUPTION}”")));
        let begins_us = glasses.now_us();
        let from = glasses.log().mark();
        glasses.say(stop).await?;
        let over = |event: &Event| matches!(event.seen, Seen::SpeechHeard { .. });
        let outcome = narrator.until(glasses, self.wait, over).await;
        let events = glasses.log().since(from);
        let stopped = events.iter().find_map(|event| match &event.seen {
            Seen::SpeechHeard { complete: false, played_us, .. } => Some((event.at_us, *played_us)),
            _ => None,
        });
        self.show_display(glasses);
        self.keep(glasses, heard_before, "interruption")?;
        match stopped {
            Some((at_us, played_us)) => {
                let silent_ms = at_us.saturating_sub(begins_us) / 1_000;
                let words = format!(
                    "silence {silent_ms} ms after you began to speak; {:.1} s were heard",
                    played_us as f64 / 1e6
                );
                self.tell("hushed", &self.style.green(&words));
            }
            None if outcome.is_err() => self.fail(title, "the answer went on"),
            None => self.fail(title, "the answer was over before the interruption came through"),
        }
        Ok(())
    }

    fn tell(&self, what: &str, words: &str) {
        println!("    {} {words}", self.style.dim(&format!("{what:<14}")));
    }

    fn fail(&mut self, title: &str, what: &str) {
        self.tell("failed", &self.style.red(what));
        self.failures.push(format!("{title}: {what}"));
    }

    fn show_display(&self, glasses: &Glasses) {
        let events = glasses.log().since(0);
        let shown = events.into_iter().rev().find_map(|event| match event.seen {
            Seen::Display { text, lines, .. } if !text.is_empty() => Some(lines),
            _ => None,
        });
        if let Some(lines) = shown {
            println!("{}", show::frame(self.style, &lines, "display"));
        }
    }

    /// Writes what was heard in this turn; the file has the turn's number in its name.
    fn keep(&self, glasses: &Glasses, from: usize, name: &str) -> Result<()> {
        let path: &Path = &self.folder.join(format!("{}-{name}.wav", self.scenes));
        let heard = glasses.heard();
        let seconds = record::write(path, heard.get(from..).unwrap_or_default())?;
        self.tell("in your ear", &format!("{} ({seconds:.1} s)", path.display()));
        Ok(())
    }
}

fn proven(proof: &Proof, events: &[Event]) -> Result<(), String> {
    let found = events.iter().any(|event| match (proof, &event.seen) {
        (Proof::Answer(words), Seen::SpeechHeard { text, complete: true, .. } | Seen::Display { text, .. }) => {
            let text = text.to_lowercase();
            words.iter().any(|word| text.contains(word))
        }
        (Proof::Tool(tool, argument), Seen::ToolCalled { name, arguments, ok: true, .. }) => {
            name == tool && arguments.contains(argument)
        }
        _ => false,
    });
    match proof {
        _ if found => Ok(()),
        Proof::Answer(words) => Err(format!("the answer has none of {words:?}")),
        Proof::Tool(tool, argument) => Err(format!("{tool} was not called with {argument}")),
    }
}

/// Prints events as they occur.
struct Narrator {
    style: Style,
    next: u64,
    caption: String,
}

impl Narrator {
    fn new(style: Style, next: u64) -> Self {
        Self { style, next, caption: String::new() }
    }

    /// Prints events while `clip` is said. A broken link shows in the following steps.
    async fn while_saying(&mut self, glasses: &Glasses, clip: Clip, wait: Duration) -> Result<ClipTimes> {
        let end = |event: &Event| matches!(event.seen, Seen::Said { .. });
        let (said, _) = tokio::join!(glasses.say(clip), self.until(glasses, wait, end));
        Ok(said?)
    }

    /// Prints everything up to the end of the first speech after `t0_us`.
    async fn until_heard(&mut self, glasses: &Glasses, t0_us: u64, wait: Duration) -> Result<(), String> {
        let heard = |event: &Event| event.at_us > t0_us && matches!(event.seen, Seen::SpeechHeard { .. });
        self.until(glasses, wait, heard).await
    }

    async fn until(
        &mut self,
        glasses: &Glasses,
        wait: Duration,
        mut wanted: impl FnMut(&Event) -> bool,
    ) -> Result<(), String> {
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let next = glasses.log().find(self.next, |_| true);
            let Ok((event, behind)) = tokio::time::timeout_at(deadline, next).await else {
                return Err("no answer was heard in time".to_owned());
            };
            self.next = behind;
            self.tell(&event);
            match &event.seen {
                Seen::LinkLost { reason } => return Err(format!("the link was lost: {reason}")),
                Seen::Goodbye { message, .. } => {
                    return Err(format!("the gateway said goodbye: {message}"));
                }
                Seen::Violation { what } => return Err(format!("the protocol was broken: {what}")),
                _ if wanted(&event) => return Ok(()),
                _ => {}
            }
        }
    }

    fn tell(&mut self, event: &Event) {
        let style = self.style;
        let (what, words) = match &event.seen {
            Seen::Transcript { is_final: false, text, .. } => ("hearing", style.dim(&format!("{} …", plain(text)))),
            Seen::Transcript { text, addressed, .. } => {
                let note = if *addressed { "" } else { " (not addressed)" };
                ("understood", style.cyan(&format!("{}{note}", plain(text))))
            }
            Seen::ToolActivity { label, state, .. } => ("tool", format!("{} {state}", plain(label))),
            Seen::ToolCalled { name, arguments, content, .. } => {
                ("glasses do", format!("{}{} → {}", plain(name), plain(arguments), plain(content)))
            }
            Seen::SpeechStart { text, .. } if *text != self.caption && !text.is_empty() => {
                self.caption.clone_from(text);
                ("they answer", style.bold(&format!("“{}”", plain(text))))
            }
            Seen::Hush { fade_ms, .. } => ("hush", style.dim(&format!("fade of {fade_ms} ms"))),
            Seen::Chime { sound } => ("chime", style.dim(sound)),
            _ => return,
        };
        println!("    {} {words}", style.dim(&format!("{what:<14}")));
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
