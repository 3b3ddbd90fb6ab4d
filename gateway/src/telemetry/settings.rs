//! The section `[telemetry]`.

use reqwest::Url;
use serde::Deserialize;
use toml::Spanned;

use crate::problems::Problems;

/// `[telemetry]` as configured.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawTelemetry {
    otlp: Option<Spanned<String>>,
}

/// What is told to other programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// Where traces are sent: the address of a collector's `/v1/traces`.
    pub traces: Option<Url>,
}

impl RawTelemetry {
    /// Checks the section.
    pub(crate) fn check(self, problems: &mut Problems<'_>) -> Telemetry {
        let Some(otlp) = self.otlp.filter(|otlp| !otlp.get_ref().is_empty()) else { return Telemetry::default() };
        let traces = address(otlp.get_ref());
        if traces.is_none() {
            let what = "`telemetry.otlp` must be the address of a collector of OpenTelemetry, such as http://127.0.0.1:4318, \
                        without user, query and fragment";
            problems.at(otlp.span(), what.to_owned());
        }
        Telemetry { traces }
    }
}

/// The address of traces below that of a collector, as the protocol of OTLP over HTTP has it.
fn address(text: &str) -> Option<Url> {
    let mut url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if !is_plain || url.fragment().is_some() {
        return None;
    }
    url.path_segments_mut().ok()?.pop_if_empty().extend(["v1", "traces"]);
    Some(url)
}

#[cfg(test)]
mod tests {
    use crate::config::check;

    #[test]
    fn the_address_of_a_collector_is_that_of_its_traces() {
        let traces = |value: &str| check(&format!("[telemetry]\notlp = \"{value}\"\n"), "x.toml");
        for (value, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("https://x.example/otlp/", "https://x.example/otlp/v1/traces"),
        ] {
            assert_eq!(traces(value).unwrap().telemetry.traces.unwrap().as_str(), expected);
        }
        assert_eq!(traces("").unwrap().telemetry.traces, None);
        for value in ["127.0.0.1:4318", "grpc://x", "http://a:b@x", "http://x/?k=1", "http://x/#f", "x"] {
            let problems = traces(value).unwrap_err();
            assert!(
                problems[0].line == Some(2) && problems[0].what.contains("telemetry.otlp"),
                "{value}: {problems:?}"
            );
        }
    }
}
