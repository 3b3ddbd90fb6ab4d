//! What an examination of this box finds: how bad it is, where, and what to do.

use serde::Serialize;

/// How bad a finding is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// The gateway does not start, loses data, or does not work.
    Fault,
    /// It works, and may fail some day, or part of it does not work.
    Warning,
    /// Something to know.
    Note,
    /// All is well.
    Ok,
}

impl Level {
    /// In one word, for people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Warning => "warning",
            Self::Note => "note",
            Self::Ok => "ok",
        }
    }
}

/// The result of one check: a fault, a warning, a note, or that all is well.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// What was looked at.
    pub(crate) check: &'static str,
    /// What is the case, and where.
    pub(crate) what: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

/// All findings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings(pub(crate) Vec<Finding>);

impl Findings {
    pub(crate) fn ok(&mut self, check: &'static str, what: impl Into<String>) {
        self.0.push(Finding { level: Level::Ok, check, what: what.into(), remedy: None });
    }

    pub(crate) fn add(
        &mut self,
        level: Level,
        check: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.0.push(Finding { level, check, what: what.into(), remedy: Some(remedy.into()) });
    }

    pub(crate) fn fault(&mut self, check: &'static str, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(Level::Fault, check, what, remedy);
    }

    /// How many are exactly this bad.
    pub(crate) fn count(&self, level: Level) -> usize {
        self.0.iter().filter(|finding| finding.level == level).count()
    }

    /// Sorts them, the worst first.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|finding| finding.level);
    }
}
