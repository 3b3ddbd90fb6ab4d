//! Firmware for glasses: what is kept and offered, which glasses run which version, and how their updates stand.

use std::collections::BTreeMap;

use axum::{
    Extension, Router,
    extract::State,
    response::Response,
    routing::{get, post},
};
use maud::{Markup, html};

use super::{
    Pages,
    layout::{self, badge, facts, line, moment, short},
    paths,
    table::Table,
    visit::Visit,
};
use crate::{
    control::{Answer, Paired, Request, firmware::FirmwareRequest},
    firmware::{
        Scope, Stage,
        facts::{DeviceFacts, Facts, ImageFacts, RolloutFacts, Transfer},
    },
    units::bytes,
};

const PATH: &str = "/console/firmware";
const PAUSE: &str = "/console/firmware/pause";

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show)).route(PAUSE, post(pause))
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let part = part(&pages, &visit).await;
    layout::page(
        &pages,
        &visit,
        "Firmware",
        PATH,
        &html! {
            p.soft { code { "lorgnette firmware" } " adds images, rolls them out and removes them." }
            (layout::live("firmware", "", &part))
        },
    )
}

async fn gathered(pages: &Pages) -> Result<Facts, Markup> {
    match pages.ask(Request::Firmware { request: FirmwareRequest::State }).await {
        Ok(Answer::Firmware { firmware }) => Ok(*firmware),
        other => Err(layout::unavailable(other)),
    }
}

pub(super) async fn part(pages: &Pages, visit: &Visit) -> Markup {
    let facts = match gathered(pages).await {
        Ok(facts) => facts,
        Err(why) => return why,
    };
    match pages.ask(Request::Devices).await {
        Ok(Answer::Devices { paired, .. }) => shown(&facts, &paired, visit),
        other => layout::unavailable(other),
    }
}

fn shown(facts: &Facts, paired: &[Paired], visit: &Visit) -> Markup {
    let names = paired.iter().map(|device| (device.device.as_str(), device.name.as_str())).collect();
    let of: BTreeMap<&str, &DeviceFacts> = facts.devices.iter().map(|of| (of.device.as_str(), of)).collect();
    let glasses = paired.iter().filter(|device| !device.revoked);
    html! {
        h2 { "Roll-outs" }
        (Table::new("Roll-outs", &["Model", "Version", "Offered to", "State", "Applied", "Verified", "Failed", "Action"])
            .rows(facts.rollouts.iter().map(|rollout| rollout_row(rollout, &names, visit)))
            .or("Nothing is offered."))
        h2 { "Glasses" }
        (Table::new("Glasses", &["Device", "Model", "Runs", "Update", "Reports"])
            .rows(glasses.map(|device| device_row(device, of.get(device.device.as_str()).copied(), visit)))
            .or("No device is paired."))
        h2 { "Images" }
        (Table::new("Images", &["Model", "Version", "Size", "SHA-256", "Hardware", "From", "State"])
            .rows(facts.images.iter().map(image_row))
            .or(&html! { "None is kept. " code { "lorgnette firmware add" } " keeps one." }))
    }
}

fn rollout_row(rollout: &RolloutFacts, names: &BTreeMap<&str, &str>, visit: &Visit) -> Vec<Markup> {
    let counts = rollout.counts;
    vec![
        html! { (line(&rollout.model)) },
        html! { (rollout.version) },
        match &rollout.scope {
            Scope::All => html! { "all" },
            Scope::Percent(percent) => html! { (percent) " percent" },
            Scope::Devices(devices) => html! {
                details {
                    summary { (devices.len()) " named" }
                    @for device in devices { p { (names.get(device.as_str()).copied().map_or_else(|| line(device), line)) } }
                }
            },
        },
        match &rollout.stage {
            Stage::Running => badge("good", "running"),
            Stage::Paused => badge("warn", "paused"),
            Stage::Stopped(why) => html! { (badge("bad", "stopped")) " " (line(why)) },
        },
        html! { (counts.applied) },
        html! { (counts.verified) },
        html! { (counts.bad) },
        html! {
            @if visit.is_operator() && rollout.stage == Stage::Running {
                (layout::button(visit, PAUSE, "Pause", &[("model", &rollout.model)]))
            }
        },
    ]
}

