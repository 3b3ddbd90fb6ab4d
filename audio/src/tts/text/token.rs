//! A token between text and phonemes.

/// One token. Tags are those of the Penn Treebank.
#[derive(Debug, Clone)]
pub(super) struct Token<'t> {
    pub(super) text: String,
    pub(super) tag: &'t str,
    /// Whether white space follows.
    pub(super) space: bool,
    /// `None` until decided; empty if nothing is spoken.
    pub(super) phonemes: Option<String>,
    /// Whether it begins a written word.
    pub(super) is_head: bool,
    /// Read as this instead of `text`.
    pub(super) alias: Option<&'static str>,
    /// Currency sign that stood before it.
    pub(super) currency: Option<char>,
    /// Whether a gap is spoken before it although none is written.
    pub(super) gap_before: bool,
}

impl<'t> Token<'t> {
    pub(super) fn new(text: impl Into<String>, tag: &'t str, space: bool) -> Self {
        Self {
            text: text.into(),
            tag,
            space,
            phonemes: None,
            is_head: true,
            alias: None,
            currency: None,
            gap_before: false,
        }
    }

    /// Whether its reading is decided.
    pub(super) fn is_fixed(&self) -> bool {
        self.alias.is_some() || self.phonemes.is_some()
    }

    /// `tokens` as one token without phonemes; `None` when there are none.
    pub(super) fn merge(tokens: &[Token<'t>]) -> Option<Self> {
        let (first, last) = (tokens.first()?, tokens.last()?);
        let mut heaviest = first;
        let mut text = String::new();
        for token in tokens {
            text.push_str(&token.text);
            if token.space && !std::ptr::eq(token, last) {
                text.push(' ');
            }
            if token.weight() > heaviest.weight() {
                heaviest = token;
            }
        }
        Some(Self {
            is_head: first.is_head,
            currency: tokens.iter().filter_map(|token| token.currency).max(),
            gap_before: first.gap_before,
            ..Self::new(text, heaviest.tag, last.space)
        })
    }

    /// The heaviest token gives a merged word its tag: its length, capitals counted double.
    fn weight(&self) -> usize {
        self.text.chars().map(|c| if c.is_uppercase() { 2 } else { 1 }).sum()
    }
}
