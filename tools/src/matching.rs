//! How what the wearer says is compared with what is stored: by words, blind to case, punctuation
//! and small plurals.

/// The words of a text, in small letters, without punctuation and articles.
pub fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace(['\'', '’'], "");
    let all: Vec<String> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect();
    let meaningful: Vec<String> = all.iter().filter(|word| !STOP_WORDS.contains(&word.as_str())).cloned().collect();
    // "The The" is still something to look for.
    if meaningful.is_empty() { all } else { meaningful }
}

/// Words that tell nothing apart.
const STOP_WORDS: [&str; 16] =
    ["a", "an", "the", "my", "our", "your", "to", "of", "for", "about", "on", "in", "at", "and", "with", "from"];

/// Whether every word of the query begins a word of the text or is one but for a plural's s.
/// An empty query matches nothing.
pub fn matches(text: &str, query: &str) -> bool {
    let query = words(query);
    let text = words(text);
    !query.is_empty() && query.iter().all(|wanted| text.iter().any(|word| is_like(word, wanted)))
}

/// Whether both consist of the same words.
pub fn same(text: &str, query: &str) -> bool {
    let (text, query) = (words(text), words(query));
    text.len() == query.len() && text.iter().zip(&query).all(|(a, b)| is_form(a, b))
}

fn is_like(word: &str, wanted: &str) -> bool {
    // One or two letters would begin half of all words.
    let begins = wanted.chars().count() >= 3 && word.starts_with(wanted);
    begins || is_form(word, wanted)
}

fn is_form(word: &str, wanted: &str) -> bool {
    let plural = |many: &str, one: &str| many.strip_suffix('s') == Some(one);
    word == wanted || plural(word, wanted) || plural(wanted, word)
}

/// What of several things was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice<T> {
    /// Nothing like it.
    None,
    /// Exactly this one.
    One(T),
    /// One of these; the wearer must say which.
    Several(Vec<T>),
}

/// Chooses by name: the only one with exactly these words, else the only one that matches.
pub fn choose<T>(items: Vec<T>, query: &str, text: impl Fn(&T) -> &str) -> Choice<T> {
    let mut matching: Vec<T> = items.into_iter().filter(|item| matches(text(item), query)).collect();
    let exact: Vec<usize> =
        (0..matching.len()).filter(|at| matching.get(*at).is_some_and(|item| same(text(item), query))).collect();
    match (exact.as_slice(), matching.len()) {
        (_, 0) => Choice::None,
        ([at], _) => Choice::One(matching.swap_remove(*at)),
        (_, 1) => Choice::One(matching.swap_remove(0)),
        _ => Choice::Several(matching),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_words() {
        for (text, query, wanted) in [
            ("Buy milk and eggs", "milk", true),
            ("Buy milk and eggs", "MILK.", true),
            ("Buy milk and eggs", "the milk", true),
            ("Buy milk and eggs", "egg", true),
            ("Buy one egg", "eggs", true),
            ("Buy milk and eggs", "eggs milk", true),
            ("Buy milk and eggs", "bread", false),
            ("Buy milk and eggs", "milk bread", false),
            ("Buy milk", "ilk", false),
            ("Buy milk", "m", false),
            ("Vitamin D", "d", true),
            ("Call Anna's mother", "annas", true),
            ("Schlüssel", "schlüssel", true),
            ("anything", "", false),
            ("anything", "  ?! ", false),
            ("the a", "the", true),
        ] {
            assert_eq!(matches(text, query), wanted, "{text} / {query}");
        }
    }

    #[test]
    fn chooses_the_exact_one() {
        fn text<'a>(item: &'a &'static str) -> &'a str {
            item
        }
        assert_eq!(choose(vec!["pasta", "pasta sauce"], "pasta", text), Choice::One("pasta"));
        assert_eq!(choose(vec!["pasta sauce", "egg"], "sauce", text), Choice::One("pasta sauce"));
        assert_eq!(choose(vec!["egg"], "tea", text), Choice::None);
        assert_eq!(choose(vec!["red tea", "green tea"], "tea", text), Choice::Several(vec!["red tea", "green tea"]));
        assert_eq!(choose(vec!["tea", "tea"], "tea", text), Choice::Several(vec!["tea", "tea"]));
    }
}
