//! Checks of every parser that meets hostile bytes. Each takes any bytes and panics where an invariant does not hold;
//! the fuzzer looks for such bytes, and `tests/corpus.rs` replays those that are committed. docs/fuzzing.md has more.

mod chat;
mod files;
mod firmware;
mod input;
mod programs;
mod sound;
mod tool_texts;
mod wire;
mod words;

use gateway::fuzzing as shell;

/// A parser, or a few that read the same bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of its folder in `corpus`.
    pub name: &'static str,
    /// Panics where an invariant does not hold.
    pub check: fn(&[u8]),
}

const fn target(name: &'static str, check: fn(&[u8])) -> Target {
    Target { name, check }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    // What the network reaches before anybody is admitted.
    target("wire", wire::peer_bytes),
    target("websocket", shell::links::websocket),
    target("quic", shell::links::quic),
    target("handshake", shell::links::handshake),
    target("http", shell::http::request),
    target("pairing", shell::pairing::steps),
    // Devices that are admitted.
    target("listener", sound::listener),
    target("lc3", sound::lc3),
    target("device_tools", tool_texts::device_tools),
    // Gateways, as devices see them.
    target("firmware_manifest", firmware::manifest),
    target("firmware_chunks", firmware::chunks),
    // Mini-apps.
    target("app_frame", shell::apps::frame),
    target("app_layout", shell::apps::layout),
    target("app_picture", shell::apps::picture),
    target("app_sound", sound::file),
    target("app_relay", shell::apps::relay),
    target("app_storage", shell::apps::storage),
    target("app_manifest", tool_texts::manifest),
    target("tool_answer", tool_texts::answer),
    target("tool_definition", tool_texts::definition),
    target("tool_schema", tool_texts::schema),
    target("capability", tool_texts::capability),
    // Programs that have taken over their process, and what a model may keep of one.
    target("code_bridge", programs::bridge),
    target("routine", words::routine),
    // Other servers.
    target("sse_responses", chat::responses),
    target("sse_chat_completions", chat::chat_completions),
    target("sse_anthropic", chat::anthropic),
    target("sse_gemini", chat::gemini),
    target("provider_schema", chat::schema),
    target("oauth", chat::oauth),
    target("mcp", tool_texts::mcp),
    target("mcp_line", shell::mcp::line),
    target("mcp_http", shell::mcp::http),
    // What people say, and what models want said.
    target("utterance", words::utterance),
    target("template", words::template),
    target("clause", words::clause),
    // Files and operators.
    target("control", shell::operator::control),
    target("config", shell::operator::config),
    target("skill", shell::operator::skill),
    target("rows", shell::rows::rows),
    target("ggml", files::ggml),
    target("ctranslate2", files::ctranslate2),
    target("wake_head", files::wake_head),
    target("wake_embeddings", files::wake_embeddings),
];
