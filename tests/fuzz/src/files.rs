//! Model files of an operator.

use std::io::{self, Read, Seek, SeekFrom, sink};

use audio::{
    models::{ggml, ggml_from_ctranslate2},
    wake::{EMBEDDING, EMBEDDINGS, Head, onnx::Model, train::stored},
};

use crate::input::Input;

/// A file whose weights are not in the input: what is skipped takes nothing of it.
struct Skeleton<'a> {
    rest: &'a [u8],
    at: u64,
}

impl Read for Skeleton<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.rest.read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Skeleton<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Current(distance) => self.at.checked_add_signed(distance),
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(_) => None,
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// A GGML file of any length, and the same bytes as the whole file.
pub fn ggml(bytes: &[u8]) {
    drop(ggml::validate_stream(io::Cursor::new(bytes), bytes.len() as u64, "the input"));
    let mut input = Input(bytes);
    let Some(length) = input.number() else { return };
    let stream = Skeleton { rest: input.0, at: 0 };
    if let Ok(shape) = ggml::validate_stream(stream, u64::from(length), "the input") {
        assert!(shape.to_array().iter().all(|number| *number >= 0), "{shape:?}");
        let _ = shape.is_multilingual();
    }
}

/// The two files of a CTranslate2 model; the first two bytes are the length of the vocabulary, which comes first.
pub fn ctranslate2(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let (vocabulary, model) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    drop(ggml_from_ctranslate2(model, vocabulary, &mut sink()));
}

/// The ONNX file of a head: what is written anew is read as the same, and asks for as much.
pub fn wake_head(bytes: &[u8]) {
    let head = Head::of(bytes, "hey mentra");
    let read = Model::read(bytes).and_then(|model| Ok((model.bounded()?, model)));
    let Ok((output, model)) = read else { return assert!(head.is_err()) };
    let written = model.file(&[1, EMBEDDINGS, EMBEDDING], &output);
    let again = Model::read(&written).expect("what was written");
    assert_eq!(again.bounded().as_ref(), Ok(&output));
    assert!(again.file(&[1, EMBEDDINGS, EMBEDDING], &output) == written, "it is not the same");
    // A number that took one byte may take eight, and some names are written twice.
    assert!(written.len() <= 16 * bytes.len() + 256, "{} bytes", written.len());
}

/// A file of embeddings.
pub fn wake_embeddings(bytes: &[u8]) {
    let Ok(clips) = stored::parse(bytes) else { return };
    let mut written = Vec::new();
    stored::format(&clips, &mut written).expect("a vector takes all");
    assert!(written == bytes, "{} clips are not the same", clips.len());
}
