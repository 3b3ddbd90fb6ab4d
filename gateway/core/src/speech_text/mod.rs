//! From a model's text to what is shown and what is spoken: markup is taken off while the text streams, and clauses are cut.

mod marks;
pub(crate) mod markup;
pub(crate) mod sentences;
