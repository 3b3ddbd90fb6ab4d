//! Web and mail addresses as words: "docs dot rs". Markup is removed before, in the gateway's core.

/// Top-level domains that identify an address without `https://` or `www.`.
const DOMAINS: &[&str] = &[
    "com", "org", "net", "edu", "gov", "io", "co", "uk", "de", "fr", "info", "biz", "us", "ca", "au", "tv", "me", "ai",
    "dev", "app",
];

/// `text` with its addresses as words; line breaks are kept.
pub(super) fn in_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let words: Vec<String> =
            line.split_whitespace().map(|word| address(word).unwrap_or_else(|| word.into())).collect();
        if !words.is_empty() {
            out.push_str(&words.join(" "));
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// A web or mail address as words; `None` if `word` is none.
fn address(word: &str) -> Option<String> {
    let body = word.trim_matches(|c: char| "<>()[]{}\"',;:!?.".contains(c));
    let (lead, tail) = word.split_once(body).filter(|_| !body.is_empty())?;
    let (scheme, bare) = match ["https://", "http://", "ftp://", "mailto:"].iter().find(|s| body.starts_with(**s)) {
        Some(scheme) => (true, &body[scheme.len()..]),
        None => (false, body),
    };
    let host = bare.split(['/', '?', '#']).next().unwrap_or(bare);
    let (user, host) = host.rsplit_once('@').map_or((None, host), |(user, host)| (Some(user), host));
    let www = host.starts_with("www.") && host.len() > 4;
    let host = host.strip_prefix("www.").filter(|_| www).unwrap_or(host);
    let labels: Vec<&str> = host.split(':').next().unwrap_or(host).split('.').collect();
    let wellformed = labels
        .iter()
        .all(|label| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_'));
    let domain = labels.len() > 1 && labels.last().is_some_and(|last| DOMAINS.contains(&last.to_lowercase().as_str()));
    // Letters before the dot distinguish a host from a figure or an initial.
    let named = labels.first().is_some_and(|label| label.chars().filter(|c| c.is_alphabetic()).count() > 1);
    if !wellformed || !(scheme || www || user.is_some() && labels.len() > 1 || domain && named) {
        return None;
    }
    let words = |text: &str| text.replace('.', " dot ").replace('-', " dash ").replace('_', " underscore ");
    let user = user.map_or_else(String::new, |user| format!("{} at ", words(user)));
    Some(format!("{}{user}{}{}", lead.trim_start_matches('<'), words(&labels.join(".")), tail.trim_start_matches('>')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_words_and_all_else_stays() {
        for (written, said) in [
            ("Plain words, 3.5 km away: it's 5-6 o'clock.", "Plain words, 3.5 km away: it's 5-6 o'clock."),
            ("Go to https://docs.rs/rten now.", "Go to docs dot rs now."),
            ("(www.example.co.uk/path)", "(example dot co dot uk)"),
            ("Try example.com, please", "Try example dot com, please"),
            ("Mail <jo.do@mail.example.org>!", "Mail jo dot do at mail dot example dot org!"),
            ("e.g. this, i.e. that, U.S. and 3.5", "e.g. this, i.e. that, U.S. and 3.5"),
            ("one\n\n two", "one\ntwo"),
        ] {
            assert_eq!(in_words(written), said, "{written}");
        }
    }
}
