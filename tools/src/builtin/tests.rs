//! Every built-in through the executor, in a world on a virtual clock.

use std::sync::Arc;

use gateway_core::vocab::{Content, ErrorCode, ToolResult};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    executor::Executor,
    fakes_tests::{World, call, context},
    phrases,
    ports::{EntryKind, Hours, Notes, PortError},
    registry::Registry,
};

const NAMES: [&str; 32] = [
    "app.list",
    "app.start",
    "app.stop",
    "calculator.evaluate",
    "clock.date",
    "clock.time",
    "conversation.new",
    "conversation.search",
    "device.status",
    "help.show",
    "memory.create",
    "memory.delete",
    "memory.get",
    "memory.list",
    "memory.restore",
    "memory.search",
    "memory.update",
    "note.add",
    "note.delete",
    "note.list",
    "note.search",
    "personality.get",
    "prompt.add",
    "prompt.delete",
    "prompt.list",
    "reminder.cancel",
    "reminder.list",
    "reminder.set",
    "skill.list",
    "skill.read",
    "timer.cancel",
    "timer.list",
];

struct House {
    world: Arc<World>,
    executor: Executor,
}

impl House {
    fn new(world: Arc<World>) -> Self {
        let executor = world.executor();
        Self { world, executor }
    }

    fn usual() -> Self {
        Self::new(World::usual())
    }

    async fn run(&self, name: &str, arguments: Value) -> ToolResult {
        self.executor.call(context(), call(name, arguments)).await
    }

    /// What is said; the call must succeed.
    async fn say(&self, name: &str, arguments: Value) -> String {
        let result = self.run(name, arguments.clone()).await;
        assert!(!result.is_error(), "{name} {arguments}: {result:?}");
        assert!(result.show.is_some() && result.data.is_some() && !result.content.is_empty());
        result.say.expect("words")
    }

    /// Kind of failure and what is said; the call must fail.
    async fn fail(&self, name: &str, arguments: Value) -> (ErrorCode, String) {
        let result = self.run(name, arguments.clone()).await;
        let error = result.error.unwrap_or_else(|| panic!("{name} {arguments} went well"));
        (error.code, result.say.expect("words"))
    }

    fn entries(&self, kind: EntryKind) -> usize {
        let entries = self.world.entries.lock().unwrap();
        entries.iter().filter(|(_, entry)| entry.kind == kind).count()
    }
}

