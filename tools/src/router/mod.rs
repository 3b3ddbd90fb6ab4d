//! Selects the tools that a model is offered for an utterance: those that are always on, and of the others the ones
//! that match the utterance.
//!
//! A wrong guess must not make a tool unavailable. Therefore all tools are offered if they are few, if none matches, or
//! if the ranking fails; only the model provider's own maximum then cuts the list, least relevant first. Tools that
//! were called in the last turns stay offered: "and tomorrow?" names none.
//!
//! [`Index`] ranks by words and needs no weights; [`sentences`] ranks by meaning, with a model behind a port
//! ([`minilm`]) that the caller runs on a thread of its own.

pub mod asked;
mod groups;
mod index;
mod lists;
pub mod minilm;
pub mod sentences;
mod terms;

use std::sync::Arc;

use gateway_core::vocab::{Message, Part};

pub use index::Index;

use self::lists::PerList;
use crate::registry::Specs;

/// Turns of the wearer whose tools stay offered, before the current one.
const TURNS_KEPT: usize = 3;
/// Weight of the previous turn's words if the current ones match nothing.
const EARLIER_WEIGHT: f32 = 0.5;
/// Parameters of the selection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Number of routed tools that are offered if some match. If there are no more than this, all are offered.
    pub picked_max: usize,
    /// If the best score is below this, no tool matches.
    pub score_min: f32,
    /// If tools are also ranked by meaning: with a best cosine of at least this, tools match even if no word does.
    pub cosine_min: f32,
}

impl Default for Config {
    fn default() -> Self {
        // Chosen on the development half of tests/data/router: docs/measurements.md.
        Self { picked_max: 12, score_min: 2.0, cosine_min: 0.35 }
    }
}

/// The reason for a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There are too few tools for a selection.
    Few,
    /// Tools match the utterance.
    Words,
    /// No tool matches: all are offered.
    Doubt,
}

/// The tools that a model is offered.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Always-on tools by name, then the routed ones, the most relevant first.
    pub tools: Specs,
    /// The reason for this selection.
    pub reason: Reason,
}

/// The inputs of the selection, taken from a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The wearer's current utterance.
    pub now: String,
    /// The wearer's previous utterance.
    pub before: String,
    /// Tools called in the turns before the current one, latest first.
    pub called: Vec<String>,
}

impl Query {
    /// From the messages of a request, oldest first. Calls of the current turn do not count: within a turn the list of
    /// tools stays the same.
    pub fn of(messages: &[Message]) -> Self {
        let mut said = Self::default();
        let mut turns = 0;
        for message in messages.iter().rev() {
            for part in message.parts.iter().rev() {
                if turns > 0
                    && let Part::ToolCall { call } = part
                    && !said.called.contains(&call.name)
                {
                    said.called.push(call.name.clone());
                }
            }
            if message.is_wearers() {
                turns += 1;
                match turns {
                    1 => said.now = message.plain_text(),
                    2 => said.before = message.plain_text(),
                    _ => {}
                }
                if turns > TURNS_KEPT {
                    break;
                }
            }
        }
        said
    }
}

/// Selects tools by words. Shared by all devices; expensive values are cached per list of tools.
#[derive(Default)]
pub struct Router {
    config: Config,
    indexes: PerList<Index>,
}

impl Router {
    /// A router with an empty cache.
    pub fn new(config: Config) -> Self {
        Self { config, indexes: PerList::default() }
    }

    /// The tools to offer out of all available ones, at most `tools_max` of them.
    pub fn choose(&self, tools: &Specs, said: &Query, tools_max: usize) -> Choice {
        self.choose_with(tools, said, &[], tools_max)
    }

    /// The same with an additional ranking by meaning: `near` are positions in the list with cosines, best first
    /// ([`sentences::Sentences::rank`]).
    pub fn choose_with(&self, tools: &Specs, said: &Query, near: &[(usize, f32)], tools_max: usize) -> Choice {
        if self.has_few(tools) && tools.len() <= tools_max {
            return Choice { tools: Arc::clone(tools), reason: Reason::Few };
        }
        let meant = near.first().is_some_and(|(_, cosine)| *cosine >= self.config.cosine_min);
        let words = self.rank(tools, said);
        let sure = self.is_sure(&words) || meant;
        let ranked = if near.is_empty() { words } else { sentences::fused(tools.len(), [&words, near]) };
        self.assemble(tools, said, &ranked, sure, tools_max)
    }

    /// Whether there are too few routed tools for a selection.
    pub fn has_few(&self, tools: &Specs) -> bool {
        tools.iter().filter(|tool| !tool.flags.always).count() <= self.config.picked_max
    }

    /// Positions of the matching tools in the list, best first. If the current words match nothing, the previous ones
    /// count.
    pub fn rank(&self, tools: &Specs, said: &Query) -> Vec<(usize, f32)> {
        let ranked = self.index(tools).rank(&said.now);
        if self.is_sure(&ranked) { ranked } else { self.with_earlier(tools, said, ranked) }
    }

    fn is_sure(&self, ranked: &[(usize, f32)]) -> bool {
        ranked.first().is_some_and(|(_, score)| *score >= self.config.score_min)
    }

    /// The ranking combined with that of the previous utterance.
    fn with_earlier(&self, tools: &Specs, said: &Query, ranked: Vec<(usize, f32)>) -> Vec<(usize, f32)> {
        let mut scores = vec![0.0; tools.len()];
        let earlier = self.index(tools).rank(&said.before);
        let earlier = earlier.into_iter().map(|(at, score)| (at, score * EARLIER_WEIGHT));
        for (at, score) in ranked.into_iter().chain(earlier) {
            scores[at] += score;
        }
        index::sorted(scores)
    }

    /// Assembles the list: `ranked` are positions in `tools` with scores, best first.
    pub fn assemble(
        &self,
        tools: &Specs,
        said: &Query,
        ranked: &[(usize, f32)],
        sure: bool,
        tools_max: usize,
    ) -> Choice {
        let mut taken = vec![false; tools.len()];
        let mut chosen: Vec<usize> = (0..tools.len()).filter(|at| tools[*at].flags.always).collect();
        for at in &chosen {
            taken[*at] = true;
        }
        let mut take = |at: usize, chosen: &mut Vec<usize>| {
            let new = taken.get(at).is_some_and(|taken| !taken);
            if new {
                taken[at] = true;
                chosen.push(at);
            }
            new
        };
        for name in &said.called {
            if let Ok(at) = tools.binary_search_by(|tool| tool.name.as_str().cmp(name)) {
                take(at, &mut chosen);
            }
        }
        let mut picked = 0;
        for (at, _) in ranked {
            if sure && picked == self.config.picked_max {
                break;
            }
            picked += usize::from(take(*at, &mut chosen));
        }
        if !sure {
            for at in 0..tools.len() {
                take(at, &mut chosen);
            }
        }
        chosen.truncate(tools_max);
        let tools = chosen.into_iter().map(|at| Arc::clone(&tools[at])).collect();
        Choice { tools, reason: if sure { Reason::Words } else { Reason::Doubt } }
    }

    fn index(&self, tools: &Specs) -> Arc<Index> {
        self.indexes.get(tools, Index::new)
    }
}

#[cfg(test)]
mod tests;
