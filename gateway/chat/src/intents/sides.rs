//! Selects the side whose tool takes a sentence that tools of several sides match. A side is a provider of tools: the
//! built-in ones, an app or a server.
//!
//! The app in front takes it, or a built-in side that is busy, such as with a running timer, but neither if both match.
//! Otherwise the wearer's earlier choice is used; otherwise the side that is active, if no other side matches with less
//! free text; otherwise the wearer is asked, once. The built-in tools are one side; among tools of one side the best
//! reading wins.

use std::cmp::Ordering;

use gateway_core::vocab::{AppPresence, Preference, Scene, Side, sound::Name};

use super::{
    courtesy::{endings, openings},
    found::Found,
    utterance::Utterance,
};

/// Most words of a side's name, as recognised.
const NAME_WORDS_MAX: usize = 8;

/// Why a side takes a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No other side matches.
    Alone,
    /// The wearer has named it.
    Named,
    /// Its app is in front.
    InFront,
    /// Its app runs, or it is active.
    Alive,
    /// The wearer prefers it.
    Preferred,
    /// It has more fixed words and less free text.
    SaysMore,
}

/// The side that takes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Settled {
    /// This side.
    One(Found, Why),
    /// The wearer has to choose one of these.
    Doubt(Vec<Found>),
    /// No side matches.
    Nobody,
}

/// Context for the choice of a side.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a> {
    pub scene: &'a Scene,
    /// The only side considered.
    pub only: Option<&'a Side>,
}

impl<'a> Sides<'a> {
    pub fn of(scene: &'a Scene) -> Self {
        Self { scene, only: None }
    }

    /// Whether tools of this side are considered.
    pub fn admits(&self, side: &Side) -> bool {
        self.only.is_none_or(|only| only.is_with(side))
    }

    /// Chooses among the readings, one of each side.
    pub fn settle(&self, mut found: Vec<Found>) -> Settled {
        if found.len() < 2 {
            let why = if self.only.is_some() { Why::Named } else { Why::Alone };
            return found.pop().map_or(Settled::Nobody, |found| Settled::One(found, why));
        }
        let in_front = self.only_one(&found, |side| self.is_in_front(side));
        let busy = self.only_one(&found, |side| self.scene.busy.contains(side));
        match (in_front, busy) {
            (Some(at), None) if !found.iter().any(|one| self.scene.busy.contains(&one.side)) => {
                return Settled::One(found.swap_remove(at), Why::InFront);
            }
            (None, Some(at)) if !found.iter().any(|one| self.is_in_front(&one.side)) && says_most(&found, at) => {
                return Settled::One(found.swap_remove(at), Why::Alive);
            }
            _ => {}
        }
        let preferred = (0..found.len()).find(|at| {
            let others = found.iter().enumerate().filter(|(other, _)| other != at);
            others.map(|(_, other)| &other.side).all(|other| self.prefers(&found[*at].side, other))
        });
        if let Some(at) = preferred {
            return Settled::One(found.swap_remove(at), Why::Preferred);
        }
        let alive = |side: &Side| self.is_alive(side);
        match self.only_one(&found, alive) {
            Some(at) if says_most(&found, at) => return Settled::One(found.swap_remove(at), Why::Alive),
            // The criteria favour different sides.
            Some(_) => {}
            None if found.iter().any(|one| alive(&one.side)) => {}
            None => {
                let most: Vec<usize> = (0..found.len()).filter(|at| says_most(&found, *at)).collect();
                if let [at] = most[..] {
                    return Settled::One(found.swap_remove(at), Why::SaysMore);
                }
                found.retain({
                    let mut at = 0..;
                    move |_| at.next().is_some_and(|at| most.contains(&at))
                });
            }
        }
        // An order that does not depend on the number of words.
        found.sort_by(|one, other| other.side.cmp(&one.side));
        Settled::Doubt(found)
    }

    /// Index of the only reading for whose side the predicate holds.
    fn only_one(&self, found: &[Found], holds: impl Fn(&Side) -> bool) -> Option<usize> {
        let mut those = (0..found.len()).filter(|at| holds(&found[*at].side));
        those.next().filter(|_| those.next().is_none())
    }

    fn presence(&self, side: &Side) -> AppPresence {
        let Side::App(package) = side else { return AppPresence::Idle };
        self.scene.apps.iter().find(|app| app.package == *package).map_or(AppPresence::Idle, |app| app.presence)
    }