fn shown(result: &ToolResult) -> (&str, &str) {
    match &result.show {
        Some(Content::Card { title, text }) => (title, text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_of_them_register_and_each_has_an_example() {
    let registry = Registry::with_built_ins().expect("valid definitions");
    let snapshot = registry.snapshot("u", "d");
    let names: Vec<_> = snapshot.specs.iter().map(|spec| spec.name.as_str()).collect();
    let mut wanted = NAMES.to_vec();
    wanted.push("timer.set");
    assert_eq!(names, wanted);
    for spec in snapshot.specs.iter() {
        let example = phrases::example(spec, "en").expect("an example");
        assert!(!example.contains(['{', '[', '(', '|']), "{example}");
        assert!(spec.phrases[0].templates.len() >= 3, "{}", spec.name);
    }
}

#[tokio::test]
async fn the_time() {
    for (local, twelve, twenty_four) in [
        ("2026-11-21T17:20:59", "It's 5:20 PM.", "It's 17:20."),
        ("2026-11-21T00:00:00", "It's midnight.", "It's 0:00."),
        ("2026-11-21T00:07:00", "It's 12:07 AM.", "It's 0:07."),
        ("2026-11-21T12:00:00", "It's noon.", "It's 12:00."),
        ("2026-11-21T09:00:00", "It's 9 AM.", "It's 9:00."),
        // Clocks go back at two in New York, and forward in March.
        ("2026-11-01T03:00:00", "It's 3 AM.", "It's 3:00."),
        ("2026-03-08T03:30:00", "It's 3:30 AM.", "It's 3:30."),
    ] {
        let house = House::new(World::at(local, "America/New_York"));
        assert_eq!(house.say("clock.time", json!({})).await, twelve);
        let mut ports = house.world.ports();
        ports.style.hours = Hours::TwentyFour;
        let executor = Executor::new(Arc::clone(house.executor.registry()), ports);
        let result = executor.call(context(), call("clock.time", json!({}))).await;
        assert_eq!(result.say.as_deref(), Some(twenty_four));
    }
    let house = House::usual();
    let result = house.run("clock.time", json!({})).await;
    assert_eq!(shown(&result), ("Time", "5:20 PM"));
    assert_eq!(result.data.unwrap(), json!({"time": "17:20", "utc_offset": "-05:00"}));
}

#[tokio::test]
async fn the_date_is_the_wearers() {
    let house = House::usual();
    let say = "Today is Saturday, November 21, 2026.";
    assert_eq!(house.say("clock.date", json!({})).await, say);
    // Twenty to one in the morning in Auckland is yesterday noon in UTC.
    let house = House::new(World::at("2027-01-01T00:40:00", "Pacific/Auckland"));
    let say = "Today is Friday, January 1, 2027.";
    assert_eq!(house.say("clock.date", json!({})).await, say);
    house.world.pass(24 * 3600);
    let say = "Today is Saturday, January 2, 2027.";
    assert_eq!(house.say("clock.date", json!({})).await, say);
}

#[tokio::test]
async fn timers_are_set_listed_and_cancelled() {
    let house = House::usual();
    assert_eq!(house.say("timer.list", json!({})).await, "No timers are running.");
    assert_eq!(house.say("timer.cancel", json!({})).await, "No timers are running.");
    let result = house.run("timer.set", json!({"seconds": 600})).await;
    assert_eq!(result.say.as_deref(), Some("Timer set for ten minutes."));
    assert_eq!(shown(&result), ("Timer", "10:00"));
    assert_eq!(house.say("timer.list", json!({})).await, "Your timer has ten minutes left.");
    let say = house.say("timer.set", json!({"seconds": 200.0, "name": "the Pasta timer"})).await;
    assert_eq!(say, "Pasta timer set for 3 minutes and 20 seconds.");
    house.world.pass(10);
    let say = house.say("timer.list", json!({})).await;
    let wanted = "You have 2 timers. The Pasta timer has 3 minutes and 10 seconds left and the ten minute timer has 9 minutes and 50 seconds left.";
    assert_eq!(say, wanted);

    let result = house.run("timer.cancel", json!({})).await;
    let wanted = "Which one: the Pasta timer or the ten minute timer?";
    assert_eq!(result.say.as_deref(), Some(wanted));
    assert!(result.content.starts_with("Nothing was cancelled"));
    assert_eq!(house.entries(EntryKind::Timer), 2);
    let say = house.say("timer.cancel", json!({"name": "egg"})).await;
    assert_eq!(say, "I don't find the egg timer. You have the Pasta timer and the ten minute timer.");
    let say = house.say("timer.cancel", json!({"name": "pasta"})).await;
    assert_eq!(say, "Pasta timer cancelled.");
    assert_eq!(house.say("timer.list", json!({})).await, "Your timer has 9 minutes and 50 seconds left.");
    assert_eq!(house.say("timer.cancel", json!({})).await, "Timer cancelled.");
    assert_eq!(house.entries(EntryKind::Timer), 0);
}

#[tokio::test]
async fn timers_are_told_apart_by_length() {
    for name in ["10 minute", "ten minutes", "the ten minute timer", "10 minute timer"] {
        let house = House::usual();
        for seconds in [600, 300, 5_400] {
            house.say("timer.set", json!({"seconds": seconds})).await;
        }
        let say = house.say("timer.cancel", json!({"name": name})).await;
        assert_eq!(say, "Timer cancelled.", "{name}");
        let left: Vec<_> = house.world.entries.lock().unwrap().iter().map(|(_, entry)| entry.duration_ms).collect();
        assert_eq!(left, [300_000, 5_400_000], "{name}");
    }
    let house = House::usual();
    house.say("timer.set", json!({"seconds": 600})).await;
    house.world.pass(60);
    house.say("timer.set", json!({"seconds": 600})).await;
    let say = house.say("timer.cancel", json!({})).await;
    assert_eq!(
        say,
        "Which one: the ten minute timer with nine minutes left or the ten minute timer with ten minutes left?"
    );
    assert_eq!(house.say("timer.cancel", json!({"all": true})).await, "2 timers cancelled.");
    assert_eq!(house.entries(EntryKind::Timer), 0);
}

#[tokio::test]
async fn timers_of_no_or_endless_length_are_refused() {
    let house = House::usual();
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
        let failed = house.fail("timer.set", json!({"seconds": seconds})).await;
        assert_eq!(failed, (ErrorCode::InvalidArguments, say.into()), "{seconds}");
    }
    let (code, _) = house.fail("timer.set", json!({"seconds": 1, "name": "x".repeat(100)})).await;
    assert_eq!(code, ErrorCode::InvalidArguments);
    assert_eq!(house.entries(EntryKind::Timer), 0);
    for _ in 0..100 {
        house.say("timer.set", json!({"seconds": 86_400})).await;
    }
    let (code, say) = house.fail("timer.set", json!({"seconds": 1})).await;
    assert_eq!(code, ErrorCode::RateLimited);
    assert!(say.starts_with("You have too many"));
    let (code, _) = house.fail("reminder.set", json!({"text": "x", "in_seconds": 5})).await;
    assert_eq!(code, ErrorCode::RateLimited);
}

#[tokio::test]
async fn another_users_things_are_not_there() {
    let house = House::usual();
    house.say("timer.set", json!({"seconds": 60})).await;
    house.say("note.add", json!({"text": "secret"})).await;
    let mut bob = context();
    bob.user = "bob".into();
    for (name, say) in [("timer.list", "No timers are running."), ("note.list", "You have no notes.")] {
        let result = house.executor.call(bob.clone(), call(name, json!({}))).await;
        assert_eq!(result.say.as_deref(), Some(say));
    }
    let all = call("timer.cancel", json!({"all": true}));
    house.executor.call(bob, all).await;
    assert_eq!(house.entries(EntryKind::Timer), 1);
}

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
        // A time that has passed today is meant for tomorrow, and that is said.
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
        let house = House::usual();
        let result = house.run("reminder.set", arguments).await;
        assert_eq!(result.say.as_deref(), Some(say));
        assert_eq!(result.data.unwrap()["due"], due);
        assert_eq!(house.entries(EntryKind::Reminder), 1);
    }
}

