//! The new process's side.

use std::{
    io,
    os::{fd::AsFd as _, unix::net::UnixStream as Pair},
};

use anyhow::{Context as _, Result};

use super::channel::{Channel, FromNew, FromOld, receive_sockets};
use crate::transport::sockets::Sockets;

/// The connection to the gateway that is to be replaced.
pub struct TakeOver(Channel);

impl TakeOver {
    /// From standard input, with the sockets. Inside a runtime.
    ///
    /// # Errors
    /// Nobody hands over there.
    pub(crate) fn from_stdin() -> Result<(Self, Sockets)> {
        let by_hand = "`lorgnette upgrade` starts a gateway that takes over from another; by hand it cannot be done";
        let pair = Pair::from(io::stdin().as_fd().try_clone_to_owned()?);
        let sockets = receive_sockets(&pair).context(by_hand)?;
        Ok((Self(Channel::new(pair)?), sockets))
    }

    /// Tells that everything but the data folder is there, and waits until that is free.
    ///
    /// # Errors
    /// The other gateway goes on, or is gone.
    pub(crate) async fn loaded(&mut self) -> Result<()> {
        self.0.tell(&FromNew::Loaded).await?;
        let FromOld::Go = self.0.hear().await.context("the gateway that was to be replaced goes on")?;
        Ok(())
    }

    /// Tells that connections are accepted, or why there will be none.
    pub async fn told(mut self, outcome: Result<(), String>) {
        let message = outcome.map_or_else(FromNew::Failed, |()| FromNew::Serving);
        if let Err(error) = self.0.tell(&message).await {
            tracing::warn!(%error, "the gateway that was replaced was not told");
        }
    }
}
