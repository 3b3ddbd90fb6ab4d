//! Reads and runs scenarios.
#![allow(dead_code)]

mod actions;
mod given;

use crate::world::{Line, Ms, Start, World, machines::InPlace};

/// A scenario: its title and its numbered lines.
pub struct Scenario {
    pub title: String,
    pub lines: Vec<(usize, String)>,
}

/// The scenarios of a file.
pub fn scenarios(text: &str) -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(title) = line.strip_prefix("scenario: ") {
            scenarios.push(Scenario { title: title.into(), lines: Vec::new() });
        } else if !line.is_empty()
            && !line.starts_with('#')
            && let Some(scenario) = scenarios.last_mut()
        {
            scenario.lines.push((number + 1, line.into()));
        }
    }
    scenarios
}

/// The state of a run in addition to the world.
pub(crate) struct Run {
    pub(crate) start: Start,
    pub(crate) world: Option<World>,
    pub(crate) config: gateway_core::conversation::Config,
    pub(crate) user: gateway_core::user::Config,
    /// The first line of the log that no expectation has passed.
    cursor: usize,
    /// Lines that must be in the log never, or this many times.
    counts: Vec<(usize, String)>,
}

/// Runs a scenario; the error is a report with the log.
pub fn run(scenario: &Scenario) -> Result<(), String> {
    run_where(scenario, |user| Box::new(InPlace::recorded(user))).map(drop)
}

/// As [`run`], with machines started by `start`; returns the log.
pub fn run_where(scenario: &Scenario, start: Start) -> Result<Vec<Line>, String> {
    let (config, user) = Default::default();
    let mut run = Run { start, world: None, config, user, cursor: 0, counts: Vec::new() };
    for (number, line) in &scenario.lines {
        run.line(line).map_err(|reason| report(scenario, &run, *number, line, &reason))?;
    }
    run.finish().map_err(|reason| report(scenario, &run, 0, "(at the end)", &reason))?;
    Ok(run.world.map_or_else(Vec::new, |world| world.log))
}

fn report(scenario: &Scenario, run: &Run, number: usize, line: &str, reason: &str) -> String {
    let mut text = format!("scenario: {}\n  line {number}: {line}\n  {reason}\n", scenario.title);
    if let Some(world) = &run.world {
        for (index, line) in world.log.iter().enumerate() {
            let mark = if index == run.cursor { ">" } else { " " };
            text.push_str(&format!("  {mark}{:>8.3}  {}\n", line.at as f64 / 1_000.0, line.text));
        }
        text.push_str(&format!("   now {:.3}\n", world.now_ms as f64 / 1_000.0));
    }
    text
}

impl Run {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "at" => self.run_until(seconds(rest)?),
            "wait" => {
                let until = self.world()?.now_ms + seconds(rest)?;
                self.run_until(until)
            }
            "expect" => match rest.strip_prefix("no ") {
                Some(rest) => self.expect_none(rest),
                None => self.expect(rest),
            },
            "never" => {
                self.counts.push((0, rest.into()));
                Ok(())
            }
            "once" => {
                self.counts.push((1, rest.into()));
                Ok(())
            }
            "twice" => {
                self.counts.push((2, rest.into()));
                Ok(())
            }
            _ => actions::act(self, line),
        }
    }

    pub(crate) fn world(&mut self) -> Result<&mut World, String> {
        self.world.as_mut().ok_or_else(|| "no glasses yet".into())
    }

    fn run_until(&mut self, until: Ms) -> Result<(), String> {
        let world = self.world()?;
        if until < world.now_ms {
            return Err(format!("it is {} already", world.now_ms));
        }
        world.run_until(until);
        Ok(())
    }

    fn expect(&mut self, rest: &str) -> Result<(), String> {
        let (wanted, when) = timing(rest)?;
        let start = self.world()?.now_ms;
        let until = match when {
            Some(("within", span)) => start + span,
            Some((_, moment)) => moment,
            None => start + 12_000,
        };
        let mut cursor = self.cursor;
        loop {
            let world = self.world()?;
            if let Some(found) = world.log.iter().skip(cursor).position(|line| holds(&line.text, &wanted)) {
                let at = world.log[cursor + found].at;
                if let Some(("at", moment)) = when
                    && at.abs_diff(moment) > 5
                {
                    return Err(format!("came at {at} ms"));
                }
                self.cursor = cursor + found + 1;
                return Ok(());
            }
            cursor = cursor.max(world.log.len());
            if !world.step(until) {
                return Err("did not come".into());
            }
        }
    }

    fn expect_none(&mut self, rest: &str) -> Result<(), String> {
        let (wanted, span) = rest.rsplit_once(" for ").ok_or("for how long?")?;
        let span = seconds(span)?;
        let cursor = self.cursor;
        let world = self.world()?;
        let until = world.now_ms + span;
        world.run_until(until);
        match world.log.iter().skip(cursor).find(|line| holds(&line.text, wanted)) {
            Some(line) => Err(format!("came at {} ms", line.at)),
            None => Ok(()),
        }
    }

    /// Nothing is said after the last line: everything must come to rest.
    fn finish(&mut self) -> Result<(), String> {
        let counts = self.counts.clone();
        let world = self.world()?;
        let until = world.now_ms + 200_000;
        world.run_until(until);
        for (count, wanted) in counts {
            let found = world.log.iter().filter(|line| holds(&line.text, &wanted)).count();
            if found != count {
                return Err(format!("{wanted:?} came {found} times, not {count}"));
            }
        }
        rest(world)
    }
}

/// Whether a line of the log contains this text, at word boundaries.
fn holds(line: &str, wanted: &str) -> bool {
    let joins = |a: Option<char>, b: Option<char>| [a, b].iter().all(|c| c.is_some_and(char::is_alphanumeric));
    line.match_indices(wanted).any(|(at, _)| {
        let (before, behind) = (&line[..at], &line[at + wanted.len()..]);
        let starts = joins(before.chars().next_back(), wanted.chars().next());
        let ends = joins(wanted.chars().next_back(), behind.chars().next());
        !starts && !ends
    })
}

/// Checks what must hold once a world has come to rest.
pub fn rest(world: &World) -> Result<(), String> {
    let open = world.open_turns();
    if !open.is_empty() {
        return Err(format!("turns are still open: {open:?}"));
    }
    for device in &world.devices {
        for (call, runs) in &device.calls_run {
            let results = world.results_kept.get(call).copied().unwrap_or(0);
            if *runs != 1 || results != 1 {
                return Err(format!("call {call} ran {runs} times and has {results} results"));
            }
        }
    }
    Ok(())
}

/// `at`, `by` or `within`, and the time or the duration.
type When = Option<(&'static str, Ms)>;

/// `what at 1.5`, `what by 1.5` or `what within 1.5`.
fn timing(rest: &str) -> Result<(String, When), String> {
    if let Some((before, number)) = rest.rsplit_once(' ')
        && let Ok(moment) = seconds(number)
    {
        for word in ["at", "by", "within"] {
            if let Some(wanted) = before.strip_suffix(word) {
                return Ok((wanted.trim().into(), Some((word, moment))));
            }
        }
    }
    Ok((rest.into(), None))
}

/// Seconds, as milliseconds.
pub fn seconds(text: &str) -> Result<Ms, String> {
    let seconds: f64 = text.trim().parse().map_err(|_| format!("{text:?} is no number"))?;
    Ok((seconds * 1_000.0).round() as Ms)
}
