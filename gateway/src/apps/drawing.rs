//! Converts an app's layouts to drawings for the glasses.

use std::time::Duration;

use gateway_core::vocab::{Bitmap, Content, DrawingDuration, View};
use serde_json::Value;

use super::bitmap;

/// Characters of one text of a layout: more than any display shows.
pub(super) const TEXT_CHARS_MAX: usize = 2_000;
/// Pictures of one animation.
const FRAMES_MAX: usize = 64;
/// Milliseconds between the pictures of an animation that sets no interval.
const INTERVAL_MS: f64 = 1_650.0;
/// Shortest and longest time between two pictures.
const INTERVAL_MS_RANGE: (u32, u32) = (100, 60_000);
/// Replaces a picture on glasses that only draw text.
const PICTURE: &str = "(picture)";

/// The drawing that a layout requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drawn {
    /// Draw this.
    Content(Content),
    /// Draw these in sequence.
    Animation {
        /// The pictures, at least one.
        frames: Vec<Content>,
        /// Time between two pictures.
        interval: Duration,
        /// Restart after the last picture, until something else is drawn.
        repeat: bool,
    },
    /// Draw nothing.
    Clear,
    /// It cannot be drawn here, and why.
    Refused(String),
}

/// The view of a display event: a dashboard card without a view belongs on the dashboard.
pub(crate) fn view(named: Option<&str>, layout: &Value) -> View {
    match (named, layout.get("layoutType").and_then(Value::as_str)) {
        (Some("dashboard"), _) | (None, Some("dashboard_card")) => View::Dashboard,
        _ => View::Main,
    }
}

/// How long a drawing is shown, by the number of milliseconds that an app gives.
pub(crate) fn duration(given_ms: Option<f64>) -> DrawingDuration {
    given_ms.and_then(whole_ms).into()
}

/// Whole milliseconds in range; `None`: it is no duration.
fn whole_ms(given: f64) -> Option<u32> {
    // Casts from floats saturate.
    (given.is_finite() && given >= 0.0).then_some(given as u32)
}

/// A one-line description of a drawing, for the app's author.
pub(crate) fn told(view: View, duration: DrawingDuration, layout: &Value) -> String {
    let text = |field: &str| layout.get(field).and_then(Value::as_str);
    let fields = ["title", "text", "topText", "bottomText", "leftText", "rightText"];
    let words: Vec<String> = fields.iter().filter_map(|field| text(field)).map(|words| format!("{words:?}")).collect();
    let view = if view == View::Dashboard { "dashboard" } else { "main" };
    let stands = match duration {
        DrawingDuration::UntilReplaced => String::new(),
        DrawingDuration::Once => " once".to_owned(),
        DrawingDuration::Ms(ms) => format!(" for {ms} ms"),
    };
    let kind = tools::reply::cut(&tools::wording::plain(text("layoutType").unwrap_or("no layout")), 40);
    format!("{kind} on {view}{stands} {}", words.join(" ")).trim_end().to_owned()
}

/// Reads a layout.
pub(crate) fn read(layout: &Value) -> Drawn {
    let text = |field: &str| -> String {
        let text = layout.get(field).and_then(Value::as_str).unwrap_or_default();
        text.chars().filter(|c| !c.is_control() || *c == '\n').take(TEXT_CHARS_MAX).collect()
    };
    let content = match layout.get("layoutType").and_then(Value::as_str) {
        // Apps clear the display with an empty text wall.
        Some("text_wall") => match text("text") {
            text if text.trim().is_empty() => return Drawn::Clear,
            text => Content::Text { text },
        },
        Some("double_text_wall") => Content::Double { top: text("topText"), bottom: text("bottomText") },
        Some("reference_card") => Content::Card { title: text("title"), text: text("text") },
        Some("dashboard_card") => Content::Dashboard { left: text("leftText"), right: text("rightText") },
        Some("bitmap_view") => match picture(layout.get("data")) {
            Ok(content) => content,
            Err(why) => return Drawn::Refused(why.to_owned()),
        },
        Some("bitmap_animation") => return animation(layout),
        Some("clear_view") => return Drawn::Clear,
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            return Drawn::Refused(format!("the layout `{other}` cannot be drawn on these glasses"));
        }
        None => return Drawn::Refused("the layout has no `layoutType`".to_owned()),
    };
    Drawn::Content(content)
}

