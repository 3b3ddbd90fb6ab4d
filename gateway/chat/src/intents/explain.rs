//! Explains which tool a sentence calls, and why no other one.

use std::{collections::BTreeSet, sync::Arc};

use gateway_core::vocab::{CommandMatch, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Decision, Engine, UTTERANCE_BYTES_MAX,
    asking::{Read, Reader, Reading},
    found::Found,
    grammar::Grammar,
    reader,
    sides::{Settled, Sides, Why},
    template::Op,
    utterance::Utterance,
    wearers_words, words,
};
use crate::Request;

/// Most tools listed besides the called one.
const NEAR_MAX: usize = 8;
/// Of these, most tools whose sentences only share words with it.
const ALIKE_MAX: usize = 3;

/// The engine's decision about a sentence, with reasons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// What it would call.
    pub calls: Vec<Explained>,
    /// Its reply or question; empty if there are calls.
    pub said: String,
    /// How the sentence was read.
    pub how: String,
    /// Why this side was chosen among several.
    pub why: Option<String>,
    /// Other tools, and why they were not chosen.
    pub near: Vec<Near>,
}

/// A call, or a tool that a question is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Full name of the tool.
    pub tool: String,
    /// The known arguments.
    pub arguments: Value,
    /// The matching template, if it was one sentence.
    pub template: Option<String>,
}

/// A tool that nearly matched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Near {
    /// Full name.
    pub tool: String,
    /// The closest template, if it has any.
    pub template: Option<String>,
    /// Why it is not called.
    pub reason: String,
}

impl Engine {
    /// Explains the decision about a request; `all` also includes the tools that the user has disabled.
    pub fn explain(&self, request: &Request, all: &[Arc<ToolSpec>]) -> Explanation {
        let grammar = self.grammar(&request.tools, &request.language);
        let reader = reader(&grammar, request);
        let text = wearers_words(request).unwrap_or_default();
        let mut out = Explanation::default();
        let mut utterance = reader.utterance(&text);
        let named = reader.named(&utterance);
        let understood = grammar.understand(&mut utterance, Sides::of(&request.scene));
        let sides = Sides::of(&request.scene);
        let whole = match understood.matched > CommandMatch::Misheard {
            true => reader.with_rivals(&utterance, understood.found.clone(), sides),
            false => understood.found.clone(),
        };
        let partials = grammar.partials(&utterance, sides);
        out.how = match (&named, understood.matched, understood.joined.len()) {
            (Some((side, _)), ..) => format!("without the words that name {}", sides.name(side)),
            (None, _, 2..) => "as several commands joined by \u{201c}and\u{201d}".to_owned(),
            (None, CommandMatch::Exact | CommandMatch::FreeText, _) => "as it is written".to_owned(),
            (None, CommandMatch::Misheard, _) => "with words taken for what they sound like".to_owned(),
            (None, ..) if !partials.is_empty() => "as the beginning of a command".to_owned(),
            (None, ..) => "as no command".to_owned(),
        };
        let Read { reading, .. } = reader.read(&text, request.pending.as_ref());
        let template = |tool: &str| {
            let mut found = whole.iter().chain(&partials).filter(|found| found.intent.name == tool);
            found.next().and_then(|found| grammar.source(found.template)).map(str::to_owned)
        };
        match reading {
            Reading::Calls(intents, _) => out.calls.extend(intents.into_iter().map(|intent| Explained {
                template: template(&intent.name),
                tool: intent.name,
                arguments: intent.arguments,
            })),
            Reading::Ask { pending, again, .. } => {
                out.said = reader.question(&pending, again);
                out.calls.extend(pending.calls.into_iter().map(|call| Explained {
                    template: template(&call.name),
                    tool: call.name,
                    arguments: call.arguments,
                }));
            }
            Reading::Declined | Reading::Nothing => {
                if let Decision::Say(said) = self.decide(request) {
                    out.said = said;
                }
            }
        }
        out.why = match (&named, sides.settle(whole.clone())) {
            (Some((side, _)), _) => Some(format!("{} is named", sides.name(side))),
            (None, Settled::One(found, why)) if whole.len() > 1 => {
                Some(format!("{} {}", sides.name(&found.side), because(why)))
            }
            (None, Settled::Doubt(_)) if understood.matched > CommandMatch::Misheard => {
                Some("nothing speaks for one side more than for another: the wearer is asked".to_owned())
            }
            _ => None,
        };
        let mut near = Vec::new();
        for found in whole.iter().chain(&partials) {
            near.push(self.rival(found, &grammar, &out));
        }
        near.extend(self.denied(request, all, &text));
        near.extend(alike(&grammar, &utterance));
        near.extend(without_templates(&reader, &utterance));
        for near in near {
            let known = out.calls.iter().any(|call| call.tool == near.tool)
                || out.near.iter().any(|other| other.tool == near.tool);
            if !known && out.near.len() < NEAR_MAX {
                out.near.push(near);
            }
        }
        out
    }

