//! The standard library in the sandbox of the real executable: a program, its module, and the host behind it.

use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::vocab::Timestamp;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;
use tools::{
    code::{
        Host, HostError, Limits, Program, Sandbox,
        std::{StdCaller, StdConfig, StdHost, StdPolicy, is_std, modules},
    },
    ports::Clock,
    secret::Secrets,
    workspace::NoWorkspace,
};

use crate::process::binary;

const BODY_BYTES: usize = 1024 * 1024;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp { mono_us: 0, wall_ms: 1_795_262_400_000, offset_s: 0 }
    }

    fn zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::get("Europe/Berlin").expect("a zone")
    }
}

struct Library(StdHost);

#[async_trait]
impl Host for Library {
    async fn call(&self, module: &str, function: &str, arguments: Value) -> Result<Value, HostError> {
        assert!(is_std(module), "{module}");
        self.0.call(&StdCaller { user: "ann".to_owned(), ..StdCaller::default() }, function, arguments).await
    }

    fn log(&self, _: &str) {}
}

/// Answers one request with as much as a response may have.
async fn serve(listener: TcpListener) -> String {
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut request).await.expect("a request"), 0);
    }
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {BODY_BYTES}\r\n\r\n{}", "x".repeat(BODY_BYTES));
    stream.write_all(answer.as_bytes()).await.expect("an answer");
    String::from_utf8(request).expect("text")
}

#[tokio::test]
async fn a_program_uses_the_library() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let config: StdConfig = toml::from_str(&format!(
        "http.hosts = [{{host = '127.0.0.1', scheme = 'http', port = {port}, private = true}}]
        secrets.KEY = {{value = 'planted-4711', hosts = ['127.0.0.1'], crypto = true}}"
    ))
    .unwrap();
    let policy = StdPolicy::check(config, |_| None).unwrap();
    let host = StdHost::new(policy, Arc::new(NoWorkspace), Arc::new(Noon), None, Secrets::default()).unwrap();
    let source = format!(
        "import {{ crypto, csv, fs, http, time }} from '@agent-spaces/std';
        const response = await http.get('http://127.0.0.1:{port}/a', {{ headers: {{ 'x-key': '${{secret:KEY}}' }} }});
        const code = await fs.list().catch((error: ToolError) => error.code);
        const far = await http.get('https://example.com/').catch((error: ToolError) => error.code);
        export default {{
            bytes: response.text().length,
            code, far,
            at: time.format(await time.now(), undefined, await time.zone()),
            opened: await crypto.decrypt('KEY', await crypto.encrypt('KEY', 'größe')),
            table: csv.stringify([{{ a: 1, b: 'x,y' }}]),
        }};"
    );
    let program = Program { source, modules: modules().into(), task: None };
    let (sandbox, host, cancel) = (Sandbox::new(&binary()), Library(host), CancellationToken::new());
    let (outcome, request) = tokio::join!(sandbox.run(program, &host, Limits::default(), &cancel), serve(listener));
    assert_eq!(
        outcome.result,
        Some(
            json!({"bytes": BODY_BYTES, "code": "unavailable", "far": "not_allowed", "at": "2026-11-21T13:00:00+01:00",
            "opened": "größe", "table": "a,b\r\n1,\"x,y\"\r\n"})
        ),
        "{:?}",
        outcome.error
    );
    assert!(request.contains("x-key: planted-4711\r\n"), "{request}");
}
