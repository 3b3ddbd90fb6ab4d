//! Tests of timers, identified by name and by duration.

use gateway_core::vocab::{Content, ErrorCode};
use serde_json::json;

use super::Fixture;

#[tokio::test]
async fn timers_are_set_listed_and_cancelled() {
    let fixture = Fixture::usual();
    assert_eq!(fixture.say("timer.list", json!({})).await, "No timers are running.");
    assert_eq!(fixture.say("timer.cancel", json!({})).await, "No timers are running.");
    let result = fixture.run("timer.set", json!({"seconds": 600})).await;
    assert_eq!(result.say.as_deref(), Some("Timer set for ten minutes."));
    assert_eq!(result.show, Some(Content::Countdown { title: "Timer".into(), left_ms: 600_000 }));
    assert_eq!(fixture.say("timer.list", json!({})).await, "Your timer has ten minutes left.");
    let say = fixture.say("timer.set", json!({"seconds": 200.0, "name": "the Pasta timer"})).await;
    assert_eq!(say, "Pasta timer set for 3 minutes and 20 seconds.");
    fixture.world.pass(10);
    let say = fixture.say("timer.list", json!({})).await;
    let wanted = "You have 2 timers. The Pasta timer has 3 minutes and 10 seconds left and the ten minute timer has 9 minutes and 50 seconds left.";
    assert_eq!(say, wanted);

    let result = fixture.run("timer.cancel", json!({})).await;
    let wanted = "Which one: the Pasta timer or the ten minute timer?";
    assert_eq!(result.say.as_deref(), Some(wanted));
    assert!(result.content.starts_with("Nothing was cancelled"));
    let which = result.data.as_ref().and_then(|data| data["ask_which"].as_array()).expect("a choice").clone();
    let labels: Vec<_> = which.iter().map(|choice| choice["label"].as_str().unwrap_or_default()).collect();
    assert_eq!(labels, ["the Pasta timer", "the ten minute timer"]);
    assert_eq!(fixture.say("timer.cancel", json!({"id": 999})).await, "That timer is already over.");
    let say = fixture.say("timer.extend", json!({"seconds": 60, "id": which[1]["id"]})).await;
    assert_eq!(say, "Timer: 10 minutes and 50 seconds left.");
    let say = fixture.say("timer.extend", json!({"seconds": 60, "id": 999})).await;
    assert_eq!(say, "That timer is over.");
    assert_eq!(fixture.timers(), 2);
    let say = fixture.say("timer.cancel", json!({"name": "egg"})).await;
    assert_eq!(say, "I don't find the egg timer. You have the Pasta timer and the eleven minute timer.");
    let say = fixture.say("timer.cancel", json!({"name": "pasta"})).await;
    assert_eq!(say, "Pasta timer cancelled.");
    assert_eq!(fixture.say("timer.list", json!({})).await, "Your timer has 10 minutes and 50 seconds left.");
    assert_eq!(fixture.say("timer.cancel", json!({"id": which[1]["id"]})).await, "Timer cancelled.");
    assert_eq!(fixture.timers(), 0);
}

#[tokio::test]
async fn one_of_several_timers_is_listed_by_its_name() {
    let fixture = Fixture::usual();
    let none = fixture.say("timer.list", json!({"name": "pasta"})).await;
    assert_eq!(none, "No timers are running.");
    for (seconds, name) in [(600, "pasta"), (300, "egg"), (900, "red tea"), (1_200, "green tea")] {
        fixture.say("timer.set", json!({"seconds": seconds, "name": name})).await;
    }
    let pasta = fixture.say("timer.list", json!({"name": "pasta"})).await;
    assert_eq!(pasta, "The pasta timer has ten minutes left.");
    let tea = fixture.say("timer.list", json!({"name": "tea"})).await;
    assert!(tea.starts_with("You have 2 timers. The red tea timer has 15 minutes left"), "{tea}");
    let rice = fixture.say("timer.list", json!({"name": "rice"})).await;
    assert!(rice.starts_with("I don't find the rice timer. You have the egg timer"), "{rice}");
}

