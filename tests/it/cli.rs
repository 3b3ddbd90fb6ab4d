//! The command line of a real gateway: clear errors, and a clean start and end.

use std::{fs, path::Path, process::Stdio};

use audio::models;
use firmware_sim::{Glasses, Seen};
use gateway::models::spending;
use gateway_core::input::Spending;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::Command,
};

use crate::{
    process::{Process, binary, configure, fails, succeeds},
    world::{self, WAIT, World, until},
};

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The message of `serve` when it refuses to start with these settings.
async fn refuses(data: &Path, settings: &str) -> String {
    let file = configure(data, settings);
    fails(&["serve", "--config", &shown(&file)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_the_line_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    for (text, place, words) in [
        ("[limits]\n\nsessions = \"many\"\n", ":3:", "`limits.sessions`: invalid type"),
        ("name = \"x\"\n[listen]\nwebb = \"127.0.0.1:1\"\n", ":3:", "check --example"),
        ("[hearing]\nsilence_ms = 1\n", ":2:", "between 250 and 2500"),
        ("[hearing]\n\nsilence_complete_ms = 900\n", ":3:", "it must be at most `hearing.silence_ms`, which is 600"),
        ("[listen]\nweb = \"nowhere\"\n", ":2:", "127.0.0.1:8460"),
        ("name = \n", ":1:", ""),
    ] {
        fs::write(&file, text).unwrap();
        for command in ["check", "serve"] {
            let error = fails(&[command, "--config", &shown(&file)]).await;
            assert!(error.contains(&format!("{}{place}", shown(&file))), "{text}: {error}");
            assert!(error.contains(words), "{text}: {error}");
        }
    }
    let german = configure(&folder.path().join("german"), "[hearing]\nlanguage = \"de\"\nsecond_model = \"\"\n");
    for command in ["check", "serve"] {
        let error = fails(&[command, "--config", &shown(&german)]).await;
        assert!(error.contains("does not know the language \"de\"") && error.contains("multilingual"), "{error}");
    }
    let error = fails(&["check", &shown(&folder.path().join("absent.toml"))]).await;
    assert!(error.contains("absent.toml") && error.contains("cannot be read"), "{error}");
    fs::write(&file, succeeds(&["check", "--example"]).await).unwrap();
    assert!(succeeds(&["check", &shown(&file)]).await.contains("is valid"));
    let (here, absent) = (folder.path().display(), folder.path().join("absent"));
    fs::write(&file, format!("[skills]\nfolders = [\"{here}\", {absent:?}]\n")).unwrap();
    let told = succeeds(&["check", &shown(&file)]).await;
    assert!(told.contains(&format!("{here}\n")) && told.contains("absent (not there)"), "{told}");
    assert!(!told.contains("captions"), "{told}");
    fs::write(&file, "[display]\ncaptions = true\n").unwrap();
    let told = succeeds(&["check", &shown(&file)]).await;
    assert!(told.contains("captions are on (`display.captions`), so all speech"), "{told}");
}

/// A model at a server whose key is in a variable that nobody sets.
const KEYLESS: &str = "base_url = \"http://127.0.0.1:9/v1\", model = \"m\", key_env = \"LORGNETTE_UNSET\"";

#[tokio::test(flavor = "multi_thread")]
async fn check_finds_what_would_show_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let (taken, empty) = (folder.path().join("file"), folder.path().join("models"));
    fs::write(&taken, "").unwrap();
    fs::create_dir(&empty).unwrap();
    let below = taken.join("data");
    for (text, words) in [
        (format!("data_dir = {taken:?}"), "is no folder"),
        (format!("data_dir = {below:?}"), "is no folder; set another `data_dir`"),
        (format!("models_dir = {empty:?}"), "missing: whisper-tiny.en, silero"),
        ("[hearing]\nmodel = \"/no/such.bin\"".to_owned(), "there is no model /no/such.bin"),
        ("listen.web = \"192.0.2.1:8460\"".to_owned(), "this machine has no such address"),
        ("listen.quic = \"192.0.2.1:8460\"".to_owned(), "(UDP): this machine has no such address"),
        (format!("hearing.remote = {{ {KEYLESS}, use = \"instead\" }}"), "LORGNETTE_UNSET is not set"),
        (format!("voice.other = {{ {KEYLESS} }}"), "LORGNETTE_UNSET is not set"),
        (
            format!("[model]\nkind = \"chat_completions\"\n{}", KEYLESS.replace(", ", "\n")),
            "LORGNETTE_UNSET is not set",
        ),
        (
            "[code]\nenabled = true\nsecrets.a = { value = \"${LORGNETTE_UNSET}\", crypto = true }".to_owned(),
            "code.secrets.a: the environment has no variable LORGNETTE_UNSET",
        ),
        ("mcp.servers.a = { command = \"no-such-program\" }".to_owned(), "no program `no-such-program` in PATH"),
        ("mcp.servers.a = { command = \"/no/such\" }".to_owned(), "`a.command`: /no/such is not there"),
    ] {
        let base =
            if text.starts_with("data_dir") { String::new() } else { format!("data_dir = {:?}\n", folder.path()) };
        fs::write(&file, base + &text + "\n").unwrap();
        let told = fails(&["check", &shown(&file)]).await;
        assert!(told.contains(words), "{text}: {told}");
    }
    // All problems at once, and none if there are none; a running gateway is no problem.
    fs::write(&file, format!("data_dir = {taken:?}\nmcp.servers.a = {{ command = \"/no/such\" }}\n")).unwrap();
    let told = fails(&["check", &shown(&file)]).await;
    assert!(told.contains("is no folder") && told.contains("/no/such is not there"), "{told}");
    let gateway = Process::start(&folder.path().join("data"), "", &[]).await;
    let same = format!("data_dir = {:?}\nlisten.web = \"{}\"\n", folder.path().join("data"), gateway.web);
    fs::write(&file, same).unwrap();
    assert!(succeeds(&["check", &shown(&file)]).await.contains("is valid"));
    gateway.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_say_whose_they_are() {
    assert!(succeeds(&["--version"]).await.starts_with("lorgnette "), "its name");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_tells_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "[mcp]\nservers.gone = { command = \"/no/such\" }\n", &[]).await;
    let glasses = world::connect(&data, gateway.options()).await;
    let config = shown(&data.with_extension("toml"));
    let status: serde_json::Value = loop {
        let told = succeeds(&["status", "--json", "--config", &config]).await;
        let status: serde_json::Value = serde_json::from_str(&told).unwrap();
        if status["mcp"][0]["state"] == "down" {
            break status;
        }
    };
    assert_eq!((&status["problems"], &status["users"]), (&serde_json::json!([]), &1.into()), "{status}");
    assert_eq!(status["web"], gateway.web.to_string());
    assert_eq!((&status["sessions"][0][0], &status["sessions"][0][2]["transport"]), (&"wearer".into(), &"wss".into()));
    assert!(status["disk"][0].as_u64() > Some(0) && status["store"][0].as_u64() > Some(0), "{status}");
    assert!(status["recogniser"]["workers"].as_u64() > Some(0), "{status}");
    let told = succeeds(&["status", "--config", &config]).await;
    for words in ["up for ", "sessions    1 of 128", "wss from 127.0.0.1", "gone  down for ", "answers     "] {
        assert!(told.contains(words), "{words}: {told}");
    }
    // Without a terminal it is one screen.
    let screen = succeeds(&["top", "--config", &config]).await;
    for words in ["sessions: 1 of 128", " wss ", "turns: 0, ", "decodes 0 of ", "memory  "] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    let list = succeeds(&["devices", "list", "--config", &config]).await;
    assert!(list.contains("connected") && list.contains("wss from 127.0.0.1"), "{list}");
    glasses.goodbye().await;
    let away = async {
        while !succeeds(&["devices", "list", "--config", &config]).await.contains("away       ") {}
        succeeds(&["devices", "list", "--config", &config]).await
    };
    let list = tokio::time::timeout(WAIT, away).await.expect("it leaves");
    assert!(list.contains("last seen 20"), "{list}");
    // The operation is in the log, with the device.
    let device = list.split_whitespace().next().unwrap().to_owned();
    succeeds(&["devices", "revoke", &device, "--config", &config]).await;
    let mut again = Glasses::start(gateway.options()).unwrap();
    assert!(again.welcomed().await.is_err());
    let (_, log) = gateway.terminate().await;
    let lines: Vec<serde_json::Value> = log.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let with = |message: &str, key: &str, value: &str| {
        lines.iter().any(|line| {
            let fields = &line["fields"];
            fields["message"] == message && fields[key].as_str().is_some_and(|told| told.starts_with(value))
        })
    };
    assert!(with("session opened", "peer", "127.0.0.1:"), "{log:#?}");
    assert!(with("control", "about", &device) && with("revoked", "device", &device), "{log:#?}");
    assert!(with("turned away", "device", &device), "{log:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_text_could_not_be_written_fails() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(binary());
    command.args(["check", "--example"]).stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).kill_on_drop(true);
    let output = command.spawn().unwrap().wait_with_output();
    let output = tokio::time::timeout(WAIT, output).await.expect("it ends").unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert_eq!(words.matches("printing failed").count(), 1, "{words}");
}

/// The lock of a folder is its process's, not that of a socket that anybody can remove.
#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_on_one_folder_are_impossible() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    fs::remove_file(data.join("control.sock")).unwrap();
    let error = refuses(&data, "").await;
    assert!(error.contains("another gateway already runs on") && error.contains("data_dir"), "{error}");
    let config = shown(&data.with_extension("toml"));
    let error = fails(&["check", "--store", "--config", &config]).await;
    assert!(error.contains("stop the gateway"), "{error}");
    // One that was killed has left none.
    gateway.kill().await;
    let again = Process::start(&data, "", &[]).await;
    assert!(again.terminate().await.0.success());
    assert!(succeeds(&["check", "--store", "--config", &config]).await.contains("no record of the store is damaged"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_gateway_for_one_port_and_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    println!("ready in {} ms", gateway.ready_ms);
    let error = refuses(&data, "").await;
    assert!(error.contains("another gateway already runs on") && error.contains("data_dir"), "{error}");
    // The same port with another folder.
    let other = folder.path().join("other.toml");
    let taken =
        format!("data_dir = {:?}\n[listen]\nweb = \"{}\"\nquic = \"\"\n", shown(&folder.path().join("o")), gateway.web);
    fs::write(&other, taken).unwrap();
    let error = fails(&["serve", "--config", &shown(&other)]).await;
    assert!(error.contains("cannot listen on") && error.contains("another program listens there"), "{error}");
    let text = fs::read_to_string(&other).unwrap().replace(&gateway.web.to_string(), "192.0.2.1:8460");
    fs::write(&other, text).unwrap();
    let error = fails(&["serve", "--config", &shown(&other)]).await;
    assert!(error.contains("this machine has no such address") && !error.contains("another"), "{error}");
    // The first gateway is not affected.
    let glasses = world::connect(&data, gateway.options()).await;
    let config = shown(&data.with_extension("toml"));
    let list = succeeds(&["devices", "list", "--config", &config]).await;
    assert!(list.contains(glasses.fingerprint()) && list.contains("connected"), "{list}");
    glasses.goodbye().await;
    let (status, _) = gateway.terminate().await;
    assert!(status.success(), "{status}");
    let error = fails(&["devices", "list", "--config", &config]).await;
    assert!(error.contains("no gateway runs on") && error.contains("lorgnette serve"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_tells_the_devices() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for round in 0..2 {
        let gateway = Process::start(&data, "", &[]).await;
        let mut glasses = world::connect(&data, gateway.options()).await;
        let mut waits =
            Glasses::start(firmware_sim::Options { state: folder.path().join("new"), ..gateway.options() }).unwrap();
        until(&mut waits, "it waits for pairing", |event| matches!(event.seen, Seen::PairingCode { .. })).await;
        let (status, _) = gateway.terminate().await;
        assert!(status.success(), "{round}: {status}");
        let seen = until(&mut glasses, "goodbye", |event| matches!(event.seen, Seen::Goodbye { .. })).await;
        assert!(matches!(&seen, Seen::Goodbye { reason, .. } if reason == "shutting_down"), "{seen:?}");
        assert!(waits.welcomed().await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn models_that_are_not_there_or_lie() {
    let folder = tempfile::tempdir().unwrap();
    let (data, empty) = (folder.path().join("data"), folder.path().join("models"));
    fs::create_dir(&empty).unwrap();
    let error = refuses(&data, &format!("models_dir = {:?}\n", shown(&empty))).await;
    assert!(error.contains("lorgnette models fetch") && error.contains(&shown(&empty)), "{error}");

    let real = fs::read(models::default_dir().join("whisper-tiny.en.bin")).unwrap();
    // 44 bytes of header, then filters, words and tensors.
    let lie = |at: usize, value: i32| {
        let mut bytes = real.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let cases = [
        ("another magic number", lie(0, 7)),
        ("two thousand million words", lie(4, i32::MAX)),
        ("a negative width", lie(12, -384)),
        ("another number of layers", lie(20, 5)),
        ("a filter too many", lie(48, 81)),
        ("half of it", real[..real.len() / 2].to_vec()),
        ("one byte less", real[..real.len() - 1].to_vec()),
        ("nothing", Vec::new()),
        ("text", b"version https://git-lfs.example/spec/v1\n".to_vec()),
    ];
    let file = folder.path().join("lie.bin");
    for (what, bytes) in cases {
        fs::write(&file, bytes).unwrap();
        let error = refuses(&data, &format!("[hearing]\nmodel = {:?}\n", shown(&file))).await;
        assert!(error.contains(&shown(&file)) && error.contains("section [hearing]"), "{what}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_gone_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let told = |lines: &[String]| lines.iter().any(|line| line.contains("have to be paired again"));
    for _ in 0..2 {
        let (_, lines) = Process::start(&data, "", &[]).await.terminate().await;
        assert!(!told(&lines), "{lines:?}");
    }
    fs::write(data.join("store/data.mdb"), "").unwrap();
    let (_, lines) = Process::start(&data, "", &[]).await.terminate().await;
    assert!(told(&lines), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_with_a_wrong_checksum_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("models");
    fs::create_dir(&damaged).unwrap();
    let name = audio::vad::silero::FILE_NAME;
    let mut bytes = fs::read(models::default_dir().join(name)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(damaged.join(name), bytes).unwrap();
    let file = configure(&folder.path().join("data"), &format!("models_dir = {:?}\n", shown(&damaged)));
    let output = crate::process::lorgnette(&["models", "verify", "--config", &shown(&file)]).await;
    assert!(!output.status.success());
    let words = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let line = words.lines().find(|line| line.contains(name) || line.contains("silero"));
    assert!(line.is_some_and(|line| line.contains("checksum") || line.contains("sha256")), "{words}");
    assert!(
        line.is_some_and(|line| line.contains("damaged") && line.contains("models fetch silero-v6-16k")),
        "{words}"
    );
    // Altered, and truncated: both are listed as damaged, with the same remedy.
    let path = damaged.join(name);
    let half = fs::read(&path).unwrap().len() / 2;
    for bytes in [None, Some(half)] {
        if let Some(bytes) = bytes {
            fs::write(&path, vec![0; bytes]).unwrap();
            let told = fails(&["check", &shown(&file)]).await;
            assert!(told.contains("damaged: silero-v6-16k; run `lorgnette models fetch`"), "{told}");
        }
        let list = succeeds(&["models", "list", "--config", &shown(&file)]).await;
        let at = list.find("silero-v6-16k").unwrap();
        let lines: Vec<&str> = list[at..].lines().take(2).collect();
        assert!(
            lines[0].contains(" damaged ") && lines[1].contains("`lorgnette models fetch silero-v6-16k`"),
            "{list}"
        );
        assert!(list.contains("hibari                 missing"), "{list}");
    }
    // The models of this machine are intact.
    succeeds(&["models", "verify"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_carried_in_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let box_without_internet = folder.path().join("models");
    let file = configure(&folder.path().join("data"), &format!("models_dir = {:?}\n", shown(&box_without_internet)));
    let (here, file) = (shown(folder.path()), shown(&file));
    let small = audio::models::catalogue::SILERO;
    let told = succeeds(&["models", "export", &here, small]).await;
    let bundle = shown(&folder.path().join("lorgnette-models.zip"));
    assert!(told.contains(&bundle) && told.contains("1 model;"), "{told}");
    let told = succeeds(&["models", "import", &bundle, "--config", &file]).await;
    assert!(told.contains("installed in") && told.contains(small), "{told}");
    let list = succeeds(&["models", "list", "--config", &file]).await;
    assert!(list.contains(&format!("{small:<22} verified")), "{list}");
    // By default it has what the configuration needs, and says what is missing.
    let told = fails(&["models", "export", &bundle, "--config", &file]).await;
    assert!(told.contains("`lorgnette models fetch whisper-tiny.en hibari`"), "{told}");
    assert!(fails(&["models", "export", &bundle, "no-such-model"]).await.contains("known are: "));
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_explained() {
    let frame = "01000120 11000000 0307fc87d61200 01fb803efb204e 02aabb";
    let explained = succeeds(&["wire", "decode", frame]).await;
    assert!(explained.contains("audio") && explained.contains("1234567") && explained.contains("opus"), "{explained}");
    let cut = fails(&["wire", "decode", &frame[..frame.len() - 2]]).await;
    assert!(!cut.contains("1234567") && cut.contains("bytes"), "{cut}");
    let error = fails(&["wire", "decode", "xyz"]).await;
    assert!(error.contains("hexadecimal"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn spending_tells_what_the_models_took_today() {
    let world = World::start().await;
    let config = shown(&configure(&world.data(), ""));
    assert_eq!(succeeds(&["spending", "--config", &config]).await.trim(), "the models took nothing");

    let today = jiff::Zoned::now().date();
    let day_of = |date: jiff::civil::Date| i64::from((date - jiff::civil::date(1970, 1, 1)).get_days());
    for (user, day, nano) in [("ann", day_of(today), 1_250_000_000), ("ann", day_of(today) - 1, 7), ("ben", 3, 9)] {
        let spending = Spending { day, nano, input: 1_200, output: 34 };
        world.gateway().services().store.write(spending::write(user.into(), spending)).await.expect("written");
    }
    let words = succeeds(&["spending", "--config", &config]).await;
    let date = today.to_string();
    for wanted in ["ann", date.as_str(), "1200", "34", "1.250000"] {
        assert!(words.contains(wanted), "{wanted}: {words}");
    }
    assert_eq!(words.lines().count(), 2, "{words}");
    let json = succeeds(&["spending", "--json", "--user", "ann", "--days", "2", "--config", &config]).await;
    let lines: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2, "{json}");
    assert_eq!((&lines[0]["money"], &lines[0]["input_tokens"]), (&1.25.into(), &1_200.into()));
    assert_eq!((&lines[1]["money"], &lines[0]["budget"]), (&7e-9.into(), &serde_json::Value::Null));
    assert_eq!(succeeds(&["spending", "--user", "ben", "--config", &config]).await.trim(), "the models took nothing");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_may_open_as_many_files_as_its_connections_need_or_says_that_it_may_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = configure(&folder.path().join("data"), "[limits]\nconnections = 300\n");
    // A soft limit that may be raised; a hard one that may not.
    for (limit, wanted, told) in [("-Sn 256", "812", false), ("-n 700", "700", true)] {
        let mut child = Command::new("sh")
            .args(["-c", &format!("ulimit {limit} && exec \"$@\""), "sh"])
            .arg(binary())
            .args(["serve", "--config", &shown(&file)])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = tokio::time::timeout(WAIT, lines.next_line()).await.unwrap().unwrap();
        assert!(ready.is_some_and(|line| line.starts_with("ready")));
        let limits = fs::read_to_string(format!("/proc/{}/limits", child.id().unwrap())).unwrap();
        let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
        assert_eq!(files.split_whitespace().next(), Some(wanted), "{limit}: {limits}");
        child.kill().await.unwrap();
        let mut log = String::new();
        child.stderr.take().unwrap().read_to_string(&mut log).await.unwrap();
        assert_eq!(log.contains("limits.connections"), told, "{limit}: {log}");
    }
}
