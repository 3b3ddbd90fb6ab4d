//! Reads answers. They are foreign and may be malicious.

use serde_json::{Map, Value};

use super::Failed;

/// Longest text of one utterance: 30 s of fast speech have some 600 bytes in Latin letters.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// The text of an answer to `audio/transcriptions`: `{"text": "…"}`. Other fields, such as times of words, are ignored.
pub(super) fn text(body: &[u8]) -> Result<String, Failed> {
    // A structure would be read from a list as well.
    let answer: Option<Map<String, Value>> = serde_json::from_slice(body).ok();
    let Some(Value::String(text)) = answer.and_then(|mut answer| answer.remove("text")) else {
        return Err(Failed::Answer("is no JSON object with `text`"));
    };
    if text.len() > TEXT_BYTES_MAX {
        return Err(Failed::Answer("has more text than anybody says at once"));
    }
    Ok(text)
}

/// The sound of an answer to `audio/speech`.
pub(super) fn sound(content_type: &str, body: Vec<u8>) -> Result<Vec<u8>, Failed> {
    // An error with status 200, or a page of a proxy, would be heard as noise.
    if content_type.starts_with("text/") || content_type.contains("json") {
        return Err(Failed::Answer("is text in place of sound"));
    }
    if body.is_empty() {
        return Err(Failed::Answer("is empty"));
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_with_a_text_of_usual_length_is_a_transcript() {
        assert_eq!(text(br#"{"text": " Hello. ", "words": [1, {"x": null}]}"#), Ok(" Hello. ".to_owned()));
        assert_eq!(text(br#"{"text": ""}"#), Ok(String::new()));
        let long = format!("{{\"text\": \"{}\"}}", "x".repeat(TEXT_BYTES_MAX + 1));
        let deep = "[".repeat(100_000);
        for bad in
            ["", "Hello.", "{}", r#"{"text": 3}"#, r#"{"text": null}"#, r#"["text"]"#, r#"{"text": "a"#, &long, &deep]
        {
            assert!(matches!(text(bad.as_bytes()), Err(Failed::Answer(_))), "{}", bad.get(..20).unwrap_or(bad));
        }
        assert!(text(&[b'{', 0xff, b'}']).is_err());
    }

    #[test]
    fn text_and_nothing_are_no_sound() {
        assert_eq!(sound("audio/pcm", vec![1, 2]), Ok(vec![1, 2]));
        assert_eq!(sound("", vec![1, 2]), Ok(vec![1, 2]));
        for (kind, body) in
            [("audio/wav", vec![]), ("application/json; charset=utf-8", vec![1]), ("text/html", vec![1])]
        {
            assert!(sound(kind, body).is_err(), "{kind}");
        }
    }
}
