//! Parses the extensions of a definition, wherever they are in it.

use gateway_core::vocab::{ClientClass, RateLimit, ToolSpec};
use serde_json::Value;

use super::{
    DefinitionError, Report, activation,
    fields::{At, Fields},
};
use crate::{
    limits::{CALL_MS_MAX, CATEGORY_BYTES_MAX, GUIDANCE_BYTES_MAX, PROGRESS_BYTES_MAX, REPLY_BYTES_MAX},
    reply,
    wording::plain,
};

/// Reads all extensions into the spec.
pub(super) fn apply(
    spec: &mut ToolSpec,
    places: &mut [Fields<'_>],
    report: &mut Report,
) -> Result<(), DefinitionError> {
    let spoken = find(places, &["activationPhrases"]);
    let written = find(places, &["sentenceTemplates", "templates"]);
    spec.phrases = activation::phrases(written.as_ref(), spoken.as_ref(), &spec.input_schema, report)?;
    spec.reply = text(places, &["replyTemplate", "reply"], REPLY_BYTES_MAX)?;
    spec.guidance = text(places, &["guidance"], GUIDANCE_BYTES_MAX)?;
    spec.category = text(places, &["category"], CATEGORY_BYTES_MAX)?;
    if let Some(needs) = flag(places, &["requiresDisplay"])? {
        spec.flags.requires_display = needs;
    }
    if let Some(persistent) = flag(places, &["persistent"])? {
        spec.flags.persistent = persistent;
    }
    if let Some(always) = flag(places, &["always"])? {
        spec.flags.always = always;
    } else if let Some(routed) = flag(places, &["routed"])? {
        spec.flags.always = !routed;
    }
    if let Some(slow) = flag(places, &["slow"])? {
        spec.flags.slow = slow;
    }
    approval(spec, places)?;
    let progress = find(places, &["progressMessage"]);
    spec.progress = progress.map(|at| template(&at, &spec.input_schema, PROGRESS_BYTES_MAX)).transpose()?.flatten();
    spec.clients = find(places, &["clients"]).map(|at| clients(&at)).transpose()?;
    spec.rate_limit = find(places, &["rateLimit"]).map(|at| rate_limit(&at)).transpose()?;
    if let Some(at) = find(places, &["timeoutMs", "timeout"]) {
        let ms = at.count()?;
        let max = u32::try_from(CALL_MS_MAX).unwrap_or(u32::MAX);
        if ms > max {
            report.note(&at.pointer, format!("{ms} ms; a call ends after {max} ms at the latest"));
        }
        spec.timeout_ms = Some(ms.min(max));
    }
    Ok(())
}

/// Whether the app must be started before a call; `None` if the definition does not specify it.
pub(super) fn activate(places: &mut [Fields<'_>]) -> Result<Option<bool>, DefinitionError> {
    flag(places, &["activateApp"])
}

fn find<'a>(places: &mut [Fields<'a>], names: &[&str]) -> Option<At<'a>> {
    let mut found = None;
    for place in places {
        for name in names {
            // Every place is read, so that none is reported as unknown.
            let here = place.take(name);
            found = found.or(here);
        }
    }
    found
}

fn text(places: &mut [Fields<'_>], names: &[&str], bytes_max: usize) -> Result<Option<String>, DefinitionError> {
    let text = find(places, names).map(|at| line(&at, bytes_max)).transpose()?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// One line without invisible characters: it is spoken, shown, or part of a model's instructions.
fn line(at: &At<'_>, bytes_max: usize) -> Result<String, DefinitionError> {
    Ok(plain(&at.text_within(bytes_max)?))
}

fn flag(places: &mut [Fields<'_>], names: &[&str]) -> Result<Option<bool>, DefinitionError> {
    find(places, names).map(|at| at.flag()).transpose()
}

/// `requiresApproval`: true or false, the question itself, or `{message}`; the question may also be in
/// `approvalMessage`. A tool that declares itself destructive requires approval unless it specifies otherwise.
fn approval(spec: &mut ToolSpec, places: &mut [Fields<'_>]) -> Result<(), DefinitionError> {
    let mut message = find(places, &["approvalMessage", "approval"]);
    if let Some(wanted) = find(places, &["requiresApproval"]) {
        match wanted.value {
            Value::Bool(wanted) => spec.flags.requires_approval = *wanted,
            Value::String(_) => {
                spec.flags.requires_approval = true;
                message = Some(wanted);
            }
            _ => {
                let mut fields = wanted.object()?;
                spec.flags.requires_approval = true;
                message = fields.take("message").or(message);
            }
        }
    } else if message.is_some() {
        spec.flags.requires_approval = true;
    }
    if let Some(message) = message {
        // Without words the gateway asks its own question.
        spec.approval = template(&message, &spec.input_schema, REPLY_BYTES_MAX)?;
    }
    Ok(())
}

/// One line with `{property}` of the arguments; `None` if it has no words.
fn template(at: &At<'_>, input_schema: &Value, bytes_max: usize) -> Result<Option<String>, DefinitionError> {
    let template = line(at, bytes_max)?;
    for property in reply::slots(&template).map_err(|reason| at.error(reason))? {
        if input_schema.get("properties").and_then(|all| all.get(property)).is_none() {
            return Err(at.error(format!("the schema has no property '{property}'")));
        }
    }
    Ok(Some(template).filter(|template| !template.is_empty()))
}

fn clients(at: &At<'_>) -> Result<Vec<ClientClass>, DefinitionError> {
    let mut classes = Vec::new();
    for item in at.list(8)? {
        let class = match item.value.as_str() {
            Some("internal") => ClientClass::Internal,
            Some("copilot") => ClientClass::Copilot,
            Some("external") => ClientClass::External,
            _ => return Err(item.error("must be \"internal\", \"copilot\" or \"external\"")),
        };
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    Ok(classes)
}

/// `{requests, period}` with a period in words, or `{calls, perMs}`.
pub(crate) fn rate_limit(at: &At<'_>) -> Result<RateLimit, DefinitionError> {
    let mut fields = at.object()?;
    let requests = fields.take("requests").or_else(|| fields.take("calls"));
    let calls = requests.ok_or_else(|| at.error("needs `requests`"))?.count()?;
    if let Some(per) = fields.take("perMs") {
        return Ok(RateLimit { calls, per_ms: per.count()? });
    }
    let period = fields.take("period").or_else(|| fields.take("per"));
    let period = period.ok_or_else(|| at.error("needs `period`"))?;
    let seconds = match period.value.as_str() {
        Some("second") => 1,
        Some("minute") => 60,
        Some("hour") => 3_600,
        Some("day") => 86_400,
        _ => return Err(period.error("must be \"second\", \"minute\", \"hour\" or \"day\"")),
    };
    Ok(RateLimit { calls, per_ms: seconds * 1_000 })
}
