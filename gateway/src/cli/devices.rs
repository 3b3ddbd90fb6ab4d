//! `lorgnette devices`.

use anyhow::{Result, bail};
use clap::Subcommand;

use super::invite;
use crate::{
    config::Config,
    control::{Answer, Paired, Request, SessionOf, client::ask},
    text::in_one_line,
    units::ago,
};

/// List, pair, invite, rename and revoke devices.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show paired devices and those waiting for pairing.
    List,
    /// Pair the glasses that show this code, or those with this key.
    Pair {
        /// The six digits on the glasses' display.
        code: Option<String>,
        /// For glasses without a display: the fingerprint of their key. Opens two minutes for them.
        #[arg(long, conflicts_with = "code")]
        fingerprint: Option<String>,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// Name of the glasses; default: their model.
        #[arg(long, default_value = "", hide_default_value = true)]
        name: String,
    },
    /// Show a picture that glasses scan: who does is paired. Once, within ten minutes, and while this command runs.
    Invite {
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// Name of the glasses; default: their model.
        #[arg(long, default_value = "", hide_default_value = true)]
        name: String,
        /// Where the glasses reach the gateway, such as a name of DNS; default: the addresses of this machine.
        #[arg(long)]
        address: Vec<String>,
        /// Only the text, without the picture; so it is, too, where the output is no terminal.
        #[arg(long)]
        text: bool,
    },
    /// Give a device another name.
    Rename {
        /// Name, fingerprint, or the beginning of it.
        device: String,
        /// The new name.
        name: String,
    },
    /// Revoke a device; its session ends at once.
    Revoke {
        /// Name, fingerprint, or the beginning of it.
        device: String,
    },
}

pub(super) fn run(config: &Config, arguments: Arguments) -> Result<()> {
    let request = match arguments.command {
        Command::List => Request::Devices,
        Command::Pair { code: Some(code), user, name, .. } => Request::PairCode { code, user, name },
        Command::Pair { fingerprint: Some(fingerprint), user, name, .. } => {
            Request::PairFingerprint { fingerprint, user, name }
        }
        Command::Pair { .. } => bail!("give the code that the glasses show, or --fingerprint"),
        Command::Invite { user, name, address, text } => {
            return invite::run(config, Request::Invite { user, name, addresses: address }, text);
        }
        Command::Rename { device, name } => Request::Rename { device, name },
        Command::Revoke { device } => Request::Revoke { device },
    };
    match ask(&config.data_dir, &request)? {
        Answer::Done { message } => println!("{message}"),
        Answer::Devices { paired, waiting } => {
            if paired.is_empty() && waiting.is_empty() {
                println!("no devices; connect glasses to pair them");
            }
            paired.iter().for_each(show);
            for device in waiting {
                let how = if device.shows_code { "shows a code" } else { "pair with --fingerprint" };
                let (device, model, left) = (device.fingerprint, in_one_line(&device.model), device.expires_s);
                println!("{device}  waiting    {model} ({how}, {left} s left)");
            }
        }
        answer => bail!("unexpected answer: {answer:?}"),
    }
    Ok(())
}

fn show(device: &Paired) {
    let (state, more) = match (&device.session, device.left_wall_ms) {
        _ if device.revoked => ("revoked", String::new()),
        (Some(connected), _) => ("connected", format!("  {}", session(connected))),
        (None, Some(left)) => {
            let left = jiff::Timestamp::from_millisecond(left).unwrap_or_default();
            ("away", format!("  last seen {left:.0}"))
        }
        (None, None) => ("away", String::new()),
    };
    let [name, model, user] = [&device.name, &device.model, &device.user].map(|text| in_one_line(text));
    println!("{}  {state:<9}  {name}  ({model}, user {user}){more}", device.device);
}

/// How a device is connected.
pub(super) fn session(session: &SessionOf) -> String {
    let firmware = match session.firmware.as_str() {
        "" => String::new(),
        firmware => format!(", firmware {}", in_one_line(firmware)),
    };
    let battery = session.battery_percent.map_or_else(String::new, |percent| format!(", battery {percent} %"));
    let muted = if session.muted { ", muted" } else { "" };
    let microphone = match session.microphone.as_slice() {
        [] => String::new(),
        faults => format!(", microphone {}", in_one_line(&faults.join(" and "))),
    };
    let speaker = if session.speaker_silent { ", speaker silent: it has no format that can be coded" } else { "" };
    let lost = session.lost_s.map_or_else(String::new, |s| format!(", link lost {} ago: it may resume", ago(s)));
    let SessionOf { transport, peer, .. } = session;
    format!("{transport} from {peer} for {}{firmware}{battery}{muted}{microphone}{speaker}{lost}", ago(session.for_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected(muted: bool, faults: &[&str]) -> SessionOf {
        SessionOf {
            transport: "wss".to_owned(),
            peer: "10.0.0.7:5000".to_owned(),
            for_s: 5,
            lost_s: None,
            firmware: String::new(),
            battery_percent: Some(80),
            muted,
            microphone: faults.iter().map(|fault| (*fault).to_owned()).collect(),
            speaker_silent: false,
            turn: None,
        }
    }

    #[test]
    fn a_speaker_that_gets_no_sound_is_told() {
        let told = session(&SessionOf { speaker_silent: true, ..connected(false, &[]) });
        assert!(told.ends_with("battery 80 %, speaker silent: it has no format that can be coded"), "{told}");
    }

    #[test]
    fn a_muted_microphone_is_told_with_what_is_wrong_with_it() {
        let cases: [(bool, &[&str], &str); 4] = [
            (false, &[], "battery 80 %"),
            (true, &[], "battery 80 %, muted"),
            (false, &["quiet", "offset"], "battery 80 %, microphone quiet and offset"),
            (true, &["dead"], "battery 80 %, muted, microphone dead"),
        ];
        for (muted, faults, end) in cases {
            let told = session(&connected(muted, faults));
            assert!(told.ends_with(end), "{told}");
        }
    }
}