#[tokio::test]
async fn reminders_without_a_good_time_ask() {
    let house = House::usual();
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
        // In New York this minute lies beyond the end of the calendar in UTC.
        (json!({"text": "x", "at": "9999-12-31T23:59"}), "I didn't get the time. When should I remind you?"),
        (json!({"text": "x", "at": "2026-11-20T18:00"}), "That time has already passed. When should I remind you?"),
        (json!({"text": "x", "at": "1970-01-01T00:00"}), "That time has already passed. When should I remind you?"),
        (json!({"text": "x", "at": "at six"}), "I didn't get the time. When should I remind you?"),
        (json!({"text": "x", "at": "2026-02-30T18:00"}), "I didn't get the time. When should I remind you?"),
        (json!({"text": "x", "at": "2026-11-21T25:00"}), "I didn't get the time. When should I remind you?"),
        (json!({"text": " \n ", "in_seconds": 5}), "What should I remind you of?"),
        (json!({"text": "", "in_seconds": 5}), "What should I remind you of?"),
        (json!({"text": "x".repeat(501), "in_seconds": 5}), "That is too long for me."),
        (json!({"in_seconds": 5}), "I didn't get all I need for that."),
    ] {
        let failed = house.fail("reminder.set", arguments.clone()).await;
        assert_eq!(failed, (ErrorCode::InvalidArguments, say.into()), "{arguments}");
    }
    assert_eq!(house.entries(EntryKind::Reminder), 0);
}

