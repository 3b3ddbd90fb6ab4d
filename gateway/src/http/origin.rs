//! The page that sends a request, and the name under which it addresses this machine.

use std::net::IpAddr;

use axum::http::{HeaderMap, header, uri::Authority};

/// Whether the request comes from no page at all (glasses, tools) or from one of the gateway's own pages. A page of
/// another site in a visitor's browser is recognised by its Origin.
pub(super) fn origin_is_ours(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let (Ok(origin), Some(host)) = (origin.to_str(), host(headers)) else {
        return false;
    };
    let of_origin = origin.split_once("://").map_or("", |(_, rest)| rest);
    of_origin == host && host_is_loopback(host)
}

/// Whether a Host header names this machine: a name that another site resolves to 127.0.0.1 does not.
pub(super) fn host_is_loopback(host: &str) -> bool {
    // The part before an `@` would be a user's name, which no Host header has.
    !host.contains('@')
        && host
            .parse::<Authority>()
            .is_ok_and(|authority| matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]"))
}

/// Whether a Host header has an address, `localhost`, or one of these names, in lower case: no other site's page can be
/// loaded under an address, nor under a name that is not its own.
pub(super) fn host_is_known(host: &str, names: &[String]) -> bool {
    let Some(authority) = host.parse::<Authority>().ok().filter(|_| !host.contains('@')) else {
        return false;
    };
    let name = authority.host().to_ascii_lowercase();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(&name);
    name == "localhost" || address.parse::<IpAddr>().is_ok() || names.contains(&name)
}

/// The Host header as it was sent; `None`: there is none, or it is not printable ASCII.
pub(super) fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for host in ["localhost", "localhost:8460", "127.0.0.1:1", "[::1]", "[::1]:8460"] {
            assert!(host_is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:8460",
            "127.0.0.1.evil.example",
            "evil@localhost",
            "::1",
            "[::1",
            "localhost:8460:1",
            "192.168.1.2:8460",
        ] {
            assert!(!host_is_loopback(host), "{host}");
        }
    }

    #[test]
    fn other_names_than_those_of_this_machine_are_foreign() {
        let names = ["box.lan".to_owned()];
        for host in ["localhost:8460", "192.168.1.2:8460", "127.0.0.1", "[fd00::2]:8460", "box.lan:8460", "BOX.lan"] {
            assert!(host_is_known(host, &names), "{host}");
        }
        for host in
            ["", "evil.example", "box.lan.evil.example", "evil@box.lan", "192.168.1.2.evil.example", "[::1", "1"]
        {
            assert!(!host_is_known(host, &names), "{host}");
        }
    }

    #[test]
    fn a_foreign_origin_is_told() {
        let ours = |origin: Option<&'static str>, host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            origin_is_ours(&headers)
        };
        assert!(ours(None, "box.lan:8460"));
        assert!(ours(Some("http://localhost:8460"), "localhost:8460"));
        assert!(!ours(Some("http://localhost:9999"), "localhost:8460"));
        assert!(!ours(Some("http://evil.example"), "evil.example"));
        assert!(!ours(Some("null"), "localhost:8460"));
    }
}
