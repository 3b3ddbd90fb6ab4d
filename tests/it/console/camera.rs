//! A browser that goes through the console: pictures in two widths and two colour schemes, and axe-core's judgement.

use std::collections::BTreeSet;

use gateway::identity::operators::Role;
use serde_json::{Value, json};

use super::link;
use crate::{programs::Programs, try_page::browser::Browser, world::World};

/// What is looked at: width in pixels, colour scheme. The judge is asked once a state, in one of these in turn.
const VIEWS: [(u32, &str); 2] = [(1200, "light"), (390, "dark")];
/// What is looked at where somebody wants the pictures.
const PICTURES: [(u32, &str); 2] = [(1200, "dark"), (390, "light")];
/// What the judge calls serious.
const SERIOUS: [&str; 2] = ["serious", "critical"];
/// Longest picture, in pixels.
const HEIGHT_MAX: u64 = 4_000;

/// One browser, and what was found in it.
pub struct Camera {
    pub browser: Browser,
    address: String,
    judge: String,
    taken: BTreeSet<String>,
    found: Vec<String>,
}

impl Camera {
    pub async fn start(world: &World) -> Self {
        let judge = std::fs::read_to_string(Programs::console().script("axe-core/axe.min.js")).unwrap();
        let mut browser = Browser::start(None).await;
        let (width, scheme) = VIEWS[0];
        browser.look(width, 860, scheme).await;
        let address = format!("http://{}", world.web());
        Self { browser, address, judge, taken: BTreeSet::new(), found: Vec::new() }
    }

    pub async fn sign_in(&mut self, world: &World, role: Role) {
        let link = link(world, role).await;
        self.open(&format!("/console/enter?link={link}")).await;
        self.click("main button").await;
        self.browser.until("location.pathname === '/console'").await;
    }

    pub async fn open(&mut self, path: &str) {
        self.browser.open(&format!("{}{path}", self.address)).await;
    }

    /// Presses what leads to another page, wherever it is.
    pub async fn click(&mut self, selector: &str) {
        self.browser.leave(&format!("document.querySelector({}).click()", json!(selector))).await;
    }

    /// Sends a form as the page at hand would: with its token, unless another one is among the fields.
    pub async fn submit(&mut self, action: &str, fields: &[(&str, String)]) {
        let fields: Value = fields.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let script = format!(
            "(() => {{
                const form = document.createElement('form');
                const token = document.querySelector('input[name=token]').value;
                for (const [name, value] of Object.entries({{ token, ...{fields} }})) {{
                    form.append(Object.assign(document.createElement('input'), {{ type: 'hidden', name, value }}));
                }}
                document.body.append(Object.assign(form, {{ method: 'post', action: {} }}));
                form.submit();
            }})()",
            json!(action)
        );
        self.browser.leave(&script).await;
    }

    /// Waits until the page has these words, and takes its pictures under this name. It keeps the first view.
    pub async fn look(&mut self, name: &str, words: &str) {
        assert!(self.taken.insert(name.to_owned()), "two pictures are called {name}");
        self.browser.until(&format!("document.body.innerText.includes({})", json!(words))).await;
        if Browser::is_pictured() {
            for (width, scheme) in PICTURES {
                self.picture(width, scheme, name).await;
            }
        }
        let judged = self.taken.len() % VIEWS.len();
        for (number, (width, scheme)) in VIEWS.into_iter().enumerate() {
            self.picture(width, scheme, name).await;
            if number == judged {
                let faults = self.faults().await;
                self.found.extend(faults.into_iter().map(|fault| format!("{name}, {width} px, {scheme}: {fault}")));
            }
        }
        let (width, scheme) = VIEWS[0];
        self.browser.look(width, 860, scheme).await;
    }

    /// Sets the window to the whole page, and takes its picture.
    async fn picture(&mut self, width: u32, scheme: &str, name: &str) {
        let browser = &mut self.browser;
        browser.look(width, 860, scheme).await;
        let height = browser.value("document.documentElement.scrollHeight").await.as_u64().unwrap();
        browser.look(width, u32::try_from(height.clamp(860, HEIGHT_MAX)).unwrap(), scheme).await;
        browser.shot(&format!("{name}-{width}-{scheme}")).await;
        let overflow = browser.value("document.documentElement.scrollWidth - innerWidth").await.as_i64().unwrap();
        if overflow > 0 {
            self.found.push(format!("{name} is wider than {width} px by {overflow}"));
        }
    }

    /// Serious faults of the page, as the judge finds them: rule, element, why.
    async fn faults(&mut self) -> Vec<String> {
        if self.browser.value("typeof axe").await == "undefined" {
            self.browser.value(&format!("{}; true", self.judge)).await;
        }
        let judged = "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations)";
        let found = self.browser.value(judged).await;
        let of = |fault: &Value| {
            let nodes = fault["nodes"].as_array().unwrap();
            let nodes: Vec<String> =
                nodes.iter().map(|node| format!("{} {}", node["html"], node["failureSummary"])).collect();
            format!("{} ({}): {}", fault["id"], fault["impact"], nodes.join("\n  "))
        };
        let found = found.as_array().unwrap();
        found.iter().filter(|fault| SERIOUS.iter().any(|serious| fault["impact"] == *serious)).map(of).collect()
    }

    /// Ends the browser; fails where anything was found.
    pub async fn judged(self) {
        self.browser.close().await;
        assert!(self.found.is_empty(), "{}", self.found.join("\n"));
    }
}
