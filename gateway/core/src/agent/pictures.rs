//! Images from tools: attached for a model that takes images, within the turn in which they were taken; everywhere else
//! replaced by a one-line note. They are never stored.

use alloc::{string::String, vec, vec::Vec};

use crate::{
    limits::IMAGE_BYTES_MAX,
    vocab::{Attachment, Message, Part, Role, ToolResult},
};

/// How images appear in the messages of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImagePolicy {
    /// The model takes images: they are attached.
    Attach,
    /// The model takes no images: a note says so.
    Unsupported,
    /// The messages are for the history: images are left out.
    Omit,
}

/// An image, recognised by its first bytes whatever its declared type: providers reject a whole request for a wrong
/// type. JPEG: ITU-T T.81, B.1.1.3; PNG: RFC 2083, 3.1; WebP: RFC 9649, 2.4. Base64 encodes three bytes in four
/// characters, so that a prefix can be compared without decoding.
fn picture(attachment: &Attachment) -> Option<(&'static str, &String)> {
    let Attachment::Image { data, .. } = attachment else { return None };
    let mime = match data.as_str() {
        jpeg if jpeg.starts_with("/9j/") => "image/jpeg",
        png if png.starts_with("iVBORw0KGgo") => "image/png",
        webp if webp.starts_with("UklGR") && webp.get(12..16) == Some("RUJQ") => "image/webp",
        _ => return None,
    };
    Some((mime, data))
}

fn is_shown(attachment: &Attachment) -> bool {
    picture(attachment).is_some_and(|(_, data)| data.len() <= IMAGE_BYTES_MAX)
}

/// The images of a step's results, at most `left`.
pub(super) fn message<'a>(results: impl Iterator<Item = &'a ToolResult>, left: &mut usize) -> Option<Message> {
    let shown = results.flat_map(|result| &result.attachments).filter(|attachment| is_shown(attachment));
    let images: Vec<Part> = shown
        .filter_map(picture)
        .take(*left)
        .map(|(mime, data)| Part::Image { mime: String::from(mime), data: data.clone() })
        .collect();
    *left -= images.len();
    if images.is_empty() {
        return None;
    }
    let mut parts = vec![Part::Text { text: String::from("[what the tool has seen]") }];
    parts.extend(images);
    Some(Message { role: Role::User, parts })
}

/// The note for a model on the images of a result that are not attached.
pub(super) fn note(result: &ToolResult, policy: ImagePolicy) -> Option<&'static str> {
    let images = result.attachments.iter().filter(|attachment| matches!(attachment, Attachment::Image { .. }));
    match policy {
        ImagePolicy::Attach if images.clone().all(is_shown) => None,
        ImagePolicy::Attach => {
            Some("[A picture came with this that cannot be shown: it is too large, or no JPEG, PNG or WebP.]")
        }
        _ if images.count() == 0 => None,
        ImagePolicy::Unsupported => {
            Some("[A picture came with this. You cannot see pictures: say so where it matters.]")
        }
        ImagePolicy::Omit => Some("[A picture was here. It was not kept.]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(data: &str) -> Attachment {
        Attachment::Image { mime: "image/gif".into(), data: data.into() }
    }

    #[test]
    fn pictures_are_known_by_their_first_bytes() {
        // The first 15 bytes of each, in base64.
        for (data, mime) in [
            ("/9j/4AAQSkZJRgABAQAA", Some("image/jpeg")),
            ("iVBORw0KGgoAAAANSUhE", Some("image/png")),
            ("UklGRiQAAABXRUJQVlA4", Some("image/webp")),
            // RIFF with audio, GIF, text, nothing.
            ("UklGRiQAAABXQVZFZm10", None),
            ("R0lGODlhAQABAIAAAAAA", None),
            ("aGVsbG8gd29ybGQhISEh", None),
            ("", None),
        ] {
            assert_eq!(picture(&image(data)).map(|(mime, _)| mime), mime, "{data}");
        }
        assert_eq!(picture(&Attachment::Audio { mime: "image/jpeg".into(), data: "/9j/".into() }), None);
    }

    #[test]
    fn what_a_tool_has_seen_is_not_the_wearers() {
        let result = ToolResult { attachments: vec![image("/9j/4AAQ")], ..ToolResult::said("Taken.") };
        let seen = message([&result].into_iter(), &mut 4);
        assert!(seen.is_some_and(|seen| seen.has_picture() && !seen.is_wearers()));
        assert!(Message::text(Role::User, "What is this?").is_wearers());
    }

    #[test]
    fn who_is_not_shown_a_picture_is_told_of_it() {
        let with = |attachments: Vec<Attachment>| ToolResult { attachments, ..ToolResult::said("Taken.") };
        let line = |result: &ToolResult, images| note(result, images).unwrap_or_default();
        let good = with(vec![image("/9j/4AAQ")]);
        assert_eq!(line(&good, ImagePolicy::Attach), "");
        assert!(line(&good, ImagePolicy::Unsupported).contains("You cannot see pictures"));
        assert!(line(&good, ImagePolicy::Omit).contains("not kept"));
        let large = with(vec![image(&alloc::format!("/9j/{}", "A".repeat(IMAGE_BYTES_MAX)))]);
        for bad in [large, with(vec![image("R0lGODlh")]), with(vec![image("/9j/4AAQ"), image("nonsense")])] {
            assert!(line(&bad, ImagePolicy::Attach).contains("cannot be shown"));
        }
        let sound = with(vec![Attachment::Audio { mime: "audio/wav".into(), data: "UklGR".into() }]);
        for images in [ImagePolicy::Attach, ImagePolicy::Unsupported, ImagePolicy::Omit] {
            assert_eq!(line(&sound, images), "");
        }
    }
}
