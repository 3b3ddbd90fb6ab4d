//! The frame of every page, and small parts of pages.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use gateway_core::vocab::ErrorCode;
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    Pages,
    files::{ICON, LOOK, SCRIPT, STYLE},
    paths::{DEVICES, HOME, LEAVE, LIVE, PROBLEMS},
    visit::{TOKEN, Visit},
};
use crate::{clock, control::Answer, findings::Level, units};

/// The pages: path, name.
const NAVIGATION: [(&str, &str); 16] = [
    (HOME, "Overview"),
    (PROBLEMS, "Problems"),
    ("/console/sessions", "Sessions"),
    (DEVICES, "Devices"),
    ("/console/firmware", "Firmware"),
    ("/console/approvals", "Approvals"),
    ("/console/turns", "Turns"),
    ("/console/logs", "Logs"),
    ("/console/tools", "Tools"),
    ("/console/apps", "Apps"),
    ("/console/mcp", "MCP servers"),
    ("/console/models", "Models"),
    ("/console/conversations", "Conversations"),
    ("/console/configuration", "Configuration"),
    ("/console/access", "Access"),
    ("/try", "Try it"),
];

/// A page for somebody who is signed in. `path`: its place in the navigation.
pub(super) fn page(pages: &Pages, visit: &Visit, title: &str, path: &str, content: &Markup) -> Response {
    let notice = pages.operators().take_notice(&visit.visitor);
    let body = html! {
        a.skip href="#content" { "Skip to the content" }
        header.top {
            p.brand { a href=(HOME) { "Lorgnette" } }
            p #updates role="status" {}
            p.who {
                span { (visit.visitor.role.name()) }
                button type="button" id="pause" hidden aria-pressed="false" title="Updates of this page" { "Pause" }
            }
            (button(visit, LEAVE, "Sign out", &[]))
        }
        div.frame {
            nav aria-label="Pages" {
                ul {
                    @for (own, name) in NAVIGATION {
                        li { a href=(own) aria-current=[(own == path).then_some("page")] { (name) } }
                    }
                }
            }
            main id="content" tabindex="-1" {
                h1 { (title) }
                (banner(pages))
                @if let Some(notice) = notice {
                    div.notice .bad[!notice.is_done] role=(if notice.is_done { "status" } else { "alert" }) {
                        p.lines { (prose(&notice.text)) }
                    }
                }
                (content)
            }
        }
    };
    document(StatusCode::OK, title, &body)
}

/// Names what is wrong, on every page.
fn banner(pages: &Pages) -> Markup {
    let Some(examined) = pages.examined() else { return NOTHING };
    let count = |level| examined.findings.count(level);
    let (faults, warnings) = (count(Level::Fault), count(Level::Warning));
    // They are sorted: the worst is the first.
    let Some(worst) = examined.findings.0.first().filter(|_| faults + warnings > 0) else { return NOTHING };
    html! {
        section.notice .bad[faults > 0] .warn[faults == 0] aria-label="What is wrong" {
            p { b { (counted(faults, warnings)) ": " } (prose(&line(&worst.what))) }
            p { a href=(PROBLEMS) { "What is wrong, and what to do" } }
        }
    }
}

/// In words, without what there is none of.
fn counted(faults: usize, warnings: usize) -> String {
    let of = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        count => Some(format!("{count} {what}s")),
    };
    [of(faults, "fault"), of(warnings, "warning")].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A page for somebody who is not signed in, or not let in.
pub(super) fn outside(status: StatusCode, title: &str, content: &Markup) -> Response {
    document(
        status,
        title,
        &html! {
            main.outside id="content" {
                p.brand { "Lorgnette" }
                h1 { (title) }
                (content)
            }
        },
    )
}

/// A page that says why something is not done.
pub(super) fn refusal(status: StatusCode, why: &str) -> Response {
    outside(
        status,
        "Not done",
        &html! {
            p.lines { (prose(why)) }
            p { a href=(HOME) { "To the console" } }
        },
    )
}

/// A page for somebody whom no other page of the console can reach this way.
pub(super) fn unreachable(status: StatusCode, why: &str) -> Response {
    outside(status, "Not reachable", &html! { p.lines { (prose(why)) } })
}

/// The answer to an unknown path of the console.
pub(super) fn missing() -> Response {
    refusal(StatusCode::NOT_FOUND, "The console has no such page.")
}

fn document(status: StatusCode, title: &str, body: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Lorgnette" }
                link rel="stylesheet" href=(LOOK);
                link rel="stylesheet" href=(STYLE);
                link rel="icon" href=(ICON) type="image/svg+xml";
                script type="module" src=(SCRIPT) {}
            }
            body { (body) }
        }
    };
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string()).into_response()
}

/// A button that sends a form with these hidden fields.
pub(super) fn button(visit: &Visit, action: &str, label: &str, fields: &[(&str, &str)]) -> Markup {
    html! {
        form.inline method="post" action=(action) {
            (hidden(visit, fields))
            button { (label) }
        }
    }
}

/// A button behind another one that says what it does: nothing that cannot be undone takes one click. `id`: what it is about,
/// for screen readers.
pub(super) fn confirmed(visit: &Visit, action: &str, words: (&str, &str, &str), fields: &[(&str, &str)]) -> Markup {
    confirmed_with(visit, action, words, fields, &NOTHING)
}

