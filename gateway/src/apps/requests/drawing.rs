//! Drawings and animations, and an app's line of the dashboard.

use std::time::Duration;

use gateway_core::vocab::{AppEvent, Content};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tools::apps::log::Latest;

use crate::{
    apps::{
        drawing::{self, Drawn},
        message::AppsMessage,
        socket::Session,
        wire,
    },
    clock,
    runtime::spawn,
};

/// Characters of an app's dashboard line: one line and some to scroll.
const LINE_CHARS_MAX: usize = 200;

impl Session {
    /// Draws a layout.
    pub(super) async fn display(
        &mut self,
        view: Option<&str>,
        layout: Value,
        duration_ms: Option<f64>,
        force: bool,
    ) -> Vec<Value> {
        let (package, duration) = (self.app.package.clone(), drawing::duration(duration_ms));
        let view = drawing::view(view, &layout);
        let told = drawing::told(view, duration, &layout);
        self.host.installed.note_latest(&self.user, &package, Latest::Drawing, told);
        let draw =
            move |content: Option<Content>| AppEvent::Draw { package: package.clone(), view, content, duration, force };
        match drawing::read(&layout) {
            Drawn::Refused(why) => return vec![wire::error("LAYOUT_NOT_AVAILABLE", &why, clock::wall_ms())],
            Drawn::Content(content) => {
                self.animation = None;
                self.draw(draw(Some(content))).await;
            }
            Drawn::Clear => {
                self.animation = None;
                self.draw(draw(None)).await;
            }
            Drawn::Animation { frames, interval, repeat } => {
                self.animate(frames.into_iter().map(|frame| draw(Some(frame))).collect(), interval, repeat);
            }
        }
        Vec::new()
    }

    /// Shows the app's line of the dashboard.
    pub(super) async fn dashboard_line(&self, content: &Value, modes: Option<Vec<String>>) -> Vec<Value> {
        if modes.is_some_and(|modes| !modes.is_empty() && !modes.iter().any(|mode| mode == "main")) {
            let why = "the dashboard of these glasses has one form, `main`";
            return vec![wire::error("DASHBOARD_MODE_NOT_AVAILABLE", why, clock::wall_ms())];
        }
        let text = content.as_str().unwrap_or_default();
        let text: String = text.chars().filter(|c| !c.is_control()).take(LINE_CHARS_MAX).collect();
        let text = (!text.is_empty()).then_some(text);
        self.draw(AppEvent::DashboardLine { package: self.app.package.clone(), text }).await;
        Vec::new()
    }

    async fn draw(&self, event: AppEvent) {
        let package = self.app.package.clone();
        self.tell(AppsMessage::Draw { package, connection: self.connection, event, over: None }).await;
    }

    /// Draws the pictures of an animation until its end, or until something else is drawn.
    fn animate(&mut self, frames: Vec<AppEvent>, interval: Duration, repeat: bool) {
        let over = CancellationToken::new();
        self.animation = Some(over.clone().drop_guard());
        let (host, user, package, connection) =
            (self.host.clone(), self.user.clone(), self.app.package.clone(), self.connection);
        spawn("app-animation", async move {
            loop {
                for frame in &frames {
                    let (package, event) = (package.clone(), frame.clone());
                    let draw = AppsMessage::Draw { package, connection, event, over: Some(over.clone()) };
                    let drawn = async {
                        host.tasks.tell(&user, draw).await;
                        tokio::time::sleep(interval).await;
                    };
                    if over.run_until_cancelled(drawn).await.is_none() {
                        return;
                    }
                }
                if !repeat {
                    return;
                }
            }
        });
    }
}