    fn is_in_front(&self, side: &Side) -> bool {
        self.presence(side) == AppPresence::InFront
    }

    fn is_alive(&self, side: &Side) -> bool {
        self.presence(side) > AppPresence::Idle || self.scene.busy.contains(side)
    }

    fn prefers(&self, side: &Side, over: &Side) -> bool {
        let holds = |known: &Preference| known.side.covers(side) && known.over.covers(over);
        self.scene.preferences.iter().any(holds)
    }

    /// Name of a side.
    pub fn name(&self, side: &Side) -> String {
        match side {
            Side::App(package) => {
                let app = self.scene.apps.iter().find(|app| app.package == *package);
                app.map_or_else(|| package.clone(), |app| app.name.clone())
            }
            Side::Mcp(name) => name.clone(),
            Side::Capability(name) => spaced(name),
            Side::BuiltIn(None) => "the built-in one".to_owned(),
            Side::BuiltIn(Some(group)) if group == "glasses" => "the glasses".to_owned(),
            Side::BuiltIn(Some(group)) => format!("the built-in {group}"),
        }
    }

    /// Distance of the recognised words from a side's name; `None` if they are none of its names.
    pub fn distance(&self, side: &Side, heard: &str) -> Option<u16> {
        match side {
            Side::BuiltIn(group) => {
                let rest = heard.strip_prefix("built in").or_else(|| heard.strip_prefix("builtin"));
                let own = group.as_ref().is_some_and(|group| Name::new(group).distance(heard).is_some());
                (rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')) || own).then_some(0)
            }
            Side::App(_) | Side::Mcp(_) | Side::Capability(_) => Name::new(&self.name(side)).distance(heard),
        }
    }

    /// The sides that the utterance names at its beginning or end, the most likely first, each with the remaining
    /// words.
    pub fn named<'b>(&self, utterance: &Utterance<'b>, sides: &[Side]) -> Vec<(Side, &'b str)> {
        let words = &utterance.words;
        let naming = utterance.language.kinds.naming;
        if sides.is_empty() || !words.iter().any(|word| naming.contains(&word.text.as_str())) {
            return Vec::new();
        }
        let mut out: Vec<(u16, Side, &'b str)> = Vec::new();
        let mut add = |from: usize, to: usize, rest: Option<&'b str>| {
            let heard: Vec<&str> = words.get(from..to).unwrap_or(&[]).iter().map(|word| word.text.as_str()).collect();
            let (Some(heard), Some(rest)) = (bare(&heard), rest.filter(|rest| !rest.trim().is_empty())) else { return };
            let near = sides.iter().filter_map(|side| Some((self.distance(side, &heard)?, side.clone(), rest)));
            out.extend(near);
        };
        let is_naming = |at: usize| words.get(at).is_some_and(|word| naming.contains(&word.text.as_str()));
        for ending in endings(utterance, 0, words.len()) {
            for at in (1..ending.at).rev().take(NAME_WORDS_MAX).filter(|at| is_naming(*at)) {
                add(at + 1, ending.at, utterance.source.get(..words[at].start));
            }
        }
        for start in openings(utterance.view(words.len()), 0).into_iter().filter(|start| is_naming(*start)) {
            for end in start + 2..words.len().min(start + 2 + NAME_WORDS_MAX) {
                add(start + 1, end, words.get(end).and_then(|word| utterance.source.get(word.start..)));
            }
        }
        out.sort_by_key(|(off, ..)| *off);
        out.into_iter().map(|(_, side, rest)| (side, rest)).collect()
    }
}

/// A name without the words around it: "the todo app".
fn bare(mut heard: &[&str]) -> Option<String> {
    if let ["the" | "my", rest @ ..] = heard {
        heard = rest;
    }
    if let [rest @ .., "app"] = heard
        && !rest.is_empty()
    {
        heard = rest;
    }
    (!heard.is_empty()).then(|| heard.join(" "))
}

/// Whether none of the others leaves fewer words to free text.
fn says_most(found: &[Found], at: usize) -> bool {
    found.iter().all(|other| other.text_words.cmp(&found[at].text_words) != Ordering::Less)
}

/// The words of a name in camel case: "train schedule" of `trainSchedule`.
fn spaced(name: &str) -> String {
    let mut out = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && was_lower {
            out.push(' ');
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        match c.is_alphanumeric() {
            true => out.extend(c.to_lowercase()),
            false => out.push(' '),
        }
    }
    out
}
