//! Usage and cost of a user's models by day, in the store.

use gateway_core::input::Spending;
use serde::{Deserialize, Serialize};

use crate::store::{self, Kind, Store, Write};

/// A day's row of a user: billionths of the currency unit, tokens of requests and of answers.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Day {
    nano: u64,
    input: u64,
    output: u64,
}

/// The last days, newest first.
///
/// # Errors
/// The store cannot be read.
pub fn days(store: &Store, user: &str, count: usize) -> Result<Vec<Spending>, store::Error> {
    let rows = store.disk().rows_backwards(Kind::Spending, user, b"", count)?;
    // A day that cannot be read is left out.
    let day = |(key, value): store::Row| {
        let day = i64::try_from(u64::from_be_bytes(key.try_into().ok()?)).ok()?;
        let Day { nano, input, output } = serde_json::from_slice(&value).ok()?;
        Some(Spending { day, nano, input, output })
    };
    Ok(rows.into_iter().filter_map(day).collect())
}

/// Longest period of [`of`]: ten years.
const DAYS_MAX: usize = 3_660;

/// Usage on the last `count` days up to `today`, by one user or by all: users by name, days of each from newest to
/// oldest. Days without usage are left out. A user whose clock is ahead may have a day after today, which is included.
///
/// # Errors
/// The store cannot be read.
pub fn of(
    store: &Store,
    user: Option<&str>,
    today: i64,
    count: usize,
) -> Result<Vec<(String, Vec<Spending>)>, store::Error> {
    let count = count.clamp(1, DAYS_MAX);
    let first = today.saturating_sub(i64::try_from(count).unwrap_or(i64::MAX)).saturating_add(1);
    let users = match user {
        Some(user) => vec![user.to_owned()],
        None => store.disk().owners(Kind::Spending)?,
    };
    let of_user = |user: String| -> Result<_, store::Error> {
        // One more, for the day of a clock that is ahead.
        let mut days = days(store, &user, count + 1)?;
        days.retain(|spending| spending.day >= first);
        Ok((user, days))
    };
    let mut spent = users.into_iter().map(of_user).collect::<Result<Vec<_>, _>>()?;
    spent.retain(|(_, days)| !days.is_empty());
    spent.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(spent)
}

/// Stores a day's sum, replacing the one stored before.
pub fn write(user: String, spending: Spending) -> Write {
    let Spending { day, nano, input, output } = spending;
    // Days before 1970 come from a clock that was never set; they share a row.
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
        assert_eq!(days(&store, "ann", 9).unwrap(), []);
        let day = |day, nano| Spending { day, nano, input: 3, output: 4 };
        for spending in [day(255, 9), day(256, 1), day(256, 2), day(-1, 7)] {
            store.write(write("ann".into(), spending)).await.unwrap();
        }
        store.write(write("an".into(), day(300, 5))).await.unwrap();
        assert_eq!(days(&store, "ann", 1).unwrap(), [day(256, 2)]);
        assert_eq!(days(&store, "ann", 9).unwrap(), [day(256, 2), day(255, 9), day(0, 7)]);
    }

    #[tokio::test]
    async fn today_and_the_days_before_by_user() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let day = |day, nano| Spending { day, nano, input: 3, output: 4 };
        for (user, spending) in [
            ("ben", day(300, 1)),
            ("ann", day(298, 2)),
            ("ann", day(300, 3)),
            ("ann", day(301, 4)),
            ("cy", day(290, 5)),
        ] {
            store.write(write(user.into(), spending)).await.unwrap();
        }
        let ann = |days: &[Spending]| ("ann".to_owned(), days.to_vec());
        let ben = ("ben".to_owned(), vec![day(300, 1)]);
        assert_eq!(of(&store, None, 300, 1).unwrap(), [ann(&[day(301, 4), day(300, 3)]), ben]);
        assert_eq!(of(&store, Some("ann"), 300, 3).unwrap(), [ann(&[day(301, 4), day(300, 3), day(298, 2)])]);
        assert_eq!(of(&store, Some("an"), 300, 3).unwrap(), []);
        assert_eq!(of(&store, Some("ben"), 301, 1).unwrap(), []);
        assert_eq!(of(&store, None, 300, usize::MAX).unwrap().len(), 3);
    }
}
