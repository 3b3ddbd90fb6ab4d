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