#[tokio::test]
async fn reminders_across_clock_changes() {
    let set = async |now: &str, at: &str| {
        let house = House::new(World::at(now, "America/New_York"));
        let result = house.run("reminder.set", json!({"text": "x", "at": at})).await;
        assert!(!result.is_error(), "{result:?}");
        let entries = house.world.entries.lock().unwrap();
        let utc = jiff::Timestamp::from_millisecond(entries[0].1.due_wall_ms).unwrap();
        (utc.to_string(), result.say.unwrap())
    };
    // Spring: 02:30 does not exist on March 8; it is half past three instead, and said so.
    let (utc, say) = set("2026-03-07T20:00:00", "2026-03-08T02:30").await;
    assert_eq!(utc, "2026-03-08T07:30:00Z");
    assert_eq!(say, "I'll remind you tomorrow at 3:30 AM: x.");
    // Over the change the clock counts, not the hours.
    let (utc, _) = set("2026-03-07T20:00:00", "2026-03-08T08:00").await;
    assert_eq!(utc, "2026-03-08T12:00:00Z");
    // Autumn: 01:30 happens twice on November 1; the first one is meant,
    let (utc, _) = set("2026-10-31T20:00:00", "2026-11-01T01:30").await;
    assert_eq!(utc, "2026-11-01T05:30:00Z");
    // but at 01:45 of the first round, the second one is still to come.
    let (utc, say) = set("2026-11-01T01:45:00", "2026-11-01T01:30").await;
    assert_eq!(utc, "2026-11-01T06:30:00Z");
    assert_eq!(say, "I'll remind you at 1:30 AM: x.");
    // A moment before midnight, "tomorrow" is close.
    let (utc, say) = set("2026-11-21T23:59:59", "2026-11-22T00:00").await;
    assert_eq!(utc, "2026-11-22T05:00:00Z");
    assert_eq!(say, "I'll remind you tomorrow at midnight: x.");
}

#[tokio::test]
async fn reminders_are_listed_and_cancelled() {
    let house = House::usual();
    assert_eq!(house.say("reminder.list", json!({})).await, "You have no reminders.");
    assert_eq!(house.say("reminder.cancel", json!({"text": "x"})).await, "You have no reminders.");
    house.say("reminder.set", json!({"text": "call mom", "at": "2026-11-22T09:00"})).await;
    house.say("reminder.set", json!({"text": "check the oven", "in_seconds": 600})).await;
    house.say("timer.set", json!({"seconds": 60, "name": "oven"})).await;
    let say = house.say("reminder.list", json!({})).await;
    assert_eq!(say, "You have 2 reminders. At 5:30 PM: check the oven. Tomorrow at 9 AM: call mom.");
    let say = house.say("reminder.cancel", json!({})).await;
    assert_eq!(say, "Which one: check the oven at 5:30 PM or call mom tomorrow at 9 AM?");
    let say = house.say("reminder.cancel", json!({"text": "dentist"})).await;
    assert_eq!(say, "I don't find a reminder about dentist.");
    let say = house.say("reminder.cancel", json!({"text": "the oven"})).await;
    assert_eq!(say, "Reminder cancelled: check the oven.");
    assert_eq!(house.entries(EntryKind::Timer), 1);
    let say = house.say("reminder.cancel", json!({})).await;
    assert_eq!(say, "Reminder cancelled: call mom.");
    for n in 0..8 {
        house.say("reminder.set", json!({"text": format!("thing {n}"), "in_seconds": 60 + n})).await;
    }
    let say = house.say("reminder.list", json!({})).await;
    assert!(say.starts_with("You have 8 reminders.") && say.ends_with("thing 4. The others come later."), "{say}");
}

