//! Sound over HTTP, in the form of OpenAI's audio API, which many servers speak: `POST {base}/audio/transcriptions` makes text
//! of sound, `POST {base}/audio/speech` sound of text. Reference:
//! <https://platform.openai.com/docs/api-reference/audio>.
//!
//! One attempt within a deadline, and nothing that fails is tried again: somebody waits for these words, and the caller has
//! another way. Only a form of answer that a server refuses is given up for another one. Answers are bounded and may be
//! malicious. Errors quote nothing of them, since they may contain what was said.

mod answer;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::CONTENT_TYPE,
    multipart::{Form, Part},
    redirect,
};
use serde_json::json;
use thiserror::Error;
use tokio::time::timeout;

use crate::{
    auth::Key,
    http::{Credentials as _, KeyHeader, SetupError, describe, shown},
};

/// Longest answer with a text: 30 s of speech have under 1 KiB, and servers add times of words.
const TEXT_ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Longest answer with sound: a minute at 48 kHz, which is more than a clause has.
const SOUND_ANSWER_BYTES_MAX: usize = 6 * 1024 * 1024;
/// Limit for connecting, within the deadline of the request.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long an idle connection is kept: a new one costs two or three round trips before the first byte.
const IDLE_CONNECTION: Duration = Duration::from_secs(90);

/// A server and its model.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address before `/audio/…`, for example `http://127.0.0.1:8000/v1`.
    pub base_url: String,
    /// The server's name of the model.
    pub model: String,
    /// Sent as `Authorization: Bearer`; `None`: no key.
    pub key: Option<Key>,
    /// From a request to the end of its answer.
    pub deadline: Duration,
}

/// What a server heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// What was said.
    pub text: String,
    /// What the server calls the language that it detected ("german", "de"): foreign text. `None`: it does not tell it.
    pub language: Option<String>,
}

/// The form of requested sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoundForm {
    /// Bare samples: 16 bits, little-endian, one channel, 24 kHz.
    Pcm,
    /// A WAV file.
    Wav,
}

/// A text to be spoken.
#[derive(Clone, Copy, Debug)]
pub struct Speech<'a> {
    /// What is said.
    pub text: &'a str,
    /// The server's name of the voice; servers with one voice need none.
    pub voice: Option<&'a str>,
    /// 1.0 is the voice's own pace.
    pub speed: f32,
    /// The form of the answer.
    pub form: SoundForm,
}

/// The sound of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sound {
    /// Bare samples, as of [`SoundForm::Pcm`].
    Samples(Vec<u8>),
    /// A sound file, of any format.
    File(Vec<u8>),
}

/// Why a request failed. The message contains no key, no address and no word of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failed {
    /// No complete answer in time.
    #[error("there was no answer within {} ms", .0.as_millis())]
    Late(Duration),
    /// No connection, or it broke.
    #[error("{0}")]
    Unreachable(String),
    /// An error status.
    #[error("the server answered {0}{remedy}", remedy = remedy(*.0))]
    Status(u16),
    /// The answer is no answer to the request.
    #[error("the server's answer {0}")]
    Answer(&'static str),
    /// The request cannot be written.
    #[error("the request cannot be sent: {0}")]
    Request(String),
}

fn remedy(status: u16) -> &'static str {
    match status {
        401 | 403 => ": check its key",
        404 => ": check the base URL and the model's name",
        429 => ": too many requests, or no credit",
        _ => "",
    }
}

/// A client for one server. Keeps its connections open between requests.
pub struct AudioApi {
    client: Client,
    base: Url,
    credentials: Option<KeyHeader>,
    model: String,
    deadline: Duration,
    /// It has refused to tell languages.
    tells_no_language: AtomicBool,
}