/// The same with inputs above the second button.
pub(super) fn confirmed_with(
    visit: &Visit,
    action: &str,
    (label, id, warning): (&str, &str, &str),
    fields: &[(&str, &str)],
    inputs: &Markup,
) -> Markup {
    html! {
        details.confirm {
            summary { (label) "…" span.sr { " " (id) } }
            div {
                p { (prose(warning)) }
                form method="post" action=(action) {
                    (hidden(visit, fields))
                    (inputs)
                    button.danger { (label) " " (id) }
                }
            }
        }
    }
}

/// The token of a form and its hidden fields.
pub(super) fn hidden(visit: &Visit, fields: &[(&str, &str)]) -> Markup {
    html! {
        input type="hidden" name=(TOKEN) value=(visit.visitor.form_token);
        @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
    }
}

/// An input for one line of text, at most 256 characters.
pub(super) fn field(id: &str, label: &str, value: &str) -> Markup {
    html! {
        p.field {
            label for=(id) { (label) }
            input id=(id) name=(id) value=(value) autocomplete="off" maxlength="256";
        }
    }
}

/// A choice; options: value, label.
pub(super) fn choice(id: &str, label: &str, chosen: &str, options: &[(&str, &str)]) -> Markup {
    html! {
        p.field {
            label for=(id) { (label) }
            select id=(id) name=(id) {
                @for (value, label) in options { option value=(value) selected[*value == chosen] { (label) } }
            }
        }
    }
}

/// Names with values.
pub(super) fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts { div { dt { (name) } dd { (value) } } }
        }
    }
}

/// A word with a colour for its kind: `good`, `warn`, `bad` or ``.
pub(super) fn badge(kind: &str, word: &str) -> Markup {
    html! { span.badge .(kind) { (word) } }
}

/// What stands in place of an answer that did not come.
pub(super) fn unavailable(answer: Result<Answer, String>) -> Markup {
    let why = answer.err().unwrap_or_else(|| "the gateway answered something else".to_owned());
    html! { div.notice.bad role="alert" { p.lines { (prose(&why)) } } }
}

/// A text as commands print it: what stands in backticks there is code here.
pub(super) fn prose(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    html! {
        // One without its partner is a character like any other.
        @if parts.len().is_multiple_of(2) {
            (text)
        } @else {
            @for pair in parts.chunks(2) {
                (pair[0])
                @if let Some(code) = pair.get(1) { code { (code) } }
            }
        }
    }
}

/// A name of several parts, which may be broken between them.
pub(super) fn name(name: &str) -> Markup {
    html! { code.name { @for part in name.split_inclusive(['.', ':', '_', '/']) { (part) wbr; } } }
}

/// A part of a page that is replaced while the page is looked at.
pub(super) fn live(name: &str, query: &str, content: &Markup) -> Markup {
    html! { div data-live=(format!("{LIVE}{name}?{query}")) { (content) } }
}

/// The same with questions to answer: what is new is read out by screen readers, and a button that has just come takes no click,
/// which may be meant for what was in its place.
pub(super) fn live_questions(name: &str, content: &Markup) -> Markup {
    html! { div data-live=(format!("{LIVE}{name}?")) data-guarded aria-live="polite" { (content) } }
}

/// A span of time for people.
pub(super) fn seconds(seconds: u64) -> String {
    units::ago(seconds)
}

/// A moment in the gateway's zone.
pub(super) fn moment(wall_ms: i64) -> Markup {
    let at = Timestamp::from_millisecond(wall_ms).map(|at| at.to_zoned(clock::zone()));
    match at {
        Ok(at) => {
            let machine = at.timestamp().to_string();
            html! { time datetime=(machine) { (at.strftime("%Y-%m-%d %H:%M:%S").to_string()) } }
        }
        Err(_) => html! { (wall_ms) },
    }
}

/// The first eight digits of a fingerprint distinguish the devices of a household.
pub(super) fn short(fingerprint: &str) -> &str {
    crate::text::crop(fingerprint, 8)
}

/// Text of others in one line, with what is hidden written out.
pub(super) fn line(text: &str) -> String {
    crate::text::in_one_line(text).into_owned()
}

/// A kind of failure, as programs see it.
pub(super) fn code(code: ErrorCode) -> String {
    serde_json::to_value(code).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A query of names and values.
pub(super) fn query(fields: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        query.append_pair(name, value);
    }
    query.finish()
}

/// The way back to a form that was refused: its page takes what was typed from the query, so that nobody types it again.
pub(super) fn again(path: &str, typed: &[(&str, &str)]) -> String {
    format!("{path}?{}", query(typed))
}

/// Markup where a part of a page has nothing to show.
pub(super) const NOTHING: PreEscaped<String> = PreEscaped(String::new());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_backticks_is_code() {
        for (text, shown) in [
            ("", ""),
            ("no mark", "no mark"),
            ("`lorgnette console` prints one", "<code>lorgnette console</code> prints one"),
            ("no device is called `a`; see `b`", "no device is called <code>a</code>; see <code>b</code>"),
            ("`<b>`", "<code>&lt;b&gt;</code>"),
            ("one ` of <two>", "one ` of &lt;two&gt;"),
        ] {
            assert_eq!(prose(text).into_string(), shown, "{text}");
        }
    }
}
