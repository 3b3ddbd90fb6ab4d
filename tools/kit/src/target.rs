//! The address of a gateway.

use hyper::Uri;

use crate::Error;

/// Address of a gateway's socket, from which its other addresses are derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    url: String,
    /// Host and port.
    authority: String,
    /// Path before `/app-ws`.
    prefix: String,
}

impl Target {
    /// Parses the address in a webhook. `allowed` is the only accepted gateway.
    pub(crate) fn parse(url: &str, allowed: Option<&str>) -> Result<Self, Error> {
        let wrong = || Error::Address(url.chars().take(200).collect());
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        // User information before the host would be part of every derived request.
        if uri.scheme_str() != Some("ws") || authority.as_str().contains('@') {
            return Err(wrong());
        }
        if allowed.is_some_and(|origin| origin != format!("ws://{authority}")) {
            return Err(wrong());
        }
        let path = uri.path();
        let prefix = path.strip_suffix("/app-ws").or_else(|| path.strip_suffix("/tpa-ws")).unwrap_or_default();
        Ok(Self { url: url.to_owned(), authority: authority.to_string(), prefix: prefix.to_owned() })
    }

    /// The address of the socket.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Host and port, for connecting.
    pub(crate) fn address(&self) -> (String, u16) {
        let authority: Option<hyper::http::uri::Authority> = self.authority.parse().ok();
        let (host, port) = authority.as_ref().map_or(("", None), |parts| (parts.host(), parts.port_u16()));
        (host.trim_matches(['[', ']']).to_owned(), port.unwrap_or(80))
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// The path of a request to the gateway's web server.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }

    /// The address that stands for spoken text. It is never fetched: the gateway reads the text from it. Always https,
    /// as apps expect.
    pub(crate) fn speech_url(&self, text: &str) -> String {
        let query: String = form_urlencoded::Serializer::new(String::new()).append_pair("text", text).finish();
        format!("https://{}{}?{query}", self.authority, self.path("/api/tts"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_gateways() {
        let target = Target::parse("ws://127.0.0.1:8002/gw/u1/app-ws", None).unwrap();
        assert_eq!(target.address(), ("127.0.0.1".to_owned(), 8002));
        assert_eq!(target.path("/api/x"), "/gw/u1/api/x");
        assert_eq!(target.speech_url("Hi & bye"), "https://127.0.0.1:8002/gw/u1/api/tts?text=Hi+%26+bye");
        assert_eq!(Target::parse("ws://[::1]:9/app-ws", None).unwrap().address(), ("::1".to_owned(), 9));
        assert_eq!(Target::parse("ws://box/tpa-ws", None).unwrap().path("/a"), "/a");
        for wrong in ["", "x", "/app-ws", "http://a/app-ws", "wss://a/app-ws", "ws://me:pw@a/app-ws", "ws://"] {
            assert!(Target::parse(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_allowed_gateway_learns_the_key() {
        let allowed = Some("ws://127.0.0.1:8002");
        assert!(Target::parse("ws://127.0.0.1:8002/app-ws", allowed).is_ok());
        for other in ["ws://127.0.0.1:8003/app-ws", "ws://127.0.0.1/app-ws", "ws://127.0.0.1:8002.evil/app-ws"] {
            assert!(Target::parse(other, allowed).is_err(), "{other}");
        }
    }
}
