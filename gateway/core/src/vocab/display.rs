//! What the glasses are asked to draw.

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Which of the two views of the glasses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// In front of the wearer's eyes.
    #[default]
    Main,
    /// Shown when the wearer looks up.
    Dashboard,
}

/// Who wins when several want the display. Later variants win over earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// A mini-app.
    App,
    /// Captions: what is being heard.
    Caption,
    /// The assistant's answer.
    Assistant,
    /// Reminders and notices.
    Notice,
    /// A question that waits for the wearer.
    Approval,
}

/// A layout with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "layout", rename_all = "snake_case")]
pub enum Content {
    /// Running text.
    Text {
        /// The text.
        text: String,
    },
    /// A title above a text.
    Card {
        /// The line above.
        title: String,
        /// The text.
        text: String,
    },
    /// Two blocks of text.
    Double {
        /// Upper block.
        top: String,
        /// Lower block.
        bottom: String,
    },
}

/// One instruction for the display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisplayCommand {
    /// Draw; `revision` grows with every change of the view, so that late frames are told apart.
    Show {
        /// Which view.
        view: View,
        /// Who wins.
        priority: Priority,
        /// Grows with every change of the view.
        revision: u32,
        /// How long it stands, in milliseconds; `None`: until replaced.
        duration_ms: Option<u32>,
        /// What to draw.
        content: Content,
    },
    /// Draw nothing.
    Clear {
        /// Which view.
        view: View,
        /// Grows with every change of the view.
        revision: u32,
    },
}