#[tokio::test]
async fn notes_are_added_read_found_and_deleted() {
    let house = House::usual();
    assert_eq!(house.say("note.list", json!({})).await, "You have no notes.");
    assert_eq!(house.say("note.search", json!({"query": "milk"})).await, "I find no note about milk.");
    assert_eq!(house.say("note.delete", json!({"query": "milk"})).await, "I find no note about milk.");
    assert_eq!(house.say("note.add", json!({"text": " buy\n milk\u{7} "})).await, "Noted: buy milk.");
    house.say("note.add", json!({"text": "Buy oat milk."})).await;
    house.say("note.add", json!({"text": "the door code is 1234"})).await;
    let say = house.say("note.list", json!({})).await;
    assert_eq!(say, "You have 3 notes. The door code is 1234. Buy oat milk. Buy milk.");
    let say = house.say("note.search", json!({"query": "Milk"})).await;
    assert_eq!(say, "I found 2 notes about Milk. Buy oat milk. Buy milk.");
    let result = house.run("note.delete", json!({"query": "milk"})).await;
    assert_eq!(result.say.as_deref(), Some("Which note: Buy oat milk. or buy milk?"));
    assert!(result.content.starts_with("Nothing was deleted"));
    assert_eq!(house.world.notes.lock().unwrap().len(), 3);
    // Exactly these words are meant when they are said.
    assert_eq!(house.say("note.delete", json!({"query": "buy milk"})).await, "Deleted: buy milk.");
    assert_eq!(house.say("note.delete", json!({"query": "my last note"})).await, "Deleted: the door code is 1234.");
    assert_eq!(house.say("note.delete", json!({"query": "oat"})).await, "Deleted: Buy oat milk.");
    assert!(house.world.notes.lock().unwrap().is_empty());
}

#[tokio::test]
async fn empty_and_endless_notes_are_refused() {
    let house = House::usual();
    let what = "What should the note say?";
    for (name, arguments, say) in [
        ("note.add", json!({"text": ""}), what),
        ("note.add", json!({"text": " \u{0}\t\n"}), what),
        ("note.add", json!({"text": "x".repeat(4_001)}), "That is too long for me."),
        ("note.add", json!({"text": 5}), "I didn't get all I need for that."),
        ("note.add", json!({}), "I didn't get all I need for that."),
        ("note.search", json!({"query": " "}), "What should I look for?"),
        ("note.delete", json!({"query": ""}), "Which note should I delete?"),
        ("note.delete", json!({"query": "x".repeat(201)}), "That is too long for me."),
    ] {
        let failed = house.fail(name, arguments).await;
        assert_eq!(failed, (ErrorCode::InvalidArguments, say.into()));
    }
    assert!(house.world.notes.lock().unwrap().is_empty());
    house.say("note.add", json!({"text": "ä".repeat(4_000)})).await;
}

#[tokio::test]
async fn ten_thousand_notes_give_short_answers() {
    let house = House::usual();
    for n in 0..10_000 {
        let text = format!("milk {n} {}", "and more ".repeat(20));
        Notes::add(&*house.world, "ada", &text).await.unwrap();
    }
    for (name, arguments, begin) in [
        ("note.list", json!({}), "Here are your five latest notes. Milk 9999"),
        ("note.search", json!({"query": "milk"}), "I found more than 20 notes about milk. The newest: Milk 9999"),
        ("note.delete", json!({"query": "milk"}), "Which note: milk 9999"),
    ] {
        let result = house.run(name, arguments).await;
        let say = result.say.unwrap();
        assert!(say.starts_with(begin), "{say}");
        assert!(say.len() < 600, "{say}");
        assert!(result.data.unwrap().to_string().len() < 8_000);
        assert!(result.content.len() < 8_000);
    }
    assert_eq!(house.world.notes.lock().unwrap().len(), 10_000);
    let say = house.say("note.search", json!({"query": "milk 77"})).await;
    assert!(say.starts_with("I found 1 note about milk 77. Milk 77 "), "{say}");
    house.say("note.delete", json!({"query": "milk 77"})).await;
    assert_eq!(house.world.notes.lock().unwrap().len(), 9_999);
}