    fn rival(&self, found: &Found, grammar: &Grammar, out: &Explanation) -> Near {
        let reason = match found.missing.as_slice() {
            [] => match &out.why {
                Some(why) => format!("understands it as well, but {why}"),
                None => "understands it as well, but says less of it".to_owned(),
            },
            missing => {
                let each: Vec<String> = missing.iter().map(|one_of| one_of.join(" or ")).collect();
                format!("lacks {}", each.join(" and "))
            }
        };
        Near { tool: found.intent.name.clone(), template: grammar.source(found.template).map(str::to_owned), reason }
    }

    /// Tools that would match if the user had not disabled them.
    fn denied(&self, request: &Request, all: &[Arc<ToolSpec>], text: &str) -> Vec<Near> {
        if all.len() == request.tools.len() || text.len() > UTTERANCE_BYTES_MAX {
            return Vec::new();
        }
        let grammar = Grammar::compile(all, &request.language);
        let mut utterance = reader(&grammar, request).utterance(text);
        let sides = Sides::of(&request.scene);
        let found = grammar.understand(&mut utterance, sides).found;
        let off = found.into_iter().chain(grammar.partials(&utterance, sides));
        let off = off.filter(|found| !request.tools.iter().any(|tool| tool.name == found.intent.name));
        off.map(|found| Near {
            template: grammar.source(found.template).map(str::to_owned),
            tool: found.intent.name,
            reason: "is switched off for this user, or not offered here".to_owned(),
        })
        .collect()
    }
}

fn because(why: Why) -> &'static str {
    match why {
        Why::Alone => "is the only side that understands it",
        Why::Named => "is named",
        Why::InFront => "is in front",
        Why::Alive => "runs, or has something running",
        Why::Preferred => "is preferred",
        Why::SaysMore => "knows more of the words",
    }
}

/// Tools with a sentence that shares words with it, the most similar first.
fn alike(grammar: &Grammar, utterance: &Utterance<'_>) -> Vec<Near> {
    let mut near: Vec<(usize, Near)> = grammar
        .templates()
        .filter_map(|(tool, source, program)| {
            let shared = utterance.words.iter().filter(|word| {
                let known = |op: &Op| matches!(op, Op::Word(known) if *known == word.text);
                utterance.language.weight(&word.text) >= 1.0 && program.iter().any(known)
            });
            let count = shared.count();
            let reason = "no sentence of it fits".to_owned();
            (count > 0).then(|| (count, Near { tool: tool.name.clone(), template: Some(source.to_owned()), reason }))
        })
        .collect();
    near.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
    let mut out: Vec<Near> = Vec::new();
    for (_, one) in near {
        if out.len() < ALIKE_MAX && out.iter().all(|other| other.tool != one.tool) {
            out.push(one);
        }
    }
    out
}

/// Tools without sentences whose names match the words.
fn without_templates(reader: &Reader<'_>, utterance: &Utterance<'_>) -> Vec<Near> {
    let spoken: BTreeSet<&str> = reader.grammar.templates().map(|(tool, ..)| tool.name.as_str()).collect();
    let silent = reader.tools.iter().filter(|tool| !spoken.contains(tool.name.as_str()));
    let like = silent.filter(|tool| {
        let named = format!("{} {}", tool.name.replace(['.', '_', '-'], " "), tool.title.as_deref().unwrap_or(""));
        let named = words::cut(&named, utterance.language);
        let mut said = utterance.words.iter().filter(|word| utterance.language.weight(&word.text) >= 1.0);
        said.any(|word| named.iter().any(|other| other.text == word.text))
    });
    let near = like.map(|tool| Near {
        tool: tool.name.clone(),
        template: None,
        reason: "has no sentences: only a model can call it".to_owned(),
    });
    near.take(ALIKE_MAX).collect()
}
