//! Pages of the console that somebody looks at: opened as a browser does, their live updates read as they come.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, anyhow, bail};
use gateway::control::{Answer, Request, client};
use gateway::identity::operators::Role;
use reqwest::Client;
use reqwest::header::{COOKIE, ORIGIN, SET_COOKIE};
use reqwest::redirect::Policy;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::TestGateway;

/// What is looked at, and its live updates.
const PAGE: &str = "/console/sessions";
const LIVE: &str = "/console/live/sessions";
/// Pages with live updates that one session may have.
const OF_SESSION: usize = 12;
/// Name of the thread that reads them.
const THREAD: &str = "pages";

/// Open pages. They have a thread of their own, so that their processor time is told apart from the gateway's.
pub struct Pages {
    closing: CancellationToken,
    thread: JoinHandle<Result<Vec<usize>>>,
}

impl Pages {
    /// Opens so many.
    pub async fn open(gateway: &TestGateway, count: usize) -> Result<Self> {
        let address = format!("http://{}", gateway.running.web);
        let data_dir = gateway.folder.path().join("gateway");
        let (opened, are_open) = oneshot::channel();
        let closing = CancellationToken::new();
        let told = closing.clone();
        let looked_at = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().thread_name(THREAD).enable_all().build()?;
            runtime.block_on(look(&address, data_dir, count, opened, told))
        };
        let pages = Self { closing, thread: thread::Builder::new().name(THREAD.to_owned()).spawn(looked_at)? };
        if are_open.await.is_err() {
            pages.close().await?;
            bail!("the pages were not opened");
        }
        Ok(pages)
    }

    /// Closes them; the bytes of updates that each has received.
    pub async fn close(self) -> Result<Vec<usize>> {
        self.closing.cancel();
        let thread = self.thread;
        let ended = tokio::task::spawn_blocking(move || thread.join()).await?;
        ended.map_err(|_panic| anyhow!("the thread of the pages panicked"))?
    }
}

/// Looks at so many until they are closed.
async fn look(
    address: &str,
    data_dir: PathBuf,
    count: usize,
    opened: oneshot::Sender<()>,
    closing: CancellationToken,
) -> Result<Vec<usize>> {
    let client = Client::builder().redirect(Policy::none()).no_proxy().build()?;
    let (mut cookie, mut pages) = (String::new(), JoinSet::new());
    for number in 0..count {
        if number % OF_SESSION == 0 {
            cookie = sign_in(&client, address, &data_dir).await?;
        }
        client
            .get(format!("{address}{PAGE}"))
            .header(COOKIE, &cookie)
            .send()
            .await?
            .error_for_status()?
            .bytes()
            .await?;
        let updates = client.get(format!("{address}{LIVE}")).header(COOKIE, &cookie).send().await?;
        let mut updates = updates.error_for_status()?;
        let closing = closing.clone();
        pages.spawn(async move {
            let mut bytes = 0;
            while let Some(Ok(Some(part))) = closing.run_until_cancelled(updates.chunk()).await {
                bytes += part.len();
            }
            bytes
        });
    }
    // Who opened them may have given up.
    opened.send(()).map_err(|()| io::Error::from(io::ErrorKind::BrokenPipe))?;
    Ok(pages.join_all().await)
}

/// Signs in with a link of the control socket; the cookie.
async fn sign_in(client: &Client, address: &str, data_dir: &Path) -> Result<String> {
    // The gateway runs on other threads.
    let Answer::ConsoleLink { path, .. } = client::ask(data_dir, &Request::ConsoleLink { role: Role::Operator })?
    else {
        bail!("the gateway gave no link to its console")
    };
    let link = path.strip_prefix("/console/enter?link=").context("a link of another form")?;
    let enter = client.post(format!("{address}/console/enter")).header(ORIGIN, address);
    let form = form_urlencoded::Serializer::new(String::new()).append_pair("link", link).finish();
    let answer = enter.header("content-type", "application/x-www-form-urlencoded").body(form).send().await?;
    let cookie = answer.headers().get(SET_COOKIE).context("the link was refused")?.to_str()?;
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}
