//! The functions of the standard library, as a host calls them: files in memory, everything else real.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::{
    code::std::{
        policy::StdConfig,
        values::{from_base64, to_base64},
    },
    ledger::{OfProgram, Record},
    test_support::World,
    workspace::{FileAnswer, FileEntry, FileError, FileRequest},
};

/// Files in memory.
#[derive(Default)]
struct Files(Mutex<BTreeMap<String, Vec<u8>>>);

#[async_trait]
impl Workspace for Files {
    async fn run(&self, user: &str, request: FileRequest) -> Result<FileAnswer, FileError> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = |path: &crate::workspace::FilePath| format!("{user}/{}", path.as_str());
        let entry = |name: &str, content: &Vec<u8>| FileEntry {
            name: name.rsplit('/').next().unwrap_or_default().to_owned(),
            is_folder: false,
            bytes: content.len() as u64,
            modified_wall_ms: 5,
        };
        match request {
            FileRequest::Write(path, _) if path.as_str() == "slow" => {
                drop(files);
                std::future::pending().await
            }
            FileRequest::Read(path) => files
                .get(&key(&path))
                .cloned()
                .map(FileAnswer::Content)
                .ok_or(FileError::NotFound(path.as_str().into())),
            FileRequest::Write(path, _) if path.as_str() == "full" => Err(FileError::Full("16 MiB".into())),
            FileRequest::Write(path, content) => {
                files.insert(key(&path), content);
                Ok(FileAnswer::Done)
            }
            FileRequest::Append(path, content) => {
                files.entry(key(&path)).or_default().extend(content);
                Ok(FileAnswer::Done)
            }
            FileRequest::List(_) => Ok(FileAnswer::Entries(files.iter().map(|(name, it)| entry(name, it)).collect())),
            FileRequest::Stat(path) => {
                let found = files.get(&key(&path)).map(|it| FileAnswer::Entry(entry(path.as_str(), it)));
                found.ok_or(FileError::NotFound(path.as_str().into()))
            }
            FileRequest::Remove(path) => {
                files.remove(&key(&path)).map(|_| FileAnswer::Done).ok_or(FileError::NotFound(path.as_str().into()))
            }
            FileRequest::MakeFolder(_) => Ok(FileAnswer::Done),
        }
    }
}

#[derive(Default)]
struct Kept(Mutex<Vec<Record>>);

impl Ledger for Kept {
    fn record(&self, record: Record) {
        self.0.lock().unwrap().push(record);
    }
}

struct Fixture {
    host: StdHost,
    ledger: Arc<Kept>,
    secrets: Secrets,
}

impl Fixture {
    fn new() -> Self {
        let text = "secrets.SIGN = {value = 'key of ann', crypto = true}";
        let policy = StdPolicy::check(toml::from_str::<StdConfig>(text).unwrap(), |_| None).unwrap();
        let (ledger, secrets) = (Arc::new(Kept::default()), Secrets::default());
        let kept = Arc::clone(&ledger) as Arc<dyn Ledger>;
        let files = Arc::new(Files::default());
        let host = StdHost::new(policy, files, World::usual(), Some(kept), secrets.clone()).unwrap();
        Self { host, ledger, secrets }
    }

    async fn call(&self, function: &str, arguments: Value) -> Result<Value, HostError> {
        self.host.call(&caller(), function, arguments).await
    }

    async fn code(&self, function: &str, arguments: Value) -> String {
        self.call(function, arguments).await.unwrap_err().code
    }
}

fn caller() -> StdCaller {
    let program = Some(OfProgram { id: "call-1".into(), call: None });
    StdCaller { user: "ann".into(), device: Some("glasses".into()), turn: Some(7), program, ..StdCaller::default() }
}

