//! Compares the wearer's words with stored texts: word by word, ignoring case, punctuation and simple plurals.

/// The words of a text, in lower case, without punctuation and articles.
pub fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace(['\'', '’'], "");
    let all: Vec<String> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect();
    let meaningful: Vec<String> = all.iter().filter(|word| !STOP_WORDS.contains(&word.as_str())).cloned().collect();
    // "The The" can still be searched for.
    if meaningful.is_empty() { all } else { meaningful }
}

/// Words that do not distinguish texts.
const STOP_WORDS: [&str; 16] =
    ["a", "an", "the", "my", "our", "your", "to", "of", "for", "about", "on", "in", "at", "and", "with", "from"];

/// Whether every word of the query is a prefix of a word of the text, or equals one except for a plural "s".
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

/// Whether both are the same sentence, but for case and punctuation: other than [`same`], which picks an item by its name,
/// every word counts, because "to" and "from" make two facts.
pub fn same_sentence(one: &str, other: &str) -> bool {
    let spoken = |text: &str| -> Vec<String> {
        let words = text.split_whitespace().map(|word| word.trim_matches(PUNCTUATION).to_lowercase());
        words.filter(|word| !word.is_empty()).collect()
    };
    spoken(one) == spoken(other)
}

/// Signs at the edges of words that are not spoken.
const PUNCTUATION: [char; 9] = ['.', ',', ';', ':', '!', '?', '…', '"', '\''];

fn is_like(word: &str, wanted: &str) -> bool {
    // One or two letters would begin half of all words.
    let begins = wanted.chars().count() >= 3 && word.starts_with(wanted);
    begins || is_form(word, wanted)
}

fn is_form(word: &str, wanted: &str) -> bool {
    let plural = |many: &str, one: &str| many.strip_suffix('s') == Some(one);
    word == wanted || plural(word, wanted) || plural(wanted, word)
}

/// The result of choosing among several items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice<T> {
    /// No item matches.
    None,
    /// Exactly this item.
    One(T),
    /// Several items match; the wearer must choose.
    Several(Vec<T>),
}

impl<T> Choice<T> {
    /// The choice among items that all match.
    pub fn among(mut items: Vec<T>) -> Self {
        match items.pop() {
            None => Self::None,
            Some(only) if items.is_empty() => Self::One(only),
            Some(last) => {
                items.push(last);
                Self::Several(items)
            }
        }
    }
}

/// Chooses by name: the only item with exactly these words, otherwise the only one that matches.
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
    fn facts_are_the_same_if_all_their_words_are() {
        for (one, other, expected) in [
            ("My car is on level three.", "my car is on level three", true),
            ("Anna's birthday is in May", "anna's birthday is in may!", true),
            ("The flight from Berlin is at nine.", "The flight to Berlin is at nine.", false),
            ("Paul works with Anna", "Paul works for Anna", false),
            ("The freezer is at -18", "The freezer is at 18", false),
            ("I like egg", "I like eggs", false),
        ] {
            assert_eq!(same_sentence(one, other), expected, "{one} / {other}");
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
        assert_eq!(Choice::among(vec!["egg", "tea"]), Choice::Several(vec!["egg", "tea"]));
        assert_eq!(Choice::among(vec!["egg"]), Choice::One("egg"));
        assert_eq!(Choice::<&str>::among(Vec::new()), Choice::None);
    }
}
