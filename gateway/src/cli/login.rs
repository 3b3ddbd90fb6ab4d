//! `lorgnette login`.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use chat_models::{
    auth::Key,
    keyring::{Entry, Keyring},
    oauth::{Device, Flow, Loopback},
};

use super::secret;
use crate::{
    config::Config,
    models::{
        self,
        settings::{KeySource, Model, ProviderConfig},
    },
};

/// How long to wait for the browser.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(300);

/// Log in to a model's provider, or store its key.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Name in `login` of the model's section.
    name: String,
    /// Store a key, read from standard input, instead of logging in.
    #[arg(long)]
    key: bool,
    /// Log in on another device, with a code.
    #[arg(long, conflicts_with = "key")]
    device: bool,
    /// Delete the stored login or key.
    #[arg(long, conflicts_with_all = ["key", "device"])]
    forget: bool,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let model = model(config, &arguments.name)?;
    let keyring = Keyring::new(&model.keyring);
    let name = arguments.name.as_str();
    if arguments.forget {
        let kept = keyring.remove(name)?;
        println!("{name} {}", if kept { "is forgotten" } else { "was not kept" });
        return Ok(());
    }
    let entry = match &model.oauth {
        Some(oauth) if !arguments.key => log_in(&models::flow(oauth)?, arguments.device)?,
        None if arguments.device => bail!("`{name}` has no section `oauth` that says where to log in"),
        _ => Entry::Key(read_key(name)?),
    };
    keyring.put(name, &entry)?;
    println!("{name} is kept in {}; a gateway that runs uses it from its next request on", keyring.folder().display());
    Ok(())
}

fn model<'a>(config: &'a Config, name: &str) -> Result<&'a ProviderConfig> {
    let mut known = Vec::new();
    for model in &config.models.chain {
        if let Model::Provider(provider) = model
            && let KeySource::Login(login) = &provider.key
        {
            if login == name {
                return Ok(provider);
            }
            known.push(login.as_str());
        }
    }
    if known.is_empty() {
        bail!("no model of the configuration has a `login`; write `login = \"{name}\"` into its section");
    }
    bail!("no model of the configuration has `login = \"{name}\"`; there are: {}", known.join(", "))
}

fn read_key(name: &str) -> Result<Key> {
    Key::new(&secret::key_of_input(name)?).context("standard input")
}

fn log_in(flow: &Flow, device: bool) -> Result<Entry> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let token = runtime.block_on(async {
        if device || flow.authorize_url.is_none() {
            let device = Device::start(flow).await?;
            let prompt = device.prompt();
            println!("Open {} and type {}", prompt.url, prompt.code);
            device.wait().await
        } else {
            let browser = Loopback::bind(flow).await?;
            println!("Open this address in a browser on this machine:\n{}", browser.url());
            browser.wait(BROWSER_TIMEOUT).await
        }
    })?;
    Ok(Entry::Token(token))
}
