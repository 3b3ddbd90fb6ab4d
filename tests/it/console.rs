//! The console: who gets in, who may do what, and every page in a real browser.
//!
//! With `LORGNETTE_SHOTS=FOLDER` the tests in the browser leave pictures of all pages in all their states there.

mod camera;
mod doors;
mod filled;
mod invitation;
mod leaving;
mod pages;
mod pairing;
mod questions;
mod roles;
mod states;

use gateway::{control::Request, identity::operators::Role};
use reqwest::{
    Client, Method, Response,
    header::{COOKIE, HeaderMap, HeaderName, HeaderValue, ORIGIN, SET_COOKIE},
    redirect::Policy,
};

use crate::world::World;

/// Somebody with a browser.
pub struct Visitor {
    client: Client,
    address: String,
    cookie: Option<String>,
    /// Headers of every request.
    headers: HeaderMap,
    /// The token of its forms.
    token: String,
}

impl Visitor {
    /// Somebody without a session.
    pub fn stranger(world: &World) -> Self {
        let address = format!("http://{}", world.web());
        Self { client: plain(), address, cookie: None, headers: HeaderMap::new(), token: String::new() }
    }

    /// Somebody who used a link.
    pub async fn signed_in(world: &World, role: Role) -> Self {
        let mut visitor = Self::stranger(world);
        let link = link(world, role).await;
        let answer = visitor.post("/console/enter", &[("link", &link)]).await;
        assert_eq!((answer.status().as_u16(), answer.headers()["location"].as_bytes()), (303, &b"/console"[..]));
        let cookie = answer.headers()[SET_COOKIE].to_str().expect("a cookie").to_owned();
        visitor.cookie = cookie.split(';').next().map(str::to_owned);
        let page = visitor.text("/console").await;
        visitor.token = token_in(&page);
        visitor
    }

    /// The same with this header on every request.
    pub fn with(&self, name: &'static str, value: &'static str) -> Self {
        let mut headers = self.headers.clone();
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        let Self { client, address, cookie, token, .. } = self;
        Self { client: client.clone(), address: address.clone(), cookie: cookie.clone(), headers, token: token.clone() }
    }

    async fn send(&self, method: Method, path: &str, body: Option<String>) -> Response {
        let mut request = self.client.request(method.clone(), format!("{}{path}", self.address));
        if let Some(cookie) = &self.cookie {
            request = request.header(COOKIE, cookie);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
            if !self.headers.contains_key(ORIGIN) {
                request = request.header(ORIGIN, &self.address);
            }
        }
        request.headers(self.headers.clone()).send().await.expect("an answer")
    }

    pub async fn get(&self, path: &str) -> Response {
        self.send(Method::GET, path, None).await
    }

    pub async fn text(&self, path: &str) -> String {
        let answer = self.get(path).await;
        let status = answer.status();
        let text = answer.text().await.expect("a text");
        assert_eq!(status, 200, "{path}: {text}");
        text
    }

    /// Sends a form with the visitor's token.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        self.post_with(path, fields, &self.token).await
    }

    pub async fn post_with(&self, path: &str, fields: &[(&str, &str)], token: &str) -> Response {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields).append_pair("token", token);
        self.send(Method::POST, path, Some(form.finish())).await
    }
}

/// A client that follows no redirection.
fn plain() -> Client {
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder().redirect(Policy::none()).no_proxy().build().expect("a client")
}

/// The token of a page's forms.
fn token_in(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"token\" value=\"").expect("a form");
    rest.split('"').next().expect("a token").to_owned()
}

/// A one-time link's token, as the command gets it.
pub async fn link(world: &World, role: Role) -> String {
    let answer = world.ask(Request::ConsoleLink { role }).await.expect("a link");
    let gateway::control::Answer::ConsoleLink { path, .. } = answer else { panic!("{answer:?}") };
    path.strip_prefix("/console/enter?link=").expect("a link").to_owned()
}
