//! Converts a server's definitions and results into the gateway's types.

use gateway_core::vocab::{Attachment, ErrorCode, Phrases, ToolFlags, ToolResult, ToolSpec};
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde_json::{Value, json};

use crate::{
    definition::{self, Hints, Naming},
    limits::{DESCRIPTION_BYTES_MAX, LOCAL_NAME_BYTES_MAX, MESSAGE_BYTES_MAX},
    mcp::config::{Approval, Server},
    reply::cut,
};

/// Maximum bytes of all attachments of a result: a few photos; they stay in memory until the turn ends.
const ATTACHMENTS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Language of the templates that are configured for a tool.
const LANGUAGE: &str = "en";

/// A definition under its full name. Parts that cannot be represented are added to `lost`.
pub(super) fn spec(server: &Server, tool: &Tool, lost: &mut Vec<String>) -> ToolSpec {
    let title = tool.title.as_deref().or_else(|| tool.annotations.as_ref()?.title.as_deref());
    let described = tool.description.as_deref().filter(|text| !text.trim().is_empty());
    let description = described.or(title).unwrap_or(&tool.name);
    if description.len() > DESCRIPTION_BYTES_MAX {
        lost.push(format!("tool '{}' at '/description': was cut to {DESCRIPTION_BYTES_MAX} bytes", tool.name));
    }
    let hint = |pick: fn(&rmcp::model::ToolAnnotations) -> Option<bool>| tool.annotations.as_ref().and_then(pick);
    let read_only = hint(|hints| hints.read_only_hint) == Some(true);
    // The protocol's default is "destructive". Asking before every call of every server without annotations would train
    // the wearer to approve without listening.
    let destructive = !read_only && hint(|hints| hints.destructive_hint) == Some(true);
    let idempotent = hint(|hints| hints.idempotent_hint) == Some(true);
    let hinted = Hints { read_only, destructive, idempotent, slow: false }.flags();
    let requires_approval = match server.approval {
        Approval::Destructive => hinted.requires_approval,
        Approval::Changes => !hinted.read_only,
        Approval::Never => false,
    };
    let mut said = extensions(server, tool, lost);
    if let Some(templates) = server.phrases.get(tool.name.as_ref()) {
        said.phrases.push(Phrases { language: LANGUAGE.to_owned(), templates: templates.clone() });
    }
    ToolSpec {
        name: format!("{}.{}", server.name, tool.name),
        title: title.map(|title| cut(&crate::wording::plain(title), LOCAL_NAME_BYTES_MAX)),
        description: cut(&crate::arguments::clean(description), DESCRIPTION_BYTES_MAX),
        input_schema: Value::Object((*tool.input_schema).clone()),
        output_schema: tool.output_schema.as_deref().cloned().map(Value::Object),
        flags: ToolFlags {
            requires_approval: requires_approval || said.flags.requires_approval,
            persistent: true,
            always: said.flags.always,
            requires_display: said.flags.requires_display,
            slow: said.flags.slow,
            ..hinted
        },
        clients: server.clients.clone().or(said.clients),
        timeout_ms: server.timeout_ms.or(said.timeout_ms),
        category: said.category.or_else(|| Some("mcp".to_owned())),
        // A server cannot start apps.
        app: None,
        ..said
    }
}

/// Fields of the gateway's own extensions, under `_meta.mentraExtensions`: phrases, guidance, limits.
fn extensions(server: &Server, tool: &Tool, lost: &mut Vec<String>) -> ToolSpec {
    let Some(said) = tool.meta.as_ref().and_then(|meta| meta.0.get("mentraExtensions")) else {
        return ToolSpec::default();
    };
    let definition = json!({
        "name": tool.name,
        "description": tool.name,
        "inputSchema": *tool.input_schema,
        "mentraExtensions": said,
    });
    match definition::read(&definition, Naming::Server(&server.name)) {
        Ok((spec, _, report)) => {
            let note = |note: definition::Note| format!("tool '{}' at '{}': {}", tool.name, note.pointer, note.reason);
            lost.extend(report.notes.into_iter().map(note));
            spec
        }
        Err(error) => {
            tracing::warn!(server = server.name, %error, "the extensions of a tool were not taken");
            lost.push(format!("extensions were not taken: {error}"));
            ToolSpec::default()
        }
    }
}

/// Converts a result: text for the model, structured content as data, everything else as attachments.
pub(super) fn result(result: CallToolResult) -> ToolResult {
    let mut out = ToolResult::default();
    let mut texts = Vec::new();
    let mut left_out = 0;
    let mut room = ATTACHMENTS_BYTES_MAX;
    for block in result.content {
        let attachment = match block {
            ContentBlock::Text(text) => {
                texts.push(text.text);
                continue;
            }
            ContentBlock::Image(image) => Attachment::Image { mime: image.mime_type, data: image.data },
            ContentBlock::Audio(audio) => Attachment::Audio { mime: audio.mime_type, data: audio.data },
            other => Attachment::Resource { block: serde_json::to_value(&other).unwrap_or_default() },
        };
        let bytes = match &attachment {
            Attachment::Image { data, .. } | Attachment::Audio { data, .. } => data.len(),
            Attachment::Resource { block } => {
                // Text that a server sends as a resource is passed to the model as text.
                let text = block.pointer("/resource/text").and_then(Value::as_str);
                texts.extend(text.map(str::to_owned));
                block.to_string().len()
            }
        };
        match room.checked_sub(bytes) {
            Some(left) => {
                room = left;
                out.attachments.push(attachment);
            }
            None => left_out += 1,
        }
    }
    if left_out > 0 {
        out.notes.push(format!("({left_out} attachments were too large and were left out.)"));
    }
    if !out.attachments.is_empty() {
        out.notes.push(attached(&out.attachments));
    }
    out.content = texts.join("\n");
    out.data = result.structured_content;
    if result.is_error == Some(true) {
        let message = if out.content.is_empty() { "The tool failed without a word." } else { &out.content };
        let failed = ToolResult::failed(ErrorCode::ExecutionError, cut(message, MESSAGE_BYTES_MAX), false);
        return ToolResult { content: out.content, error: failed.error, ..out };
    }
    out
}

/// A note for the model about the parts that it does not get.
fn attached(attachments: &[Attachment]) -> String {
    let mut kinds: Vec<&str> = attachments
        .iter()
        .map(|attachment| match attachment {
            Attachment::Image { .. } => "a picture",
            Attachment::Audio { .. } => "a recording",
            Attachment::Resource { .. } => "a resource",
        })
        .collect();
    kinds.dedup();
    format!("(Attached: {}.)", kinds.join(", "))
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
