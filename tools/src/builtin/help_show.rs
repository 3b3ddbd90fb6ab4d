//! `help.show`: what can be said, from the currently offered tools.

use async_trait::async_trait;
use gateway_core::vocab::{ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{FOLLOW_UPS_MAX, ITEM_CHARS_MAX, NOTES_LISTED_MAX},
    phrases,
    registry::{RunContext, Snapshot},
    reply::cut,
    source::Source,
    spoken,
};

struct HelpShow;

inventory::submit! { BuiltIn(&HelpShow) }

/// Tools whose examples are said first, if they are offered; the rest follows in the order of the catalogue.
const FIRST: [&str; 4] = ["timer.set", "reminder.set", "note.add", "clock.time"];

/// In which a tool is called that has no sentences in the wearer's language.
const ENGLISH: &str = "en";

/// Examples that are spoken: more are not remembered.
const SPOKEN_EXAMPLES: usize = 4;

#[async_trait]
impl Tool for HelpShow {
    fn definition(&self) -> Definition {
        Definition {
            name: "help.show",
            title: "Say what can be said",
            description: "Gives examples of what the wearer can say to the assistant.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "what can I say",
                "help [me]",
                "i need [some] help",
                "(show|open|give me|show me) [the|some] (help|commands|help page|options)",
                "what (can|could) (you do|i say|i ask|i ask you|i ask for|i do|i say to you) [for me|here]",
                "what (are you able to|do you know how to) do",
                "(tell|show) me what (you can do|i can say|i can ask|i can ask you)",
                "(what|which) (commands|things) (are there|do you (know|understand|support|have)|can i (use|say))",
                "what do you (understand|know|offer)",
                "how (do|can) i use (this|you|it|these|these glasses|the glasses)",
                "how (does|do) (this|you|it|these|these glasses) work",
                "what are (your|the) (commands|features|functions|options|abilities)",
            ],
            guidance: None,
            flags: ToolFlags { persistent: false, ..READ_ONLY },
        }
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let examples = examples(&context.offered, context.language.as_deref().unwrap_or(ENGLISH));
        if examples.is_empty() {
            let say = "There is nothing that I can do right now.";
            return Ok(told(say, "Help", "Nothing", json!({"examples": []})));
        }
        let spoken_examples: Vec<_> = examples.iter().take(SPOKEN_EXAMPLES).collect();
        let quoted: Vec<_> = spoken_examples.iter().map(|text| text.as_str()).collect();
        let say = format!("You can say, for example: {}.", spoken::list_or(&quoted));
        let lines: Vec<_> = examples.iter().take(NOTES_LISTED_MAX).map(|text| spoken::capitalised(text)).collect();
        let mut result = told(say, "You can say", lines.join("\n"), json!({"examples": examples}));
        result.content = format!("Examples of what the wearer can say:\n{}", examples.join("\n"));
        result.follow_ups = lines.into_iter().take(FOLLOW_UPS_MAX).collect();
        Ok(result)
    }
}

/// One example per tool, as it is understood in this language: first [`FIRST`], then tools that are not built in, then the others.
fn examples(offered: &Snapshot, language: &str) -> Vec<String> {
    let rank = |name: &str, source: &Source| {
        let first = FIRST.iter().position(|first| *first == name);
        match (first, source) {
            (Some(at), _) => (0, at),
            (None, Source::BuiltIn) => (2, 0),
            (None, _) => (1, 0),
        }
    };
    let mut ranked: Vec<_> = offered
        .tools()
        .iter()
        .filter(|tool| tool.spec.name != "help.show")
        .filter_map(|tool| {
            let own = phrases::example(&tool.spec, language);
            let text = own.or_else(|| phrases::example(&tool.spec, ENGLISH))?;
            Some((rank(&tool.spec.name, &tool.source), cut(&text, ITEM_CHARS_MAX)))
        })
        .collect();
    // A stable sort keeps the catalogue's order within a rank.
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, text)| text).collect()
}
