//! Live sessions of glasses.

use axum::{Extension, Router, extract::State, response::Response, routing::get};
use maud::{Markup, html};

use super::{
    Pages,
    layout::{self, badge, seconds, short},
    paths,
    table::Table,
    visit::Visit,
};
use crate::control::{Answer, Paired, Request, SessionOf};

const PATH: &str = "/console/sessions";

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show))
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let part = part(&pages).await;
    layout::page(
        &pages,
        &visit,
        "Sessions",
        PATH,
        &html! {
            p.soft { "Glasses that are connected, or whose session waits for them. A device's page can show what is being said." }
            (layout::live("sessions", "", &part))
        },
    )
}

pub(super) async fn part(pages: &Pages) -> Markup {
    let devices = match pages.ask(Request::Devices).await {
        Ok(Answer::Devices { paired, .. }) => paired,
        other => return layout::unavailable(other),
    };
    let rows = devices.iter().filter_map(|device| Some(row(device, device.session.as_ref()?)));
    let columns = ["Device", "User", "State", "Via", "From", "For", "Battery", "Firmware"];
    html! { (Table::new("Sessions", &columns).rows(rows).or("No glasses are connected.")) }
}

fn row(device: &Paired, session: &SessionOf) -> Vec<Markup> {
    vec![
        html! { a href=(paths::device(&device.device)) { (device.name) } " " code { (short(&device.device)) } },
        html! { (device.user) },
        state(session),
        html! { (session.transport) },
        html! { (session.peer) },
        html! { (seconds(session.for_s)) },
        battery(session),
        html! { (session.firmware) },
    ]
}

/// What a session does at this moment.
pub(super) fn state(session: &SessionOf) -> Markup {
    match (session.lost_s, session.turn) {
        (Some(lost), _) => badge("warn", &format!("no link for {}", seconds(lost))),
        (None, Some(turn)) => badge("good", &format!("in turn {turn}")),
        (None, None) => {
            let faults = session.microphone.join(" and ");
            match (session.muted, faults.is_empty()) {
                (false, true) => badge("", "listens"),
                (true, true) => badge("", "muted"),
                (false, false) => badge("warn", &format!("microphone {faults}")),
                (true, false) => badge("warn", &format!("muted, microphone {faults}")),
            }
        }
    }
}

/// The battery, as the device told it last.
pub(super) fn battery(session: &SessionOf) -> Markup {
    match session.battery_percent {
        Some(percent @ 0..20) => badge("warn", &format!("{percent} %")),
        Some(percent) => html! { (percent) " %" },
        None => html! { "unknown" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_muted_microphone_is_shown_with_what_is_wrong_with_it() {
        let shown = |muted, faults: &[&str]| {
            state(&SessionOf {
                transport: "wss".to_owned(),
                peer: "10.0.0.7:5000".to_owned(),
                for_s: 5,
                lost_s: None,
                firmware: String::new(),
                battery_percent: None,
                muted,
                microphone: faults.iter().map(|fault| (*fault).to_owned()).collect(),
                speaker_silent: false,
                turn: None,
            })
        };
        let cases: [(bool, &[&str], &str, &str); 4] = [
            (false, &[], "", "listens"),
            (true, &[], "", "muted"),
            (false, &["quiet", "offset"], "warn", "microphone quiet and offset"),
            (true, &["dead"], "warn", "muted, microphone dead"),
        ];
        for (muted, faults, kind, words) in cases {
            assert_eq!(shown(muted, faults).into_string(), badge(kind, words).into_string());
        }
    }
}