fn device_row(device: &Paired, known: Option<&DeviceFacts>, visit: &Visit) -> Vec<Markup> {
    // Glasses that do not take images say what they run as long as they are there.
    let said = device.session.as_ref().map(|session| session.firmware.as_str());
    let runs = known.map(|known| known.version.as_str()).or(said);
    vec![
        html! { a href=(paths::device(&device.device)) { (line(&device.name)) } " " code { (short(&device.device)) } },
        html! { (line(&device.model)) },
        html! { (runs.map_or_else(|| "unknown".to_owned(), line)) },
        match (known, said) {
            (Some(known), _) => update(known),
            (None, Some(_)) => html! { "takes none" },
            (None, None) => badge("", "away"),
        },
        html! { @if let Some(known) = known { (reports(known, visit)) } },
    ]
}

/// How the update of a device that takes images stands.
fn update(known: &DeviceFacts) -> Markup {
    let Some(Transfer { version, stored, bytes: all, refused }) = &known.transfer else {
        return if known.connected {
            html! { "is sent nothing" }
        } else {
            badge("", "away")
        };
    };
    match refused {
        Some(answer) => badge("warn", &format!("refused {version}: {}", line(answer))),
        None => {
            let percent = u64::from(*stored).saturating_mul(100) / u64::from(*all).max(1);
            let of = format!("{} of {}", bytes(u64::from(*stored)), bytes(u64::from(*all)));
            html! { (badge("good", &format!("{version}: {percent} %"))) " " (of) }
        }
    }
}

/// What a device has said of images. Why one failed is told in its own words, which are for operators.
fn reports(known: &DeviceFacts, visit: &Visit) -> Markup {
    html! {
        @for (version, report) in known.reports.iter().rev() {
            p {
                (version) ": " (report.outcome.name()) ", " (moment(report.wall_ms))
                @if let Some(why) = report.failure.as_ref().filter(|_| visit.is_operator()) { " (" (line(why)) ")" }
            }
        }
    }
}

fn image_row(image: &ImageFacts) -> Vec<Markup> {
    let (least, most) = image.hardware;
    vec![
        html! { (line(&image.model)) },
        html! { (image.version) },
        html! { (bytes(u64::from(image.bytes))) },
        html! { code { (crate::text::crop(&image.hash, 16)) } },
        html! { (least) " to " (most) },
        html! {
            (image.version_min.as_ref().map_or_else(|| "any version".to_owned(), |least| format!("{least} on")))
            @if image.downgrade { ", also later ones" }
        },
        if image.unsigned { badge("warn", "of no configured maker") } else { badge("", "signed") },
    ]
}

/// On the page of a device that takes images.
pub(super) async fn of(pages: &Pages, visit: &Visit, device: &str) -> Markup {
    let known = match gathered(pages).await {
        Ok(known) => known,
        Err(why) => return why,
    };
    let Some(known) = known.devices.iter().find(|known| known.device == device) else { return layout::NOTHING };
    html! {
        section.card aria-labelledby="firmware" {
            h2 #firmware { "Firmware" }
            (facts(&[
                ("Runs", html! { (line(&known.version)) }),
                ("Update", update(known)),
                ("Reports", html! { @if known.reports.is_empty() { "none" } (reports(known, visit)) }),
            ]))
        }
    }
}

async fn pause(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let request = FirmwareRequest::Pause { model: visit.form.get("model").to_owned() };
    pages.act(&visit, Request::Firmware { request }, PATH).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_told_as_it_stands() {
        let transfer = |stored, bytes, refused: Option<&str>| {
            Some(Transfer { version: "1.5.0".to_owned(), stored, bytes, refused: refused.map(str::to_owned) })
        };
        for (transfer, connected, words) in [
            (None, false, "away"),
            (None, true, "is sent nothing"),
            (transfer(0, 2_048, None), true, "1.5.0: 0 %"),
            (transfer(1_536, 2_048, None), true, "1.5.0: 75 %"),
            (transfer(u32::MAX, u32::MAX, None), true, "1.5.0: 100 %"),
            (transfer(0, 0, None), true, "1.5.0: 0 %"),
            (transfer(0, 2_048, Some("not_wanted")), true, "refused 1.5.0: not_wanted"),
            (transfer(0, 2_048, Some("<b>\u{202e}")), true, "refused 1.5.0: &lt;b&gt;\\u202e"),
        ] {
            let (device, name, version) = ("ab".to_owned(), String::new(), "1.4.0".to_owned());
            let known = DeviceFacts { device, name, version, connected, transfer, reports: Vec::new() };
            let shown = update(&known).into_string();
            assert!(shown.contains(words), "{words}: {shown}");
        }
    }
}
