//! What surrounds a gateway: the machine; of an installed one its configuration, the variables that systemd gives its
//! service, and what the service does not see.

use std::{
    collections::BTreeMap,
    env::{self, VarError},
    fs::File,
    io::{self, ErrorKind, Read as _},
    num::NonZero,
    path::{Path, PathBuf},
    str::Chars,
    sync::OnceLock,
    thread,
};

/// The configuration of an installed gateway.
pub(crate) const CONFIG: &str = "/etc/lorgnette/config.toml";
/// Variables of its service: `EnvironmentFile=` of the unit.
const VARIABLES: &str = "/etc/lorgnette/environment";
/// Largest file of variables that is read: keys are short.
const VARIABLES_BYTES_MAX: u64 = 64 * 1024;

/// Those of the file, once it was read.
static OF_SERVICE: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// The value of a secret that is not set here.
const PLACEHOLDER: &str = "a secret of a usual length";

/// All that the check of a configuration asks about the machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Threads that run at once.
    pub(crate) processors: usize,
    /// Folder for data, unless another one is configured.
    pub(crate) data_dir: PathBuf,
    /// The same for models.
    pub(crate) models_dir: PathBuf,
    /// Whether there is a file.
    pub(crate) has_file: fn(&Path) -> bool,
    /// The value of a variable of the process.
    pub(crate) variable: fn(&str) -> Option<String>,
}

impl Machine {
    /// The one that this process runs on.
    pub(crate) fn this() -> Self {
        Self {
            processors: thread::available_parallelism().map_or(1, NonZero::get),
            data_dir: default_data_dir(),
            models_dir: audio::models::default_dir(),
            has_file: Path::exists,
            variable: |name| env::var(name).ok(),
        }
    }

    /// The value of a variable with a secret. Whether it is set is checked when it is used: here another value takes its place.
    pub(crate) fn secret(&self, name: &str) -> Option<String> {
        Some((self.variable)(name).unwrap_or_else(|| PLACEHOLDER.to_owned()))
    }
}

/// `$XDG_DATA_HOME/lorgnette`, `~/.local/share/lorgnette`, or the working folder.
pub(crate) fn default_data_dir() -> PathBuf {
    env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share")))
        .map_or_else(|| PathBuf::from("lorgnette-data"), |base| base.join("lorgnette"))
}

/// The configuration of a gateway that is installed on this machine.
pub(crate) fn installed() -> Option<&'static Path> {
    Some(Path::new(CONFIG)).filter(|file| file.exists())
}

/// This configuration is used. With that of the installed gateway, variables that are not set count from now on as set with the
/// values of its service's file, where this process may read that: so a command finds what the service finds.
pub(crate) fn uses(config: &Path) {
    if let Some(found) = of_service(config, Path::new(VARIABLES)) {
        OF_SERVICE.get_or_init(|| found);
    }
}

fn of_service(config: &Path, file: &Path) -> Option<BTreeMap<String, String>> {
    if config == Path::new(CONFIG) { read(file).ok() } else { None }
}

/// That this process may not read the file with the variables of the service whose configuration this is: a command then does
/// not find what the service finds.
pub(crate) fn closed(config: Option<&Path>) -> Option<String> {
    let error = File::open(VARIABLES).err().filter(|_| config == Some(Path::new(CONFIG)))?;
    unread(&error)
}

fn unread(error: &io::Error) -> Option<String> {
    (error.kind() == ErrorKind::PermissionDenied)
        .then(|| format!("this user may not read {VARIABLES}, whose variables count as not set here"))
}

/// A variable of this process, or else of the service.
pub(crate) fn variable(name: &str) -> Option<String> {
    match env::var(name) {
        Ok(value) => Some(value),
        Err(VarError::NotPresent) => OF_SERVICE.get()?.get(name).cloned(),
        Err(VarError::NotUnicode(_)) => None,
    }
}

fn read(file: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut text = String::new();
    File::open(file)?.take(VARIABLES_BYTES_MAX).read_to_string(&mut text)?;
    Ok(variables(&text))
}

/// As systemd reads them (systemd.exec(5), `EnvironmentFile=`): comments, quotes, escapes; nothing is expanded.
fn variables(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = text.chars();
    while !rest.as_str().is_empty() {
        let line = rest.as_str().trim_start();
        rest = line.chars();
        if line.starts_with(['#', ';']) {
            comment(&mut rest);
            continue;
        }
        // A line without a value is none.
        let end = line.find(['=', '\n']).unwrap_or(line.len());
        let (name, behind) = line.split_at(end);
        rest = behind.chars();
        if rest.next() == Some('=') {
            let value = value(&mut rest);
            if is_name(name.trim_end()) {
                found.insert(name.trim_end().to_owned(), value);
            }
        }
    }
    found
}

fn is_name(name: &str) -> bool {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word && name.starts_with(|first: char| !first.is_ascii_digit())
}

