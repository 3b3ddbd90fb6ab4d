//! JSDoc comments of a file: what its author says about a type or a member, right before it.

use std::collections::BTreeMap;

use swc_common::{
    BytePos,
    comments::{Comment, CommentKind, SingleThreadedComments},
};

/// Characters of a comment that are kept: a sentence or two.
const CHARS_MAX: usize = 320;

/// The comments of a file.
pub(crate) struct Docs<'a> {
    source: &'a str,
    /// Where the source begins.
    start: BytePos,
    /// By their ends.
    comments: BTreeMap<BytePos, Comment>,
}

impl<'a> Docs<'a> {
    /// Those that a parser has found in this source, which begins at `start`.
    pub(crate) fn new(source: &'a str, start: BytePos, found: SingleThreadedComments) -> Self {
        let (leading, trailing) = found.take_all();
        let mut comments = BTreeMap::new();
        for places in [leading, trailing] {
            let all = places.take().into_values().flatten();
            comments.extend(all.map(|comment| (comment.span.hi, comment)));
        }
        Self { source, start, comments }
    }

    /// The text of the JSDoc comment right before this place, up to its first tag.
    pub(crate) fn before(&self, at: BytePos) -> Option<String> {
        let (end, comment) = self.comments.range(..=at).next_back()?;
        let offset = |place: BytePos| usize::try_from(place.0.checked_sub(self.start.0)?).ok();
        let between = self.source.get(offset(*end)?..offset(at)?)?;
        if comment.kind != CommentKind::Block || !between.trim().is_empty() {
            return None;
        }
        let text = comment.text.as_str().strip_prefix('*')?;
        let lines = text.lines().map(|line| line.trim_start().trim_start_matches('*').trim());
        let lines: Vec<&str> =
            lines.take_while(|line| !line.starts_with('@')).filter(|line| !line.is_empty()).collect();
        let text: String = lines.join("\n").chars().take(CHARS_MAX).collect();
        (!text.is_empty()).then_some(text)
    }
}
