//! The state of the gateway, for tools that are there before it can be known.

use std::sync::OnceLock;

use async_trait::async_trait;
use tools::{
    inspection::system::{System, SystemState},
    ports::PortError,
};

/// The state of a gateway that is being started; it is known once [`set`](Self::set) was called.
#[derive(Default)]
pub(crate) struct DeferredSystem(OnceLock<Box<dyn System>>);

impl DeferredSystem {
    /// From now on it is known. Only the first call counts.
    pub(crate) fn set(&self, system: impl System + 'static) {
        let _known = self.0.set(Box::new(system));
    }
}

#[async_trait]
impl System for DeferredSystem {
    async fn state(&self) -> Result<SystemState, PortError> {
        match self.0.get() {
            Some(system) => system.state().await,
            None => Err(PortError::Unavailable("the gateway is being started".to_owned())),
        }
    }
}
