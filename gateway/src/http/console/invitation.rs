//! Invitations: the picture that glasses scan to be paired. Each operator sees the own one, and has one at a time.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Extension, Router,
    extract::State,
    response::Response,
    routing::{get, post},
};
use maud::{Markup, html};
use qrcode::{Color, EcLevel, QrCode};
use tokio::{pin, time::interval};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Pages,
    layout::{self, field},
    paths::DEVICES,
    session::see_other,
    users::USER,
    visit::Visit,
};
use crate::{clock, control::Open, identity::invitations::INVITED_US, runtime::spawn};

const PATH: &str = "/console/devices/invitation";
const INVITE: &str = "/console/devices/invite";
const WITHDRAW: &str = "/console/devices/withdraw";
/// White modules around the code, which scanners need (ISO/IEC 18004).
const QUIET: usize = 4;
/// How often it is looked at whether the operator's session goes on: an invitation does not outlive it.
const LOOKED: Duration = Duration::from_secs(2);
const MINUTE_US: u64 = 60_000_000;

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show)).route(INVITE, post(invite)).route(WITHDRAW, post(withdraw))
}

/// The invitations of operators, by the numbers of their sessions.
#[derive(Clone, Default)]
pub(super) struct Invitations(Arc<Mutex<BTreeMap<u32, Invitation>>>);

struct Invitation {
    text: String,
    until_us: u64,
    /// What became of it: done, or not, and why.
    settled: Option<Result<String, String>>,
    /// Withdraws it.
    _open: DropGuard,
}

impl Invitations {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, Invitation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In place of an earlier one of this session, which is withdrawn.
    fn put(&self, session: u32, text: String, withdrawn: CancellationToken, now_us: u64) {
        let invitation =
            Invitation { text, until_us: now_us + INVITED_US, settled: None, _open: withdrawn.drop_guard() };
        let mut all = self.all();
        all.retain(|_, one| one.until_us > now_us);
        all.insert(session, invitation);
    }

    /// The outcome, unless it was withdrawn meanwhile.
    fn settle(&self, session: u32, withdrawn: &CancellationToken, settled: Result<String, String>) {
        let mut all = self.all();
        if let Some(one) = all.get_mut(&session).filter(|_| !withdrawn.is_cancelled()) {
            one.settled = Some(settled);
        }
    }

    fn withdraw(&self, session: u32) {
        self.all().remove(&session);
    }
}

/// What is typed into the form.
const INPUTS: [&str; 3] = ["invited-user", "invited-name", "invited-address"];

/// The form that asks for one, on the page of devices; unfolded where it was refused.
pub(super) fn form(visit: &Visit) -> Markup {
    let user = visit.query.some("invited-user").unwrap_or_else(|| USER.to_owned());
    let is_again = INPUTS.iter().any(|name| visit.query.some(name).is_some());
    html! {
        details open[is_again] {
            summary { "Invite glasses by a picture" }
            p.soft { "Glasses with a camera scan it. They find this gateway by it, know its key, and need no code." }
            form.fields method="post" action=(INVITE) {
                (layout::hidden(visit, &[]))
                (field("invited-user", "User", &user))
                (field("invited-name", "Name (default: the model)", visit.query.get("invited-name")))
                (field("invited-address", "Address (default: those of this machine)", visit.query.get("invited-address")))
                button { "Show the picture" }
            }
        }
    }
}

async fn invite(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let [user, name, address] = INPUTS.map(|input| visit.form.get(input).to_owned());
    pages.note(&visit, "invite", Some(&user));
    let addresses = if address.is_empty() { Vec::new() } else { vec![address] };
    let withdrawn = CancellationToken::new();
    let open = match Open::new(&pages.admin, (user, name), addresses, withdrawn.clone()) {
        Ok(open) => open,
        Err(why) => {
            pages.operators().tell(&visit.visitor, false, &why);
            return see_other(&layout::again(DEVICES, &INPUTS.map(|input| (input, visit.form.get(input)))));
        }
    };
    pages.invitations.put(visit.visitor.number, open.text.clone(), withdrawn.clone(), clock::mono_us());
    spawn("invitation", attend(pages.clone(), visit, open, withdrawn));
    see_other(PATH)
}

/// Waits for what becomes of an invitation, for as long as its operator's session goes on.
async fn attend(pages: Pages, visit: Visit, open: Open, withdrawn: CancellationToken) {
    let (session, services) = (visit.visitor.number, &pages.admin.services);
    let settled = open.settled(&services.store);
    pin!(settled);
    let mut looks = interval(LOOKED);
    loop {
        tokio::select! {
            settled = &mut settled => return pages.invitations.settle(session, &withdrawn, settled),
            () = withdrawn.cancelled() => return,
            () = services.admission.stop.cancelled() => return,
            _ = looks.tick() => {}
        }
        if !pages.operators().goes_on(clock::mono_us(), &visit.visitor) {
            return pages.invitations.withdraw(session);
        }
    }
}

async fn withdraw(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    pages.note(&visit, "withdraw an invitation", None);
    pages.invitations.withdraw(visit.visitor.number);
    pages.operators().tell(&visit.visitor, true, "the invitation is withdrawn");
    see_other(DEVICES)
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    if !visit.is_operator() {
        return super::operators_only();
    }
    let part = part(&pages, &visit);
    layout::page(&pages, &visit, "Invitation", DEVICES, &layout::live("invitation", "", &part))
}

