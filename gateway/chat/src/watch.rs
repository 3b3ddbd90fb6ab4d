//! A callback for the moment a request is sent.

use std::{fmt, sync::Arc};

/// Called when a request is sent, once for each attempt; never for answers without a network. It runs on the request's
/// path and must be quick.
#[derive(Clone, Default)]
pub struct Watch(Option<Arc<dyn Fn(usize) + Send + Sync>>);

impl Watch {
    /// `sent` is called with the number of tools that the request declares.
    pub fn new(sent: impl Fn(usize) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(sent)))
    }

    /// The connection has taken the whole request, with this many tools.
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