#[tokio::test]
async fn files_are_texts_or_bytes() {
    let fixture = Fixture::new();
    fixture.call("fs.writeFile", json!({"path": "a/b.txt", "text": "größe"})).await.unwrap();
    fixture.call("fs.appendFile", json!({"path": "a/b.txt", "bytes": to_base64(&[0xe2, 0x82, 0xac])})).await.unwrap();
    let read = |part: Value| {
        let mut arguments = json!({"path": "a/b.txt"});
        arguments.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        arguments
    };
    for (part, text) in [
        (json!({}), "größe€"),
        (json!({"offset": 7}), "€"),
        (json!({"length": 3}), "gr"),
        (json!({"offset": 4, "length": 2}), "ß"),
        (json!({"offset": 99}), ""),
        (json!({"length": 0}), ""),
    ] {
        assert_eq!(fixture.call("fs.readFile", read(part.clone())).await, Ok(text.into()), "{part}");
    }
    assert_eq!(fixture.code("fs.readFile", read(json!({"offset": 3}))).await, "not_text");
    let bytes = fixture.call("fs.readBytes", read(json!({"offset": 3, "length": 2}))).await.unwrap();
    assert_eq!(bytes, to_base64("größe".get(3..).map_or(&[0xb6, 0xc3][..], str::as_bytes)).as_str());
    let stat = fixture.call("fs.stat", json!({"path": "a/b.txt"})).await.unwrap();
    assert_eq!(stat, json!({"name": "b.txt", "isFolder": false, "bytes": 10, "modified": 5}));
    assert_eq!(fixture.call("fs.list", json!({"path": ""})).await.unwrap(), json!([stat]));
    assert_eq!(fixture.call("fs.mkdir", json!({"path": "c"})).await, Ok(Value::Null));
    // A file that is longer than a call returns is read in parts.
    let part = "x".repeat(READ_MAX / 16);
    for _ in 0..17 {
        fixture.call("fs.appendFile", json!({"path": "long", "text": part})).await.unwrap();
    }
    let error = fixture.call("fs.readFile", json!({"path": "long"})).await.unwrap_err();
    assert!(error.code == "too_large" && error.message.contains("with offset and length"), "{error:?}");
    let rest = fixture.call("fs.readFile", json!({"path": "long", "offset": READ_MAX})).await.unwrap();
    assert_eq!(rest.as_str().unwrap(), part);
    fixture.call("fs.remove", json!({"path": "long"})).await.unwrap();
    for (function, arguments, code) in [
        ("fs.readFile", json!({"path": "long"}), "not_found"),
        ("fs.remove", json!({"path": "long"}), "not_found"),
        ("fs.writeFile", json!({"path": "full", "text": ""}), "full"),
        ("fs.readFile", json!({"path": "../b"}), "invalid_arguments"),
        ("fs.readFile", json!({"path": "/etc/passwd"}), "invalid_arguments"),
        ("fs.readFile", json!({"path": "a", "offset": -1}), "invalid_arguments"),
        ("fs.readFile", json!({"path": "a", "more": 1}), "invalid_arguments"),
        ("fs.writeFile", json!({"path": "a"}), "invalid_arguments"),
        ("fs.writeFile", json!({"path": "a", "text": "", "bytes": ""}), "invalid_arguments"),
        ("fs.writeFile", json!({"path": "a", "bytes": "_"}), "invalid_arguments"),
        ("fs.readFile", json!(null), "invalid_arguments"),
        ("fs.chmod", json!({"path": "a"}), "unknown_function"),
        ("process.exit", json!({}), "unknown_function"),
        ("", json!({}), "unknown_function"),
    ] {
        assert_eq!(fixture.code(function, arguments.clone()).await, code, "{function} {arguments}");
    }
}

const READ_MAX: usize = 1024 * 1024;

#[tokio::test]
async fn digests_signatures_and_encryption() {
    let fixture = Fixture::new();
    let hex = |value: Value| {
        from_base64(value.as_str().unwrap()).unwrap().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    // FIPS 180-2.
    let hash = fixture.call("crypto.hash", json!({"algorithm": "sha256", "text": "abc"})).await.unwrap();
    assert_eq!(hex(hash), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    let hash = fixture.call("crypto.hash", json!({"algorithm": "sha512", "bytes": "YWJj"})).await.unwrap();
    assert!(hex(hash).starts_with("ddaf35a193617abacc417349ae204131"));
    let signed = fixture.call("crypto.hmac", json!({"secret": "SIGN", "text": "abc"})).await.unwrap();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"key of ann");
    ring::hmac::verify(&key, b"abc", &from_base64(signed.as_str().unwrap()).unwrap()).unwrap();

    let seal = || fixture.call("crypto.encrypt", json!({"secret": "SIGN", "text": "a secret"}));
    let (one, other) = (seal().await.unwrap(), seal().await.unwrap());
    assert_ne!(one, other, "each has a nonce of its own");
    let opened = fixture.call("crypto.decrypt", json!({"secret": "SIGN", "sealed": one})).await.unwrap();
    assert_eq!(opened, to_base64(b"a secret"));
    let sealed = from_base64(one.as_str().unwrap()).unwrap();
    assert_eq!(sealed.len(), 12 + 8 + 16);
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert_eq!(
            fixture.code("crypto.decrypt", json!({"secret": "SIGN", "sealed": to_base64(&changed)})).await,
            "not_authentic"
        );
        let cut = to_base64(&sealed[..at]);
        assert_eq!(fixture.code("crypto.decrypt", json!({"secret": "SIGN", "sealed": cut})).await, "not_authentic");
    }
    for count in [0, 1, 1024] {
        let random = fixture.call("crypto.randomBytes", json!({"count": count})).await.unwrap();
        assert_eq!(from_base64(random.as_str().unwrap()).unwrap().len(), count);
    }
    let random = || fixture.call("crypto.randomBytes", json!({"count": 16}));
    assert_ne!(random().await.unwrap(), random().await.unwrap());
    for (function, arguments, code) in [
        ("crypto.randomBytes", json!({"count": 1025}), "invalid_arguments"),
        ("crypto.hash", json!({"algorithm": "md5", "text": ""}), "invalid_arguments"),
        ("crypto.hmac", json!({"secret": "NONE", "text": ""}), "not_allowed"),
        ("crypto.hmac", json!({"key": "mine", "text": ""}), "invalid_arguments"),
        ("crypto.keys", json!({}), "unknown_function"),
    ] {
        assert_eq!(fixture.code(function, arguments).await, code, "{function}");
    }
}

