//! A local OAuth server: device codes, authorisation codes for browsers, tokens and their renewal.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, StatusCode, body::Bytes, body::Incoming};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{http, world::WAIT};

/// The decision of the account's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No decision yet.
    Pending,
    Granted,
    /// Refused with this OAuth error.
    Refused(&'static str),
}

/// A posted form, with its path.
#[derive(Clone, Debug)]
pub struct Form {
    pub path: String,
    pub fields: BTreeMap<String, String>,
}

impl Form {
    pub fn get(&self, name: &str) -> &str {
        self.fields.get(name).map(String::as_str).unwrap_or_default()
    }
}

struct State {
    verdict: Verdict,
    tokens: u32,
    lives_s: VecDeque<u32>,
    forms: Vec<Form>,
}

/// The server. The n-th token is `planted-access-N`, and `planted-refresh-N` renews it, once.
#[derive(Clone)]
pub struct Accounts {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    count: watch::Sender<usize>,
}

impl Accounts {
    /// Starts it: nothing is granted yet, and tokens are valid for one hour.
    pub async fn start() -> Self {
        let (listener, address) = http::bind().await;
        let state = State { verdict: Verdict::Pending, tokens: 0, lives_s: VecDeque::new(), forms: Vec::new() };
        let accounts = Self { address, state: Arc::new(Mutex::new(state)), count: watch::Sender::new(0) };
        let server = accounts.clone();
        http::serve(listener, move |request| {
            let server = server.clone();
            async move { server.answer(request).await }
        });
        accounts
    }

    /// The section `oauth` of a model that logs in here, for both flows.
    pub fn section(&self) -> String {
        let at = self.url();
        format!(
            "[model.oauth]\nclient_id = \"lorgnette-test\"\ntoken_url = \"{at}/token\"\ndevice_url = \"{at}/device\"\n\
             authorize_url = \"{at}/authorize\"\nscopes = [\"chat\"]\n"
        )
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the decision of the owner.
    pub fn say(&self, verdict: Verdict) {
        self.state.lock().unwrap().verdict = verdict;
    }

    /// Sets the lifetime of the next token in seconds; otherwise one hour.
    pub fn next_lives(&self, seconds: u32) {
        self.state.lock().unwrap().lives_s.push_back(seconds);
    }

    /// Every form so far.
    pub fn forms(&self) -> Vec<Form> {
        self.state.lock().unwrap().forms.clone()
    }

    /// Waits for this many forms in all; the last of them.
    pub async fn until(&self, count: usize) -> Form {
        let mut seen = self.count.subscribe();
        let waited = tokio::time::timeout(WAIT, seen.wait_for(|posted| *posted >= count)).await;
        waited.unwrap_or_else(|_| panic!("{count} forms: {:?}", self.forms())).expect("a server");
        self.forms()[count - 1].clone()
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let read: reqwest::Url = format!("http://form/?{}", String::from_utf8_lossy(&body)).parse().expect("a form");
        let fields = read.query_pairs().into_owned().collect();
        let answer = {
            let mut state = self.state.lock().unwrap();
            let form = Form { path, fields };
            state.forms.push(form.clone());
            state.answer(&form, &self.url())
        };
        self.count.send_modify(|count| *count += 1);
        let (status, body) = match answer {
            Ok(body) => (StatusCode::OK, body),
            Err(code) => {
                // Like some real servers, it repeats its input.
                let sent = format!("of {}", String::from_utf8_lossy(&body));
                (StatusCode::BAD_REQUEST, json!({"error": code, "error_description": sent}))
            }
        };
        let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
        *response.status_mut() = status;
        response.headers_mut().insert("content-type", "application/json".parse().expect("a value"));
        response
    }
}

impl State {
    fn answer(&mut self, form: &Form, url: &str) -> Result<Value, &'static str> {
        if form.get("client_id") != "lorgnette-test" {
            return Err("invalid_client");
        }
        match (form.path.as_str(), form.get("grant_type")) {
            ("/device", _) => Ok(json!({
                "device_code": "planted-device", "user_code": "ABCD-1234", "verification_uri": format!("{url}/activate"),
                "expires_in": 600, "interval": 0.1,
            })),
            ("/token", "urn:ietf:params:oauth:grant-type:device_code") => match self.verdict {
                _ if form.get("device_code") != "planted-device" => Err("invalid_grant"),
                Verdict::Pending => Err("authorization_pending"),
                Verdict::Granted => Ok(self.token()),
                Verdict::Refused(code) => Err(code),
            },
            ("/token", "authorization_code")
                if form.get("code") == "planted-code" && form.get("code_verifier").len() >= 43 =>
            {
                Ok(self.token())
            }
            ("/token", "refresh_token") if form.get("refresh_token") == format!("planted-refresh-{}", self.tokens) => {
                Ok(self.token())
            }
            _ => Err("invalid_grant"),
        }
    }

    fn token(&mut self) -> Value {
        self.tokens += 1;
        let lives_s = self.lives_s.pop_front().unwrap_or(3600);
        json!({
            "access_token": format!("planted-access-{}", self.tokens), "token_type": "Bearer",
            "refresh_token": format!("planted-refresh-{}", self.tokens), "expires_in": lives_s,
        })
    }
}
