//! Groups of tool providers among which a wearer can state a preference.

use gateway_core::vocab::{Side, ToolSpec};

use crate::source::Source;

/// The groups of the built-in tools: preferring an app's timers does not imply preferring its notes.
const GROUPS: [(&str, &[&str]); 13] = [
    (TIMERS, &["timer.cancel", "timer.extend", "timer.list", "timer.set"]),
    ("reminders", &["reminder.cancel", "reminder.list", "reminder.set"]),
    ("notes", &["note.add", "note.clear", "note.delete", "note.list", "note.search"]),
    (
        "memory",
        &[
            "memory.create",
            "memory.delete",
            "memory.get",
            "memory.list",
            "memory.restore",
            "memory.search",
            "memory.update",
        ],
    ),
    ("instructions", &["personality.get", "prompt.add", "prompt.delete", "prompt.list"]),
    ("calculator", &["calculator.evaluate"]),
    ("clock", &["clock.date", "clock.time"]),
    ("apps", &["app.list", "app.start", "app.stop"]),
    ("conversations", &["conversation.new", "conversation.search"]),
    ("photos", &["photo.delete"]),
    ("status", &["device.status", "system.status"]),
    ("help", &["help.show"]),
    ("skills", &["skill.list", "skill.read"]),
];
/// The group of the glasses' own tools, which rank with the built-in tools.
const GLASSES: &str = "glasses";
/// The group whose items can be active on their own, as a running timer is.
const TIMERS: &str = "timers";

/// The group of routines, which are built in as well: each is a tool of its user.
const ROUTINES: &str = "routines";

/// The group of the tools for an operator's programs. No wearer can prefer it.
const OPERATORS: &str = "operators";

/// The routines of a user.
pub fn routines() -> Side {
    Side::BuiltIn(Some(ROUTINES.to_owned()))
}

/// The built-in timers.
pub fn timers() -> Side {
    Side::BuiltIn(Some(TIMERS.to_owned()))
}

/// The groups of the built-in tools.
pub fn groups() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(group, _)| *group).chain([GLASSES, ROUTINES])
}

/// The side of a built-in tool.
pub(crate) fn built_in(name: &str) -> Side {
    let group = GROUPS.iter().find(|(_, tools)| tools.contains(&name));
    Side::BuiltIn(group.map(|(group, _)| (*group).to_owned()))
}

/// The side of the tools for an operator's programs.
pub(crate) fn operators() -> Side {
    Side::BuiltIn(Some(OPERATORS.to_owned()))
}

/// Whether a tool is for an operator's programs, and not for conversations: a model of a wearer is not offered it, and may
/// not call it.
pub fn is_for_operators(spec: &ToolSpec) -> bool {
    matches!(&spec.side, Side::BuiltIn(Some(group)) if group == OPERATORS)
}

/// Sets the tool's side. What an app or a server claims about its side is ignored.
pub(crate) fn put(spec: ToolSpec, source: &Source) -> ToolSpec {
    let side = match source {
        Source::BuiltIn => spec.side.clone(),
        Source::Device(_) => Side::BuiltIn(Some(GLASSES.to_owned())),
        Source::App(package) => Side::App(package.clone()),
        Source::Mcp(name) => Side::Mcp(name.clone()),
        Source::Capability(name) => Side::Capability(name.clone()),
    };
    ToolSpec { side, ..spec }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_tool_has_a_group() {
        let (specs, _) = crate::builtin::all();
        let mut named: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        // The gateway gives it.
        named.push("system.status");
        named.sort_unstable();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, tools)| tools.iter().copied()).collect();
        grouped.sort_unstable();
        assert_eq!(named, grouped);
        assert!(specs.iter().all(|spec| spec.side != Side::default()));
        let put = |source| put(ToolSpec { side: timers(), ..ToolSpec::default() }, &source).side;
        assert_eq!(put(Source::BuiltIn), timers());
        assert_eq!(put(Source::App("com.a".into())), Side::App("com.a".into()));
        assert_eq!(put(Source::Mcp("a".into())), Side::Mcp("a".into()));
        assert_eq!(put(Source::Capability("a".into())), Side::Capability("a".into()));
        assert_eq!(put(Source::Device("a".into())), Side::BuiltIn(Some(GLASSES.into())));
    }
}
