//! Tests of reminders by duration and by time, also across clock changes.

use gateway_core::vocab::ErrorCode;
use serde_json::json;

use super::Fixture;
use crate::test_support::World;

#[tokio::test]
async fn reminders_by_length_and_by_clock() {
    for (arguments, say, due) in [
        (
            json!({"text": "check the oven", "in_seconds": 1800}),
            "I'll remind you in 30 minutes: check the oven.",
            "2026-11-21T17:50:00",
        ),
        (
            json!({"text": "call mom!", "at": "2026-11-21T18:00"}),
            "I'll remind you at 6 PM: call mom!",
            "2026-11-21T18:00:00",
        ),
        (
            json!({"text": "x", "at": "2026-11-22T00:00"}),
            "I'll remind you tomorrow at midnight: x.",
            "2026-11-22T00:00:00",
        ),
        (
            json!({"text": "x", "at": "2026-11-25T09:15:00"}),
            "I'll remind you on Wednesday at 9:15 AM: x.",
            "2026-11-25T09:15:00",
        ),
        (
            json!({"text": "x", "at": "2028-02-29T09:00"}),
            "I'll remind you on February 29, 2028 at 9 AM: x.",
            "2028-02-29T09:00:00",
        ),
        // A time that has passed today means tomorrow, and the answer says so.
        (
            json!({"text": "x", "at": "2026-11-21T07:00"}),
            "That time has passed today, so the reminder is set for tomorrow at 7 AM: x.",
            "2026-11-22T07:00:00",
        ),
        (
            json!({"text": "x", "at": "2026-11-21T17:20"}),
            "That time has passed today, so the reminder is set for tomorrow at 5:20 PM: x.",
            "2026-11-22T17:20:00",
        ),
    ] {
        let fixture = Fixture::usual();
        let result = fixture.run("reminder.set", arguments).await;
        assert_eq!(result.say.as_deref(), Some(say));
        assert_eq!(result.data.unwrap()["due"], due);
        assert_eq!(fixture.reminders(), 1);
    }
}

#[tokio::test]
async fn reminders_without_a_good_time_ask() {
    let fixture = Fixture::usual();
    let when = "When should I remind you?";
    for (arguments, say) in [
        (json!({"text": "x"}), when),
        (json!({"text": "x", "in_seconds": 5, "at": "2026-11-21T18:00"}), when),
        (json!({"text": "x", "in_seconds": 0}), when),
        (json!({"text": "x", "in_seconds": -9}), when),
        (
            json!({"text": "x", "in_seconds": 1e18}),
            "That is too far away. I can remind you within the next five years.",
        ),
        (
            json!({"text": "x", "at": "2036-01-01T00:00"}),
            "That is too far away. I can remind you within the next five years.",
        ),
        // In New York this minute is beyond the end of the calendar in UTC.
        (json!({"text": "x", "at": "9999-12-31T23:59"}), "I didn't get the time. When should I remind you?"),
        (json!({"text": "x", "at": "2026-11-20T18:00"}), "That time has already passed. When should I remind you?"),
        (json!({"text": "x", "at": "1970-01-01T00:00"}), "That time has already passed. When should I remind you?"),
        (json!({"text": "x", "at": "at six"}), "I didn't get the time. When should I remind you?"),
        (json!({"text": "x", "at": "2026-11-30"}), "I didn't get the time. When should I remind you?"),
        (
            json!({"text": "x", "at": "2026-11-21T12:00+00:00"}),
            "That time has already passed. When should I remind you?",
        ),
        (json!({"text": "x", "at": "2026-02-30T18:00"}), "I didn't get the time. When should I remind you?"),
        (json!({"text": "x", "at": "2026-11-21T25:00"}), "I didn't get the time. When should I remind you?"),
        (json!({"text": " \n ", "in_seconds": 5}), "What should I remind you of?"),
        (json!({"text": "", "in_seconds": 5}), "What should I remind you of?"),
        (json!({"text": "x".repeat(501), "in_seconds": 5}), "That is too long for me."),
        (json!({"in_seconds": 5}), "I didn't get all I need for that."),
    ] {
        let failed = fixture.fail("reminder.set", arguments.clone()).await;
        assert_eq!(failed, (ErrorCode::InvalidArguments, say.into()), "{arguments}");
    }
    assert_eq!(fixture.reminders(), 0);
}

