//! `lorgnette conformance`.

use std::{
    io::{IsTerminal as _, stderr},
    net::SocketAddr,
    path::PathBuf,
};

use anyhow::{Context as _, Result, bail};
use device_protocol::PairingMethod;

use super::{invite, signals::Signals};
use crate::{
    config::Config,
    conformance::{Judge, Judgement, Options, Progress, Verdict},
    control::Invited,
    runtime,
};

/// Judge glasses by PROTOCOL.md: this plays a gateway to a real device, leads it through a script, and says rule by rule what
/// it did.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Listen for devices; an address for TCP (`wss://`) and UDP (QUIC) alike. Default: those of the configuration.
    #[arg(long, num_args = 0..=1, required = true, value_name = "ADDR")]
    listen: Option<Option<SocketAddr>>,
    /// End behind the first device.
    #[arg(long)]
    once: bool,
    /// One JSON object a rule.
    #[arg(long)]
    json: bool,
    /// Take `ws://` from other machines, too.
    #[arg(long)]
    plain: bool,
    /// Folder of the judge's keys, so that devices stay paired with it. Default: a new one for each run.
    #[arg(long, value_name = "FOLDER")]
    keys: Option<PathBuf>,
    /// Address of this machine for the invitation; up to four times. Default: its own.
    #[arg(long = "address", value_name = "ADDRESS")]
    addresses: Vec<String>,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let temporary = tempfile::tempdir().context("making a folder for the keys")?;
    let folder = arguments.keys.as_deref().unwrap_or(temporary.path());
    let mut options = Options::new(config, folder).plain(arguments.plain);
    if let Some(Some(address)) = arguments.listen {
        options = options.listening(address, Some(address));
    }
    let runtime = runtime::build().context("starting the runtime")?;
    let failed = runtime.block_on(judge(options, arguments));
    runtime.shutdown_background();
    match failed? {
        0 => Ok(()),
        failed => bail!("{failed} rules failed"),
    }
}

/// Judges devices; how many rules failed.
async fn judge(options: Options, arguments: &Arguments) -> Result<usize> {
    let mut signals = Signals::new().context("handling signals")?;
    let mut judge = Judge::start(options).await?;
    announce(&judge, arguments)?;
    let (mut failed, mut told) = (0, progress);
    loop {
        let judgement = tokio::select! {
            judgement = judge.next(&mut told) => judgement,
            () = signals.end.wanted() => return Ok(failed),
        };
        let Some(judgement) = judgement else { bail!("the listeners are gone") };
        failed += show(&judgement, arguments.json);
        if arguments.once {
            return Ok(failed);
        }
        eprintln!("Waiting for the next device; Ctrl-C ends.");
    }
}

/// How a device connects.
fn announce(judge: &Judge, arguments: &Arguments) -> Result<()> {
    eprintln!("The judge listens on wss://{}/glasses", judge.web);
    if let Some(quic) = judge.quic {
        eprintln!("                and quic://{quic}");
    }
    eprintln!("Its fingerprint is {}", judge.fingerprint());
    let invited =
        Invited { addresses: arguments.addresses.clone(), web: Some(judge.web), quic: judge.quic, name: "Judge" };
    let text = invited.text(&judge.fingerprint(), judge.code()).map_err(anyhow::Error::msg)?;
    if stderr().is_terminal() {
        invite::draw(&text)?;
    }
    eprintln!("{text}");
    eprintln!(
        "Glasses that are not paired scan this, or show a code. Those of another gateway are to be unpaired first."
    );
    Ok(())
}

fn progress(progress: Progress) {
    match progress {
        Progress::Device { id, model, transport } => eprintln!("{model} ({id}) over {transport}"),
        Progress::Pairing { method: PairingMethod::Code, shown } => eprintln!("  pairing: the glasses show {shown}"),
        Progress::Pairing { shown, .. } => eprintln!("  pairing: the fingerprint of the glasses is {shown}"),
        Progress::Step { what, within, asks: true } => eprintln!("  now: {what} (within {} s)", within.as_secs()),
        Progress::Step { what, .. } => eprintln!("  {what} ..."),
    }
}

/// Prints the verdicts; how many failed.
fn show(judgement: &Judgement, json: bool) -> usize {
    let Judgement { device, transport, judged } = judgement;
    for one in judged {
        let (name, word, why) = match &one.verdict {
            Verdict::Passed => ("passed", "passed  ", ""),
            Verdict::NotDone(why) => ("not_done", "not done", why.as_str()),
            Verdict::Failed(what) => ("failed", "FAILED  ", what.as_str()),
        };
        let (section, rule) = (one.rule.section(), one.rule.text());
        if json {
            let line = serde_json::json!({
                "device": device, "transport": transport, "section": section, "rule": rule, "verdict": name, "why": why,
            });
            println!("{line}");
        } else {
            println!("{word}  section {section:2}  {rule}{}{why}", if why.is_empty() { "" } else { ": " });
        }
    }
    let count = |wanted: fn(&Verdict) -> bool| judged.iter().filter(|one| wanted(&one.verdict)).count();
    let failed = count(|verdict| matches!(verdict, Verdict::Failed(_)));
    let passed = count(|verdict| *verdict == Verdict::Passed);
    eprintln!("{passed} rules passed, {failed} failed, {} were not done", judged.len() - passed - failed);
    failed
}
