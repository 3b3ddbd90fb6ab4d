//! What a chat model writes and nobody can say: markdown, links, addresses, emoji. Marks go, words stay, a web
//! address becomes its host in words. Plain sentences come through unchanged.

/// Top-level domains by which an address without `https://` or `www.` is known.
const DOMAINS: &[&str] = &[
    "com", "org", "net", "edu", "gov", "io", "co", "uk", "de", "fr", "info", "biz", "us", "ca", "au", "tv", "me", "ai",
    "dev", "app",
];

/// `text` without what cannot be said; lines stay lines.
pub(super) fn speakable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim();
        // Fences of code, rules and the second line of a table hold no words.
        if line.starts_with("```") || (line.len() > 2 && line.chars().all(|c| "-*_=|: ".contains(c))) {
            continue;
        }
        let line: String = strip_links(strip_line_marks(line)).chars().filter(|c| !is_silent(*c)).collect();
        let line = strip_emphasis(&line);
        let words: Vec<String> =
            line.split_whitespace().map(|word| address(word).unwrap_or_else(|| word.into())).collect();
        if !words.is_empty() {
            out.push_str(&words.join(" "));
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Takes heading, quote and list marks off the start of a line.
fn strip_line_marks(mut line: &str) -> &str {
    loop {
        let heading = line.trim_start_matches('#');
        let marks = ["> ", "- ", "* ", "+ ", "• ", "[ ] ", "[x] "];
        let rest = match marks.iter().find_map(|mark| line.strip_prefix(mark)) {
            Some(rest) => rest,
            None if heading.len() < line.len() && heading.starts_with(' ') => heading,
            None => return line,
        };
        line = rest.trim_start();
    }
}

/// `[text](target)` and `![text](target)` become their text.
fn strip_links(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('[') {
        let link = after.split_once("](").and_then(|(text, target)| {
            let (_, tail) = target.split_once(')')?;
            (!text.contains(['[', ']'])).then_some((text, tail))
        });
        match link {
            Some((text, tail)) => {
                out.push_str(before.strip_suffix('!').unwrap_or(before));
                out.push_str(text);
                rest = tail;
            }
            None => {
                out.push_str(before);
                out.push('[');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Drops `**`, `__`, `~~`, backticks, and single `*` and `_` at the edges of words; a `*` between figures is
/// "times".
fn strip_emphasis(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    let mut out = String::with_capacity(line.len());
    for (at, c) in chars.iter().copied().enumerate() {
        let near = |found: Option<&char>| found.copied().unwrap_or(' ');
        let before = near(at.checked_sub(1).and_then(|at| chars.get(at)));
        let after = near(chars.get(at + 1));
        match c {
            '`' => {}
            '*' if before != '*' && after != '*' && is_product(&chars, at) => out.push_str(" times "),
            '*' => {}
            '_' if before.is_alphanumeric() && after.is_alphanumeric() => out.push(c),
            '_' => {}
            '~' if before == '~' || after == '~' => {}
            _ => out.push(c),
        }
    }
    out
}

fn is_product(chars: &[char], at: usize) -> bool {
    let digit = |c: Option<&char>| c.is_some_and(char::is_ascii_digit);
    let left = chars[..at].iter().rev().find(|c| **c != ' ');
    digit(left) && digit(chars[at + 1..].iter().find(|c| **c != ' '))
}

/// Emoji, their joiners and selectors, other invisible characters and controls.
fn is_silent(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{20e3}'
        | '\u{2300}'..='\u{23ff}' | '\u{25a0}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{1f000}'..='\u{1faff}' | '\u{e0000}'..='\u{e0fff}')
}

/// A web or mail address in words; `None` when `word` is none.
fn address(word: &str) -> Option<String> {
    let body = word.trim_matches(|c: char| "<>()[]{}\"',;:!?.".contains(c));
    let (lead, tail) = word.split_once(body).filter(|_| !body.is_empty())?;
    let (scheme, bare) = match ["https://", "http://", "ftp://", "mailto:"].iter().find(|s| body.starts_with(**s)) {
        Some(scheme) => (true, &body[scheme.len()..]),
        None => (false, body),
    };
    let host = bare.split(['/', '?', '#']).next().unwrap_or(bare);
    let (user, host) = host.rsplit_once('@').map_or((None, host), |(user, host)| (Some(user), host));
    let www = host.starts_with("www.") && host.len() > 4;
    let host = host.strip_prefix("www.").filter(|_| www).unwrap_or(host);
    let labels: Vec<&str> = host.split(':').next().unwrap_or(host).split('.').collect();
    let wellformed = labels
        .iter()
        .all(|label| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_'));
    let domain = labels.len() > 1 && labels.last().is_some_and(|last| DOMAINS.contains(&last.to_lowercase().as_str()));
    // Letters before the dot tell a host from a figure or an initial.
    let named = labels.first().is_some_and(|label| label.chars().filter(|c| c.is_alphabetic()).count() > 1);
    if !wellformed || !(scheme || www || user.is_some() && labels.len() > 1 || domain && named) {
        return None;
    }
    let words = |text: &str| text.replace('.', " dot ").replace('-', " dash ").replace('_', " underscore ");
    let user = user.map_or_else(String::new, |user| format!("{} at ", words(user)));
    Some(format!("{}{user}{}{}", lead.trim_start_matches('<'), words(&labels.join(".")), tail.trim_start_matches('>')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_said_goes() {
        for (written, said) in [
            ("Plain words, 3.5 km away: it's 5-6 o'clock.", "Plain words, 3.5 km away: it's 5-6 o'clock."),
            ("**Bold** and *soft* and `code` and ~~gone~~.", "Bold and soft and code and gone."),
            ("# Title\n\n- one\n* two\n1. three", "Title\none\ntwo\n1. three"),
            ("> - [x] done", "done"),
            ("See [the manual](https://example.com/x?y=1).", "See the manual."),
            ("![a cat](cat.png) sleeps", "a cat sleeps"),
            ("Go to https://docs.rs/rten now.", "Go to docs dot rs now."),
            ("(www.example.co.uk/path)", "(example dot co dot uk)"),
            ("Try example.com, please", "Try example dot com, please"),
            ("Mail <jo.do@mail.example.org>!", "Mail jo dot do at mail dot example dot org!"),
            ("Great 👍🏽 job 🎉!", "Great job !"),
            ("3 * 4 is 12, 2*3 is 6", "3 times 4 is 12, 2 times 3 is 6"),
            ("```rust\nlet x = 1;\n```", "let x = 1;"),
            ("a | b\n---|---\n1 | 2", "a | b\n1 | 2"),
            ("snake_case and _this_", "snake_case and this"),
            ("e.g. this, i.e. that, U.S. and 3.5", "e.g. this, i.e. that, U.S. and 3.5"),
            ("[not a link", "[not a link"),
            ("👍", ""),
            ("zero\u{200b}width\u{7}", "zerowidth"),
        ] {
            assert_eq!(speakable(written), said, "{written}");
        }
    }
}