fn picture(data: Option<&Value>) -> Result<Content, &'static str> {
    let picture = bitmap::read(data.and_then(Value::as_str).ok_or("the picture is missing")?)?;
    let bitmap = Bitmap::new(picture.width_px, picture.height_px, picture.pixels);
    Ok(Content::Bitmap { bitmap: bitmap.ok_or("the picture is too large")?, text: PICTURE.to_owned() })
}

fn animation(layout: &Value) -> Drawn {
    let frames = layout.get("frames").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if frames.is_empty() || frames.len() > FRAMES_MAX {
        return Drawn::Refused(format!("an animation has 1 to {FRAMES_MAX} frames"));
    }
    let frames = match frames.iter().map(|frame| picture(Some(frame))).collect::<Result<Vec<_>, _>>() {
        Ok(frames) => frames,
        Err(why) => return Drawn::Refused(why.to_owned()),
    };
    let (shortest, longest) = INTERVAL_MS_RANGE;
    let interval = layout.get("interval").and_then(Value::as_f64).unwrap_or(INTERVAL_MS);
    let interval_ms = whole_ms(interval).unwrap_or(shortest).clamp(shortest, longest);
    let repeat = layout.get("repeat").and_then(Value::as_bool).unwrap_or(false);
    Drawn::Animation { frames, interval: Duration::from_millis(interval_ms.into()), repeat }
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
                Content::Dashboard { left: "l".into(), right: "r".into() },
            ),
        ];
        for (layout, wanted) in cases {
            assert_eq!(read(&layout), Drawn::Content(wanted), "{layout}");
        }
        let card = json!({"layoutType": "reference_card", "title": "T", "text": "a\nb"});
        assert_eq!(told(View::Main, Some(5_000).into(), &card), r#"reference_card on main for 5000 ms "T" "a\nb""#);
        assert_eq!(
            told(View::Dashboard, DrawingDuration::UntilReplaced, &json!({"layoutType": "bitmap_view", "data": "x"})),
            "bitmap_view on dashboard"
        );
        for layout in [json!({"layoutType": "clear_view"}), json!({"layoutType": "text_wall", "text": " "})] {
            assert_eq!(read(&layout), Drawn::Clear);
        }
    }

    /// A BMP of one lit pixel.
    const PIXEL: &str = "Qk1CAAAAAAAAAD4AAAAoAAAAAQAAAAEAAAABAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAP///wCAAAAA";

    #[test]
    fn pictures_and_animations() {
        let pixel = Content::Bitmap { bitmap: Bitmap::new(1, 1, vec![0x80]).unwrap(), text: PICTURE.into() };
        assert_eq!(read(&json!({"layoutType": "bitmap_view", "data": PIXEL})), Drawn::Content(pixel.clone()));
        let layout =
            json!({"layoutType": "bitmap_animation", "frames": [PIXEL, PIXEL], "interval": 500, "repeat": true});
        let interval = Duration::from_millis(500);
        assert_eq!(read(&layout), Drawn::Animation { frames: vec![pixel.clone(), pixel], interval, repeat: true });
        for layout in [
            json!({"layoutType": "bitmap_view"}),
            json!({"layoutType": "bitmap_view", "data": "AAAA"}),
            json!({"layoutType": "bitmap_animation", "frames": []}),
            json!({"layoutType": "bitmap_animation", "frames": [PIXEL, "BBBB"]}),
            json!({"layoutType": "bitmap_animation", "frames": vec![PIXEL; FRAMES_MAX + 1]}),
        ] {
            assert!(matches!(read(&layout), Drawn::Refused(_)), "{layout}");
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
        for (given, ms, words) in [
            (Some(1500.7), Some(1500), " for 1500 ms"),
            (Some(0.0), Some(0), " once"),
            (Some(0.4), Some(0), " once"),
            (Some(1e18), Some(u32::MAX), " for 4294967295 ms"),
            (Some(-1.0), None, ""),
            (Some(f64::NAN), None, ""),
            (None, None, ""),
        ] {
            let duration = duration(given);
            assert_eq!(duration, DrawingDuration::from(ms), "{given:?}");
            assert_eq!(told(View::Main, duration, &wall), format!("text_wall on main{words} \"x\""));
        }
    }
}
