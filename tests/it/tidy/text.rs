//! Text that no file may contain: names of package registries' hosts, paths of one machine.

use super::tree::File;
use super::{no_complaints, tree};

/// Written in parts, so that this file does not contain them.
const HOSTS: [&str; 8] = [
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("registry.npm", "js"),
    concat!("static.crates", ".io"),
    concat!("index.crates", ".io"),
    concat!("deb.debian", ".org"),
    concat!("security.debian", ".org"),
    concat!("proxy.gol", "ang.org"),
];

const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

fn names_places(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let host = HOSTS.iter().find(|host| line.contains(*host));
        let path = MACHINE_PATHS.iter().find(|path| holds_absolute(line, path));
        if let Some(found) = host.or(path) {
            complaints.push(format!(
                "{}:{}: `{found}` names a place that only some machines have",
                file.path,
                index + 1
            ));
        }
    }
    complaints
}

/// `path` at the start of a path, not in the middle of one (`net/PATH` is fine).
fn holds_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-.~}/".contains(c)))
}

#[test]
fn no_file_names_a_registry_host_or_a_path_of_one_machine() {
    no_complaints(&tree::files().iter().flat_map(names_places).collect::<Vec<_>>());
}

#[test]
fn hosts_and_machine_paths_are_found() {
    for host in HOSTS {
        let line = format!("see\nhttps://{host}/x");
        assert_eq!(names_places(&File::new("README.md", &line)).len(), 1, "{host}");
    }
    for path in MACHINE_PATHS {
        assert_eq!(names_places(&File::new("a.sh", &format!("cd {path}x"))).len(), 1, "{path}");
        assert_eq!(names_places(&File::new("a.sh", &format!("a=\"{path}x\""))).len(), 1);
        no_complaints(&names_places(&File::new("a.md", &format!("the folder net{path}x"))));
    }
}
