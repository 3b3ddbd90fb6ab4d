//! Files that root can read, and the user that runs the gateway cannot: told to root, to whom nothing else shows it.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use crate::{
    config::Config,
    findings::{Findings, Level},
    models::settings::{KeySource, Model},
    speech::elsewhere::settings::{KeyPlace, Other},
};

/// Before others may read the configuration: a packaged gateway's user exists only while it runs, so that no file can be given to
/// it or its group.
const WITHOUT_KEYS: &str = "take the secrets out of it, if there are any (`lorgnette login` or `key_env` for the key of a model, `${NAME}` \
                            for a value of `code.secrets`; headers and addresses are used as they are written); then";

/// The same for the MCP servers' file.
const WITHOUT_SECRETS: &str = "write the secrets in it, if there are any, as `${NAME}`, with NAME=VALUE in the gateway's environment \
                               (/etc/lorgnette/environment has that of a packaged one); then";

/// In place of a file with a key: no other user may read one.
const KEYS_ELSEWHERE: &str = "keep the key with `lorgnette login`, or in a variable: /etc/lorgnette/environment has those of a \
                              packaged gateway (docs/models.md)";

/// What a file has in it, which says how its user may come to read it.
#[derive(Clone, Copy)]
enum Content {
    /// There may be secrets between the settings, here and in the next one.
    Configuration,
    McpServers,
    Model,
    Key,
}

pub(super) fn examine(config: &Config, findings: &mut Findings) {
    let user = User::of(&config.data_dir).filter(|_| geteuid().is_root());
    if let Some(user) = user {
        judge(config, &user, findings);
    }
}

fn judge(config: &Config, user: &User, findings: &mut Findings) {
    let mut is_fine = true;
    let mut tell = |file: &Path, content: Content| {
        // What is not there is told by others, and the data folder is the user's.
        let Ok(whole) = file.canonicalize() else { return };
        let is_kept = config.data_dir.canonicalize().is_ok_and(|data| whole.starts_with(data));
        let Some(Closed { path, mode }) = user.kept_from(&whole).filter(|_| !is_kept) else { return };
        is_fine = false;
        let (shown, uid) = (file.display(), user.uid);
        let what = format!(
            "user {uid}, who has the data folder and so runs the gateway, cannot read {shown}: {} has mode {mode:04o}",
            path.display()
        );
        let open = if path == whole {
            format!("run `chmod 644 {shown}`, or move it to a place where all may read")
        } else {
            format!("move it out of {}, to a place where all may read, such as /etc/lorgnette", path.display())
        };
        let remedy = match content {
            Content::Configuration => format!("{WITHOUT_KEYS} {open}"),
            Content::McpServers => format!("{WITHOUT_SECRETS} {open}"),
            Content::Model => open,
            Content::Key => KEYS_ELSEWHERE.to_owned(),
        };
        findings.add(Level::Warning, "rights", what, remedy);
    };
    config.file.iter().for_each(|file| tell(file, Content::Configuration));
    mcp_file(config).iter().for_each(|file| tell(file, Content::McpServers));
    model_files(config).iter().for_each(|file| tell(file, Content::Model));
    key_files(config).iter().for_each(|file| tell(file, Content::Key));
    if is_fine {
        let what =
            format!("user {}, who has the data folder, can read the configuration, the models and the keys", user.uid);
        findings.ok("rights", what);
    }
}

fn mcp_file(config: &Config) -> Option<PathBuf> {
    let folder = config.folder.as_deref().unwrap_or(Path::new(""));
    config.mcp.file.as_ref().map(|file| folder.join(file))
}

fn model_files(config: &Config) -> Vec<PathBuf> {
    let wanted = config.models_wanted();
    let models = wanted.iter().flat_map(|entry| entry.installed).map(|file| config.models_dir.join(file.path));
    let mut all: Vec<PathBuf> = models.collect();
    all.extend(config.hearing.models().cloned());
    all.sort();
    all.dedup();
    all
}

