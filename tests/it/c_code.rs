//! The C code for firmware (`device-protocol/c`): it is compiled with every warning as an error, and compared with the
//! vectors of the protocol under sanitizers. Its client meets gateways that do everything wrong, and much at once.

mod addresses;
mod gateway;
mod hostile;
mod talking;

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../device-protocol");
/// The first thing that is wrong with memory or arithmetic ends the program.
const SANITIZED: [&str; 3] = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"];

/// Compiles a program of these files into the folder.
pub fn compiled(folder: &Path, sources: &[&str], options: &[&str]) -> PathBuf {
    let program = folder.join(sources[0].trim_end_matches(".c"));
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&program)
        .args(sources.iter().map(|source| format!("{FOLDER}/c/{source}")))
        .args(options)
        .output()
        .expect("cc: apt-get install gcc");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{sources:?} (apt-get install gcc libssl-dev): {words}");
    program
}

/// The reference client, compiled into the folder with sanitizers.
fn sanitized_client(folder: &Path) -> PathBuf {
    let options = [&SANITIZED[..], &["-lssl", "-lcrypto"]].concat();
    compiled(folder, &["client.c", "link.c", "lorgnette.c"], &options)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// The files of a folder of vectors with this ending.
fn vectors(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("{FOLDER}/vectors/v1/{folder}")).expect("the vectors");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == ending));
    files.sort();
    files
}

/// A value of a vector as the C program prints it.
fn printed(frame: &Value, name: &str) -> String {
    let value = name.split('.').fold(frame, |value, key| &value[key]);
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) if ["payload", "gateway_key"].contains(&name) => {
            bytes(&base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).expect("base64"))
        }
        Value::String(text) => bytes(text.as_bytes()),
        other => panic!("{name} is {other}"),
    }
}

/// Runs the program on all vectors; its lines.
fn lines() -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), &["vectors.c", "lorgnette.c"], &SANITIZED);
    let mut child = Command::new(program)
        .arg(format!("{FOLDER}/vectors/v1"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut input = child.stdin.take().expect("piped");
    let files = ["frames", "newer", "bad"].map(|folder| vectors(folder, "hex")).concat();
    let mut list: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
    for case in cases() {
        let names = ["device_key", "gateway_key", "nonce_commitment", "gateway_nonce", "binding", "device_nonce"];
        let mut words: Vec<&str> = names.iter().map(|name| case[name].as_str().expect("a value")).collect();
        words.push(case["invitation_code"].as_str().unwrap_or("00"));
        words.push(case["pairing_digest"].as_str().unwrap_or("00"));
        list += &format!("handshake {}\n", words.join(" "));
    }
    // A list of paths is longer than a pipe, so it is written beside the reading.
    let writing = std::thread::Builder::new().name("list".to_owned()).spawn(move || input.write_all(list.as_bytes()));
    let output = child.wait_with_output().expect("its output");
    writing.expect("a thread").join().expect("it ends").expect("written");
    assert!(output.status.success(), "the sanitizers or a comparison: {}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

fn cases() -> Vec<Value> {
    let names = ["handshake.json", "handshake.tls.json", "handshake.invitation.json"];
    let files = names.map(|name| json(Path::new(&format!("{FOLDER}/vectors/v1/{name}"))));
    files.iter().flat_map(|cases| cases.as_array().expect("cases").clone()).collect()
}

#[test]
fn the_c_code_agrees_with_every_vector() {
    let lines = lines();
    let mut compared = 0;
    for path in ["frames", "newer"].map(|folder| vectors(folder, "json")).concat() {
        let shown = path.with_extension("hex").display().to_string();
        let line = lines.iter().find_map(|line| line.strip_prefix(&format!("{shown} "))).expect("each is printed");
        let frame = &json(&path)["frame"];
        for field in line.split(' ') {
            let (name, value) = field.split_once('=').unwrap_or_else(|| panic!("{shown}: {line}"));
            // Of a kind that is skipped, the vector has fewer fields.
            let is_there = name.split('.').try_fold(frame, |value, key| value.get(key)).is_some();
            assert!(is_there || frame.get("skipped").is_some() || frame.get("kind").is_none(), "{shown}: {name}");
            if is_there {
                assert_eq!(value, printed(frame, name), "{shown}: {name}");
                compared += 1;
            }
        }
    }
    assert!(compared > 200, "{compared} fields were compared");
    let written = lines.iter().filter(|line| line.starts_with("written ")).count();
    assert_eq!(written, 11);
}

#[test]
fn the_c_code_signs_and_hashes_what_the_vectors_say() {
    let lines: Vec<String> = lines().into_iter().filter(|line| line.starts_with("messages ")).collect();
    let cases = cases();
    assert!(lines.len() == cases.len() && cases.len() > 6, "{lines:?}");
    for (line, case) in lines.iter().zip(&cases) {
        let has = |name: &str, key: &str| match case[key].as_str() {
            Some(value) => assert!(line.contains(&format!(" {name}={value}")), "{key}: {line}"),
            None => assert!(["pairing_message", "pairing_code", "invitation_message"].contains(&key), "{key}"),
        };
        has("gateway", "gateway_message");
        has("device", "device_message");
        has("pairing", "pairing_message");
        has("code", "pairing_code");
        has("invitation", "invitation_message");
    }
}

/// What cannot grow has a bound whatever a peer sends.
#[test]
fn the_c_code_takes_nothing_from_a_heap() {
    for file in ["client.c", "link.c", "lorgnette.c"] {
        let text = fs::read_to_string(format!("{FOLDER}/c/{file}")).unwrap();
        for taken in ["alloc(", "alloca", "strdup", "asprintf", "getline"] {
            assert!(!text.contains(taken), "{file}: {taken}");
        }
    }
}

#[test]
fn a_hello_of_the_c_code_is_read_by_the_gateway() {
    let line = lines().into_iter().find_map(|line| line.strip_prefix("hello ").map(str::to_owned)).expect("a hello");
    let pairs = line.as_bytes().chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
    let bytes: Vec<u8> = pairs.collect();
    let Ok(device_protocol::Decoded::Frame(frame)) = device_protocol::decode_up(&bytes) else { panic!("{line}") };
    let device_protocol::Up::Hello(hello) = frame.message else { panic!("{frame:?}") };
    assert_eq!((hello.model, hello.language, hello.capabilities.heartbeat_ms), ("Example One", "en-GB", 20_000));
    assert_eq!(hello.binding, device_protocol::ChannelBinding::Certificate);
}
