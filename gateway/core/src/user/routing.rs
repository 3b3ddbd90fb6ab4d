//! Model routing: which models a user's turns may ask, by outages and by the day's budget.

use alloc::vec::Vec;

use crate::{
    input::Spending,
    limits::{MODELS_MAX, SPENDING_DAYS_MAX},
    vocab::{Candidate, FallbackReason, ModelOutcome, ModelRoute, ServiceLevel, Timestamp, Usage},
};

/// Wait before a failed model is tried again; doubled with each further failure.
const RETRY_MS_MIN: u64 = 30_000;
/// Longest wait: a recovered model should be used again soon.
const RETRY_MS_MAX: u64 = 600_000;

/// A model as configured by the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Whether it is the local engine: it never fails and costs nothing.
    pub on_box: bool,
    /// Whether it takes images.
    pub images: bool,
    /// What its tokens cost.
    pub price: Price,
}

/// Prices in millionths of the operator's currency unit per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Input tokens that are not from the cache.
    pub input: u64,
    /// Input tokens from the provider's cache.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
}

impl Price {
    /// The cost of this usage, in billionths of the currency unit, rounded up.
    pub fn nano(&self, usage: Usage) -> u64 {
        let cached = usage.cached.min(usage.input);
        [(usage.input - cached, self.input), (cached, self.cached), (usage.output, self.output)]
            .into_iter()
            .fold(0_u64, |sum, (tokens, price)| sum.saturating_add(u64::from(tokens).saturating_mul(price)))
            .div_ceil(1_000)
    }

    fn is_free(&self) -> bool {
        *self == Self::default()
    }
}

/// An outage of a model.
#[derive(Clone, Copy, Debug)]
struct Outage {
    failures: u32,
    retry_us: u64,
}

/// Outages, spending, and what the wearer was told of them.
#[derive(Debug)]
pub(super) struct ModelRouter {
    models: Vec<Model>,
    /// Daily budget in billionths of the currency unit; `None`: unlimited.
    nano_per_day: Option<u64>,
    outages: Vec<Option<Outage>>,
    /// Of the present day, by the clock.
    spending: Spending,
    /// Of other days, the latest used first: a clock that was wrong returns to the right day.
    other_days: Vec<Spending>,
    told_outage: ServiceLevel,
    told_budget: ServiceLevel,
}

impl ModelRouter {
    pub(super) fn new(models: &[Model], nano_per_day: Option<u64>) -> Self {
        let mut models: Vec<Model> = models.iter().copied().take(MODELS_MAX).collect();
        if models.is_empty() {
            models.push(Model::default());
        }
        Self {
            outages: models.iter().map(|_| None).collect(),
            models,
            nano_per_day,
            spending: Spending::default(),
            other_days: Vec::new(),
            told_outage: ServiceLevel::Full,
            told_budget: ServiceLevel::Full,
        }
    }

    /// Sets what was spent on the last days, newest first.
    pub(super) fn restore(&mut self, days: Vec<Spending>) {
        let mut days = days.into_iter().take(SPENDING_DAYS_MAX);
        self.spending = days.next().unwrap_or_default();
        self.other_days = days.collect();
    }

    /// The models that a turn which begins now may ask.
    pub(super) fn route(&mut self, now: Timestamp) -> ModelRoute {
        self.roll_day(now);
        let is_spent = self.nano_per_day.is_some_and(|nano| self.spending.nano >= nano);
        let pays = |model: &Model| !is_spent || model.price.is_free();
        let reason = match self.models.first() {
            Some(first) if !pays(first) => FallbackReason::Budget,
            _ => FallbackReason::Outage,
        };
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for (index, model) in self.models.iter().enumerate().filter(|(_, model)| pays(model)) {
            let candidate = Candidate {
                rank: u8::try_from(index).unwrap_or(u8::MAX),
                level: match index {
                    0 => ServiceLevel::Full,
                    _ if model.on_box => ServiceLevel::Commands,
                    _ => ServiceLevel::Fallback,
                },
                images: model.images,
            };
            let waits = self.outages.get(index).copied().flatten().is_some_and(|outage| outage.retry_us > now.mono_us);
            if waits { down.push(candidate) } else { up.push(candidate) }
        }
        // Without a local engine, models that failed recently remain as the last candidates.
        let on_box =
            |candidate: &Candidate| self.models.get(usize::from(candidate.rank)).is_some_and(|model| model.on_box);
        if !up.iter().any(on_box) {
            up.append(&mut down);
        }
        let told = if reason == FallbackReason::Budget { self.told_budget } else { self.told_outage };
        ModelRoute { candidates: up, reason, told }
    }

