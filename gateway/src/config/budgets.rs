//! Which models may be asked, in which order, and what turns and days may take.

use std::path::Path;

use gateway_core::{conversation, user};
use serde::Deserialize;
use toml::Spanned;

use super::{Model, Problems, options::Place, raw};

/// Highest price or budget: beyond it is a typing error.
const MONEY_MAX: f64 = 1_000_000.0;
/// Models that are tried one after another, the box among them.
const MODELS_MAX: usize = gateway_core::limits::MODELS_MAX;

/// `[budgets]`, as it is written.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Budgets {
    money_per_day: Spanned<f64>,
    /// 0: no limit.
    tokens_per_turn: u32,
    seconds_per_turn: Spanned<u32>,
    steps_per_turn: Spanned<u8>,
}

impl Default for Budgets {
    fn default() -> Self {
        let core = conversation::Config::default();
        let unwritten = |seconds| Spanned::new(0..0, seconds);
        Self {
            money_per_day: Spanned::new(0..0, 0.0),
            tokens_per_turn: core.turn_tokens_max.unwrap_or(0),
            seconds_per_turn: unwritten(core.turn_ms_max / 1_000),
            steps_per_turn: Spanned::new(0..0, core.model_requests_max),
        }
    }
}

/// What a model costs for a million tokens, as it is written.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Price {
    input: f64,
    cached: Option<f64>,
    output: f64,
}

/// The models that answer, best first.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// How each is reached.
    pub models: Vec<Model>,
    /// What the core knows of each.
    pub terms: Vec<user::Model>,
    /// What they may cost a user on one day, in billionths; `None`: as much as it takes.
    pub nano_per_day: Option<u64>,
}

impl Ranks {
    /// Whether the first of them answers what is no command.
    pub fn converse(&self) -> bool {
        self.models.first().is_some_and(|model| *model != Model::Offline)
    }
}

impl Problems<'_> {
    /// The model, its fall-backs in their order, and the box behind all of them unless it is not wanted.
    pub(super) fn ranks(&mut self, raw: &raw::Raw, data_dir: &Path) -> Option<Ranks> {
        let mut ranks = Ranks { models: Vec::new(), terms: Vec::new(), nano_per_day: None };
        let fallbacks = raw.fallback.iter().enumerate().map(|(index, written)| (Place::Fallback(index), written));
        for (place, written) in std::iter::once((Place::Model, &raw.model)).chain(fallbacks) {
            let model = self.model(place, written, data_dir)?;
            let on_box = model == Model::Offline;
            ranks.terms.push(user::Model { on_box, images: written.images, price: self.price(&written.price) });
            ranks.models.push(model);
        }
        let has_box = ranks.models.contains(&Model::Offline);
        if !has_box && raw.assistant.offline_fallback {
            ranks.terms.push(user::Model { on_box: true, ..user::Model::default() });
            ranks.models.push(Model::Offline);
        }
        if ranks.models.len() > MODELS_MAX {
            let what = format!("{} models are set up; at most {MODELS_MAX} are tried", ranks.models.len());
            self.at(raw.model.kind.span(), what);
        }
        let money = self.between(&raw.budgets.money_per_day, "budgets.money_per_day", 0.0..=MONEY_MAX);
        if money > 0.0 && ranks.terms.iter().all(|terms| terms.price == user::Price::default()) {
            let span = raw.budgets.money_per_day.span();
            self.at(span, "no model has a `price`, so that nothing would count; set [model] price, or leave this out");
        }
        ranks.nano_per_day = (money > 0.0).then_some(scaled(money, 1e9));
        Some(ranks)
    }

    fn price(&mut self, price: &Spanned<Price>) -> user::Price {
        let Price { input, cached, output } = *price.get_ref();
        let cached = cached.unwrap_or(input);
        if [input, cached, output].iter().any(|price| !(0.0..=MONEY_MAX).contains(price)) {
            self.at(price.span(), format!("a price must be between 0 and {MONEY_MAX}, for a million tokens"));
        }
        user::Price { input: scaled(input, 1e6), cached: scaled(cached, 1e6), output: scaled(output, 1e6) }
    }

    /// What one turn may take.
    pub(super) fn budgets(&mut self, budgets: &Budgets, conversation: &mut conversation::Config) {
        conversation.turn_tokens_max = (budgets.tokens_per_turn > 0).then_some(budgets.tokens_per_turn);
        let seconds = self.between(&budgets.seconds_per_turn, "budgets.seconds_per_turn", 5..=600);
        conversation.turn_ms_max = seconds.saturating_mul(1_000);
        conversation.model_requests_max = self.between(&budgets.steps_per_turn, "budgets.steps_per_turn", 1..=32);
    }
}

/// Money in whole parts; what is not in range was told of.
fn scaled(money: f64, parts: f64) -> u64 {
    // A float beyond the range becomes the range's end, and no number becomes 0.
    (money * parts).round() as u64
}

#[cfg(test)]
mod tests {
    use crate::config::check;

    const CHAT: &str = "kind = \"chat_completions\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";

    #[test]
    fn the_box_comes_last_unless_it_is_not_wanted() {
        let ranks = |text: &str| check(text, "x.toml").unwrap().ranks;
        let alone = ranks("");
        assert_eq!((alone.models.len(), alone.terms[0].on_box), (1, true));
        let two = ranks(&format!("[model]\n{CHAT}[[fallback]]\n{CHAT}images = true\n"));
        let on_box: Vec<bool> = two.terms.iter().map(|terms| terms.on_box).collect();
        assert_eq!(on_box, [false, false, true]);
        assert!(two.terms[1].images && !two.terms[0].images);
        let none = ranks(&format!("[model]\n{CHAT}[assistant]\noffline_fallback = false\n"));
        assert_eq!(none.models.len(), 1);
    }

    #[test]
    fn money_is_counted_in_whole_parts() {
        let text = format!("[model]\n{CHAT}price = {{ input = 0.15, output = 0.6 }}\n[budgets]\nmoney_per_day = 0.5\n");
        let ranks = check(&text, "x.toml").unwrap().ranks;
        let price = ranks.terms[0].price;
        assert_eq!((price.input, price.cached, price.output), (150_000, 150_000, 600_000));
        assert_eq!(ranks.nano_per_day, Some(500_000_000));
        assert_eq!(check("", "x.toml").unwrap().ranks.nano_per_day, None);
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
            assert_eq!(problems[0].line, line, "{text}: {problems:?}");
        }
    }
}