pub(super) fn part(pages: &Pages, visit: &Visit) -> Markup {
    let all = pages.invitations.all();
    let now_us = clock::mono_us();
    let Some(one) = all.get(&visit.visitor.number).filter(|one| one.until_us > now_us) else {
        return html! { p.soft { "No invitation is open. " a href=(DEVICES) { "Devices" } " has the form for one." } };
    };
    match &one.settled {
        None => opened(visit, &one.text, one.until_us.saturating_sub(now_us).div_ceil(MINUTE_US)),
        Some(Ok(done)) => html! {
            div.notice role="status" { p.lines { (done) } }
            p { a href=(DEVICES) { "To the devices" } }
        },
        Some(Err(why)) => html! {
            div.notice.bad role="alert" { p.lines { (why) } }
            p { a href=(DEVICES) { "To the devices" } }
        },
    }
}

fn opened(visit: &Visit, text: &str, minutes: u64) -> Markup {
    html! {
        section.card aria-labelledby="scan" {
            h2 #scan { "Scan this with the glasses" }
            @match picture(text) {
                Some(picture) => (picture),
                None => p.soft { "The invitation is too long for a picture." },
            }
            p { "Whoever scans this pairs one pair of glasses. It is good once, and for " (minutes)
                @if minutes == 1 { " minute." } @else { " minutes." } }
            details {
                summary { "As a text" }
                p.soft { "For glasses without a camera, and for the simulator: " code { "lorgnette-sim pair --invite" } "." }
                pre { (text) }
            }
            (layout::button(visit, WITHDRAW, "Withdraw", &[]))
        }
    }
}

/// A QR code, black on white in every theme: one path of rows of dark modules.
fn picture(text: &str) -> Option<Markup> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let width = code.width();
    let modules = code.into_colors();
    let mut path = String::new();
    for (y, row) in modules.chunks(width).enumerate() {
        let mut x = 0;
        for run in row.chunk_by(|one, next| one == next) {
            if run[0] == Color::Dark {
                path.push_str(&format!("M{} {}h{}v1h-{}z", x + QUIET, y + QUIET, run.len(), run.len()));
            }
            x += run.len();
        }
    }
    let side = width + 2 * QUIET;
    Some(html! {
        svg.qr viewBox=(format!("0 0 {side} {side}")) shape-rendering="crispEdges" role="img"
            aria-label="QR code of the invitation; the same stands below as a text" {
            rect width=(side) height=(side) fill="#fff" {}
            path d=(path) fill="#000" {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brightness of each pixel of the path, as a camera has it.
    fn pixels(svg: &str, each: usize) -> (usize, Vec<u8>) {
        let part = |from: &str, to: char| svg.split_once(from).unwrap().1.split(to).next().unwrap().to_owned();
        let side: usize = part("viewBox=\"0 0 ", ' ').parse().unwrap();
        let mut pixels = vec![255; side * each * side * each];
        for row in part(" d=\"M", '"').split('M') {
            let (x, rest) = row.split_once(' ').unwrap();
            let (y, rest) = rest.split_once('h').unwrap();
            let (run, _) = rest.split_once('v').unwrap();
            let [x, y, run]: [usize; 3] = [x, y, run].map(|number| number.parse().unwrap());
            for down in y * each..(y + 1) * each {
                let from = down * side * each + x * each;
                pixels[from..from + run * each].fill(0);
            }
        }
        (side * each, pixels)
    }

    #[test]
    fn a_scanner_reads_the_text_from_the_picture() {
        let text = format!("lorgnette:pair?v=1&fp={0}&code={0}&at=192.0.2.1&tcp=8460", "0123456789abcdef".repeat(2));
        let (side, pixels) = pixels(&picture(&text).unwrap().into_string(), 4);
        let mut image = rqrr::PreparedImage::prepare_from_greyscale(side, side, |x, y| pixels[y * side + x]);
        let grids = image.detect_grids();
        assert_eq!(grids.len(), 1);
        assert_eq!(grids[0].decode().unwrap().1, text);
        assert!(picture(&"x".repeat(4_000)).is_none());
    }

    #[test]
    fn a_session_has_one_invitation_and_what_was_withdrawn_is_not_settled() {
        let all = Invitations::default();
        let put = |session, text: &str, now_us| {
            let withdrawn = CancellationToken::new();
            all.put(session, text.to_owned(), withdrawn.clone(), now_us);
            withdrawn
        };
        let first = put(1, "first", 0);
        let other = put(2, "other", 0);
        let second = put(1, "second", 1);
        assert!(first.is_cancelled() && !second.is_cancelled() && !other.is_cancelled());
        all.settle(1, &first, Ok("late".to_owned()));
        assert_eq!(all.all()[&1].settled, None);
        all.settle(1, &second, Ok("paired".to_owned()));
        assert_eq!(all.all()[&1].settled, Some(Ok("paired".to_owned())));
        all.withdraw(2);
        assert!(other.is_cancelled());
        // What has expired is forgotten when the next one comes.
        put(3, "third", 1 + INVITED_US);
        assert_eq!(all.all().keys().copied().collect::<Vec<_>>(), [3]);
    }
}
