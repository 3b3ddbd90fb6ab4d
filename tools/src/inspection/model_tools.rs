//! `list_models`, `get_model_info` and `get_inference_stats`: the models and what they have done.

use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::{Value, json};

use super::{
    MODELS,
    form::{Inspects, reads, told},
    models::{ModelInfo, ModelUsage, Models},
    moment,
};
use crate::{
    arguments::{Arguments, Refusal},
    builtin::Definition,
    registry::RunContext,
    spoken,
};

/// Characters of an id: no model has a longer one.
const ID_CHARS_MAX: usize = 200;

/// Milliseconds, with three digits behind the point.
fn ms(us: Option<u64>) -> Value {
    us.map_or(Value::Null, |us| json!(us as f64 / 1_000.0))
}

/// A model in a list.
fn row(model: &ModelInfo) -> Value {
    json!({
        "id": model.id,
        "name": model.name,
        "model_type": model.model_type,
        "loaded_at": moment::written(model.loaded_wall_ms),
        "memory_usage_bytes": model.memory_usage_bytes,
        "inference_count": model.usage.count,
        "average_latency_ms": ms(model.usage.mean_us),
    })
}

/// What a model has done.
fn stats(id: &str, usage: &ModelUsage) -> Value {
    json!({
        "id": id,
        "count": usage.count,
        "failed": usage.failed,
        "mean_ms": ms(usage.mean_us),
        "p50_ms": ms(usage.p50_us),
        "p95_ms": ms(usage.p95_us),
        "last_at": usage.last_wall_ms.map(moment::written),
    })
}

/// A model with all that is known of it.
fn whole(model: &ModelInfo) -> Value {
    let mut all = row(model);
    // What the number is: nobody measures a part of a process.
    all["memory_source"] = if model.memory_usage_bytes.is_some() { "size of its files".into() } else { Value::Null };
    all["package"] = json!(model.package);
    all["files"] = json!(model.files);
    all["settings"] = model.settings.clone();
    all["inference"] = stats(&model.id, &model.usage);
    all
}

/// The model of this id.
fn found(models: Vec<ModelInfo>, id: &str) -> Result<ModelInfo, Refusal> {
    let known: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
    let unknown = format!("there is no model `{id}`; there are {}", known.join(", "));
    models
        .into_iter()
        .find(|model| model.id == id)
        .ok_or_else(|| Refusal::arguments(unknown, "I don't know that model."))
}

pub(super) struct ListModels(pub(super) Arc<dyn Models>);

#[async_trait]
impl Inspects for ListModels {
    const CATEGORY: &'static str = MODELS;

    fn definition(&self) -> Definition {
        reads(
            "list_models",
            "List the models",
            "Lists the gateway's models of speech, tool selection and language: when each was loaded, the bytes of its files, \
             how often it ran and how long that took on average, in milliseconds.",
        )
    }

    async fn run(&self, _context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let models = self.0.models();
        let say = format!("There are {}.", spoken::count(models.len(), "model"));
        Ok(told(json!({"count": models.len(), "models": models.iter().map(row).collect::<Vec<_>>()}), say))
    }
}

pub(super) struct GetModelInfo(pub(super) Arc<dyn Models>);

#[async_trait]
impl Inspects for GetModelInfo {
    const CATEGORY: &'static str = MODELS;

    fn definition(&self) -> Definition {
        Definition {
            properties: json!({"model_id": {"type": "string", "description": "From list_models."}}),
            required: &["model_id"],
            ..reads(
                "get_model_info",
                "Show a model",
                "Tells all that is known of one model: also its package, its files with their checksums, and its settings.",
            )
        }
    }

    async fn run(&self, _context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let model = found(self.0.models(), &arguments.text_required("model_id", ID_CHARS_MAX, "Which model?")?)?;
        Ok(told(whole(&model), format!("This is {}.", model.name)))
    }
}

pub(super) struct GetInferenceStats(pub(super) Arc<dyn Models>);

#[async_trait]
impl Inspects for GetInferenceStats {
    const CATEGORY: &'static str = MODELS;

    fn definition(&self) -> Definition {
        Definition {
            properties: json!({"model_id": {"type": "string", "description": "From list_models; all without it."}}),
            ..reads(
                "get_inference_stats",
                "Count what models do",
                "Tells what the models, or one, have done since they were loaded: inferences, failures, and how long they took \
                 in milliseconds: mean of all, p50 and p95 of the latest 256.",
            )
        }
    }

    async fn run(&self, _context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let mut models = self.0.models();
        let since = models.iter().map(|model| model.loaded_wall_ms).min();
        if let Some(id) = arguments.text_optional("model_id", ID_CHARS_MAX)? {
            models = vec![found(models, &id)?];
        }
        let count = models.iter().map(|model| model.usage.count).fold(0, u64::saturating_add);
        let stats: Vec<Value> = models.iter().map(|model| stats(&model.id, &model.usage)).collect();
        let data = json!({"models": stats, "since": since.map(moment::written)});
        Ok(told(data, format!("The models ran {count} times.")))
    }
}
