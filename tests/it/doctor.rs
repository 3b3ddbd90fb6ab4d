//! Broken boxes: `lorgnette doctor` names each fault, where it is, and its remedy.

use std::{
    fs::{self, File, FileTimes},
    net::{TcpListener, UdpSocket},
    os::unix::fs::{PermissionsExt as _, chown},
    path::PathBuf,
    process::{Command, Output},
    time::{Duration, SystemTime},
};

use audio::{models, vad::silero};
use gateway::{
    identity::GatewayKey,
    store::{NoteRecord, Store, Write},
    transport::tls,
};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustix::{
    fs::{FlockOperation, flock},
    mount::{MountFlags, mount_remount},
};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    durability::disk::disk,
    namespaces::again_in,
    process::{Process, binary, configure, lorgnette},
};

/// A box with a data folder as a gateway leaves it behind.
struct Place {
    _folder: TempDir,
    data: PathBuf,
    /// The settings besides those of every test.
    settings: String,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let place = Self { _folder: folder, data, settings: String::new() };
        place.fill().await;
        place
    }

    async fn with(settings: &str) -> Self {
        Self { settings: settings.to_owned(), ..Self::new().await }
    }

    async fn fill(&self) {
        fs::create_dir_all(&self.data).unwrap();
        // Only the first call counts.
        drop(rustls::crypto::ring::default_provider().install_default());
        GatewayKey::load_or_make(&self.data).unwrap();
        tls::load_or_make(&self.data, vec!["localhost".to_owned()]).unwrap();
        let store = Store::open(&self.data.join("store"), 64).unwrap();
        let note = NoteRecord { text: "the okapi is here".to_owned(), created_wall_ms: 0 };
        store.write(Write::AddNote { user: "wearer".into(), note }).await.unwrap();
        store.close().await.unwrap();
        let set = |path: PathBuf, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for (path, mode) in [("", 0o700), ("store", 0o700), ("store/data.mdb", 0o600), ("store/lock.mdb", 0o600)] {
            set(self.data.join(path), mode);
        }
    }

    fn config(&self) -> String {
        configure(&self.data, &self.settings).display().to_string()
    }

    async fn examined(&self) -> Examined {
        Examined::new(lorgnette(&["doctor", "--json", "--fast", "--config", &self.config()]).await)
    }

    /// What is said of this box has these words, and those of its remedy.
    async fn is_told(&self, level: &str, check: &str, what: &str, remedy: &str) {
        self.examined().await.has(level, check, what, remedy);
    }
}

struct Examined {
    success: bool,
    report: Value,
}