#[tokio::test]
async fn the_time_and_its_zones() {
    let fixture = Fixture::new();
    assert_eq!(fixture.call("time.now", json!({})).await, Ok(1_795_299_600_000_i64.into()));
    let zone = fixture.call("time.zone", json!({})).await.unwrap();
    assert_eq!(zone["name"], "America/New_York");
    let offsets: Vec<(i64, i32)> = serde_json::from_value(zone["offsets"].clone()).unwrap();
    assert_eq!(offsets.first(), Some(&(0, -18_000)));
    for change in [(1_772_953_200, -14_400), (1_793_512_800, -18_000)] {
        assert!(offsets.contains(&change), "{change:?}");
    }
    assert!(offsets.iter().is_sorted() && offsets.last().unwrap().0 > 4_090_000_000);
    assert!(zone.to_string().len() < 8 * 1024);
    let utc = fixture.call("time.zone", json!({"name": "UTC"})).await.unwrap();
    assert_eq!(utc, json!({"name": "UTC", "offsets": [[0, 0]]}));
    for name in ["Nowhere/City", "../../etc/passwd", "/etc/localtime", ""] {
        assert_eq!(fixture.code("time.zone", json!({"name": name})).await, "invalid_arguments", "{name}");
    }
    assert_eq!(fixture.code("time.now", json!({"zone": 1})).await, "invalid_arguments");
    assert_eq!(fixture.code("time.sleep", json!({})).await, "unknown_function");
}

#[tokio::test]
async fn effects_are_in_the_ledger_and_nothing_else_is() {
    let fixture = Fixture::new();
    for (function, arguments) in [
        ("fs.readFile", json!({"path": "a"})),
        ("fs.list", json!({"path": ""})),
        ("crypto.hash", json!({"algorithm": "sha256", "text": ""})),
        ("time.now", json!({})),
        ("http.get", json!({})),
    ] {
        drop(fixture.call(function, arguments).await);
    }
    assert!(fixture.ledger.0.lock().unwrap().is_empty());
    drop(fixture.call("fs.writeFile", json!({"path": "a", "text": "x"})).await);
    drop(fixture.call("fs.remove", json!({"path": "b"})).await);
    drop(fixture.call("http.request", json!({"url": "https://a.example/"})).await);
    {
        // Nobody waits for this one any more.
        let mut slow = std::pin::pin!(fixture.call("fs.writeFile", json!({"path": "slow", "text": ""})));
        assert!(futures_util::poll!(&mut slow).is_pending());
    }
    let kept = fixture.ledger.0.lock().unwrap();
    let told: Vec<_> = kept.iter().map(|record| (record.tool.as_str(), record.error)).collect();
    assert_eq!(
        told,
        [
            ("std.fs.writeFile", None),
            ("std.fs.remove", Some(ErrorCode::ExecutionError)),
            ("std.http.request", Some(ErrorCode::PermissionDenied)),
            ("std.fs.writeFile", Some(ErrorCode::Cancelled)),
        ]
    );
    let first = &kept[0];
    assert_eq!((first.user.as_str(), first.device.as_deref(), first.turn), ("ann", Some("glasses"), Some(7)));
    assert_eq!(first.program, caller().program);
    assert_eq!((first.bytes_in, first.source.as_str()), (23, "built-in"));
    assert!(kept.iter().all(|record| record.wall_ms == 1_795_299_600_000));
}

#[test]
fn the_secrets_of_a_policy_are_redacted_everywhere() {
    let fixture = Fixture::new();
    let mut text = "it is key of ann.".to_owned();
    fixture.secrets.redact(&mut text);
    assert_eq!(text, "it is [secret].");
}
