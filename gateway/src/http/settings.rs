//! The section `[listen]`.

use std::net::SocketAddr;

use serde::Deserialize;
use toml::Spanned;

use crate::problems::{Problems, unwritten};

/// `[listen]` as configured.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawListen {
    web: Spanned<String>,
    quic: Spanned<String>,
    websocket: bool,
    plain: bool,
    try_page: bool,
    console: bool,
    metrics_elsewhere: bool,
}

impl Default for RawListen {
    fn default() -> Self {
        Self {
            web: unwritten("127.0.0.1:8460".to_owned()),
            quic: unwritten("127.0.0.1:8460".to_owned()),
            websocket: true,
            plain: false,
            try_page: true,
            console: true,
            metrics_elsewhere: false,
        }
    }
}

/// Where to listen, and for whom.
#[derive(Clone, Debug)]
pub struct Listen {
    /// TCP: WebSocket and pages.
    pub web: SocketAddr,
    /// UDP: QUIC; `None`: no QUIC.
    pub quic: Option<SocketAddr>,
    /// Accept glasses over WebSocket.
    pub websocket: bool,
    /// Accept `ws://` and `http://` from other machines too.
    pub plain: bool,
    /// Serve the browser page, on loopback.
    pub try_page: bool,
    /// Serve the operators' console.
    pub console: bool,
    /// Answer `/metrics` to other machines too.
    pub metrics_elsewhere: bool,
}

impl RawListen {
    /// Checks the section.
    pub(crate) fn check(&self, problems: &mut Problems<'_>) -> Option<Listen> {
        let web = problems.address(&self.web, "listen.web");
        let quic = match self.quic.get_ref().as_str() {
            "" => Some(None),
            _ => problems.address(&self.quic, "listen.quic").map(Some),
        };
        Some(Listen {
            web: web?,
            quic: quic?,
            websocket: self.websocket,
            plain: self.plain,
            try_page: self.try_page,
            console: self.console,
            metrics_elsewhere: self.metrics_elsewhere,
        })
    }
}
