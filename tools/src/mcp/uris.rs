//! Prefixes for the names and URIs of several servers.
//!
//! A name or URI of a server gets the server's prefix on the way out and loses it on the way in; the rest of it is not
//! interpreted. Server names contain neither `.` nor `+`, hence no prefix is the beginning of another one. One server
//! may be exposed unrenamed (`flatten`).

/// Prefixes of the servers.
#[derive(Clone, Debug, Default)]
pub struct Prefixes {
    servers: Vec<String>,
    flatten: Option<String>,
}

impl Prefixes {
    /// Prefixes for these servers; `flatten` stays unrenamed.
    pub fn new(servers: Vec<String>, flatten: Option<String>) -> Self {
        Self { servers, flatten }
    }

    /// The server that is exposed unrenamed.
    pub fn flatten(&self) -> Option<&str> {
        self.flatten.as_deref()
    }

    /// The external form of a server's name for something.
    pub fn name_out(&self, server: &str, name: &str) -> String {
        if self.is_flat(server) { name.to_owned() } else { format!("{server}.{name}") }
    }

    /// The external form of a server's URI or URI template: `SERVER+URI`, which is still a URI (RFC 3986 section 3.1
    /// allows `+` in a scheme).
    pub fn uri_out(&self, server: &str, uri: &str) -> String {
        if self.is_flat(server) { uri.to_owned() } else { format!("{}+{uri}", scheme(server)) }
    }

    /// The server that an external name belongs to, and the server's own name for it.
    pub fn name_in<'a>(&'a self, name: &'a str) -> Option<(&'a str, &'a str)> {
        let own = |server: &'a String| Some((server.as_str(), name.strip_prefix(server.as_str())?.strip_prefix('.')?));
        self.renamed().find_map(own).or_else(|| Some((self.flatten()?, name)))
    }

    /// The server that an external URI belongs to, and the server's own URI.
    pub fn uri_in<'a>(&'a self, uri: &'a str) -> Option<(&'a str, &'a str)> {
        let own = |server: &'a String| Some((server.as_str(), uri.strip_prefix(&scheme(server))?.strip_prefix('+')?));
        self.renamed().find_map(own).or_else(|| Some((self.flatten()?, uri)))
    }

    fn is_flat(&self, server: &str) -> bool {
        self.flatten.as_deref() == Some(server)
    }

    fn renamed(&self) -> impl Iterator<Item = &String> {
        self.servers.iter().filter(|server| !self.is_flat(server))
    }
}

/// A URI scheme cannot contain underscores.
fn scheme(server: &str) -> String {
    server.replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_out_comes_in_again() {
        let prefixes = Prefixes::new(vec!["a".into(), "a-b".into(), "c_d".into()], None);
        for server in ["a", "a-b", "c_d"] {
            for text in ["x", "x.y", "a.x", "test://t/{id}", "a+b://c", ""] {
                let name = prefixes.name_out(server, text);
                assert_eq!(prefixes.name_in(&name), Some((server, text)));
                let uri = prefixes.uri_out(server, text);
                assert_eq!(prefixes.uri_in(&uri), Some((server, text)));
            }
        }
        assert_eq!(prefixes.name_in("b.x"), None);
        assert_eq!(prefixes.uri_in("file:///x"), None);
    }

    #[test]
    fn one_server_may_keep_its_names() {
        let prefixes = Prefixes::new(vec!["a".into(), "b".into()], Some("b".into()));
        assert_eq!(prefixes.name_out("b", "x.y"), "x.y");
        assert_eq!(prefixes.name_in("x.y"), Some(("b", "x.y")));
        assert_eq!(prefixes.name_in("a.x"), Some(("a", "x")));
        assert_eq!(prefixes.uri_in("test://t"), Some(("b", "test://t")));
        assert_eq!(prefixes.uri_in("a+test://t"), Some(("a", "test://t")));
    }
}
