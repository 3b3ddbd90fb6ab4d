//! Output of events for people or programs, and of the display as a box.

use firmware_sim::latency::Latency;
use firmware_sim::record::Interruption;
use firmware_sim::{Event, Seen};

/// Prints one event as JSON.
pub(crate) fn json_line(event: &Event) {
    // Strings and numbers only, so serialisation cannot fail.
    println!("{}", serde_json::to_string(event).unwrap_or_default());
}

/// Colours, if the output is a terminal.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    pub(crate) fn detect() -> Self {
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
        Self { colour: terminal && std::env::var_os("NO_COLOR").is_none() }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }
}

/// The display as a box, with its content.
pub(crate) fn frame(style: Style, lines: &[String], state: &str) -> String {
    let columns = lines.first().map_or(0, |line| line.chars().count());
    let title: String = format!(" {state} ").chars().take(columns).collect();
    let rule = "─".repeat((columns + 2).saturating_sub(title.chars().count() + 1));
    let mut out = format!("      {}\n", style.dim(&format!("╭─{title}{rule}╮")));
    for line in lines {
        out += &format!("      {} {} {}\n", style.dim("│"), style.green(line), style.dim("│"));
    }
    out + &format!("      {}", style.dim(&format!("╰{}╯", "─".repeat(columns + 2))))
}

/// Removes control characters that a terminal would interpret.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// One event in words; `None` for events that are not for people.
pub(crate) fn line(style: Style, event: &Event, t0_us: Option<u64>) -> Option<String> {
    let words = match &event.seen {
        Seen::Welcome { gateway, transport, up, down, resumed, .. } => {
            let how = if *resumed { "session resumed" } else { "session" };
            let (gateway, up, down) = (plain(gateway), &up.0, &down.0);
            format!("{how} with {gateway} over {transport}, {up} up, {down} down")
        }
        Seen::PairingCode { .. } => return None,
        Seen::Said { label, .. } => {
            format!("said        {}", style.bold(&format!("“{}”", plain(label))))
        }
        Seen::Listening { state, .. } => style.dim(&format!("state       {state}")),
        Seen::Transcript { is_final: false, text, .. } => style.dim(&format!("partial     {}", plain(text))),
        Seen::Transcript { addressed, text, .. } => {
            let note = if *addressed { "" } else { "  (not addressed)" };
            format!("understood  {}{note}", style.cyan(&plain(text)))
        }
        Seen::Display { view, lines, text, .. } if !text.is_empty() => {
            format!("display\n{}", frame(style, lines, view))
        }
        Seen::Display { .. } => style.dim("display     empty"),
        Seen::DisplayStale { revision } => style.dim(&format!("display     revision {revision} is stale")),
        Seen::SpeechStart { text, .. } => format!("speech      {}", style.bold(&plain(text))),
        // The first one is part of the speech's start.
        Seen::Clause { clause: 0, .. } => return None,
        Seen::Clause { text, .. } => format!("            {}", style.bold(&plain(text))),
        Seen::FirstSound { .. } => style.dim("speech      first sound"),
        Seen::SpeechHeard { played_us, complete, .. } => {
            let how = if *complete { "heard to the end" } else { "stopped" };
            format!("speech      {how} after {:.2} s", *played_us as f64 / 1e6)
        }
        Seen::Hush { fade_ms, .. } => format!("hush        fade of {fade_ms} ms"),
        Seen::ToolActivity { label, state, .. } => format!("tool        {} {state}", plain(label)),
        Seen::ToolCalled { name, arguments, content, ok, .. } => {
            let how = if *ok { style.green(&plain(content)) } else { style.red(&plain(content)) };
            format!("tool call   {}{} -> {how}", plain(name), plain(arguments))
        }
        Seen::ApprovalRequest { title, message, .. } => {
            let lines: String = message.lines().map(|line| format!("\n            {}", plain(line))).collect();
            format!("question    {}{lines}", plain(title))
        }
        Seen::ApprovalSettled { choice, .. } => format!("question    settled: {choice}"),
        Seen::Coding { bitrate, frame_ms, loss_percent } => {
            style.dim(&format!("coding      {bitrate} bit/s, {frame_ms} ms, {loss_percent} % loss expected"))
        }
        Seen::Wake { phrase, score_permille } => {
            style.dim(&format!("wake        \"{phrase}\", {} %", score_permille / 10))
        }
        Seen::SentAgain { packets } => style.dim(&format!("sent again  {packets} packets")),
        Seen::Warning { code, name, message } => {
            style.red(&format!("warning     {code} {}: {}", plain(name), plain(message)))
        }
        Seen::FirmwareOffered { version, answer, offset } => {
            format!("firmware    {} offered: {answer}, from byte {offset}", plain(version))
        }
        Seen::FirmwareChunk { .. } => return None,
        Seen::FirmwareStored { offset } => style.dim(&format!("firmware    {offset} bytes stored")),
        Seen::FirmwareWithdrawn => "firmware    withdrawn".to_owned(),
        Seen::FirmwareReported { outcome, failure, version } if failure == "none" => {
            style.bold(&format!("firmware    {outcome}; {version} runs"))
        }
        Seen::FirmwareReported { outcome, failure, version } => {
            style.red(&format!("firmware    {outcome} ({failure}); {version} runs"))
        }
        Seen::PowerLost { stored } => style.red(&format!("power lost  {stored} bytes stored")),
        Seen::Chime { sound } => style.dim(&format!("chime       {sound}")),
        Seen::Rejected { code, message } => style.red(&format!("rejected    {code}: {}", plain(message))),
        Seen::Goodbye { reason, message, .. } => format!("goodbye     {reason}: {}", plain(message)),
        Seen::LinkLost { reason } => style.red(&format!("link lost   {}", plain(reason))),
        Seen::LinkSound { sound } => style.dim(&format!("chime       {}", of_link(sound))),
        Seen::Moved { address } => style.dim(&format!("moved       to {address}")),
        Seen::Violation { what } => style.red(&format!("violation   {}", plain(what))),
    };
    Some(format!("{} {words}", style.dim(&format!("{:>9}", when(event.at_us, t0_us)))))
}

