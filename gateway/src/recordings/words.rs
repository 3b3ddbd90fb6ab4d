//! What was said, left out of a timeline.

/// Fields whose text is no words of a wearer.
const TOLD: [&str; 7] = ["tool: ", "call_id: ", "name: ", "id: ", "package: ", "user: ", "device: "];

/// A debug form in which each quoted text stands as its number of characters, but for names of tools, apps, users and
/// devices.
pub(crate) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('"') {
        out.push_str(before);
        let (quoted, after) = quoted(from);
        if TOLD.iter().any(|field| before.ends_with(field)) {
            out.push('"');
            out.push_str(quoted);
            out.push('"');
        } else {
            out.push_str(&format!("\u{2039}{}\u{203a}", quoted.chars().count()));
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The text up to its closing quote, and what follows; without one, all of it.
fn quoted(text: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return (&text[..at], &text[at + 1..]),
            _ => {}
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_left_out_and_names_stay() {
        let text = r#"RunTool { call: ToolCall { id: "c1", name: "note.add", arguments: Object {"text": String("say \"hi\"")} } }"#;
        let told =
            r#"RunTool { call: ToolCall { id: "c1", name: "note.add", arguments: Object {‹4›: String(‹10›)} } }"#;
        assert_eq!(masked(text), told);
        assert_eq!(masked(r#"Text("stop")"#), "Text(‹4›)");
        assert_eq!(masked(r#"Text("cut off"#), "Text(‹7›");
        assert_eq!(masked("CancelModel"), "CancelModel");
    }
}