fn key_files(config: &Config) -> Vec<PathBuf> {
    let folder = config.folder.as_deref().unwrap_or(Path::new(""));
    let of_models = config.models.all().filter_map(|model| match model {
        Model::Provider(provider) => match &provider.key {
            KeySource::File(file) => Some(file.clone()),
            KeySource::None | KeySource::Env(_) | KeySource::Login(_) => None,
        },
        Model::Offline => None,
    });
    let recogniser = config.hearing.remote.as_ref().map(|remote| &remote.server);
    let speaker = config.other_voice.as_ref().and_then(Other::server);
    let of_servers = recogniser.into_iter().chain(speaker).filter_map(|server| match &server.key {
        Some(KeyPlace::File(file)) => Some(file.clone()),
        Some(KeyPlace::Env(_)) | None => None,
    });
    let of_clients = config.mcp.keys.iter().filter_map(|key| Some(folder.join(key.file.as_ref()?)));
    of_models.chain(of_servers).chain(of_clients).collect()
}

/// The user that runs the gateway.
struct User {
    uid: u32,
    groups: Vec<u32>,
}

/// A file or folder with these rights keeps a user from a file.
struct Closed {
    path: PathBuf,
    mode: u32,
}

impl User {
    /// The owner of the data folder, unless it is root.
    fn of(folder: &Path) -> Option<Self> {
        let meta = fs::metadata(folder).ok().filter(|meta| meta.uid() != 0)?;
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let mut groups = groups_of(meta.uid(), &read("/etc/passwd"), &read("/etc/group"));
        groups.push(meta.gid());
        Some(Self { uid: meta.uid(), groups })
    }

    /// The first folder above the file that this user cannot enter, or the file if that cannot be read; by mode, owner and
    /// group.
    fn kept_from(&self, file: &Path) -> Option<Closed> {
        let mut folders: Vec<&Path> = file.ancestors().skip(1).collect();
        folders.reverse();
        let folder = folders.into_iter().find_map(|folder| self.lacks(0o1, folder));
        folder.or_else(|| self.lacks(0o4, file))
    }

    fn lacks(&self, right: u32, path: &Path) -> Option<Closed> {
        let meta = fs::metadata(path).ok()?;
        let shift = if meta.uid() == self.uid {
            6
        } else if self.groups.contains(&meta.gid()) {
            3
        } else {
            0
        };
        let mode = meta.mode() & 0o7777;
        ((mode >> shift) & right == 0).then(|| Closed { path: path.to_owned(), mode })
    }
}