#[tokio::test]
async fn a_timer_is_extended_by_its_name_or_alone() {
    let fixture = Fixture::usual();
    assert_eq!(fixture.say("timer.extend", json!({"seconds": 60})).await, "No timers are running.");
    fixture.say("timer.set", json!({"seconds": 600})).await;
    fixture.world.pass(60);
    let result = fixture.run("timer.extend", json!({"seconds": 300})).await;
    assert_eq!(result.say.as_deref(), Some("Timer: 14 minutes left."));
    assert_eq!(result.show, Some(Content::Countdown { title: "Timer".into(), left_ms: 840_000 }));
    assert_eq!(fixture.say("timer.list", json!({})).await, "Your timer has 14 minutes left.");
    fixture.say("timer.set", json!({"seconds": 60, "name": "pasta"})).await;
    let which = fixture.say("timer.extend", json!({"seconds": 60})).await;
    assert_eq!(which, "Which one: the pasta timer or the 15 minute timer?");
    let pasta = fixture.say("timer.extend", json!({"seconds": 90, "name": "pasta"})).await;
    assert_eq!(pasta, "Pasta timer: 2 minutes and 30 seconds left.");
    let egg = fixture.say("timer.extend", json!({"seconds": 90, "name": "egg"})).await;
    assert_eq!(egg, "I don't find the egg timer. You have the pasta timer and the 15 minute timer.");
    assert_eq!(fixture.timers(), 2);
    for seconds in [86_400, i64::MAX] {
        let (code, say) = fixture.fail("timer.extend", json!({"seconds": seconds, "name": "pasta"})).await;
        assert_eq!((code, fixture.timers()), (ErrorCode::InvalidArguments, 2), "{seconds}");
        assert!(say.contains("24 hours"), "{say}");
    }
    // Its length is what it was set with and what was added.
    assert_eq!(fixture.say("timer.cancel", json!({"seconds": 900})).await, "Timer cancelled.");
}

#[tokio::test]
async fn timers_are_told_apart_by_length() {
    for name in ["10 minute", "ten minutes", "the ten minute timer", "10 minute timer"] {
        let fixture = Fixture::usual();
        for seconds in [600, 300, 5_400] {
            fixture.say("timer.set", json!({"seconds": seconds})).await;
        }
        let say = fixture.say("timer.cancel", json!({"name": name})).await;
        assert_eq!(say, "Timer cancelled.", "{name}");
        let left: Vec<_> =
            fixture.world.entries.lock().unwrap().iter().filter_map(|(_, entry)| entry.duration_ms).collect();
        assert_eq!(left, [300_000, 5_400_000], "{name}");
    }
    let fixture = Fixture::usual();
    fixture.say("timer.set", json!({"seconds": 600})).await;
    fixture.world.pass(60);
    fixture.say("timer.set", json!({"seconds": 600})).await;
    let say = fixture.say("timer.cancel", json!({})).await;
    assert_eq!(
        say,
        "Which one: the ten minute timer with nine minutes left or the ten minute timer with ten minutes left?"
    );
    assert_eq!(fixture.say("timer.cancel", json!({"all": true})).await, "2 timers cancelled.");
    assert_eq!(fixture.timers(), 0);
}

#[tokio::test]
async fn a_timer_is_cancelled_by_the_length_that_it_was_set_with_and_by_no_part_of_it() {
    let fixture = Fixture::usual();
    fixture.say("timer.set", json!({"seconds": 5_400})).await;
    for arguments in [json!({"name": "30 minute"}), json!({"name": "one hour"}), json!({"seconds": 1_800})] {
        let result = fixture.run("timer.cancel", arguments.clone()).await;
        let say = result.say.unwrap_or_default();
        assert!(say.ends_with("timer. You have the 1 hour 30 minute timer."), "{arguments}: {say}");
    }
    assert_eq!(fixture.say("timer.cancel", json!({"seconds": 5_400})).await, "Timer cancelled.");
    // Of two timers of this length the one without a name is meant.
    fixture.say("timer.set", json!({"seconds": 600, "name": "pasta"})).await;
    fixture.say("timer.set", json!({"seconds": 600})).await;
    fixture.world.pass(60);
    assert_eq!(fixture.say("timer.cancel", json!({"seconds": 600})).await, "Timer cancelled.");
    let say = fixture.say("timer.cancel", json!({"seconds": 540})).await;
    assert_eq!(say, "I don't find the nine minute timer. You have the pasta timer.");
    assert_eq!(fixture.say("timer.cancel", json!({"seconds": 600})).await, "Pasta timer cancelled.");
    for _ in 0..2 {
        fixture.say("timer.set", json!({"seconds": 1_200})).await;
    }
    let say = fixture.say("timer.cancel", json!({"seconds": 1_200})).await;
    assert!(say.starts_with("Which one: the 20 minute timer with 20 minutes left or "), "{say}");
    assert_eq!(fixture.timers(), 2);
}

