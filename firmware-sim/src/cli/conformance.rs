//! `lorgnette-sim conformance`.

use anyhow::{Result, bail};
use firmware_sim::conformance::{Verdict, judge};

use super::options::Common;
use super::{pair, show};

/// Judge a gateway by PROTOCOL.md. The glasses are paired with it first, if they are not.
#[derive(clap::Args)]
pub(super) struct Arguments {}

pub(super) async fn run(common: &Common, _arguments: &Arguments) -> Result<()> {
    let mut options = common.options()?;
    options.reconnect = false;
    let (glasses, target) = pair::reach(options.clone(), common).await?;
    glasses.goodbye().await;
    options.target = target;
    let style = show::Style::detect();
    let (mut failed, mut all) = (0, 0);
    judge(&options, |judged| {
        let (word, why) = match &judged.verdict {
            Verdict::Passed => (style.green("passed     "), String::new()),
            Verdict::NotOffered(why) => (style.dim("not offered"), format!(": {}", show::plain(why))),
            Verdict::Failed(what) => (style.red("FAILED     "), format!(": {}", show::plain(what))),
        };
        all += 1;
        failed += usize::from(matches!(judged.verdict, Verdict::Failed(_)));
        if common.json {
            let (name, why) = match &judged.verdict {
                Verdict::Passed => ("passed", ""),
                Verdict::NotOffered(why) => ("not_offered", why.as_str()),
                Verdict::Failed(what) => ("failed", what.as_str()),
            };
            let line = serde_json::json!({"section": judged.section, "rule": judged.rule, "verdict": name, "why": why});
            println!("{line}");
        } else {
            println!("{word}  section {:2}  {}{why}", judged.section, judged.rule);
        }
    })
    .await;
    if failed > 0 {
        bail!("{failed} of {all} checks failed");
    }
    Ok(())
}
