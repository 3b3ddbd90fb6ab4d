//! Tests of accepted configurations, and of the message for each wrong one. Tests of a single section are in its
//! module.

use super::*;

fn problems(text: &str) -> Vec<(Option<usize>, String)> {
    check(text, "x.toml").unwrap_err().into_iter().map(|problem| (problem.line, problem.what)).collect()
}

#[test]
fn the_example_is_valid_and_says_the_defaults() {
    let mut example = check(EXAMPLE, "example").unwrap();
    // What is written differs; what it means does not.
    example.written.clear();
    let defaults = check("", "none").unwrap();
    assert_eq!(format!("{example:?}"), format!("{defaults:?}"));
}

#[test]
fn every_key_of_the_example_can_be_uncommented() {
    let uncommented: String = EXAMPLE
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.contains(" = ") || rest.starts_with("[[") => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    assert_ne!(uncommented, EXAMPLE);
    let uncommented = uncommented.replace("kind = \"offline\"", "kind = \"chat_completions\"");
    // Keys of other kinds of models are left out, and tested with these kinds.
    let (theirs, uncommented): (Vec<&str>, Vec<&str>) =
        uncommented.lines().partition(|line| line.starts_with("thinking_tokens = "));
    check(&uncommented.join("\n"), "example").unwrap();
    for kind in ["anthropic", "gemini"] {
        check(
            &format!("[model]\nkind = \"{kind}\"\nmodel = \"m\"\nkey_env = \"K\"\n{}\n", theirs.join("\n")),
            "x.toml",
        )
        .unwrap();
    }
    assert_eq!(theirs.len(), 1);
}

#[test]
fn mistakes_that_would_show_later_are_told_at_once() {
    let long = format!("name = \"{}\"", "x".repeat(65));
    for (text, line, words) in [
        (long.as_str(), Some(1), "1 to 64 bytes"),
        ("language = \"klingon!!\"", Some(1), "such as en or en-GB"),
        ("\ndata_dir = \"~/lorgnette\"", Some(2), "write it out"),
        ("models_dir = \"~/m\"", Some(1), "write it out"),
        ("[mcp]\nhosts = [\"http://box.lan\"]", None, "such as box.lan"),
        ("[model]\nbase_url = \"http://a/v1\"\nmodel = \"x\"", Some(2), "asks no server"),
        ("[model]\nkind = \"anthropic\"\nmodel = \"x\"\nkey_env = \"X\"\nazure = true", Some(5), "`azure` belongs to"),
        ("[fallback]\nkind = \"offline\"", Some(1), "[[fallback]]"),
        ("[hearing]\nwake_phrases = [\"!!!\"]", Some(2), "each with Latin letters"),
        ("[hearing]\nlanguages.ann = \"klingon\"", Some(2), "`hearing.languages.ann` must be a two-letter code"),
        ("[limits]\nsessions = -5", Some(2), "a whole number from 0 on"),
        ("[listen]\nplain = \"yes\"", Some(2), "`listen.plain`: invalid type: string \"yes\", expected true or false"),
        ("limits.sessions = \"50\"", Some(1), "`limits.sessions`: invalid type"),
        ("[mcp.servers.a]\nargs = [\"x\", 7]", Some(2), "`mcp.servers.a"),
        ("[mcp.servers.a]\ncommand = \"x\"\nalow = [\"b\"]", None, "`mcp.servers.a.alow`: a server has no such key"),
        ("name = 7", Some(1), "`name`: invalid type"),
    ] {
        let found = problems(text);
        assert_eq!((found.len(), found[0].0), (1, line), "{text}: {found:?}");
        assert!(found[0].1.contains(words), "{text}: {found:?}");
    }
}

#[test]
fn keys_that_other_programs_give_a_server_are_accepted() {
    let text = "[mcp.servers.a]\ncommand = \"x\"\ntype = \"stdio\"\ntransport = \"stdio\"\ndescription = \"files\"\n";
    check(text, "x.toml").unwrap();
}

#[test]
fn a_file_that_cannot_be_read_has_no_line() {
    let problems = load(Some(Path::new("/no/such.toml"))).unwrap_err();
    let text = problems[0].to_string();
    assert!(text.starts_with("/no/such.toml: cannot be read: "), "{text}");
    assert!(check("nmae = 1", "x.toml").unwrap_err()[0].to_string().starts_with("x.toml:1: "));
}

#[test]
fn a_file_has_a_folder_and_a_text_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    std::fs::write(&file, "").unwrap();
    let config = load(Some(&file)).unwrap();
    assert_eq!((config.file.as_ref(), config.folder.as_deref()), (Some(&file), Some(folder.path())));
    assert_eq!(check("", &file.display().to_string()).unwrap().folder, None);
}

#[test]
fn a_relative_folder_of_skills_starts_at_the_folder_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    std::fs::write(&file, "[skills]\nfolders = [\"mine\", \"/srv/skills\"]\n").unwrap();
    let config = load(Some(&file)).unwrap();
    assert_eq!(config.skills.folders, [folder.path().join("mine"), PathBuf::from("/srv/skills")]);
}

#[test]
fn an_unknown_key_names_its_line() {
    let found = problems("name = \"x\"\n[listen]\nwebb = \"127.0.0.1:1\"\n");
    assert_eq!(found[0].0, Some(3));
    assert!(found[0].1.contains("webb"), "{found:?}");
}

#[test]
fn a_wrong_type_names_its_line() {
    let found = problems("[limits]\n\nsessions = \"many\"\n");
    assert_eq!(found[0].0, Some(3));
    assert!(found[0].1.contains("string"), "{found:?}");
}

#[test]
fn all_wrong_types_and_unknown_keys_are_told_at_once() {
    let text =
        "name = 7\nlimits.sessions = \"many\"\n[listen]\nwebb = \"127.0.0.1:1\"\nplain = 3\nweb = \"127.0.0.1:1\"\n";
    let found = problems(text);
    assert_eq!(
        found.iter().map(|(line, _)| *line).collect::<Vec<_>>(),
        [Some(1), Some(2), Some(4), Some(5)],
        "{found:?}"
    );
    assert!(found[2].1.contains("webb") && found[3].1.contains("`listen.plain`"), "{found:?}");
    // Of a section without a name that is known nothing more is told.
    let found = problems(
        "[heering]\nwake = 7\n[voice]\nspeed = \"fast\"\n[[fallbak]]\nkind = 7\n[fallbak.oauth]\nid = 7\n[listen]\nplain = 3\n",
    );
    let lines: Vec<_> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [Some(1), Some(4), Some(5), Some(10)], "{found:?}");
    let found = problems("lisen.web = 1\nlimits = { sesions = 3 }\nname = 7\n");
    let lines: Vec<_> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [Some(1), Some(2), Some(3)], "{found:?}");
    // A key has to have a user: that it is missing follows from the first mistake.
    let found = problems("[[mcp.keys]]\nuser = 7\nclass = \"copilot\"\n");
    assert_eq!((found.len(), found[0].0), (1, Some(2)), "{found:?}");
}

#[test]
fn all_values_out_of_range_are_told_at_once() {
    let found = problems("[hearing]\nfollow_up_ms = 400000\n[voice]\nspeed = 9.0\n[listen]\nweb = \"nowhere\"\n");
    assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [Some(2), Some(4), Some(6)]);
}
