//! Metrics of the host, as Linux tells them: load, memory, temperature.

use std::{fs, path::Path, thread};

use tools::inspection::system::MemoryUse;

use crate::runtime::on_own_thread;

/// Bytes of a page, in which Linux counts a process's memory on all our targets.
const PAGE_BYTES: u64 = 4_096;
/// Sensors that are looked at: a board has a handful.
const SENSORS_MAX: usize = 32;

/// What the system tells; each part is absent where it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct HostMetrics {
    /// Processor cores that the gateway may use.
    pub(crate) cores: usize,
    /// Load averages over one, five and fifteen minutes.
    pub(crate) load: Option<[f64; 3]>,
    pub(crate) memory: Option<MemoryUse>,
    /// Of the hottest sensor, in degrees Celsius.
    pub(crate) temperature_c: Option<f64>,
}

impl HostMetrics {
    /// At this moment.
    pub(crate) async fn read() -> Self {
        let read = || {
            let text = |path: &str| fs::read_to_string(path).ok();
            Self {
                cores: thread::available_parallelism().map_or(1, std::num::NonZero::get),
                load: text("/proc/loadavg").as_deref().and_then(load),
                memory: text("/proc/meminfo").zip(text("/proc/self/statm")).and_then(|(box_, own)| memory(&box_, &own)),
                temperature_c: temperature(Path::new("/sys/class/thermal")),
            }
        };
        on_own_thread(read).await.unwrap_or_default()
    }
}

fn load(text: &str) -> Option<[f64; 3]> {
    let mut words = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    Some([words.next()??, words.next()??, words.next()??])
}

fn memory(of_box: &str, own: &str) -> Option<MemoryUse> {
    let kib = |name: &str| {
        let line = of_box.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let pages: u64 = own.split_whitespace().nth(1)?.parse().ok()?;
    Some(MemoryUse {
        total_bytes: kib("MemTotal")?.saturating_mul(1024),
        available_bytes: kib("MemAvailable")?.saturating_mul(1024),
        gateway_bytes: pages.saturating_mul(PAGE_BYTES),
    })
}

fn temperature(folder: &Path) -> Option<f64> {
    let zones = fs::read_dir(folder).ok()?.take(SENSORS_MAX).flatten();
    let degrees = zones.filter_map(|zone| {
        let text = fs::read_to_string(zone.path().join("temp")).ok()?;
        text.trim().parse::<f64>().ok().map(|thousandths| thousandths / 1_000.0)
    });
    // A sensor that is not connected tells zero, or nonsense.
    degrees.filter(|degrees| (1.0..150.0).contains(degrees)).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_tells_is_read() {
        assert_eq!(load("0.52 1.04 2.00 1/345 6789\n"), Some([0.52, 1.04, 2.0]));
        assert_eq!((load(""), load("a b c")), (None, None));
        let of_box = "MemTotal:        2048 kB\nMemFree:  7 kB\nMemAvailable:  1024 kB\n";
        let told = MemoryUse { total_bytes: 2_097_152, available_bytes: 1_048_576, gateway_bytes: 40_960 };
        assert_eq!(memory(of_box, "99 10 3"), Some(told));
        assert_eq!((memory("", "1 2"), memory(of_box, "1")), (None, None));
        let folder = tempfile::tempdir().unwrap();
        for (zone, temp) in [
            ("thermal_zone0", "41500\n"),
            ("thermal_zone1", "52250\n"),
            ("cooling_device0", "x"),
            ("thermal_zone2", "0"),
        ] {
            fs::create_dir(folder.path().join(zone)).unwrap();
            fs::write(folder.path().join(zone).join("temp"), temp).unwrap();
        }
        assert_eq!(temperature(folder.path()), Some(52.25));
        assert_eq!(temperature(&folder.path().join("absent")), None);
    }

    #[tokio::test]
    async fn this_machine_tells_its_load_and_memory() {
        let metrics = HostMetrics::read().await;
        let memory = metrics.memory.unwrap();
        assert!(metrics.cores > 0 && metrics.load.is_some());
        assert!(memory.gateway_bytes > 0 && memory.available_bytes <= memory.total_bytes, "{memory:?}");
    }
}
