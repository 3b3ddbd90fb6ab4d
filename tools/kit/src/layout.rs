//! Layouts for the display.

use serde::Serialize;

/// Content of the display, or of a part of it. The glasses wrap the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "layoutType", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum Layout {
    /// Text over the whole display.
    TextWall { text: String },
    /// Two halves, one above the other.
    DoubleTextWall {
        /// Above.
        top_text: String,
        /// Below.
        bottom_text: String,
    },
    /// A title over a text.
    ReferenceCard { title: String, text: String },
    /// Two columns of one line, for the dashboard.
    DashboardCard { left_text: String, right_text: String },
    /// A picture: a 1-bit BMP in Base64.
    BitmapView { data: String },
    /// Nothing.
    ClearView,
}

impl Layout {
    /// Text over the whole display.
    pub fn text(text: impl Into<String>) -> Self {
        Self::TextWall { text: text.into() }
    }

    /// A title over a text.
    pub fn card(title: impl Into<String>, text: impl Into<String>) -> Self {
        Self::ReferenceCard { title: title.into(), text: text.into() }
    }

    /// Two halves, one above the other.
    pub fn double(top: impl Into<String>, bottom: impl Into<String>) -> Self {
        Self::DoubleTextWall { top_text: top.into(), bottom_text: bottom.into() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn layouts_are_written_as_they_travel() {
        for (layout, wanted) in [
            (Layout::text("hi"), json!({"layoutType": "text_wall", "text": "hi"})),
            (Layout::card("a", "b"), json!({"layoutType": "reference_card", "title": "a", "text": "b"})),
            (Layout::double("a", "b"), json!({"layoutType": "double_text_wall", "topText": "a", "bottomText": "b"})),
            (
                Layout::DashboardCard { left_text: "a".into(), right_text: "b".into() },
                json!({"layoutType": "dashboard_card", "leftText": "a", "rightText": "b"}),
            ),
            (Layout::BitmapView { data: "Qk0=".into() }, json!({"layoutType": "bitmap_view", "data": "Qk0="})),
            (Layout::ClearView, json!({"layoutType": "clear_view"})),
        ] {
            assert_eq!(to_value(layout).unwrap(), wanted);
        }
    }
}
