//! The models that may be asked, in order, and the budgets of turns and days.

use std::path::Path;

use gateway_core::{
    conversation,
    user::{self, Compaction},
};
use serde::Deserialize;
use toml::Spanned;

use super::{
    model::Model,
    options::Place,
    raw::{RawModel, RawPrice},
};
use crate::problems::{Problems, unwritten};

/// Highest price or budget: a greater value is a typing error.
const MONEY_MAX: f64 = 1_000_000.0;
/// Models that are tried one after another, including the box.
const MODELS_MAX: usize = gateway_core::limits::MODELS_MAX;

/// `[budgets]` as configured.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawBudgets {
    money_per_day: Spanned<f64>,
    /// 0: no limit.
    tokens_per_turn: u32,
    seconds_per_turn: Spanned<u32>,
    steps_per_turn: Spanned<u8>,
}

impl Default for RawBudgets {
    fn default() -> Self {
        let core = conversation::Config::default();
        Self {
            money_per_day: unwritten(0.0),
            tokens_per_turn: core.turn_tokens_max.unwrap_or(0),
            seconds_per_turn: unwritten(core.turn_ms_max / 1_000),
            steps_per_turn: unwritten(core.model_requests_max),
        }
    }
}

impl RawBudgets {
    /// Checks the limits of one turn.
    pub(crate) fn check(&self, problems: &mut Problems<'_>, conversation: &mut conversation::Config) {
        conversation.turn_tokens_max = (self.tokens_per_turn > 0).then_some(self.tokens_per_turn);
        let seconds = problems.between(&self.seconds_per_turn, "budgets.seconds_per_turn", 5..=600);
        conversation.turn_ms_max = seconds.saturating_mul(1_000);
        conversation.model_requests_max = problems.between(&self.steps_per_turn, "budgets.steps_per_turn", 1..=32);
    }
}

/// The sections that configure the models.
pub(crate) struct RawRouting<'a> {
    /// `[model]`
    pub(crate) model: &'a RawModel,
    /// `[[fallback]]`
    pub(crate) fallback: &'a [RawModel],
    /// `[budgets]`
    pub(crate) budgets: &'a RawBudgets,
    /// `assistant.offline_fallback`: the box is the last fallback.
    pub(crate) offline_fallback: bool,
}

impl RawRouting<'_> {
    /// The model, its fallbacks in order, and the box last unless switched off. The core's settings for them go into
    /// `user`, in the same order.
    pub(crate) fn check(
        &self,
        problems: &mut Problems<'_>,
        data_dir: &Path,
        user: &mut user::Config,
    ) -> Option<Vec<Model>> {
        let mut chain = Vec::new();
        let fallbacks = self.fallback.iter().enumerate().map(|(index, raw)| (Place::Fallback(index), raw));
        for (place, raw) in std::iter::once((Place::Model, self.model)).chain(fallbacks) {
            let model = raw.check(problems, place, data_dir)?;
            let on_box = model == Model::Offline;
            user.models.push(user::Model { on_box, images: raw.images, price: price(problems, &raw.price) });
            chain.push(model);
        }
        if !chain.contains(&Model::Offline) && self.offline_fallback {
            user.models.push(user::Model { on_box: true, ..user::Model::default() });
            chain.push(Model::Offline);
        }
        if chain.len() > MODELS_MAX {
            let what = format!("{} models are set up; at most {MODELS_MAX} are tried", chain.len());
            problems.at(self.model.kind.span(), what);
        }
        self.check_money(problems, user);
        let summarise = user.models.iter().any(|model| !model.on_box);
        user.compaction = Compaction { summarise, ..Compaction::default() };
        Some(chain)
    }

    fn check_money(&self, problems: &mut Problems<'_>, user: &mut user::Config) {
        let written = &self.budgets.money_per_day;
        let money = problems.between(written, "budgets.money_per_day", 0.0..=MONEY_MAX);
        if money > 0.0 && user.models.iter().all(|model| model.price == user::Price::default()) {
            let what = "no model has a `price`, so that nothing would count; set [model] price, or leave this out";
            problems.at(written.span(), what);
        }
        user.nano_per_day = (money > 0.0).then_some(scaled(money, 1e9));
    }
}

fn price(problems: &mut Problems<'_>, price: &Spanned<RawPrice>) -> user::Price {
    let RawPrice { input, cached, output } = *price.get_ref();
    let cached = cached.unwrap_or(input);
    if [input, cached, output].iter().any(|price| !(0.0..=MONEY_MAX).contains(price)) {
        problems.at(price.span(), format!("a price must be between 0 and {MONEY_MAX}, for a million tokens"));
    }
    user::Price { input: scaled(input, 1e6), cached: scaled(cached, 1e6), output: scaled(output, 1e6) }
}

/// Money in integer parts; values out of range were reported before.
fn scaled(money: f64, parts: f64) -> u64 {
    // A float beyond the range saturates, and NaN becomes 0.
    (money * parts).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check;

    const CHAT: &str = "kind = \"chat_completions\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";

    #[test]
    fn the_box_comes_last_unless_it_is_not_wanted() {
        let models = |text: &str| {
            let config = check(text, "x.toml").unwrap();
            assert_eq!(config.models.chain.len(), config.user.models.len());
            config.user.models
        };
        let on_box = |models: &[user::Model]| models.iter().map(|model| model.on_box).collect::<Vec<_>>();
        assert_eq!(on_box(&models("")), [true]);
        let two = models(&format!("[model]\n{CHAT}[[fallback]]\n{CHAT}images = true\n"));
        assert_eq!(on_box(&two), [false, false, true]);
        assert!(two[1].images && !two[0].images);
        let none = models(&format!("[model]\n{CHAT}[assistant]\noffline_fallback = false\n"));
        assert_eq!(on_box(&none), [false]);
    }

    #[test]
    fn money_is_counted_in_whole_parts() {
        let text = format!("[model]\n{CHAT}price = {{ input = 0.15, output = 0.6 }}\n[budgets]\nmoney_per_day = 0.5\n");
        let user = check(&text, "x.toml").unwrap().user;
        let price = user.models[0].price;
        assert_eq!((price.input, price.cached, price.output), (150_000, 150_000, 600_000));
        assert_eq!(user.nano_per_day, Some(500_000_000));
        assert_eq!(check("", "x.toml").unwrap().user.nano_per_day, None);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (text, line) in [
            (format!("[model]\n{CHAT}price = {{ input = -1.0, output = 0.6 }}\n"), 5),
            (format!("[model]\n{CHAT}price = {{ input = nan, output = 0.6 }}\n"), 5),
            ("[budgets]\nmoney_per_day = -1.0\n".to_owned(), 2),
            (format!("[model]\n{CHAT}[budgets]\nmoney_per_day = 1.0\n"), 6),
            ("[budgets]\n\nseconds_per_turn = 1\n".to_owned(), 3),
            ("[budgets]\nsteps_per_turn = 0\n".to_owned(), 2),
            ("[[fallback]]\nkind = \"chat_completions\"\n".to_owned(), 2),
            (format!("[model]\n{CHAT}{}", format!("[[fallback]]\n{CHAT}").repeat(8)), 2),
        ] {
            let problems = check(&text, "x.toml").unwrap_err();
            assert_eq!(problems[0].line, Some(line), "{text}: {problems:?}");
        }
    }
}
