//! Access to private parsers, for `tests/fuzz` only.

use reqwest::{StatusCode, header::HeaderMap};

use crate::{
    http::refusal,
    oauth::{device, exchange, loopback},
};

/// A login server's answer to a secret, as a token, as a device's code and as a provider's refusal; and a browser's
/// request. All that people may read of it.
pub fn oauth(status: u8, body: &[u8], secret: &str) -> Vec<String> {
    let status = [StatusCode::OK, StatusCode::BAD_REQUEST, StatusCode::TOO_MANY_REQUESTS, StatusCode::BAD_GATEWAY]
        [usize::from(status % 4)];
    let fields = [("code", secret), ("grant_type", "authorization_code")];
    let mut told = Vec::new();
    let token = exchange::read(status, body, &fields).and_then(|answer| exchange::token_of(answer, None));
    match token {
        Ok(token) => {
            assert!(token.expires_at_ms.is_none_or(|at| at > 0));
            // The secret is in it where the server sends it back, but nobody reads it.
            told.push(format!("{:?}", token.access));
        }
        Err(exchange::Failed::Code(code, error)) => {
            told.extend([code.replace(char::is_control, ""), error.to_string()])
        }
        Err(exchange::Failed::Other(error)) => told.push(error.to_string()),
    }
    if let Ok(granted) = exchange::read::<device::Granted>(StatusCode::OK, body, &[]) {
        assert!(granted.wait().as_secs() <= 3_600 && granted.interval().as_secs() <= 60);
        let prompt = granted.prompt();
        told.extend([prompt.url, prompt.code].map(|text| text.replace(secret, "-")));
    }
    let refused = refusal::read(status, &HeaderMap::new(), body);
    told.push(refused.failure.1.replace(secret, "-"));
    if let Some(target) = loopback::target_of(body.to_vec()) {
        let query = target.split_once('?').map_or("", |(_, query)| query);
        match loopback::read_query(query, "state") {
            Ok(code) => assert!(!code.is_empty()),
            Err(error) => told.push(error.to_string().replace(secret, "-")),
        }
    }
    told
}
