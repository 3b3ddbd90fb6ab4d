//! From an app's layouts to what the glasses are asked to draw.

use gateway_core::vocab::{Content, View};
use serde_json::Value;

/// Characters of one text of a layout: more than any display shows.
const TEXT_CHARS_MAX: usize = 2_000;

/// What a layout asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawn {
    /// Draw this.
    Content(Content),
    /// Draw nothing.
    Clear,
    /// It cannot be drawn here: why.
    Refused(String),
}

/// The view that a display event means: a dashboard card without a view belongs on the dashboard.
pub fn view(named: Option<&str>, layout: &Value) -> View {
    match (named, layout.get("layoutType").and_then(Value::as_str)) {
        (Some("dashboard"), _) | (None, Some("dashboard_card")) => View::Dashboard,
        _ => View::Main,
    }
}

/// How long a drawing stands; fractions and nonsense are brought to whole milliseconds in range.
pub fn duration_ms(given: Option<f64>) -> Option<u32> {
    // Casts from floats saturate; what is no number has no duration.
    given.filter(|ms| ms.is_finite() && *ms >= 0.0).map(|ms| ms as u32)
}

/// Reads a layout.
pub fn read(layout: &Value) -> Drawn {
    let text = |field: &str| -> String {
        let text = layout.get(field).and_then(Value::as_str).unwrap_or_default();
        text.chars().filter(|c| !c.is_control() || *c == '\n').take(TEXT_CHARS_MAX).collect()
    };
    let content = match layout.get("layoutType").and_then(Value::as_str) {
        // An empty wall of text is how apps clear the display.
        Some("text_wall") => match text("text") {
            text if text.trim().is_empty() => return Drawn::Clear,
            text => Content::Text { text },
        },
        Some("double_text_wall") => Content::Double { top: text("topText"), bottom: text("bottomText") },
        Some("reference_card") => Content::Card { title: text("title"), text: text("text") },
        Some("dashboard_card") => Content::Double { top: text("leftText"), bottom: text("rightText") },
        Some("clear_view") => return Drawn::Clear,
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            return Drawn::Refused(format!("the layout `{other}` cannot be drawn on these glasses"));
        }
        None => return Drawn::Refused("the layout has no `layoutType`".to_owned()),
    };
    Drawn::Content(content)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_layout_of_text() {
        let cases = [
            (json!({"layoutType": "text_wall", "text": "hello"}), Content::Text { text: "hello".into() }),
            (
                json!({"layoutType": "double_text_wall", "topText": "top", "bottomText": "bottom"}),
                Content::Double { top: "top".into(), bottom: "bottom".into() },
            ),
            (
                json!({"layoutType": "reference_card", "title": "T", "text": "x"}),
                Content::Card { title: "T".into(), text: "x".into() },
            ),
            (
                json!({"layoutType": "dashboard_card", "leftText": "l", "rightText": "r"}),
                Content::Double { top: "l".into(), bottom: "r".into() },
            ),
        ];
        for (layout, wanted) in cases {
            assert_eq!(read(&layout), Drawn::Content(wanted), "{layout}");
        }
        for layout in [json!({"layoutType": "clear_view"}), json!({"layoutType": "text_wall", "text": " "})] {
            assert_eq!(read(&layout), Drawn::Clear);
        }
    }

    #[test]
    fn nonsense_is_refused_and_endless_text_cut() {
        for layout in [json!({}), json!(null), json!([1]), json!({"layoutType": "hologram"}), json!({"layoutType": 3})]
        {
            assert!(matches!(read(&layout), Drawn::Refused(_)), "{layout}");
        }
        let Drawn::Content(Content::Text { text }) =
            read(&json!({"layoutType": "text_wall", "text": "ü\u{7}".repeat(100_000)}))
        else {
            panic!()
        };
        assert_eq!(text, "ü".repeat(TEXT_CHARS_MAX));
    }

    #[test]
    fn views_and_durations() {
        let wall = json!({"layoutType": "text_wall", "text": "x"});
        let card = json!({"layoutType": "dashboard_card"});
        assert_eq!(view(Some("main"), &card), View::Main);
        assert_eq!(view(Some("dashboard"), &wall), View::Dashboard);
        assert_eq!(view(None, &wall), View::Main);
        assert_eq!(view(None, &card), View::Dashboard);
        assert_eq!(view(Some("moon"), &wall), View::Main);
        assert_eq!(duration_ms(Some(1500.7)), Some(1500));
        assert_eq!(duration_ms(Some(0.0)), Some(0));
        assert_eq!(duration_ms(Some(1e18)), Some(u32::MAX));
        assert_eq!(duration_ms(Some(-1.0)), None);
        assert_eq!(duration_ms(None), None);
    }
}
