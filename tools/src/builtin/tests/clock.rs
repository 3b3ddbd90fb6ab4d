//! Tests of the time and the date in the wearer's zone.

use std::sync::Arc;

use serde_json::json;

use super::{Fixture, shown};
use crate::{
    executor::Executor,
    ports::Hours,
    test_support::{World, call, context},
};

#[tokio::test]
async fn the_time() {
    for (local, twelve, twenty_four) in [
        ("2026-11-21T17:20:59", "It's 5:20 PM.", "It's 17:20."),
        ("2026-11-21T00:00:00", "It's midnight.", "It's 0:00."),
        ("2026-11-21T00:07:00", "It's 12:07 AM.", "It's 0:07."),
        ("2026-11-21T12:00:00", "It's noon.", "It's 12:00."),
        ("2026-11-21T09:00:00", "It's 9 AM.", "It's 9:00."),
        // In New York clocks go back at two in November, and forward in March.
        ("2026-11-01T03:00:00", "It's 3 AM.", "It's 3:00."),
        ("2026-03-08T03:30:00", "It's 3:30 AM.", "It's 3:30."),
    ] {
        let fixture = Fixture::new(World::at(local, "America/New_York"));
        assert_eq!(fixture.say("clock.time", json!({})).await, twelve);
        let mut ports = fixture.world.ports();
        ports.style.hours = Hours::TwentyFour;
        let executor = Executor::new(Arc::clone(fixture.executor.registry()), ports);
        let result = executor.call(context(), call("clock.time", json!({}))).await;
        assert_eq!(result.say.as_deref(), Some(twenty_four));
    }
    let fixture = Fixture::usual();
    let result = fixture.run("clock.time", json!({})).await;
    assert_eq!(shown(&result), ("Time", "5:20 PM"));
    assert_eq!(result.data.unwrap(), json!({"time": "17:20", "utc_offset": "-05:00"}));
}

#[tokio::test]
async fn the_date_is_the_wearers() {
    let fixture = Fixture::usual();
    let say = "Today is Saturday, November 21, 2026.";
    assert_eq!(fixture.say("clock.date", json!({})).await, say);
    // 00:40 in Auckland is 11:40 of the previous day in UTC.
    let fixture = Fixture::new(World::at("2027-01-01T00:40:00", "Pacific/Auckland"));
    let say = "Today is Friday, January 1, 2027.";
    assert_eq!(fixture.say("clock.date", json!({})).await, say);
    fixture.world.pass(24 * 3600);
    let say = "Today is Saturday, January 2, 2027.";
    assert_eq!(fixture.say("clock.date", json!({})).await, say);
}

#[tokio::test]
async fn the_date_of_another_day_and_how_far_it_is() {
    let fixture = Fixture::new(World::at("2026-12-30T23:30:00", "Europe/Berlin"));
    for (date, say) in [
        ("2026-12-30", "Today is Wednesday, December 30, 2026."),
        ("2026-12-31", "Tomorrow is Thursday, December 31, 2026."),
        ("2027-01-01", "Friday, January 1, 2027 is in 2 days."),
        ("2026-12-29", "Yesterday was Tuesday, December 29, 2026."),
        ("2026-12-01", "Tuesday, December 1, 2026 was 29 days ago."),
        ("2028-12-30", "Saturday, December 30, 2028 is in 731 days."),
    ] {
        assert_eq!(fixture.say("clock.date", json!({"date": date})).await, say, "{date}");
    }
    let result = fixture.run("clock.date", json!({"date": "2027-01-01"})).await;
    assert_eq!(shown(&result), ("Friday", "January 1, 2027\nin 2 days"));
    for date in ["2026-02-30", "tomorrow", "99999-01-01"] {
        let (_, say) = fixture.fail("clock.date", json!({"date": date})).await;
        assert_eq!(say, "Which date?", "{date}");
    }
}
