//! The users that pages are about: the usual one, and the choice of one.

use maud::{Markup, html};

use super::{Pages, layout, visit::Visit};
use crate::control::{Answer, Request, memory::MemoryRequest};

/// The usual user, as on the command line.
pub(super) const USER: &str = "wearer";

/// The user that a page is about, and a form that chooses another one: all with stored data.
pub(super) async fn chosen(pages: &Pages, visit: &Visit, path: &str) -> (String, Markup) {
    let known = match pages.ask(Request::Memory { request: MemoryRequest::Users }).await {
        Ok(Answer::Records { records }) => records,
        other => return (USER.to_owned(), layout::unavailable(other)),
    };
    let mut names: Vec<&str> = known.iter().filter_map(|user| user["user"].as_str()).collect();
    let first = names.first().copied().filter(|_| !names.contains(&USER)).unwrap_or(USER);
    let user = visit.query.some("user").unwrap_or_else(|| first.to_owned());
    if !names.contains(&user.as_str()) {
        names.push(&user);
    }
    let options: Vec<(&str, &str)> = names.iter().map(|name| (*name, *name)).collect();
    let form = html! {
        form.fields method="get" action=(path) {
            (layout::choice("user", "User", &user, &options))
            button { "Show" }
        }
    };
    (user.clone(), form)
}