    /// Records that a model has answered or failed. Returns the day's spending, if it has grown.
    pub(super) fn used(&mut self, now: Timestamp, rank: u8, usage: Usage, outcome: ModelOutcome) -> Option<Spending> {
        let index = usize::from(rank);
        if let Some(outage) = self.outages.get_mut(index) {
            match outcome {
                ModelOutcome::Failed => {
                    let failures = outage.map_or(0, |outage| outage.failures);
                    let wait_ms = RETRY_MS_MIN.saturating_mul(1 << failures.min(16)).min(RETRY_MS_MAX);
                    let retry_us = now.mono_us.saturating_add(wait_ms.saturating_mul(1_000));
                    *outage = Some(Outage { failures: failures.saturating_add(1), retry_us });
                }
                ModelOutcome::Answered => {
                    *outage = None;
                    if index == 0 {
                        self.told_outage = ServiceLevel::Full;
                    }
                }
                ModelOutcome::Cancelled => {}
            }
        }
        self.spent(now, rank, usage)
    }

    /// The model that summarises: the best one that is available and within the budget, and not the local engine.
    pub(super) fn summariser(&mut self, now: Timestamp) -> Option<u8> {
        let ModelRoute { candidates, .. } = self.route(now);
        let ranks = candidates.iter().map(|candidate| candidate.rank);
        ranks.into_iter().find(|rank| self.models.get(usize::from(*rank)).is_some_and(|model| !model.on_box))
    }

    /// Records the usage of a model. Returns the day's spending, if it has grown.
    pub(super) fn spent(&mut self, now: Timestamp, rank: u8, usage: Usage) -> Option<Spending> {
        let model = *self.models.get(usize::from(rank))?;
        if usage == Usage::default() {
            return None;
        }
        self.roll_day(now);
        self.spending.nano = self.spending.nano.saturating_add(model.price.nano(usage));
        self.spending.input = self.spending.input.saturating_add(usage.input.into());
        self.spending.output = self.spending.output.saturating_add(usage.output.into());
        Some(self.spending)
    }

    pub(super) fn told(&mut self, reason: FallbackReason, level: ServiceLevel) {
        match reason {
            FallbackReason::Outage => self.told_outage = self.told_outage.max(level),
            FallbackReason::Budget => self.told_budget = self.told_budget.max(level),
        }
    }