/// Passes over a comment, which goes on behind a line that ends with a backslash.
fn comment(rest: &mut Chars<'_>) {
    while let Some(next) = rest.next() {
        match next {
            '\\' => _ = rest.next(),
            '\n' => return,
            _ => {}
        }
    }
}

/// The value up to the end of its line. Quotes begin at its beginning, or behind other quotes.
fn value(rest: &mut Chars<'_>) -> String {
    let mut value = String::new();
    // Without the white space behind the last word.
    let mut length = 0;
    let mut is_bare = false;
    while let Some(next) = rest.next() {
        match next {
            '\n' => break,
            ' ' | '\t' | '\r' => {
                value.extend(is_bare.then_some(next));
                continue;
            }
            '\\' => {
                is_bare = true;
                value.extend(rest.next().filter(|escaped| *escaped != '\n'));
            }
            '\'' if !is_bare => value.extend(rest.by_ref().take_while(|quoted| *quoted != '\'')),
            '"' if !is_bare => in_quotes(rest, &mut value),
            word => {
                is_bare = true;
                value.push(word);
            }
        }
        length = value.len();
    }
    value.truncate(length);
    value
}

/// What stands in double quotes, the first of which is behind.
fn in_quotes(rest: &mut Chars<'_>, value: &mut String) {
    while let Some(next) = rest.next() {
        match next {
            '"' => return,
            '\\' => match rest.next() {
                Some(escaped @ ('"' | '\\' | '`' | '$')) => value.push(escaped),
                Some('\n') | None => {}
                Some(other) => value.extend(['\\', other]),
            },
            other => value.push(other),
        }
    }
}

/// What to do where a gateway cannot open a file that a command has named; `None`: the error is another one.
pub(crate) fn out_of_reach(error: &io::Error, place: &str) -> Option<String> {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied).then(|| {
        format!(
            "the gateway opens it itself, and as a service it sees nothing below /root, /home and /tmp and has the rights of a \
             user of its own: put it into {place}, readable for all"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_systemd_reads_them() {
        let lines = [
            "# a comment = none",
            r"; another \",
            "GONE=with it",
            "PLAIN=sk-1",
            "  SPACED =  two words  \t",
            r"SINGLE='a \ $b # c'",
            r#"DOUBLE="a \"b\" \$c \d"  ' e'"#,
            r"LONG=one\",
            " two",
            r"ESCAPED=a\ b\'c",
            r#"INNER=a'b'"c""#,
            "EMPTY=",
            "no value",
            "export BAD=1",
            "1BAD=1",
            "NOT_EXPANDED=$PLAIN",
            "LINES=\"one",
            "two\"",
            "PLAIN=sk-2 # no comment",
            "LAST=x",
        ];
        let found = variables(&lines.join("\n"));
        let expected = [
            ("DOUBLE", "a \"b\" $c \\d e"),
            ("EMPTY", ""),
            ("ESCAPED", "a b'c"),
            ("INNER", "a'b'\"c\""),
            ("LAST", "x"),
            ("LINES", "one\ntwo"),
            ("LONG", "one two"),
            ("NOT_EXPANDED", "$PLAIN"),
            ("PLAIN", "sk-2 # no comment"),
            ("SINGLE", "a \\ $b # c"),
            ("SPACED", "two words"),
        ];
        let found: Vec<(&str, &str)> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_variable_of_the_service_counts_where_the_process_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("environment");
        std::fs::write(&file, "LORGNETTE_TEST_OF_SERVICE=key\nPATH=none\n").unwrap();
        assert_eq!(variable("LORGNETTE_TEST_OF_SERVICE"), None);
        assert_eq!(of_service(Path::new("/srv/config.toml"), &file), None, "another gateway's");
        OF_SERVICE.set(of_service(Path::new(CONFIG), &file).unwrap()).unwrap();
        assert_eq!(variable("LORGNETTE_TEST_OF_SERVICE").as_deref(), Some("key"));
        assert_ne!(variable("PATH").as_deref(), Some("none"), "the process's own comes first");
        assert_eq!(variable("LORGNETTE_TEST_OF_NOBODY"), None);
        assert_eq!(of_service(Path::new(CONFIG), &folder.path().join("absent")), None);
    }

    #[test]
    fn a_file_of_variables_that_is_closed_to_this_user_is_told_from_one_that_is_not_there() {
        let told = unread(&io::Error::from(ErrorKind::PermissionDenied)).unwrap();
        assert!(told.starts_with("this user may not read /etc/lorgnette/environment"), "{told}");
        assert_eq!(unread(&io::Error::from(ErrorKind::NotFound)), None);
        assert_eq!(closed(Some(Path::new("/srv/config.toml"))), None, "another gateway's");
        assert_eq!(closed(None), None);
    }

    #[test]
    fn a_file_that_a_service_does_not_see_has_a_better_place() {
        let error = File::open("/nonexistent").unwrap_err();
        assert!(out_of_reach(&error, "/srv").unwrap().contains("put it into /srv"));
        assert_eq!(out_of_reach(&io::Error::from(ErrorKind::InvalidData), "/srv"), None);
    }
}
