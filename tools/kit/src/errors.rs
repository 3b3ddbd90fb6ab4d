//! What can go wrong in an app, outside its own code.

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address to serve on cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The address of the gateway's socket cannot be used.
    #[error(
        "the gateway's address {0} cannot be used: only ws:// is spoken here, and only to the gateway that is allowed"
    )]
    Address(String),
    /// The gateway's socket could not be opened.
    #[error("the gateway's socket: {0}")]
    Socket(#[from] tokio_tungstenite::tungstenite::Error),
    /// The gateway did not accept the app.
    #[error("the gateway refused the app: {0}")]
    Refused(String),
    /// It took too long.
    #[error("no answer within {0} ms")]
    Timeout(u64),
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
    /// The socket does not keep up.
    #[error("too many messages are waiting; draw less often")]
    Busy,
    /// More than is accepted.
    #[error("{0}")]
    TooMuch(String),
    /// The storage answered with an error.
    #[error("the storage: {0}")]
    Storage(String),
    /// The gateway could not speak.
    #[error("it was not spoken: {0}")]
    NotSpoken(String),
}
