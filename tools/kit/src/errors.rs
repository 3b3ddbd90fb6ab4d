//! Errors of an app, outside its own code.

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where it should listen.
        address: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The address of the gateway's socket is invalid.
    #[error(
        "the gateway's address {0} cannot be used: only ws:// is spoken here, and only to the gateway that is allowed"
    )]
    Address(String),
    /// The gateway's socket could not be opened.
    #[error("the gateway's socket: {0}")]
    Socket(#[from] tokio_tungstenite::tungstenite::Error),
    /// The gateway rejected the app.
    #[error("the gateway refused the app: {0}")]
    Refused(String),
    /// It took too long.
    #[error("no answer within {0} ms")]
    Timeout(u64),
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
    /// Too many messages are queued for the socket.
    #[error("too many messages are waiting; draw less often")]
    Busy,
    /// A limit is exceeded.
    #[error("{0}")]
    TooMuch(String),
    /// The storage returned an error.
    #[error("the storage: {0}")]
    Storage(String),
    /// The gateway could not speak the text.
    #[error("it was not spoken: {0}")]
    NotSpoken(String),
}
