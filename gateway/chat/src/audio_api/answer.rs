//! Reads answers. They are foreign and may be malicious.

use serde_json::{Map, Value};

use super::{Failed, Sound, SoundForm, Transcript};

/// Longest text of one utterance: 30 s of fast speech have some 600 bytes in Latin letters.
const TEXT_BYTES_MAX: usize = 8 * 1024;
/// Content types of bare samples. Others, which are many, are files.
const SAMPLE_TYPES: [&str; 8] = [
    "",
    "application/octet-stream",
    "audio/l16",
    "audio/pcm",
    "audio/raw",
    "audio/x-l16",
    "audio/x-pcm",
    "audio/x-raw",
];
/// The first bytes of sound files. An MP3 file without a tag has none: it begins as samples may.
const FILE_MAGICS: [&[u8]; 4] = [b"RIFF", b"ID3", b"OggS", b"fLaC"];
/// What an MP4 file has behind the four bytes of its first length.
const MP4_MAGIC: &[u8] = b"ftyp";

/// An answer to `audio/transcriptions`: `{"text": "…", "language": "…"}`, of which the language may be absent. Other fields, such as
/// times of words, are ignored.
pub(super) fn transcript(body: &[u8]) -> Result<Transcript, Failed> {
    // A structure would be read from a list as well.
    let mut answer: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
    let Some(Value::String(text)) = answer.remove("text") else {
        return Err(Failed::Answer("is no JSON object with `text`"));
    };
    let language = match answer.remove("language") {
        Some(Value::String(language)) => Some(language),
        _ => None,
    };
    if text.len() > TEXT_BYTES_MAX {
        return Err(Failed::Answer("has more text than anybody says at once"));
    }
    Ok(Transcript { text, language })
}

/// The sound of an answer to `audio/speech`, of which samples were asked for, or a file. Samples are only what has their type, or
/// none, and does not begin as a file: one that is played as samples is noise at full scale.
pub(super) fn sound(form: SoundForm, content_type: &str, body: Vec<u8>) -> Result<Sound, Failed> {
    // An error with status 200, or a page of a proxy, would be heard as noise.
    if content_type.starts_with("text/") || content_type.contains("json") {
        return Err(Failed::Answer("is text in place of sound"));
    }
    if body.is_empty() {
        return Err(Failed::Answer("is empty"));
    }
    let kind = content_type.split(';').next().unwrap_or_default().trim_end();
    let is_mp4 = body.get(4..).is_some_and(|rest| rest.starts_with(MP4_MAGIC));
    let begins_as_file = is_mp4 || FILE_MAGICS.iter().any(|magic| body.starts_with(magic));
    let is_file = !SAMPLE_TYPES.contains(&kind) || begins_as_file;
    Ok(if form == SoundForm::Pcm && !is_file { Sound::Samples(body) } else { Sound::File(body) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_with_a_text_of_usual_length_is_a_transcript() {
        for (answer, text, language) in [
            (r#"{"text": " Hello. ", "words": [1, {"x": null}]}"#, " Hello. ", None),
            (r#"{"task": "transcribe", "language": "german", "text": "Hallo."}"#, "Hallo.", Some("german")),
            (r#"{"text": "", "language": 3}"#, "", None),
        ] {
            let expected = Transcript { text: text.to_owned(), language: language.map(str::to_owned) };
            assert_eq!(transcript(answer.as_bytes()), Ok(expected), "{answer}");
        }
        let long = format!("{{\"text\": \"{}\"}}", "x".repeat(TEXT_BYTES_MAX + 1));
        let deep = "[".repeat(100_000);
        for bad in
            ["", "Hello.", "{}", r#"{"text": 3}"#, r#"{"text": null}"#, r#"["text"]"#, r#"{"text": "a"#, &long, &deep]
        {
            assert!(matches!(transcript(bad.as_bytes()), Err(Failed::Answer(_))), "{}", bad.get(..20).unwrap_or(bad));
        }
        assert!(transcript(&[b'{', 0xff, b'}']).is_err());
    }

    #[test]
    fn text_and_nothing_are_no_sound() {
        for (kind, body) in
            [("audio/wav", vec![]), ("application/json; charset=utf-8", vec![1]), ("text/html", vec![1])]
        {
            assert!(sound(SoundForm::Wav, kind, body).is_err(), "{kind}");
        }
    }

    #[test]
    fn a_file_in_place_of_samples_is_known_by_its_type_or_its_first_bytes() {
        for (form, kind, body, is_file) in [
            (SoundForm::Pcm, "audio/pcm", b"\x01\x02".as_slice(), false),
            (SoundForm::Pcm, "", b"\x01\x02", false),
            (SoundForm::Pcm, "application/octet-stream", b"\xff\xfb\x00\x00", false),
            (SoundForm::Pcm, "audio/mpeg", b"\xff\xfb\x00\x00", true),
            (SoundForm::Pcm, "audio/ogg; codecs=opus", b"\x01\x02", true),
            (SoundForm::Pcm, "audio/l16; rate=24000; channels=1", b"\x01\x02", false),
            (SoundForm::Pcm, "audio/x-raw", b"\x01\x02", false),
            (SoundForm::Pcm, "audio/mp4", b"\x01\x02", true),
            (SoundForm::Pcm, "audio/x-m4a", b"\x01\x02", true),
            (SoundForm::Pcm, "audio/mpeg3", b"\x01\x02", true),
            (SoundForm::Pcm, "application/octet-stream", b"\0\0\0\x20ftypM4A ", true),
            (SoundForm::Pcm, "audio/pcm", b"RIFF", true),
            (SoundForm::Pcm, "", b"ID3\x04", true),
            (SoundForm::Pcm, "application/octet-stream", b"OggS", true),
            (SoundForm::Pcm, "audio/pcm", b"fLaC", true),
            (SoundForm::Wav, "audio/pcm", b"\x01\x02", true),
        ] {
            let expected = if is_file { Sound::File(body.to_vec()) } else { Sound::Samples(body.to_vec()) };
            assert_eq!(sound(form, kind, body.to_vec()), Ok(expected), "{kind} {body:?}");
        }
    }
}
