//! Exports a tool as an MCP definition, for clients of the gateway.

use gateway_core::vocab::ToolSpec;
use serde_json::{Map, Value, json};

/// Where the extensions are in a definition's `_meta`.
pub(crate) const EXTENSIONS: &str = "mentraExtensions";

/// The tool's MCP definition. Fields that MCP does not have are under `_meta.mentraExtensions`, so that a round trip
/// loses nothing.
pub fn to_mcp(spec: &ToolSpec) -> Value {
    let flags = spec.flags;
    let mut tool = Map::new();
    tool.insert("name".into(), spec.name.as_str().into());
    if let Some(title) = &spec.title {
        tool.insert("title".into(), title.as_str().into());
    }
    tool.insert("description".into(), spec.description.as_str().into());
    tool.insert("inputSchema".into(), spec.input_schema.clone());
    if let Some(schema) = &spec.output_schema {
        tool.insert("outputSchema".into(), schema.clone());
    }
    let hints = json!({
        "readOnlyHint": flags.read_only,
        "destructiveHint": flags.destructive,
        "idempotentHint": flags.idempotent,
    });
    tool.insert("annotations".into(), hints);
    let more = extensions_of(spec);
    if !more.is_empty() {
        tool.insert("_meta".into(), more.into());
    }
    tool.into()
}

/// The object `mentraExtensions` under its name, for a definition's `_meta`: the fields that MCP does not have. Empty if
/// there are none.
pub(crate) fn extensions_of(spec: &ToolSpec) -> Map<String, Value> {
    let flags = spec.flags;
    let mut more = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            more.insert(key.to_owned(), value);
        }
    };
    if !spec.phrases.is_empty() {
        let by_language: Map<String, Value> =
            spec.phrases.iter().map(|own| (own.language.clone(), own.templates.clone().into())).collect();
        put("sentenceTemplates", Some(by_language.into()));
    }
    put("replyTemplate", spec.reply.clone().map(Value::from));
    put("guidance", spec.guidance.clone().map(Value::from));
    put("category", spec.category.clone().map(Value::from));
    put("activateApp", spec.app.as_ref().map(|_| true.into()));
    put("requiresDisplay", flags.requires_display.then(|| true.into()));
    put("always", flags.always.then(|| true.into()));
    put("slow", flags.slow.then(|| true.into()));
    put("persistent", (flags.persistent == flags.read_only).then(|| flags.persistent.into()));
    let says = flags.requires_approval != flags.destructive || spec.approval.is_some();
    put("requiresApproval", says.then(|| flags.requires_approval.into()));
    put("approvalMessage", spec.approval.clone().map(Value::from));
    put("progressMessage", spec.progress.clone().map(Value::from));
    put("clients", spec.clients.as_ref().map(|classes| json!(classes)));
    put("rateLimit", spec.rate_limit.map(|limit| json!({"calls": limit.calls, "perMs": limit.per_ms})));
    put("timeoutMs", spec.timeout_ms.map(Value::from));
    let named = (!more.is_empty()).then(|| (EXTENSIONS.to_owned(), more.into()));
    named.into_iter().collect()
}
