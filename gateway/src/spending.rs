//! What a user's models took, day by day, in the store.

use gateway_core::input::Spending;
use serde::{Deserialize, Serialize};

use crate::store::{self, Kind, Store, Write};

/// The stored form.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Day {
    nano: u64,
    input: u64,
    output: u64,
}

/// The last day on which a user's models took anything.
///
/// # Errors
/// The store cannot be read.
pub fn last(store: &Store, user: &str) -> Result<Spending, store::Error> {
    Ok(days(store, user, 1)?.pop().unwrap_or_default())
}

/// The last days, newest first.
///
/// # Errors
/// The store cannot be read.
pub fn days(store: &Store, user: &str, count: usize) -> Result<Vec<Spending>, store::Error> {
    let rows = store.disk().rows_backwards(Kind::Spending, user, b"", count)?;
    let damaged = || store::Error::Damaged { database: "spending" };
    let day = |(key, value): store::Row| {
        let day = key.try_into().map(u64::from_be_bytes).ok().and_then(|day| i64::try_from(day).ok());
        let Day { nano, input, output } = serde_json::from_slice(&value).map_err(|_| damaged())?;
        Ok(Spending { day: day.ok_or_else(damaged)?, nano, input, output })
    };
    rows.into_iter().map(day).collect()
}

/// Keeps a day's sum in place of what was kept of that day before.
pub fn write(user: String, spending: Spending) -> Write {
    let Spending { day, nano, input, output } = spending;
    // Days before 1970 are a clock that was never set; they share a row.
    let key = u64::try_from(day).unwrap_or(0).to_be_bytes().to_vec();
    let value = serde_json::to_vec(&Day { nano, input, output }).unwrap_or_default();
    Write::PutRow { kind: Kind::Spending, owner: user, key, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_newest_day_comes_back_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        assert_eq!(last(&store, "ann").unwrap(), Spending::default());
        let day = |day, nano| Spending { day, nano, input: 3, output: 4 };
        for spending in [day(255, 9), day(256, 1), day(256, 2), day(-1, 7)] {
            store.write(write("ann".into(), spending)).await.unwrap();
        }
        store.write(write("an".into(), day(300, 5))).await.unwrap();
        assert_eq!(last(&store, "ann").unwrap(), day(256, 2));
        assert_eq!(days(&store, "ann", 9).unwrap(), [day(256, 2), day(255, 9), day(0, 7)]);
    }
}
