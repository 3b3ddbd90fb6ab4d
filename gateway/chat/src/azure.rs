//! Azure's differences from the protocols that it implements: the key in its own header, a version in the query.

use form_urlencoded::Serializer;

use crate::oauth::HeaderStyle;

/// The header for the key; `azure`: for Azure.
pub(crate) fn key_style(azure: bool) -> HeaderStyle {
    if azure { HeaderStyle::Named("api-key") } else { HeaderStyle::Bearer }
}

/// The base address, with the version if given.
pub(crate) fn address(base_url: &str, version: Option<&str>) -> String {
    let Some(version) = version else {
        return base_url.to_owned();
    };
    let joint = if base_url.contains('?') { '&' } else { '?' };
    let pair = Serializer::new(String::new()).append_pair("api-version", version).finish();
    format!("{base_url}{joint}{pair}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Kind;

    #[test]
    fn azure_has_a_query_and_a_header_of_its_own() {
        for kind in [Kind::ChatCompletions, Kind::Responses] {
            let settings = kind.read(json!({"azure": true, "api_version": "2024-10-21"})).expect("options");
            let base_url = "https://x.openai.azure.com/openai/deployments/d";
            assert_eq!(settings.section().address(base_url), format!("{base_url}?api-version=2024-10-21"));
            assert_eq!(settings.section().key_style(), HeaderStyle::Named("api-key"));
        }
        assert_eq!(address("http://a/v1?b=c", Some("2 x")), "http://a/v1?b=c&api-version=2+x");
        assert_eq!(address("http://a/v1", None), "http://a/v1");
    }
}
