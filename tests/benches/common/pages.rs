//! Pages of the console that somebody looks at: their live updates, read to their end.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use gateway::control::{Answer, Request, client};
use gateway::identity::operators::Role;
use reqwest::Client;
use reqwest::header::{COOKIE, ORIGIN, SET_COOKIE};
use reqwest::redirect::Policy;
use tokio::task::JoinSet;

use super::House;

/// What is looked at.
const LIVE: &str = "/console/live/sessions";

/// Signs in with a link of the control socket; the cookie.
async fn sign_in(client: &Client, address: &str, data_dir: &Path) -> Result<String> {
    let data_dir = data_dir.to_owned();
    let asked = move || client::ask(&data_dir, &Request::ConsoleLink { role: Role::Operator });
    let Answer::ConsoleLink { path, .. } = tokio::task::spawn_blocking(asked).await?? else {
        bail!("the gateway gave no link to its console")
    };
    let link = path.strip_prefix("/console/enter?link=").context("a link of another form")?;
    let enter = client.post(format!("{address}/console/enter")).header(ORIGIN, address);
    let form = form_urlencoded::Serializer::new(String::new()).append_pair("link", link).finish();
    let answer = enter.header("content-type", "application/x-www-form-urlencoded").body(form).send().await?;
    let cookie = answer.headers().get(SET_COOKIE).context("the link was refused")?.to_str()?;
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}

/// Opens so many pages with the sessions; each yields the bytes that it has received once it ends.
pub async fn open(house: &House, count: usize) -> Result<JoinSet<usize>> {
    let address = format!("http://{}", house.running.web);
    let client = Client::builder().redirect(Policy::none()).no_proxy().build()?;
    let mut pages = JoinSet::new();
    if count == 0 {
        return Ok(pages);
    }
    let cookie = sign_in(&client, &address, &house.folder.path().join("gateway")).await?;
    for _ in 0..count {
        let mut page = client.get(format!("{address}{LIVE}")).header(COOKIE, &cookie).send().await?;
        ensure!(page.status().is_success(), "{LIVE}: {}", page.status());
        pages.spawn(async move {
            let mut bytes = 0;
            // The end of the gateway may cut it.
            while let Ok(Some(part)) = page.chunk().await {
                bytes += part.len();
            }
            bytes
        });
    }
    Ok(pages)
}
