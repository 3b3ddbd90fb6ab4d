//! The models of this process and what they have counted.

use std::sync::Arc;

use audio::meter::{Meter, Usage};
use tools::inspection::models::{ModelInfo, ModelUsage, Models};

use crate::clock;

/// The models that were loaded and set up when the gateway started.
#[derive(Default)]
pub(crate) struct OwnModels(Vec<(ModelInfo, Arc<Meter>)>);

impl OwnModels {
    /// These, with their meters, which have the times and the counts.
    pub(crate) fn new(models: Vec<(ModelInfo, Arc<Meter>)>) -> Self {
        Self(models)
    }
}

impl Models for OwnModels {
    fn models(&self) -> Vec<ModelInfo> {
        let now = clock::wall_ms();
        self.0.iter().map(|(model, meter)| counted(model.clone(), meter.read(), now)).collect()
    }
}

fn counted(model: ModelInfo, usage: Usage, now_wall_ms: i64) -> ModelInfo {
    let before =
        |age: std::time::Duration| now_wall_ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    ModelInfo {
        loaded_wall_ms: before(usage.age),
        usage: ModelUsage {
            count: usage.count,
            failed: usage.failed,
            mean_us: usage.mean_us(),
            p50_us: usage.p50_us,
            p95_us: usage.p95_us,
            last_wall_ms: usage.last_age.map(before),
        },
        ..model
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ages_become_times() {
        let (age, last_age) = (Duration::from_secs(9), Some(Duration::from_millis(1_500)));
        let usage = Usage { count: 4, failed: 1, total_us: 400, p50_us: Some(90), age, last_age, ..Usage::default() };
        let model = counted(ModelInfo { id: "m".to_owned(), ..ModelInfo::default() }, usage, 10_000);
        assert_eq!((model.id.as_str(), model.loaded_wall_ms), ("m", 1_000));
        let told = ModelUsage {
            count: 4,
            failed: 1,
            mean_us: Some(100),
            p50_us: Some(90),
            p95_us: None,
            last_wall_ms: Some(8_500),
        };
        assert_eq!(model.usage, told);
    }
}