#[tokio::test]
async fn a_store_that_fails_is_told_and_changes_nothing() {
    let house = House::usual();
    house.say("timer.set", json!({"seconds": 600})).await;
    for (error, code, say) in [
        (PortError::Full("disk".into()), ErrorCode::ExecutionError, "I couldn't save that: the storage is full."),
        (PortError::Unavailable("store".into()), ErrorCode::AppNotAvailable, "I can't get at that right now."),
        (
            PortError::Failed("x".repeat(5_000)),
            ErrorCode::ExecutionError,
            "Sorry, that didn't work. Nothing was changed.",
        ),
    ] {
        *house.world.failure.lock().unwrap() = Some(error);
        for (name, arguments) in [
            ("note.add", json!({"text": "a"})),
            ("note.list", json!({})),
            ("note.search", json!({"query": "a"})),
            ("note.delete", json!({"query": "a"})),
            ("timer.set", json!({"seconds": 1})),
            ("timer.list", json!({})),
            ("timer.cancel", json!({})),
            ("reminder.set", json!({"text": "a", "in_seconds": 1})),
            ("reminder.list", json!({})),
            ("reminder.cancel", json!({})),
        ] {
            assert_eq!(house.fail(name, arguments).await, (code, say.into()), "{name}");
        }
    }
    assert_eq!(house.entries(EntryKind::Timer), 1);
}

#[tokio::test]
async fn sums() {
    let house = House::usual();
    for (expression, say) in [
        ("12 times 7", "That's 84."),
        ("2 times 3 times 4", "That's 24."),
        ("Twelve times seven", "That's 84."),
        ("Two plus two?", "That's 4."),
        ("100 divided by 8", "That's 12.5."),
        ("20 percent of 80", "That's 16."),
        ("fifteen percent of sixty", "That's 9."),
        ("the square root of 16 plus 9", "That's 13."),
        ("5 squared", "That's 25."),
        ("2 to the power of 10", "That's 1024."),
        ("7 minus 10", "That's -3."),
        ("(3 + 4) × 2", "That's 14."),
        ("6 x 7", "That's 42."),
        ("10 / 4", "That's 2.5."),
        ("1 / 3", "That's about 0.3333."),
        ("5 factorial", "That's 120."),
        ("5 miles to km", "That's 8.04672 km."),
        ("5 km in miles", "That's about 3.1069 miles."),
        ("2 GB to MB", "That's 2000 MB."),
        ("100 degrees Fahrenheit to Celsius", "That's about 37.7778 °C."),
        ("two hundred and fifty plus one", "That's 251."),
        ("0.1 + 0.2", "That's 0.3."),
    ] {
        let said = house.say("calculator.evaluate", json!({"expression": expression})).await;
        assert_eq!(said, say, "{expression}");
    }
    let result = house.run("calculator.evaluate", json!({"expression": "12 times 7"})).await;
    assert_eq!(shown(&result), ("12 times 7", "= 84"));
    assert_eq!(result.content, "84");
}