impl Examined {
    fn new(output: Output) -> Self {
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!words.contains("panicked"), "{words}");
        let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{words}"));
        Self { success: output.status.success(), report }
    }

    fn of(&self, level: &str) -> Vec<&Value> {
        let all = self.report["findings"].as_array().expect("findings");
        all.iter().filter(|found| found["level"] == level).collect()
    }

    fn has(&self, level: &str, check: &str, what: &str, remedy: &str) {
        let is_it = |found: &&Value| {
            let has = |key: &str, words: &str| found[key].as_str().is_some_and(|text| text.contains(words));
            found["check"] == check && has("what", what) && has("remedy", remedy)
        };
        assert!(self.of(level).iter().any(is_it), "{level} {check} {what} {remedy}: {:#}", self.report);
        // A script sees faults by the status.
        assert_eq!(self.success, self.of("fault").is_empty(), "{:#}", self.report);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_box_without_faults_has_none_with_and_without_its_gateway() {
    let place = Place::new().await;
    let examined = place.examined().await;
    assert!(examined.success && examined.of("fault").is_empty(), "{:#}", examined.report);
    let gateway = Process::start(&place.data, "", &[]).await;
    // Its ports, as a configuration has them that does not leave them to the system.
    let text = fs::read_to_string(place.data.with_extension("toml")).unwrap();
    let fixed = text
        .replace("listen.web = \"127.0.0.1:0\"", &format!("listen.web = \"{}\"", gateway.web))
        .replace("listen.quic = \"127.0.0.1:0\"", &format!("listen.quic = \"{}\"", gateway.quic));
    let file = place.data.with_extension("fixed.toml");
    fs::write(&file, fixed).unwrap();
    let output = lorgnette(&["doctor", "--json", "--config", &file.display().to_string()]).await;
    let examined = Examined::new(output);
    assert!(examined.success && examined.of("fault").is_empty(), "{:#}", examined.report);
    let said = |what: &str| examined.of("ok").iter().any(|found| found["what"].as_str().unwrap().contains(what));
    assert!(said("is this gateway's") && said("runs, for") && said("whisper-tiny.en"), "{:#}", examined.report);
    examined.has("note", "watchdog", "no service manager watches this gateway", "WatchdogSec=60");
    let speed = &examined.report["speed"];
    let [low, devices, high] = ["devices_low", "devices", "devices_high"].map(|key| speed[key].as_u64().unwrap());
    assert!(speed["decode_ms"].as_f64().unwrap() > 0.0 && 1 <= low && low <= devices && devices <= high, "{speed}");
    gateway.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_that_is_none() {
    let place = Place::new().await;
    fs::remove_dir_all(&place.data).unwrap();
    fs::write(&place.data, "").unwrap();
    place.is_told("fault", "data folder", "is no folder", "set another `data_dir`").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_and_what_it_refers_to() {
    Place::with("[voice]\nspeedd = 1.0\n")
        .await
        .is_told("fault", "configuration", "speedd", "`lorgnette check --example` explains every key")
        .await;
    let provider = "[model]\nkind = \"chat_completions\"\nmodel = \"m\"\nbase_url = ";
    let no_key = format!("{provider}\"http://127.0.0.1:9/v1\"\nkey_file = \"/no/such/key\"\n");
    Place::with(&no_key).await.is_told("fault", "model key", "/no/such/key", "docs/models.md").await;
    let unset = format!("{provider}\"http://127.0.0.1:9/v1\"\nkey_env = \"LORGNETTE_UNSET\"\n");
    Place::with(&unset).await.is_told("fault", "model key", "LORGNETTE_UNSET is not set", "docs/models.md").await;
    Place::with("[hearing]\nlanguage = \"de\"\nsecond_model = \"\"\n")
        .await
        .is_told("fault", "languages", "does not know the language \"de\"", "the section [hearing]")
        .await;
    let no_name = format!("{provider}\"http://no-such-box.invalid/v1\"\n");
    Place::with(&no_name)
        .await
        .is_told("warning", "model", "no-such-box.invalid cannot be looked up", "the DNS server in /etc/resolv.conf")
        .await;
    let command = "[mcp.servers.none]\ncommand = \"no-such-program-at-all\"\n";
    Place::with(command).await.is_told("warning", "mcp", "no-such-program-at-all", "the section [mcp]").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn models() {
    let folder = tempfile::tempdir().unwrap();
    let settings = format!("models_dir = {:?}\n", folder.path().display().to_string());
    let place = Place::with(&settings).await;
    place.is_told("fault", "models", "silero-v6-16k is missing", "`lorgnette models fetch silero-v6-16k`").await;
    let mut bytes = fs::read(models::default_dir().join(silero::FILE_NAME)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(folder.path().join(silero::FILE_NAME), bytes).unwrap();
    place.is_told("fault", "models", "silero-v6-16k in", "`lorgnette models fetch silero-v6-16k`").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ports() {
    let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let place = Place::new().await;
    let [web, quic] = [tcp.local_addr().unwrap(), udp.local_addr().unwrap()];
    let file = place.data.with_extension("ports.toml");
    let data = place.data.display().to_string();
    fs::write(&file, format!("data_dir = {data:?}\nlisten.web = \"{web}\"\nlisten.quic = \"{quic}\"\n")).unwrap();
    let file = file.display().to_string();
    let examined = Examined::new(lorgnette(&["doctor", "--json", "--fast", "--config", &file]).await);
    let own = std::process::id();
    examined.has("fault", "ports", &format!("(process {own}) listens there"), "change `listen.web`");
    examined.has("fault", "ports", &format!("{quic} (UDP)"), "change `listen.quic`");
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_keys_and_certificate() {
    let place = Place::new().await;
    let key = place.data.join("gateway.key");
    let mode = |mode| fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    place.is_told("warning", "data folder", "others have rights to 1 of its files", "chmod -R go=").await;
    mode(0o600);
    let whole = fs::read(&key).unwrap();
    fs::write(&key, &whole[..31]).unwrap();
    place.is_told("fault", "keys", "must hold exactly 32 bytes", "from a backup").await;
    fs::remove_file(&key).unwrap();
    place.is_told("warning", "keys", "has a store and no gateway.key", "pair all glasses again").await;
    fs::write(&key, &whole).unwrap();
    mode(0o600);
    // Only root may give files away, as root of a container may.
    if chown(&key, Some(4321), None).is_ok() {
        place.is_told("fault", "data folder", "such as", "chown -R").await;
        chown(&key, Some(rustix::process::getuid().as_raw()), None).unwrap();
    }

    let own = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let ended = params.self_signed(&own).unwrap();
    let put = |name: &str, text: String| {
        fs::write(place.data.join(name), text).unwrap();
        fs::set_permissions(place.data.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    };
    put("tls-cert.pem", ended.pem());
    place.is_told("fault", "certificate", "does not fit its key", "remove both").await;
    put("tls-key.pem", own.serialize_pem());
    place.is_told("fault", "certificate", "has ended on 2021-01-01", "remove both").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_and_who_uses_it() {
    let place = Place::new().await;
    let (file, lock) = (place.data.join("store/data.mdb"), place.data.join("lock"));
    let whole = fs::read(&file).unwrap();
    let at = whole.windows(5).position(|bytes| bytes == b"okapi").expect("the note");
    let mut damaged = whole.clone();
    damaged[at] ^= 1;
    fs::write(&file, damaged).unwrap();
    place.is_told("fault", "store", "1 records are damaged", "lorgnette check --store").await;
    fs::write(&file, vec![7; whole.len()]).unwrap();
    place.is_told("fault", "store", "damaged", "restore a backup").await;
    fs::write(&file, whole).unwrap();
    let written = SystemTime::now() + Duration::from_secs(400 * 24 * 3600);
    File::options().write(true).open(&file).unwrap().set_times(FileTimes::new().set_modified(written)).unwrap();
    place.is_told("warning", "clock", "the clock was set back", "set the clock").await;
    fs::create_dir(place.data.join("restoring")).unwrap();
    place.is_told("fault", "restore", "which was interrupted", "`lorgnette restore FILE` once more").await;
    let held = File::options().write(true).open(&lock).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    place.is_told("fault", "gateway", "a process has the lock of", "restart the gateway").await;
    fs::write(&lock, format!("backup {}\n", std::process::id())).unwrap();
    place.is_told("warning", "gateway", "`lorgnette backup` (process ", "wait until it has ended").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn descriptors() {
    let place = Place::new().await;
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 300 && exec \"$0\" \"$@\""])
        .arg(binary())
        .args(["doctor", "--json", "--fast", "--config", &place.config()])
        .output();
    let examined = Examined::new(output.unwrap());
    examined.has("warning", "descriptors", "300 files may be open at once, and 1024 may be needed", "LimitNOFILE=");
}

#[tokio::test(flavor = "multi_thread")]
async fn disks() {
    if again_in(&["--mount"], "doctor::disks") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str, options: &str| {
        let data = disk(&folder.path().join(name), options);
        Place { _folder: tempfile::tempdir().unwrap(), data, settings: String::new() }
    };
    let place = of("full", "size=8m,mode=700");
    place.fill().await;
    place.is_told("fault", "disk", "are free for", "free some space").await;
    let place = of("files", "size=64m,nr_inodes=40,mode=700");
    place.fill().await;
    place.is_told("fault", "disk", "more files can be made", "df -i").await;
    let place = of("read-only", "size=64m,mode=700");
    place.fill().await;
    mount_remount(&place.data, MountFlags::RDONLY, "").expect("remounted");
    place.is_told("fault", "disk", "is read-only", "dmesg").await;
}
