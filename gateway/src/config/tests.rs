//! What configurations are taken, and what each wrong one is told.

use super::*;

fn problems(text: &str) -> Vec<(usize, String)> {
    check(text, "x.toml").unwrap_err().into_iter().map(|problem| (problem.line, problem.what)).collect()
}

#[test]
fn the_example_is_valid_and_says_the_defaults() {
    let example = check(EXAMPLE, "example").unwrap();
    let defaults = check("", "none").unwrap();
    assert_eq!(format!("{example:?}"), format!("{defaults:?}"));
}

#[test]
fn glasses_may_send_what_the_protocol_lets_them_send() {
    use device_protocol::limits::{AUDIO_PACKETS_PER_S_MAX, BYTES_PER_S_MAX, CONTROL_FRAMES_PER_S_MAX};
    let limits = check("", "none").unwrap().limits;
    assert!(limits.bytes_per_s_max >= BYTES_PER_S_MAX, "a photo at full speed");
    assert!(limits.frames_per_s_max >= CONTROL_FRAMES_PER_S_MAX + AUDIO_PACKETS_PER_S_MAX);
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
    // What another kind of model has is left out, and tried with that kind.
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
        (long.as_str(), 1, "1 to 64 bytes"),
        ("language = \"klingon!!\"", 1, "such as en or en-GB"),
        ("\ndata_dir = \"~/lorgnette\"", 2, "write it out"),
        ("models_dir = \"~/m\"", 1, "write it out"),
        ("[mcp]\nhosts = [\"http://box.lan\"]", 0, "such as box.lan"),
        ("[model]\nbase_url = \"http://a/v1\"\nmodel = \"x\"", 2, "asks no server"),
        ("[model]\nkind = \"anthropic\"\nmodel = \"x\"\nkey_env = \"X\"\nazure = true", 5, "`azure` belongs to"),
        ("[fallback]\nkind = \"offline\"", 1, "[[fallback]]"),
        ("[hearing]\nwake_phrases = [\"!!!\"]", 2, "each with Latin letters"),
        ("[limits]\nsessions = -5", 2, "a whole number from 0 on"),
        ("[listen]\nplain = \"yes\"", 2, "`listen.plain`: invalid type: string \"yes\", expected true or false"),
        ("limits.sessions = \"50\"", 1, "`limits.sessions`: invalid type"),
        ("[mcp.servers.a]\nargs = [\"x\", 7]", 2, "`mcp.servers.a"),
        ("name = 7", 1, "`name`: invalid type"),
    ] {
        let found = problems(text);
        assert_eq!((found.len(), found[0].0), (1, line), "{text}: {found:?}");
        assert!(found[0].1.contains(words), "{text}: {found:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_has_no_line() {
    let problems = load(Some(Path::new("/no/such.toml"))).unwrap_err();
    let text = problems[0].to_string();
    assert!(text.starts_with("/no/such.toml: cannot be read: "), "{text}");
    assert!(check("nmae = 1", "x.toml").unwrap_err()[0].to_string().starts_with("x.toml:1: "));
}

#[test]
fn an_unknown_key_names_its_line() {
    let found = problems("name = \"x\"\n[listen]\nwebb = \"127.0.0.1:1\"\n");
    assert_eq!(found[0].0, 3);
    assert!(found[0].1.contains("webb"), "{found:?}");
}

#[test]
fn a_wrong_type_names_its_line() {
    let found = problems("[limits]\n\nsessions = \"many\"\n");
    assert_eq!(found[0].0, 3);
    assert!(found[0].1.contains("string"), "{found:?}");
}

#[test]
fn all_values_out_of_range_are_told_at_once() {
    let found = problems("[hearing]\nfollow_up_ms = 400000\n[voice]\nspeed = 9.0\n[listen]\nweb = \"nowhere\"\n");
    assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [6, 2, 4]);
}