#[tokio::test]
async fn sums_that_cannot_be() {
    let house = House::usual();
    let cannot = "I can't calculate that.";
    for (expression, say) in [
        ("1 / 0", "Nothing can be divided by zero."),
        ("5 divided by zero", "Nothing can be divided by zero."),
        ("the meaning of life", cannot),
        ("2 +", cannot),
        ("?", cannot),
        ("5 dollars to euros", cannot),
        ("roll d6", cannot),
        ("d6", cannot),
        (r"(\x. x x) (\x. x x)", cannot),
        ("f = x: f x; f 1", cannot),
        ("@noapprox pi", cannot),
        ("'a' + \"b\"", cannot),
        (&"(".repeat(150), cannot),
        ("1000!", "The result is too long to say."),
        ("  ", "What should I calculate?"),
        (&"1+".repeat(200), "That is too long for me."),
    ] {
        let (code, said) = house.fail("calculator.evaluate", json!({"expression": expression})).await;
        assert_eq!(said, say, "{expression}");
        assert!(matches!(code, ErrorCode::InvalidArguments | ErrorCode::ExecutionError));
    }
    // These are stopped by the budget or refused; that they come back at all is the test.
    for expression in ["9^9^9^9", "99999999!", "2^99999999", "10^10^10", "(((9!)!)!)!", "1e999999999", "3^(10^7) mod 7"]
    {
        let (code, said) = house.fail("calculator.evaluate", json!({"expression": expression})).await;
        assert!(matches!(code, ErrorCode::InvalidArguments | ErrorCode::ExecutionError), "{expression}: {said}");
    }
}

#[tokio::test]
async fn the_glasses_status() {
    let house = House::usual();
    let result = house.run("device.status", json!({})).await;
    let say = "The battery is at 80 percent. Connected over Wi-Fi. Firmware 1.2.3.";
    assert_eq!(result.say.as_deref(), Some(say));
    assert_eq!(shown(&result), ("Glasses", "Battery 80%\nWi-Fi\nFirmware 1.2.3"));
    for (battery, charging, begin) in [
        (Some(5), Some(true), "The battery is at 5 percent and charging."),
        (Some(200), None, "The battery is at 100 percent."),
        (None, Some(true), "The battery is charging."),
        (None, None, "The glasses don't tell their battery."),
    ] {
        if let Some(status) = house.world.status.lock().unwrap().as_mut() {
            status.battery_percent = battery;
            status.charging = charging;
        }
        let say = house.say("device.status", json!({})).await;
        assert!(say.starts_with(begin), "{say}");
    }
    *house.world.status.lock().unwrap() = None;
    let failed = house.fail("device.status", json!({})).await;
    assert_eq!(failed, (ErrorCode::AppNotAvailable, "The glasses are not connected.".into()));
}

#[tokio::test]
async fn help_is_made_of_what_is_offered() {
    let house = House::usual();
    let result = house.run("help.show", json!({})).await;
    let say = "You can say, for example: set a timer for ten minutes, remind me in ten minutes to check the oven, take a note to buy milk or what time is it.";
    assert_eq!(result.say.as_deref(), Some(say));
    assert_eq!(result.follow_ups.len(), 5);
    assert!(result.content.contains("what is 12 times 7"), "{}", result.content);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[-+*/^!%().0-9a-z ]{0,40}".prop_map(Value::from),
        "-?[0-9]{1,6}-[0-9]{1,2}-[0-9]{1,2}T[0-9]{1,2}:[0-9]{2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::from))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn random_arguments_never_crash_a_tool(
        at in 0..15_usize,
        values in prop::collection::vec(any_json(), 3),
        keep in prop::collection::vec(any::<bool>(), 3),
    ) {
        let house = House::usual();
        let name = NAMES.get(at).copied().unwrap_or("timer.set");
        let snapshot = house.executor.registry().snapshot("ada", "glasses");
        let spec = &snapshot.find(name).expect("built in").spec;
        let properties = spec.input_schema["properties"].as_object().expect("properties");
        let arguments: serde_json::Map<_, _> = properties
            .keys()
            .zip(values.into_iter().zip(keep))
            .filter(|(_, (_, keep))| *keep)
            .map(|(property, (value, _))| (property.clone(), value))
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime");
        let result = runtime.block_on(house.run(name, Value::Object(arguments)));
        prop_assert!(!result.content.is_empty());
        prop_assert!(result.say.is_some());
        prop_assert!(!result.content.contains("crashed"), "{}", result.content);
    }
}