/// What a sound about the link tells the wearer.
fn of_link(sound: &str) -> &'static str {
    match sound {
        "lost" => "the link is lost",
        "back" => "the link is back",
        _ => "the link is back, but the session or what was said is lost",
    }
}

/// Before t0 is known: seconds since the start; after: milliseconds from t0.
fn when(at_us: u64, t0_us: Option<u64>) -> String {
    match t0_us {
        Some(t0_us) if at_us >= t0_us => format!("+{} ms", (at_us - t0_us) / 1_000),
        _ => format!("{:.2} s", at_us as f64 / 1e6),
    }
}

/// A table of latencies, one row per turn.
pub(crate) fn table(style: Style, rows: &[(String, Latency)]) -> String {
    const CORNER: &str = "from the last voiced sample to";
    let widths = rows.iter().map(|(name, _)| name.chars().count());
    let width = widths.chain([CORNER.len()]).max().unwrap_or_default();
    let head: String = Latency::default().stages().iter().map(|(name, _)| format!("{name:>18}")).collect();
    let mut out = style.bold(&format!("{CORNER:width$}{head}"));
    for (name, latency) in rows {
        let cells: String = latency
            .stages()
            .iter()
            .map(|(_, us)| format!("{:>18}", us.map_or_else(|| "-".to_owned(), |us| format!("{} ms", us / 1_000))))
            .collect();
        out += &format!("\n{name:width$}{cells}");
    }
    out
}

/// How soon the speaker was silent when the wearer spoke.
pub(crate) fn interruptions(interruptions: &[Interruption]) {
    for Interruption { speech, onset_us, silent_us } in interruptions {
        println!("speech {speech} was silent {} ms after the voice began", silent_us.saturating_sub(*onset_us) / 1_000);
    }
}