#[tokio::test]
async fn a_length_of_one_unit_is_found_by_a_part_of_it() {
    let fixture = Fixture::usual();
    for seconds in [3_600, 5_400, 60, 600] {
        fixture.say("timer.set", json!({"seconds": seconds})).await;
    }
    let result = fixture.run("timer.cancel", json!({"name": "minute"})).await;
    assert_eq!(result.say.as_deref(), Some("Which one: the one minute timer or the ten minute timer?"));
    for (name, lengths) in
        [("hour", [60_000, 600_000, 5_400_000].as_slice()), ("ten", &[60_000, 5_400_000]), ("minute", &[5_400_000])]
    {
        assert_eq!(fixture.say("timer.cancel", json!({"name": name})).await, "Timer cancelled.", "{name}");
        let mut left: Vec<_> =
            fixture.world.entries.lock().unwrap().iter().filter_map(|(_, entry)| entry.duration_ms).collect();
        left.sort_unstable();
        assert_eq!(left, lengths, "{name}");
    }
}

#[tokio::test]
async fn the_second_timer_is_not_one_of_seconds() {
    let fixture = Fixture::usual();
    for seconds in [600, 30, 3_600] {
        fixture.say("timer.set", json!({"seconds": seconds})).await;
    }
    let say = fixture.say("timer.cancel", json!({"name": "second"})).await;
    assert!(say.starts_with("I don't find"), "{say}");
    assert_eq!(fixture.timers(), 3);
}

#[tokio::test]
async fn a_length_is_confirmed_to_the_second() {
    let fixture = Fixture::usual();
    let say = fixture.say("timer.set", json!({"seconds": 3_630})).await;
    assert_eq!(say, "Timer set for 1 hour and 30 seconds.");
    fixture.say("timer.set", json!({"seconds": 60})).await;
    let result = fixture.run("timer.cancel", json!({})).await;
    let which = "Which one: the one minute timer or the 1 hour 30 second timer?";
    assert_eq!(result.say.as_deref(), Some(which));
}

#[tokio::test]
async fn timers_of_no_or_endless_length_are_refused() {
    let fixture = Fixture::usual();
    for (seconds, say) in [
        (json!(0), "For how long?"),
        (json!(-5), "For how long?"),
        (json!(86_401), "A timer can run for up to 24 hours. For more, ask me for a reminder."),
        (json!(u64::MAX), "A timer can run for up to 24 hours. For more, ask me for a reminder."),
        (json!(1e300), "A timer can run for up to 24 hours. For more, ask me for a reminder."),
        (json!(-1e300), "For how long?"),
        (json!("ten"), "I didn't get all I need for that."),
        (json!(null), "I didn't get all I need for that."),
        (json!(1.5), "I didn't get all I need for that."),
    ] {
        let failed = fixture.fail("timer.set", json!({"seconds": seconds})).await;
        assert_eq!(failed, (ErrorCode::InvalidArguments, say.into()), "{seconds}");
    }
    let (code, _) = fixture.fail("timer.set", json!({"seconds": 1, "name": "x".repeat(100)})).await;
    assert_eq!(code, ErrorCode::InvalidArguments);
    assert_eq!(fixture.timers(), 0);
    for _ in 0..100 {
        fixture.say("timer.set", json!({"seconds": 86_400})).await;
    }
    let (code, say) = fixture.fail("timer.set", json!({"seconds": 1})).await;
    assert_eq!(code, ErrorCode::RateLimited);
    assert!(say.starts_with("You have too many"));
    let (code, _) = fixture.fail("reminder.set", json!({"text": "x", "in_seconds": 5})).await;
    assert_eq!(code, ErrorCode::RateLimited);
}
