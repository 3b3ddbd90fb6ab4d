//! Tables, which become lists of cards on a narrow screen. The roles are written out, since a table that is displayed as
//! something else loses its own ones.

use maud::{Markup, Render, html};

/// Longest text of a cell, in characters, whose words are not broken in the middle: they cannot be wider than a column may be.
const SHORT_MAX: usize = 24;

/// Caption, heads and cells; `empty` is shown where there are no rows.
pub(super) struct Table<'a> {
    caption: &'a str,
    columns: &'a [&'a str],
    rows: Vec<Vec<Markup>>,
    empty: Markup,
}

impl<'a> Table<'a> {
    /// Without rows.
    pub(super) fn new(caption: &'a str, columns: &'a [&'a str]) -> Self {
        Self { caption, columns, rows: Vec::new(), empty: html! { "None." } }
    }

    /// With these rows; each has a cell for every column.
    pub(super) fn rows(mut self, rows: impl IntoIterator<Item = Vec<Markup>>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// With this text in place of no rows.
    pub(super) fn or(mut self, empty: &(impl Render + ?Sized)) -> Self {
        self.empty = empty.render();
        self
    }
}

/// Whether the text outside of the tags is short.
fn is_short(html: &str) -> bool {
    let mut is_tag = false;
    let text = html.chars().filter(|character| {
        is_tag |= *character == '<';
        let is_text = !is_tag;
        is_tag &= *character != '>';
        is_text
    });
    text.take(SHORT_MAX + 1).count() <= SHORT_MAX
}

impl Render for Table<'_> {
    fn render(&self) -> Markup {
        html! {
            @if self.rows.is_empty() {
                p.soft.empty { (self.empty) }
            } @else {
                table role="table" {
                    caption.sr { (self.caption) }
                    thead role="rowgroup" {
                        tr role="row" {
                            @for column in self.columns { th role="columnheader" scope="col" { (column) } }
                        }
                    }
                    tbody role="rowgroup" {
                        @for row in &self.rows {
                            tr role="row" {
                                @for (cell, column) in row.iter().zip(self.columns) {
                                    td role="cell" data-label=(column) .short[is_short(&cell.0)] {
                                        @if !cell.0.is_empty() { div { (cell) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_short_cells_are_not_broken() {
        for (html, expected) in [
            ("", true),
            ("wearer", true),
            ("<code class=\"a long attribute of it\">name</code>", true),
            ("a <b>text</b> with a few more words", false),
            ("0123456789abcdef01234567", true),
            ("0123456789abcdef012345678", false),
        ] {
            assert_eq!(is_short(html), expected, "{html}");
        }
    }
}
