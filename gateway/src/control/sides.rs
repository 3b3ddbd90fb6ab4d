//! Commands about sentences that several sides understand.

use chat_models::intents;
use gateway_core::vocab::{Preference, Side};
use tools::{apps::manifest::App, sides::groups};

use super::{Answer, admin::Admin, names::check_name, reply::done};
use crate::{apps::installed::Installed, ports::preferences::Preferences, units::number_of};

/// Colliding sentences that are named when an app is installed, as examples for the operator.
const COLLISIONS_MAX: usize = 8;
/// Prefix of an MCP server.
const MCP: &str = "mcp:";
/// Prefix of a capability.
const CAPABILITY: &str = "capability:";
/// Name of built-in tools; the group may follow.
const BUILT_IN: &str = "built-in";

/// Sentences of a new app that others already have, for the operator; empty if there are none.
pub(super) fn collisions(admin: &Admin, app: &App) -> String {
    let side = Side::App(app.package.clone());
    let found = intents::collisions(&admin.services.registry.specs(), &admin.services.settings.language, &side);
    let Some(first) = found.first() else { return String::new() };
    let mut out = String::new();
    for one in found.iter().take(COLLISIONS_MAX) {
        let other = name(&admin.installed, &one.side);
        out.push_str(&format!(
            "\ntaken: {:?} is understood by {} and by {} ({other})",
            one.sentence, one.tool, one.other
        ));
    }
    if let Some(more) = found.len().checked_sub(COLLISIONS_MAX).filter(|more| *more > 0) {
        out.push_str(&format!("\ntaken: and {more} more"));
    }
    let called = if app.name.is_empty() { &app.package } else { &app.name };
    out.push_str(&format!(
        "\nOf these the one that runs takes a sentence, else the wearer is asked once. Say \"with {called}\", or choose: \
         `lorgnette apps prefer {} --over {:?}`",
        app.package,
        name(&admin.installed, &first.side),
    ));
    out
}

pub(super) fn list(preferences: &Preferences, installed: &Installed, user: &str) -> Result<Answer, String> {
    check_name(user)?;
    let kept = preferences.of(user);
    let lines: Vec<String> = kept.iter().map(|one| line(installed, one)).collect();
    let none = || {
        format!(
            "{user} has chosen nothing; the question comes with the first sentence that two understand equally well"
        )
    };
    Ok(done(if lines.is_empty() { none() } else { lines.join("\n") }))
}

fn line(installed: &Installed, one: &Preference) -> String {
    format!("{} before {}", name(installed, &one.side), name(installed, &one.over))
}

pub(super) fn prefer(
    preferences: &Preferences,
    installed: &Installed,
    user: &str,
    (side, over): (&str, &str),
) -> Result<Answer, String> {
    check_name(user)?;
    let new = Preference { side: find(installed, side)?, over: find(installed, over)? };
    if new.side.is_with(&new.over) {
        return Err(format!("`{side}` and `{over}` are one side"));
    }
    let message = format!("{user}: {}", line(installed, &new));
    preferences.keep(user, new);
    Ok(done(message))
}

pub(super) fn forget(
    preferences: &Preferences,
    installed: &Installed,
    user: &str,
    about: Option<&str>,
) -> Result<Answer, String> {
    check_name(user)?;
    let about = about.map(|about| find(installed, about)).transpose()?;
    let count = preferences.forget(user, about.as_ref());
    Ok(done(format!("{} of {user} forgotten", number_of(count, "choice"))))
}

/// The operator's name of a side.
fn name(installed: &Installed, side: &Side) -> String {
    match side {
        Side::BuiltIn(None) => BUILT_IN.to_owned(),
        Side::BuiltIn(Some(group)) => format!("{BUILT_IN} {group}"),
        Side::Mcp(name) => format!("{MCP}{name}"),
        Side::Capability(name) => format!("{CAPABILITY}{name}"),
        Side::App(package) => {
            let name = installed.get(package).map(|app| app.name.clone()).filter(|name| !name.is_empty());
            name.unwrap_or_else(|| package.clone())
        }
    }
}

fn find(installed: &Installed, wanted: &str) -> Result<Side, String> {
    let wanted = wanted.trim();
    if let Some(rest) = wanted.strip_prefix(BUILT_IN) {
        let group = Some(rest.trim()).filter(|group| !group.is_empty());
        if group.is_none_or(|group| groups().any(|known| known == group)) {
            return Ok(Side::BuiltIn(group.map(str::to_owned)));
        }
        let known: Vec<&str> = groups().collect();
        return Err(format!("built in are {}", known.join(", ")));
    }
    if let Some(name) = wanted.strip_prefix(MCP) {
        return Ok(Side::Mcp(name.to_owned()));
    }
    if let Some(name) = wanted.strip_prefix(CAPABILITY) {
        return Ok(Side::Capability(name.to_owned()));
    }
    let apps = installed.list();
    let mut fitting = apps.iter().filter(|app| app.package == wanted || app.name.eq_ignore_ascii_case(wanted));
    match (fitting.next(), fitting.next()) {
        (Some(app), None) => Ok(Side::App(app.package.clone())),
        (Some(_), Some(_)) => Err(format!("several apps are called `{wanted}`; give the package")),
        // A removed app may still be chosen or forgotten.
        (None, _) if wanted.contains('.') => Ok(Side::App(wanted.to_owned())),
        (None, _) => Err(format!(
            "no app is called `{wanted}`; MCP servers are written `{MCP}NAME`, capabilities `{CAPABILITY}NAME`, the \
                 rest `{BUILT_IN}`"
        )),
    }
}