impl AudioApi {
    /// Sets up a client. The process must have installed a rustls provider before.
    ///
    /// # Errors
    /// The base URL is invalid, or there is no TLS.
    pub fn new(settings: Settings) -> Result<Self, SetupError> {
        let Settings { base_url, model, key, deadline } = settings;
        let bad_url = || SetupError::Url(shown(&base_url).to_owned());
        let base = Url::parse(&base_url).map_err(|_| bad_url())?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(bad_url());
        }
        // Without one the client would panic.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            return Err(SetupError::Client("the process has installed no rustls provider".into()));
        }
        let client = Client::builder()
            .connect_timeout(CONNECT_MAX.min(deadline))
            .pool_idle_timeout(IDLE_CONNECTION)
            .tcp_nodelay(true)
            // A redirect would send the sound to another server.
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| SetupError::Client(error.without_url().to_string()))?;
        let (credentials, tells_no_language) = (key.map(KeyHeader::bearer), AtomicBool::new(false));
        Ok(Self { client, base, credentials, model, deadline, tells_no_language })
    }

    /// The text of a WAV file. `language`: two letters, if it is known, otherwise the server is to detect and tell it; `prompt`:
    /// words to expect, as a text that precedes the sound.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn transcribe(&self, wav: Vec<u8>, language: Option<&str>, prompt: &str) -> Result<Transcript, Failed> {
        let is_to_tell = language.is_none() && !self.tells_no_language.load(Ordering::Relaxed);
        if is_to_tell {
            match self.transcribe_as("verbose_json", wav.clone(), None, prompt).await {
                // Only models of Whisper's kind have this form.
                Err(Failed::Status(400 | 422)) => {}
                answered => return answered,
            }
        }
        let answered = self.transcribe_as("json", wav, language, prompt).await;
        if is_to_tell && answered.is_ok() {
            self.tells_no_language.store(true, Ordering::Relaxed);
        }
        answered
    }

    async fn transcribe_as(
        &self,
        form_of_answer: &'static str,
        wav: Vec<u8>,
        language: Option<&str>,
        prompt: &str,
    ) -> Result<Transcript, Failed> {
        let file = Part::bytes(wav).file_name("audio.wav").mime_str("audio/wav");
        let file = file.map_err(|error| Failed::Request(error.to_string()))?;
        let form = Form::new().part("file", file).text("model", self.model.clone());
        let mut form = form.text("response_format", form_of_answer);
        if let Some(language) = language {
            form = form.text("language", language.to_owned());
        }
        if !prompt.is_empty() {
            form = form.text("prompt", prompt.to_owned());
        }
        let request = self.client.post(self.url("audio/transcriptions")).multipart(form);
        answer::transcript(&self.answer(request, TEXT_ANSWER_BYTES_MAX).await?.1)
    }

    /// The sound of a text, in the requested form or, from servers that ignore it, in a file.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn speak(&self, speech: Speech<'_>) -> Result<Sound, Failed> {
        let form = match speech.form {
            SoundForm::Pcm => "pcm",
            SoundForm::Wav => "wav",
        };
        let mut body = json!({"model": self.model, "input": speech.text, "response_format": form});
        if let Some(voice) = speech.voice {
            body["voice"] = voice.into();
        }
        // Servers without this field take the usual pace well.
        if (speech.speed - 1.0).abs() > f32::EPSILON {
            body["speed"] = f64::from(speech.speed).into();
        }
        let request = self.client.post(self.url("audio/speech")).json(&body);
        let (kind, bytes) = self.answer(request, SOUND_ANSWER_BYTES_MAX).await?;
        answer::sound(speech.form, &kind, bytes)
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        url
    }

    /// Sends a request and reads the answer: its content type, and its body.
    async fn answer(&self, request: RequestBuilder, bytes_max: usize) -> Result<(String, Vec<u8>), Failed> {
        let answered = async {
            let mut request = request;
            if let Some(credentials) = &self.credentials {
                let headers = credentials.headers().await.map_err(|error| Failed::Request(error.message))?;
                for (name, mut value) in headers {
                    value.set_sensitive(true);
                    request = request.header(name, value);
                }
            }
            let response = request.send().await.map_err(|error| Failed::Unreachable(describe(&error)))?;
            if response.status() != StatusCode::OK {
                return Err(Failed::Status(response.status().as_u16()));
            }
            let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            let kind = kind.to_ascii_lowercase();
            Ok((kind, read(response, bytes_max).await?))
        };
        // Dropping it closes the connection.
        timeout(self.deadline, answered).await.unwrap_or(Err(Failed::Late(self.deadline)))
    }
}

async fn read(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, Failed> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) if body.len() + bytes.len() <= bytes_max => body.extend_from_slice(&bytes),
            Ok(Some(_)) => return Err(Failed::Answer("is longer than any such answer")),
            Ok(None) => return Ok(body),
            Err(_) => return Err(Failed::Answer("broke off")),
        }
    }
}
