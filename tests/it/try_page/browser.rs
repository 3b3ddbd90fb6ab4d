//! A headless Chromium, controlled over its DevTools protocol.

use std::{os::unix::process::ExitStatusExt as _, path::Path, process::Stdio, time::Duration};

use base64::Engine as _;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStderr, Command},
    time::timeout,
};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

/// Names under which distributions install it.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Keys that do more than write a character, and their codes.
const KEYS: [(&str, u32); 5] = [("Enter", 13), ("Tab", 9), ("Escape", 27), (" ", 32), ("ArrowUp", 38)];
/// Longest start, and longest wait for one answer: a loaded machine with two cores is slow. Shorter than the two minutes
/// after which the runner ends a test, so that what the page shows is told.
const WAIT: Duration = Duration::from_secs(90);
/// The variable that names the folder of screenshots.
const SHOTS: &str = "LORGNETTE_SHOTS";
/// Crashes of one browser before it listens, and before it has seen anything of ours: Chromium 148 has a segmentation
/// fault in 1 of some 500 starts, also alone on an empty page.
const CRASHES_MAX: usize = 2;

/// One browser with one page.
pub struct Browser {
    child: Child,
    socket: WebSocketStream<TcpStream>,
    session: String,
    calls: u64,
    loads: u32,
    /// Output of the page to its console, and uncaught errors.
    pub console: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts it on an empty page; its microphone plays `microphone` once. `None`: it has no microphone.
    pub async fn start(microphone: Option<&Path>) -> Self {
        let mut crashes = Vec::new();
        let (profile, child, mut errors, address) = loop {
            let profile = tempfile::tempdir().unwrap();
            let mut child = spawn(microphone, profile.path());
            let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
            match timeout(WAIT, listening(&mut errors)).await.expect("Chromium did not start") {
                Ok(address) => break (profile, child, errors, address),
                Err(said) => {
                    let status = child.wait().await.unwrap();
                    crashes.push(format!("{status}:\n{said}"));
                    let may_again = status.signal().is_some() && crashes.len() <= CRASHES_MAX;
                    assert!(may_again, "Chromium ended before it listened:\n{}", crashes.join("\n"));
                }
            }
        };
        // Its output must be read, or the browser would block on a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = errors.next_line().await {} });
        let host = address.split('/').nth(2).unwrap();
        let stream = TcpStream::connect(host).await.unwrap();
        let (socket, _) = tokio_tungstenite::client_async(&address, stream).await.unwrap();
        let mut browser =
            Self { child, socket, session: String::new(), calls: 0, loads: 0, console: Vec::new(), _profile: profile };
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let attached =
            browser.call("Target.attachToTarget", json!({"targetId": page["targetId"], "flatten": true})).await;
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({})).await;
        }
        browser
    }

    /// Runs a script in each page that is opened from now on, before the page's own.
    pub async fn before_pages(&mut self, script: &str) {
        self.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script })).await;
    }

    /// Opens an address and waits until it is loaded completely.
    pub async fn open(&mut self, url: &str) {
        let before = self.loads;
        self.call("Page.navigate", json!({ "url": url })).await;
        while self.loads == before {
            timeout(WAIT, self.read()).await.expect("the page was never loaded");
        }
    }

    /// Sets the size of the window, in CSS pixels, and the preferred colour scheme.
    pub async fn look(&mut self, width: u32, height: u32, scheme: &str) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        )
        .await;
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    /// The value of an expression.
    pub async fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", parameters).await;
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Waits until a condition on the page's document holds; the page reports changes.
    pub async fn until(&mut self, condition: &str) {
        let expression = format!(
            "new Promise((done) => {{
                const holds = () => ({condition}) && (watch.disconnect(), done(true));
                const watch = new MutationObserver(holds);
                watch.observe(document, {{ subtree: true, childList: true, attributes: true, characterData: true }});
                holds();
            }})"
        );
        if timeout(WAIT, self.value(&expression)).await.is_err() {
            let opened = "document.querySelectorAll('details').forEach((folded) => { folded.open = true; })";
            let text = self.value(&format!("{opened}, document.body.innerText")).await;
            let state = self.value("JSON.stringify(document.querySelector('#glasses')?.dataset)").await;
            panic!(
                "never: {condition}\nstate: {state}\nconsole: {:#?}\npage:\n{}",
                self.console,
                text.as_str().unwrap_or("")
            );
        }
    }

    /// Presses or releases a key: "down" or "up". A character is typed with it.
    pub async fn key(&mut self, edge: &str, key: &str) {
        let mut parameters = json!({"type": if edge == "down" { "keyDown" } else { "keyUp" }, "key": key});
        if edge == "down" && key.chars().count() == 1 {
            parameters["text"] = json!(key);
        }
        // The code of a key with a special function.
        if let Some((_, number)) = KEYS.iter().find(|(name, _)| *name == key) {
            parameters["windowsVirtualKeyCode"] = json!(number);
            if key == "Enter" && edge == "down" {
                parameters["text"] = json!("\r");
            }
        }
        self.call("Input.dispatchKeyEvent", parameters).await;
    }

    /// Types a text, key by key.
    pub async fn type_keys(&mut self, text: &str) {
        for letter in text.chars() {
            self.key("down", &letter.to_string()).await;
            self.key("up", &letter.to_string()).await;
        }
    }

    /// Clicks in the middle of the first element that matches a selector.
    pub async fn click(&mut self, selector: &str) {
        let middle = format!(
            "(() => {{ const box = document.querySelector({}).getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            json!(selector)
        );
        let middle = self.value(&middle).await;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event).await;
        }
    }

    /// Clicks on what leads to another page, and waits until that is loaded completely.
    pub async fn follow(&mut self, selector: &str) {
        let before = self.loads;
        self.click(selector).await;
        while self.loads == before {
            timeout(WAIT, self.read()).await.expect("the page was never loaded");
        }
    }

    /// Runs a script that leads to another page, and waits until that is loaded completely.
    pub async fn leave(&mut self, script: &str) {
        let before = self.loads;
        self.value(script).await;
        while self.loads == before {
            timeout(WAIT, self.read()).await.expect("the page was never loaded");
        }
    }

    /// Whether somebody wants screenshots: `LORGNETTE_SHOTS` names their folder.
    pub fn is_pictured() -> bool {
        std::env::var_os(SHOTS).is_some()
    }

    /// Saves a screenshot if somebody wants it.
    pub async fn shot(&mut self, name: &str) {
        let Some(folder) = std::env::var_os(SHOTS) else {
            return;
        };
        let taken = self.call("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": false})).await;
        let bytes = base64::engine::general_purpose::STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
        std::fs::write(Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
    }

    /// Ends it, with its helper processes.
    pub async fn close(mut self) {
        self.session.clear();
        self.send("Browser.close", json!({})).await;
        timeout(WAIT, self.child.wait()).await.expect("Chromium did not end").unwrap();
    }

    async fn send(&mut self, method: &str, parameters: Value) -> u64 {
        self.calls += 1;
        let mut call = json!({"id": self.calls, "method": method, "params": parameters});
        if !self.session.is_empty() {
            call["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::text(call.to_string())).await.unwrap();
        self.calls
    }

    async fn call(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.send(method, parameters).await;
        loop {
            let message = self.read().await;
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
        }
    }

    /// The next message; events of interest are kept.
    async fn read(&mut self) -> Value {
        let message = self.socket.next().await;
        let message = message.expect("Chromium closed the connection").unwrap();
        let message: Value = match message {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            _ => Value::Null,
        };
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded") => {
                self.console.push(message["params"].to_string());
            }
            Some("Page.loadEventFired") => self.loads += 1,
            _ => {}
        }
        message
    }
}

/// The address at which it is controlled, or all that it said before it ended.
async fn listening(errors: &mut Lines<BufReader<ChildStderr>>) -> Result<String, String> {
    let mut said = Vec::new();
    while let Some(line) = errors.next_line().await.unwrap() {
        if let Some(address) = line.strip_prefix("DevTools listening on ") {
            return Ok(address.to_owned());
        }
        said.push(line);
    }
    Err(said.join("\n"))
}

fn spawn(microphone: Option<&Path>, profile: &Path) -> Child {
    for name in NAMES {
        let sound = microphone.map(|path| {
            let file = format!("--use-file-for-fake-audio-capture={}%noloop", path.display());
            ["--use-fake-ui-for-media-stream".to_owned(), "--use-fake-device-for-media-stream".to_owned(), file]
        });
        let started = Command::new(name)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--no-proxy-server",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--autoplay-policy=no-user-gesture-required",
                "--remote-debugging-port=0",
            ])
            .args(sound.into_iter().flatten())
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        match started {
            Ok(child) => return child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => panic!("{name} could not be started: {error}"),
        }
    }
    panic!(
        "this test needs Chromium, which is not installed: `cargo xtask test` says how to get what \
         the tests need (on Debian `apt-get install chromium`)"
    );
}
