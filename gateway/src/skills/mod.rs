//! Skills: folders with a `SKILL.md`, written by third parties and installed by the operator. They are offered as an
//! index and read by a tool; no part of them is ever executed. A skill's text is untrusted text for a model:
//! docs/skills.md.

pub(crate) mod front_matter;
mod scan;
pub(crate) mod settings;

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use tools::{
    memory::{Skill, Skills},
    ports::PortError,
};

use crate::runtime::on_own_thread;

pub use scan::Found;
#[cfg(feature = "fuzzing")]
pub(crate) use scan::body_of;

/// Interval between scans of the folders: a change is found before its writer has put on the glasses.
const POLL_EVERY: Duration = Duration::from_secs(2);

/// All skills of all folders, as of the last scan.
pub struct SkillStore {
    folders: Vec<PathBuf>,
    index: RwLock<Arc<Index>>,
}

#[derive(Default)]
struct Index {
    stamp: u64,
    skills: Vec<Found>,
    problems: Vec<String>,
}

impl SkillStore {
    /// Scans these folders; of two skills with the same name, the one in the earlier folder counts.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        let store = Self { folders, index: RwLock::default() };
        store.refresh();
        store
    }

    /// Reads everything again if something has changed; returns whether it had.
    pub fn refresh(&self) -> bool {
        let before = self.index();
        let places = scan::places(&self.folders);
        let stamp = scan::stamp(&places);
        if stamp == before.stamp {
            return false;
        }
        let (skills, problems) = scan::read(places);
        for problem in problems.iter().filter(|problem| !before.problems.contains(problem)) {
            tracing::warn!("a skill is not offered: {problem}");
        }
        tracing::info!(skills = skills.len(), problems = problems.len(), "skills were read");
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Index { stamp, skills, problems });
        true
    }

    /// The problems that keep skills from being offered, each with file and line.
    pub fn problems(&self) -> Vec<String> {
        self.index().problems.clone()
    }

    /// The skills whose requirements are met, by name; `is_there`: whether a tool is offered.
    pub fn usable(&self, is_there: impl Fn(&str) -> bool) -> Vec<Skill> {
        let index = self.index();
        let met = index
            .skills
            .iter()
            .filter(|skill| skill.head.tools.iter().all(|tool| is_there(tool)) && skill.has_programs);
        met.map(|skill| Skill { name: skill.head.name.clone(), description: skill.head.description.clone() }).collect()
    }

    /// All skills, also those whose requirements are not met.
    pub(crate) fn all(&self) -> Vec<Found> {
        self.index().skills.clone()
    }

    /// The text of a skill without its front matter, or a file of its folder; `None`: there is none that may be read.
    pub fn text(&self, name: &str, file: Option<&str>) -> Option<String> {
        let index = self.index();
        let skill = index.skills.iter().find(|skill| skill.head.name == name)?;
        match file {
            None => Some(skill.body.clone()),
            Some(file) => scan::file_of(&skill.folder, file),
        }
    }

    /// Scans regularly, until `stop`.
    pub async fn watch(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(POLL_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let store = Arc::clone(&self);
            drop(on_own_thread(move || store.refresh()).await);
        }
    }

    fn index(&self) -> Arc<Index> {
        Arc::clone(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Skills for SkillStore {
    async fn list(&self, tools: &BTreeSet<String>) -> Result<Vec<Skill>, PortError> {
        Ok(self.usable(|tool| tools.contains(tool)))
    }

    async fn read(&self, name: &str, file: Option<&str>) -> Result<Option<String>, PortError> {
        Ok(self.text(name, file))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        scan::{FILE_BYTES_MAX, SKILLS_MAX},
        *,
    };
    use std::{fs, os::unix::fs::symlink, path::Path};

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn skill(folder: &Path, name: &str, more: &str) {
        let text = format!("---\nname: {name}\ndescription: About {name}.\n{more}---\nDo {name}.\n");
        write(&folder.join(name).join("SKILL.md"), &text);
    }

    fn names(skills: &SkillStore, tools: &[&str]) -> Vec<String> {
        skills.usable(|tool| tools.contains(&tool)).into_iter().map(|skill| skill.name).collect()
    }

    #[test]
    fn skills_are_found_offered_when_they_can_be_used_and_read() {
        let root = tempfile::tempdir().unwrap();
        let (one, two) = (root.path().join("one"), root.path().join("two"));
        skill(&one, "plain", "");
        skill(&one.join("deeper/still"), "deep", "");
        skill(&one.join("a/b/c/d/e"), "too-deep", "");
        skill(&one, "needs-tool", "requires:\n  tools: [note.add]\n");
        skill(&one, "needs-shell", "requires:\n  programs: [sh]\n");
        skill(&one, "needs-luck", "requires:\n  programs: [no-such-program-of-all]\n");
        skill(&two, "plain", "");
        write(&two.join("plain/SKILL.md"), "---\nname: plain\ndescription: Another.\n---\n");
        write(&two.join("broken/SKILL.md"), "---\nname: broken\nwhat\n---\n");
        let store = SkillStore::new(vec![one.clone(), two.clone(), root.path().join("absent")]);
        assert_eq!(names(&store, &[]), ["deep", "needs-shell", "plain"]);
        assert_eq!(names(&store, &["note.add"]), ["deep", "needs-shell", "needs-tool", "plain"]);
        assert_eq!(store.text("plain", None).as_deref(), Some("Do plain.\n"));
        let problems = store.problems();
        assert!(problems.iter().any(|problem| problem.contains("broken/SKILL.md:3: ")), "{problems:?}");
        assert!(problems.iter().any(|problem| problem.contains("two/plain/SKILL.md:1: ")), "{problems:?}");
        assert_eq!(problems.len(), 2, "{problems:?}");

        // Changed, added and removed while it runs.
        assert!(!store.refresh(), "nothing has changed");
        skill(&one, "new", "");
        fs::remove_dir_all(one.join("plain")).unwrap();
        assert!(store.refresh());
        assert_eq!(names(&store, &[]), ["deep", "needs-shell", "new", "plain"]);
        assert_eq!(store.text("plain", None).as_deref(), Some(""), "the one of the second folder");
    }

    #[test]
    fn nothing_outside_of_a_skill_is_read() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("skills");
        skill(&folder, "good", "");
        write(&folder.join("good/parts/list.md"), "wheels");
        write(&folder.join("good/big.md"), &"x".repeat(FILE_BYTES_MAX + 1));
        fs::write(folder.join("good/bytes.bin"), [0xff, 0xfe, 0]).unwrap();
        write(&root.path().join("secret"), "secret");
        symlink(root.path().join("secret"), folder.join("good/link.md")).unwrap();
        symlink(root.path(), folder.join("good/up")).unwrap();
        symlink(folder.join("good"), folder.join("linked")).unwrap();
        write(&root.path().join("elsewhere.md"), "---\nname: sneaked\ndescription: x\n---\n");
        fs::create_dir_all(folder.join("sneaky")).unwrap();
        symlink(root.path().join("elsewhere.md"), folder.join("sneaky/SKILL.md")).unwrap();
        let store = SkillStore::new(vec![folder]);
        assert_eq!(names(&store, &[]), ["good"]);
        assert_eq!(store.text("good", Some("parts/list.md")).as_deref(), Some("wheels"));
        for wrong in [
            "../../secret",
            "/etc/hostname",
            "link.md",
            "up/secret",
            "parts",
            "parts/../SKILL.md",
            ".",
            "",
            "big.md",
            "bytes.bin",
            "nothing.md",
            "parts//../../../secret",
            "\0",
        ] {
            assert_eq!(store.text("good", Some(wrong)), None, "{wrong:?}");
        }
        assert!(store.problems().iter().any(|problem| problem.contains("symbolic link")), "{:?}", store.problems());
    }

    #[test]
    fn there_is_an_end_to_them() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..SKILLS_MAX + 3 {
            skill(root.path(), &format!("s{number}"), "");
        }
        let store = SkillStore::new(vec![root.path().to_path_buf()]);
        assert_eq!(names(&store, &[]).len(), SKILLS_MAX);
        assert!(store.problems().iter().any(|problem| problem.contains("more than")), "{:?}", store.problems());
    }
}