#[test]
fn silences_that_contradict_each_other_are_refused() {
    for (text, line, words) in [
        (
            "silence_ms = 700\nsilence_complete_ms = 800",
            3,
            "`hearing.silence_complete_ms` is 800; it must be at most `hearing.silence_ms`, which is 700",
        ),
        (
            "silence_incomplete_ms = 900\nsilence_ms = 950",
            3,
            "`hearing.silence_ms` is 950; it must be at most `hearing.silence_incomplete_ms`, which is 900",
        ),
        // Against what holds where nothing is written.
        ("silence_complete_ms = 601", 2, "at most `hearing.silence_ms`, which is 600 where nothing is written"),
        ("\nsilence_ms = 400", 3, "at least `hearing.silence_complete_ms`, which is 450 where nothing is written"),
        ("silence_ms = 1500", 2, "at most `hearing.silence_incomplete_ms`, which is 1000"),
        ("silence_incomplete_ms = 500", 2, "at least `hearing.silence_ms`, which is 600"),
    ] {
        let found = problems(&format!("[hearing]\n{text}\n"));
        assert_eq!((found.len(), found[0].0), (1, line), "{text}: {found:?}");
        assert!(found[0].1.contains(words), "{text}: {found:?}");
    }
    for text in [
        "silence_ms = 450",
        "silence_ms = 1000",
        "silence_complete_ms = 600",
        "silence_ms = 1900\nsilence_complete_ms = 1900\nsilence_incomplete_ms = 1900",
    ] {
        check(&format!("[hearing]\n{text}\n"), "x.toml").unwrap_or_else(|found| panic!("{text}: {found:?}"));
    }
}

#[test]
fn the_address_for_apps_has_a_form() {
    for bad in ["http://a/app-ws", "ws://a/", "ws://a/tpa-ws", "nonsense"] {
        assert_eq!(problems(&format!("[apps]\nurl = \"{bad}\"\n"))[0].0, 2, "{bad}");
    }
    let good = check("[apps]\nurl = \"wss://box.lan:8460/app-ws\"\n", "x.toml").unwrap();
    assert_eq!(good.apps_url.as_deref(), Some("wss://box.lan:8460/app-ws"));
}

#[test]
fn the_location_for_apps_is_on_earth() {
    let of = |values: &str| format!("[apps]\nlocation = {{ {values} }}\n");
    let good = check(&of("latitude = 52.5, longitude = 13.4"), "x.toml").unwrap().apps_location.unwrap();
    assert_eq!((good.latitude, good.longitude, good.accuracy_m), (52.5, 13.4, None));
    for bad in ["latitude = 91, longitude = 0", "latitude = 0, longitude = nan", "latitude = 0"]
        .into_iter()
        .chain(["latitude = 0, longitude = 0, accuracy_m = -1", "latitude = 0, longitude = 0, height = 3"])
    {
        assert_eq!(problems(&of(bad))[0].0, 2, "{bad}");
    }
    assert_eq!(check("", "x.toml").unwrap().apps_location, None);
}

#[test]
fn the_display_has_its_figures_within_bounds() {
    let text = "[display]\ninterval_ms = 1000\nboot_ms = 0\ncaptions = true\ncaption_ms = 5000\ntimers = false\n";
    let conversation = check(text, "x.toml").unwrap().conversation;
    let display = conversation.display;
    assert_eq!((conversation.display_interval_ms, display.boot_ms, display.caption_ms), (1_000, 0, 5_000));
    assert!(display.captions && !display.timers);
    for (line, words) in [
        ("interval_ms = 10", "between 50 and 10000"),
        ("caption_ms = 1", "between 500 and 60000"),
        ("lock_idle_ms = 20000", "at most `display.lock_ms_max`"),
        ("lock_ms_max = 1", "at least `display.lock_idle_ms`"),
        ("captons = true", "captons"),
    ] {
        let found = problems(&format!("[display]\n{line}\n"));
        assert_eq!((found.len(), found[0].0), (1, 2), "{found:?}");
        assert!(found[0].1.contains(words), "{found:?}");
    }
}