#[tokio::test]
async fn reminders_across_clock_changes() {
    let set = async |now: &str, at: &str| {
        let fixture = Fixture::new(World::at(now, "America/New_York"));
        let result = fixture.run("reminder.set", json!({"text": "x", "at": at})).await;
        assert!(!result.is_error(), "{result:?}");
        let entries = fixture.world.entries.lock().unwrap();
        let utc = jiff::Timestamp::from_millisecond(entries[0].1.due_wall_ms).unwrap();
        (utc.to_string(), result.say.unwrap())
    };
    // Spring: 02:30 does not exist on March 8; 03:30 is used instead, and the answer says so.
    let (utc, say) = set("2026-03-07T20:00:00", "2026-03-08T02:30").await;
    assert_eq!(utc, "2026-03-08T07:30:00Z");
    assert_eq!(say, "I'll remind you tomorrow at 3:30 AM: x.");
    // Across the change the local time counts, not the number of hours.
    let (utc, _) = set("2026-03-07T20:00:00", "2026-03-08T08:00").await;
    assert_eq!(utc, "2026-03-08T12:00:00Z");
    // Autumn: 01:30 happens twice on November 1; the first one is meant,
    let (utc, _) = set("2026-10-31T20:00:00", "2026-11-01T01:30").await;
    assert_eq!(utc, "2026-11-01T05:30:00Z");
    // but at 01:45 of the first pass, the second one is still to come.
    let (utc, say) = set("2026-11-01T01:45:00", "2026-11-01T01:30").await;
    assert_eq!(utc, "2026-11-01T06:30:00Z");
    assert_eq!(say, "I'll remind you at 1:30 AM: x.");
    // One with an offset or a zone is that instant, wherever the wearer is.
    for at in ["2026-11-23T16:00+00:00", "2026-11-23T16:00Z", "2026-11-23T17:00+01:00[Europe/Berlin]"] {
        let (utc, say) = set("2026-11-21T20:00:00", at).await;
        assert_eq!(utc, "2026-11-23T16:00:00Z", "{at}");
        assert_eq!(say, "I'll remind you on Monday at 11 AM: x.", "{at}");
    }
    // One second before midnight, "tomorrow" is near.
    let (utc, say) = set("2026-11-21T23:59:59", "2026-11-22T00:00").await;
    assert_eq!(utc, "2026-11-22T05:00:00Z");
    assert_eq!(say, "I'll remind you tomorrow at midnight: x.");
}

#[tokio::test]
async fn an_alarm_is_cancelled_and_no_reminder_that_speaks_of_one() {
    let fixture = Fixture::usual();
    assert_eq!(fixture.say("reminder.cancel", json!({"alarm": true})).await, "You have no alarms.");
    fixture.say("timer.set", json!({"seconds": 60})).await;
    let say = fixture.say("reminder.cancel", json!({"alarm": true})).await;
    assert_eq!(say, "You have no alarms. To end a timer, say: cancel the timer.");
    fixture.say("timer.cancel", json!({})).await;
    for text in ["call the alarm company", "Wake up", "Wecker"] {
        fixture.say("reminder.set", json!({"text": text, "at": "2026-11-22T09:00"})).await;
    }
    let which = fixture.run("reminder.cancel", json!({"alarm": true})).await;
    let data = which.data.expect("a choice");
    let labels: Vec<_> =
        data["ask_which"].as_array().expect("several").iter().map(|one| one["label"].clone()).collect();
    assert_eq!(labels, ["Wake up tomorrow at 9 AM", "Wecker tomorrow at 9 AM"]);
    let wecker = &data["ask_which"][1]["id"];
    let say = fixture.say("reminder.cancel", json!({"alarm": true, "id": wecker})).await;
    assert_eq!(say, "Reminder cancelled: Wecker.");
    assert_eq!(fixture.say("reminder.cancel", json!({"alarm": true})).await, "Reminder cancelled: Wake up.");
    assert_eq!(fixture.say("reminder.cancel", json!({"alarm": true})).await, "You have no alarms.");
    let say = fixture.say("reminder.cancel", json!({})).await;
    assert_eq!(say, "Reminder cancelled: call the alarm company.");
}

#[tokio::test]
async fn reminders_are_listed_and_cancelled() {
    let fixture = Fixture::usual();
    assert_eq!(fixture.say("reminder.list", json!({})).await, "You have no reminders.");
    assert_eq!(fixture.say("reminder.cancel", json!({"text": "x"})).await, "You have no reminders.");
    fixture.say("reminder.set", json!({"text": "call mom", "at": "2026-11-22T09:00"})).await;
    fixture.say("reminder.set", json!({"text": "check the oven", "in_seconds": 600})).await;
    fixture.say("timer.set", json!({"seconds": 60, "name": "oven"})).await;
    let say = fixture.say("reminder.list", json!({})).await;
    assert_eq!(say, "You have 2 reminders. At 5:30 PM: check the oven. Tomorrow at 9 AM: call mom.");
    let say = fixture.say("reminder.cancel", json!({})).await;
    assert_eq!(say, "Which one: check the oven at 5:30 PM or call mom tomorrow at 9 AM?");
    let say = fixture.say("reminder.cancel", json!({"text": "dentist"})).await;
    assert_eq!(say, "I don't find a reminder about dentist.");
    let say = fixture.say("reminder.cancel", json!({"text": "the oven"})).await;
    assert_eq!(say, "Reminder cancelled: check the oven.");
    assert_eq!(fixture.timers(), 1);
    let say = fixture.say("reminder.cancel", json!({})).await;
    assert_eq!(say, "Reminder cancelled: call mom.");
    for n in 0..8 {
        fixture.say("reminder.set", json!({"text": format!("thing {n}"), "in_seconds": 60 + n})).await;
    }
    let say = fixture.say("reminder.list", json!({})).await;
    assert!(say.starts_with("You have 8 reminders.") && say.ends_with("thing 4. The others come later."), "{say}");
    fixture.say("timer.set", json!({"seconds": 60})).await;
    assert_eq!(fixture.say("reminder.cancel", json!({"all": true})).await, "8 reminders cancelled.");
    assert_eq!((fixture.reminders(), fixture.timers()), (0, 2));
}
