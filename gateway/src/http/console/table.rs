//! Tables, which become lists of cards on a narrow screen. The roles are written out, since a table that is displayed as
//! something else loses its own ones.

use maud::{Markup, Render, html};

/// Longest cell, in bytes of HTML, whose words are not broken in the middle: they cannot be wider than a column may be.
const SHORT_MAX: usize = 24;

/// A table.
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
                                    td role="cell" data-label=(column) .short[cell.0.len() <= SHORT_MAX] {
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