/// The groups of a user by the system's tables: `NAME:_:UID:GID:...` and `GROUP:_:GID:NAME,NAME`.
fn groups_of(uid: u32, users: &str, groups: &str) -> Vec<u32> {
    let columns = |line: &str| -> Vec<String> { line.split(':').map(str::to_owned).collect() };
    let number = |columns: &[String], at: usize| columns.get(at)?.parse::<u32>().ok();
    let Some(user) = users.lines().map(columns).find(|user| number(user, 2) == Some(uid)) else { return Vec::new() };
    let name = user.first().cloned().unwrap_or_default();
    let others = groups
        .lines()
        .map(columns)
        .filter(|group| group.get(3).is_some_and(|members| members.split(',').any(|member| member == name)));
    number(&user, 3).into_iter().chain(others.filter_map(|group| number(&group, 2))).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_another_user_cannot_read_is_told_with_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        set(folder.path(), 0o755);
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let (file, key) = (inner.join("config.toml"), folder.path().join("key"));
        fs::write(&key, "sk-1").unwrap();
        fs::write(
            &file,
            format!(
                "data_dir = {:?}\nmodels_dir = {:?}\n[model]\nkind = \"gemini\"\nmodel = \"m\"\nkey_file = {key:?}\n",
                folder.path().join("data"),
                folder.path().join("models")
            ),
        )
        .unwrap();
        let owner = fs::metadata(&file).unwrap();
        let other = User { uid: owner.uid() + 1, groups: vec![owner.gid() + 1] };
        let told = |user: &User| {
            let mut findings = Findings::default();
            judge(&config::load(Some(&file)).unwrap(), user, &mut findings);
            let all = findings
                .0
                .into_iter()
                .map(|found| format!("{}: {} → {}", found.level.word(), found.what, found.remedy.unwrap_or_default()));
            all.collect::<Vec<_>>()
        };
        let is = |found: &str, parts: &[&str]| assert!(parts.iter().all(|part| found.contains(part)), "{found}");
        let modes = |of_file, of_inner, of_key| {
            set(&file, of_file);
            set(&inner, of_inner);
            set(&key, of_key);
        };
        modes(0o600, 0o755, 0o600);
        let found = told(&other);
        is(&found[0], &["warning: ", "cannot read ", "config.toml has mode 0600", "`chmod 644 "]);
        is(&found[1], &["warning: ", "key has mode 0600", "lorgnette login", "/etc/lorgnette/environment"]);
        assert_eq!(found.len(), 2, "{found:?}");
        modes(0o644, 0o700, 0o604);
        let found = told(&other);
        is(&found[0], &["inner has mode 0700", "move it out of "]);
        assert_eq!(found.len(), 1, "{found:?}");
        // Its group's rights count, also where others have more; and the owner reads all.
        modes(0o640, 0o750, 0o640);
        for (uid, gid) in [(other.uid, owner.gid()), (owner.uid(), 0)] {
            let found = told(&User { uid, groups: vec![gid] });
            is(&found[0], &["ok: ", "can read the configuration, the models and the keys"]);
        }
        set(&file, 0o604);
        is(&told(&User { uid: other.uid, groups: vec![owner.gid()] })[0], &["warning: ", "config.toml has mode 0604"]);
    }

    #[test]
    fn a_file_that_may_have_secrets_in_it_is_not_opened_to_all_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        set(folder.path(), 0o755);
        let at = |name: &str| folder.path().join(name);
        let (file, servers, model) = (at("config.toml"), at("servers.json"), at("own.bin"));
        let places = format!("data_dir = {:?}\nmodels_dir = {:?}\n", at("data"), at("models"));
        let named = format!("[mcp]\nfile = {servers:?}\n[hearing]\nsecond_model = {model:?}\n");
        for (path, text) in [(&file, (places + &named).as_str()), (&servers, "{}"), (&model, "weights")] {
            fs::write(path, text).unwrap();
            set(path, 0o600);
        }
        let owner = fs::metadata(&file).unwrap();
        let other = User { uid: owner.uid() + 1, groups: vec![owner.gid() + 1] };
        let mut findings = Findings::default();
        judge(&config::load(Some(&file)).unwrap(), &other, &mut findings);
        let remedy = |path: &Path| {
            let told = format!("cannot read {}: ", path.display());
            let found = findings.0.iter().find(|found| found.what.contains(&told)).unwrap();
            found.remedy.clone().unwrap()
        };
        for (path, first) in [
            (&file, "take the secrets out of it, if there are any (`lorgnette login`"),
            (
                &servers,
                "write the secrets in it, if there are any, as `${NAME}`, with NAME=VALUE in the gateway's environment",
            ),
        ] {
            let remedy = remedy(path);
            assert!(remedy.starts_with(first) && remedy.contains("; then run `chmod 644 "), "{remedy}");
        }
        assert!(remedy(&model).starts_with("run `chmod 644 "));
    }

    #[test]
    fn the_groups_of_a_user_are_those_of_the_systems_tables() {
        let users = "root:x:0:0:root:/root:/bin/sh\nglass:x:990:980::/:/bin/false\n";
        let groups = "root:x:0:\nglass:x:980:\nkeys:x:970:ann,glass\nothers:x:960:glasses\n";
        assert_eq!(groups_of(990, users, groups), [980, 970]);
        assert!(groups_of(991, users, groups).is_empty());
    }
}
