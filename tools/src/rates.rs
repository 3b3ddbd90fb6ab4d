//! Rate limits: per user, per source of tools, and per tool or capability if its definition declares one.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use gateway_core::vocab::{ErrorCode, RateLimit, ToolResult};
use governor::{
    Quota, RateLimiter, clock::Clock as _, middleware::NoOpMiddleware, nanos::Nanos, state::keyed::DashMapStateStore,
};

use crate::{limits::RATED_TOOLS_MAX, ports::Clock, registry::Registered};

/// Number of checks after which idle entries are removed, so that the tables stay as small as the number of recent
/// callers.
const SWEEP_EVERY: u32 = 1_024;

/// Limits for all users. Absent: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Calls of one user.
    pub per_user: Option<RateLimit>,
    /// Calls of one user to the tools of one source: an app, a server, a capability, a device, or the built-in tools.
    pub per_source: Option<RateLimit>,
}

/// Adapts the gateway's clock to the limiter, in nanoseconds.
#[derive(Clone)]
struct LimiterClock(Arc<dyn Clock>);

impl governor::clock::Clock for LimiterClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(self.0.now().mono_us.saturating_mul(1_000))
    }
}

type Limiter = RateLimiter<String, DashMapStateStore<String>, LimiterClock, NoOpMiddleware<Nanos>>;

/// The limiters. The algorithm is GCRA: a limit of 60 a minute admits 60 calls at once and then one a second.
pub(crate) struct Rates {
    clock: LimiterClock,
    per_user: Option<Limiter>,
    per_source: Option<Limiter>,
    /// By what is limited, and its limit.
    per_tool: Mutex<BTreeMap<(String, u32, u32), Arc<Limiter>>>,
    checks: AtomicU32,
}

impl Rates {
    pub(crate) fn new(limits: Limits, clock: Arc<dyn Clock>) -> Self {
        let clock = LimiterClock(clock);
        let limiter = |limit: Option<RateLimit>| limit.and_then(|limit| limiter(limit, &clock));
        Self {
            per_user: limiter(limits.per_user),
            per_source: limiter(limits.per_source),
            per_tool: Mutex::default(),
            checks: AtomicU32::new(0),
            clock,
        }
    }

    /// Counts a call.
    ///
    /// # Errors
    /// The rate is exceeded; the call is admitted after this time.
    pub(crate) fn check(&self, user: &str, tool: &Registered) -> Result<(), Duration> {
        if let Some(limiter) = &self.per_user {
            self.pass(limiter, user.to_owned())?;
        }
        if let Some(limiter) = &self.per_source {
            self.pass(limiter, format!("{}\n{user}", tool.source))?;
        }
        let own = tool.spec.rate_limit.map(|limit| (tool.spec.name.clone(), limit));
        // No tool has the name of a source.
        let shared = || Some((tool.source.to_string(), tool.about.as_ref()?.rate_limit?));
        if let Some((what, limit)) = own.or_else(shared)
            && let Some(limiter) = self.of_tool(what, limit)
        {
            self.pass(&limiter, user.to_owned())?;
        }
        Ok(())
    }

    fn pass(&self, limiter: &Limiter, key: String) -> Result<(), Duration> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            limiter.retain_recent();
        }
        limiter.check_key(&key).map_err(|early| early.wait_time_from(self.clock.now()))
    }

    /// The limiter of a tool, or of all functions of a capability. What is registered again keeps its count, unless its
    /// limit has changed. Two users may have definitions of the same name with different limits.
    fn of_tool(&self, what: String, limit: RateLimit) -> Option<Arc<Limiter>> {
        let mut tools = self.per_tool.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (what, limit.calls, limit.per_ms);
        if let Some(limiter) = tools.get(&key) {
            return Some(Arc::clone(limiter));
        }
        if tools.len() >= RATED_TOOLS_MAX {
            tools.clear();
        }
        let limiter = Arc::new(limiter(limit, &self.clock)?);
        tools.insert(key, Arc::clone(&limiter));
        Some(limiter)
    }
}

/// `None` for an invalid limit, which registration rejects.
fn limiter(limit: RateLimit, clock: &LimiterClock) -> Option<Limiter> {
    let calls = NonZeroU32::new(limit.calls)?;
    let one_per = Duration::from_millis(u64::from(limit.per_ms)).checked_div(limit.calls)?;
    let quota = Quota::with_period(one_per)?.allow_burst(calls);
    Some(Limiter::new(quota, DashMapStateStore::default(), clock.clone()))
}
/// The result of a call that comes too early, by this much.
pub(crate) fn too_often(early: Duration) -> ToolResult {
    let seconds = early.as_secs_f64().ceil().max(1.0) as u64;
    let message = format!("Too many calls; nothing was done. Try again in {seconds} s.");
    ToolResult::failed(ErrorCode::RateLimited, message, true)
}
