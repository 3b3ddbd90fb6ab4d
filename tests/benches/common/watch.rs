//! What a gateway in this process holds, and whether its memory grows.

use std::time::Duration;

use anyhow::Result;
use gateway::clock;
use gateway::store::Kind;

use super::TestGateway;

/// Rows of one owner that are counted.
const ROWS_MAX: usize = 1_024;

/// What the gateway holds for devices. All of it is given back when they are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Connections of glasses, those that are not admitted yet included.
    connections: usize,
    /// Sessions in the roster.
    sessions: usize,
    /// Tools in the registry.
    tools: usize,
    /// Sessions and work in progress that hold a lease.
    leases: usize,
    /// Devices that wait for pairing.
    waiting: usize,
    /// Open questions.
    questions: usize,
    /// Stored sessions.
    survivors: usize,
    /// Users' tasks.
    users: usize,
    /// File descriptors.
    descriptors: usize,
}

impl Held {
    /// What it holds now.
    pub fn now(gateway: &TestGateway) -> Result<Self> {
        let services = gateway.running.services();
        let disk = services.store.disk();
        let mut survivors = 0;
        for user in disk.owners(Kind::DeviceSessions)? {
            survivors += disk.rows(Kind::DeviceSessions, &user, b"", ROWS_MAX)?.len();
        }
        Ok(Self {
            connections: services.admission.open.len(),
            sessions: services.roster.all().len(),
            tools: services.registry.specs().len(),
            leases: services.executor.in_flight().held(),
            waiting: services.admission.pairings.waiting(clock::mono_us()).len(),
            questions: services.approvals.list().len(),
            survivors,
            users: services.users.count(),
            descriptors: std::fs::read_dir("/proc/self/fd")?.count(),
        })
    }

    /// Waits until it holds exactly this; otherwise what it holds after `within`.
    pub async fn settled(&self, gateway: &TestGateway, within: Duration) -> Result<Option<Self>> {
        let mut last = None;
        let settled = super::until(within, || {
            last = Self::now(gateway).ok();
            last.as_ref() == Some(self)
        });
        Ok(if settled.await { None } else { last })
    }
}

/// Tasks of the runtime. With those of a connection goes its place; one that QUIC keeps for a connection that has ended
/// may stay for a minute.
pub fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Resident memory of this process in MB: its own, and pages of files, which the system takes back when it needs them.
pub fn resident_mb() -> (f64, f64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        kib.unwrap_or(f64::NAN) * 1_024.0 / 1e6
    };
    (field("RssAnon:"), field("RssFile:"))
}

/// Slope of the straight line through these points, by least squares.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let square: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    both / square
}
