//! Who is told that a request has gone out.

use std::{fmt, sync::Arc};

/// Told when a request goes out, once for each attempt; whoever answers without a network tells nothing. What it does
/// is done on the request's way, and has to be quick.
#[derive(Clone, Default)]
pub struct Watch(Option<Arc<dyn Fn(usize) + Send + Sync>>);

impl Watch {
    /// `sent` is called with the number of tools that the request declares.
    pub fn new(sent: impl Fn(usize) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(sent)))
    }

    /// The connection has taken up the whole request, with so many tools.
    pub(crate) fn sent(&self, tools: usize) {
        if let Some(sent) = &self.0 {
            sent(tools);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Watch(told)" } else { "Watch(nobody)" })
    }
}