    /// Starts a new day's budget at local midnight. A clock set back to the previous day does not; one that was wrong by
    /// more goes on with what is known of the day.
    fn roll_day(&mut self, now: Timestamp) {
        let local_ms = now.wall_ms.saturating_add(i64::from(now.offset_s).saturating_mul(1_000));
        let day = local_ms.div_euclid(86_400_000);
        let set_back = day < self.spending.day && self.spending.day - day <= 1;
        if day != self.spending.day && !set_back {
            let known = self.other_days.iter().position(|other| other.day == day);
            let next = known.map(|at| self.other_days.remove(at)).unwrap_or(Spending { day, ..Spending::default() });
            self.other_days.insert(0, core::mem::replace(&mut self.spending, next));
            self.other_days.truncate(SPENDING_DAYS_MAX);
            self.told_budget = ServiceLevel::Full;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const PRICE: Price = Price { input: 2_500_000, cached: 1_250_000, output: 10_000_000 };

    fn at(seconds: u64) -> Timestamp {
        let wall_ms = 1_800_000_000_000 + i64::try_from(seconds).unwrap() * 1_000;
        Timestamp { mono_us: seconds * 1_000_000, wall_ms, offset_s: 0 }
    }

    fn ranks(models: &mut ModelRouter, seconds: u64) -> Vec<u8> {
        models.route(at(seconds)).candidates.iter().map(|candidate| candidate.rank).collect()
    }

    fn three() -> Vec<Model> {
        let paid = Model { price: PRICE, ..Model::default() };
        vec![paid, paid, Model { on_box: true, ..Model::default() }]
    }

    fn fails(models: &mut ModelRouter, seconds: u64, rank: u8) {
        models.used(at(seconds), rank, Usage::default(), ModelOutcome::Failed);
    }

    #[test]
    fn what_tokens_cost() {
        let usage = |input, cached, output| Usage { input, cached, output };
        for (tokens, nano) in [
            (usage(0, 0, 0), 0),
            (usage(1_000_000, 0, 0), 2_500_000_000),
            (usage(1_000_000, 400_000, 0), 2_000_000_000),
            (usage(0, 0, 1_000_000), 10_000_000_000),
            (usage(1, 0, 0), 2_500),
            // More cached tokens than input tokens.
            (usage(10, 20, 0), 12_500),
        ] {
            assert_eq!(PRICE.nano(tokens), nano, "{tokens:?}");
        }
        // Rounded up: a price below a billionth per token is not free.
        assert_eq!(Price { input: 1, ..Price::default() }.nano(usage(1, 0, 0)), 1);
        let most = Price { input: u64::MAX, cached: 0, output: u64::MAX };
        assert_eq!(most.nano(usage(u32::MAX, 0, u32::MAX)), u64::MAX.div_ceil(1_000));
    }

    #[test]
    fn a_model_that_fails_is_tried_again_after_longer_and_longer() {
        let mut models = ModelRouter::new(&three(), None);
        assert_eq!(ranks(&mut models, 0), [0, 1, 2]);
        let mut seconds = 0;
        for wait in [30, 60, 120, 240, 480, 600, 600] {
            fails(&mut models, seconds, 0);
            assert_eq!(ranks(&mut models, seconds + wait - 1), [1, 2], "{wait}");
            assert_eq!(ranks(&mut models, seconds + wait), [0, 1, 2], "{wait}");
            seconds += wait;
        }
        models.used(at(seconds), 0, Usage::default(), ModelOutcome::Answered);
        fails(&mut models, seconds, 0);
        assert_eq!(ranks(&mut models, seconds + 30), [0, 1, 2]);
    }

    #[test]
    fn with_nobody_else_a_model_that_failed_is_asked_all_the_same() {
        let mut models = ModelRouter::new(&[Model::default(), Model::default()], None);
        fails(&mut models, 1, 0);
        assert_eq!(ranks(&mut models, 2), [1, 0]);
        fails(&mut models, 2, 1);
        assert_eq!(ranks(&mut models, 3), [0, 1]);
        let mut alone = ModelRouter::new(&[], None);
        fails(&mut alone, 1, 0);
        assert_eq!(ranks(&mut alone, 2), [0]);
    }

    #[test]
    fn a_day_has_its_money() {
        let mut models = ModelRouter::new(&three(), Some(5_000_000_000));
        let million = Usage { input: 1_000_000, ..Usage::default() };
        let spent =
            |models: &mut ModelRouter, seconds| models.used(at(seconds), 0, million, ModelOutcome::Answered).unwrap();
        assert_eq!(spent(&mut models, 10).nano, 2_500_000_000);
        assert_eq!(ranks(&mut models, 11), [0, 1, 2]);
        assert_eq!(spent(&mut models, 12).nano, 5_000_000_000);
        let route = models.route(at(13));
        assert_eq!((route.reason, route.told, route.candidates.len()), (FallbackReason::Budget, ServiceLevel::Full, 1));
        assert_eq!(route.candidates[0].level, ServiceLevel::Commands);
        models.told(FallbackReason::Budget, ServiceLevel::Commands);
        assert_eq!(models.route(at(14)).told, ServiceLevel::Commands);
        // 1 800 000 000 s is 08:00 UTC.
        assert_eq!(ranks(&mut models, 16 * 3_600 - 1), [2]);
        assert_eq!(ranks(&mut models, 16 * 3_600), [0, 1, 2]);
        assert_eq!(models.route(at(16 * 3_600)).reason, FallbackReason::Outage);
        assert_eq!(spent(&mut models, 16 * 3_600 + 1).nano, 2_500_000_000);
        // A clock that is set back across midnight.
        assert_eq!(spent(&mut models, 15 * 3_600).nano, 5_000_000_000);
        assert_eq!(models.route(at(15 * 3_600)).told, ServiceLevel::Full);
        // A clock that was wrong by days is corrected.
        models.told(FallbackReason::Budget, ServiceLevel::Commands);
        let put_right = |wall_ms: i64| Timestamp { wall_ms: wall_ms - 2 * 86_400_000, ..at(15 * 3_600) };
        let route = models.route(put_right(at(15 * 3_600).wall_ms));
        assert_eq!((route.reason, route.told, route.candidates.len()), (FallbackReason::Outage, ServiceLevel::Full, 3));
    }

    #[test]
    fn a_clock_that_was_wrong_brings_no_new_budget() {
        let million = Usage { input: 1_000_000, ..Usage::default() };
        let days_on = |days: i64| Timestamp { wall_ms: at(0).wall_ms + days * 86_400_000, ..at(0) };
        let spent = |models: &mut ModelRouter, days| {
            models.used(days_on(days), 0, million, ModelOutcome::Answered).unwrap().nano
        };
        let mut models = ModelRouter::new(&three(), Some(5_000_000_000));
        // In 1970, until it is set; then 5 days ahead.
        for (days, sum) in [(0, 1), (-20_000, 1), (0, 2), (5, 1)] {
            assert_eq!(spent(&mut models, days), sum * 2_500_000_000, "{days}");
        }
        assert_eq!(models.route(days_on(0)).reason, FallbackReason::Budget);
        // After a restart the day that is ahead is the newest one.
        let today = models.spending;
        let ahead = Spending { day: today.day + 5, ..Spending::default() };
        let mut again = ModelRouter::new(&three(), Some(5_000_000_000));
        again.restore(vec![ahead, today]);
        assert_eq!(again.route(days_on(0)).reason, FallbackReason::Budget);
        assert_eq!(again.route(days_on(1)).reason, FallbackReason::Outage);
    }

    #[test]
    fn the_day_is_the_users() {
        let mut models = ModelRouter::new(&three(), None);
        let one = Usage { input: 1, ..Usage::default() };
        let here = Timestamp { offset_s: 16 * 3_600, ..at(0) };
        let day = models.used(at(0), 0, one, ModelOutcome::Answered).unwrap().day;
        assert_eq!(models.used(here, 0, one, ModelOutcome::Answered).unwrap().day, day + 1);
    }

    #[test]
    fn what_was_told_is_forgotten_when_the_first_model_answers() {
        let mut models = ModelRouter::new(&three(), None);
        fails(&mut models, 1, 0);
        models.told(FallbackReason::Outage, ServiceLevel::Fallback);
        for (rank, outcome, told) in [
            (1, ModelOutcome::Answered, ServiceLevel::Fallback),
            (0, ModelOutcome::Cancelled, ServiceLevel::Fallback),
            (0, ModelOutcome::Answered, ServiceLevel::Full),
        ] {
            models.used(at(2), rank, Usage::default(), outcome);
            assert_eq!(models.route(at(2)).told, told, "{rank} {outcome:?}");
        }
    }
}
