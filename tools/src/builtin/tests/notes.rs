//! Tests of notes, up to ten thousand of them.

use gateway_core::vocab::{ApprovalOutcome, ErrorCode};
use serde_json::json;

use super::Fixture;
use crate::ports::Notes;

#[tokio::test]
async fn notes_are_added_read_found_and_deleted() {
    let fixture = Fixture::usual();
    assert_eq!(fixture.say("note.list", json!({})).await, "You have no notes.");
    assert_eq!(fixture.say("note.search", json!({"query": "milk"})).await, "I find no note about milk.");
    assert_eq!(fixture.say("note.delete", json!({"query": "milk"})).await, "I find no note about milk.");
    assert_eq!(fixture.say("note.add", json!({"text": " buy\n milk\u{7} "})).await, "Noted: buy milk.");
    fixture.say("note.add", json!({"text": "Buy oat milk."})).await;
    fixture.say("note.add", json!({"text": "the door code is 1234"})).await;
    let say = fixture.say("note.list", json!({})).await;
    assert_eq!(say, "You have 3 notes. The door code is 1234. Buy oat milk. Buy milk.");
    let say = fixture.say("note.search", json!({"query": "Milk"})).await;
    assert_eq!(say, "I found 2 notes about Milk. Buy oat milk. Buy milk.");
    let result = fixture.run("note.delete", json!({"query": "milk"})).await;
    assert_eq!(result.say.as_deref(), Some("Which note: Buy oat milk. or buy milk?"));
    assert!(result.content.starts_with("Nothing was deleted"));
    assert_eq!(fixture.world.notes.lock().unwrap().len(), 3);
    // A note with exactly the spoken words is preferred.
    assert_eq!(fixture.say("note.delete", json!({"query": "buy milk"})).await, "Deleted: buy milk.");
    assert_eq!(fixture.say("note.delete", json!({"query": "my last note"})).await, "Deleted: the door code is 1234.");
    assert_eq!(fixture.say("note.delete", json!({"query": "oat"})).await, "Deleted: Buy oat milk.");
    assert!(fixture.world.notes.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_last_note_is_the_newest_whatever_words_others_have() {
    let fixture = Fixture::usual();
    for text in ["Anna's last will", "the latest bus leaves at nine", "milk"] {
        fixture.say("note.add", json!({"text": text})).await;
    }
    assert_eq!(fixture.say("note.delete", json!({"query": "my last note"})).await, "Deleted: milk.");
    let say = fixture.say("note.delete", json!({"query": "last will"})).await;
    assert_eq!(say, "Deleted: Anna's last will.");
    let say = fixture.say("note.delete", json!({"query": "last"})).await;
    assert_eq!(say, "Deleted: the latest bus leaves at nine.");
}

#[tokio::test]
async fn only_the_newest_notes_are_read_where_a_count_is_given() {
    let fixture = Fixture::usual();
    assert_eq!(fixture.say("note.list", json!({"count": 1})).await, "You have no notes.");
    assert_eq!(fixture.say("note.delete", json!({"query": "last"})).await, "You have no notes.");
    fixture.say("note.add", json!({"text": "buy milk"})).await;
    assert_eq!(fixture.say("note.list", json!({"count": 1})).await, "You have 1 note. Buy milk.");
    fixture.say("note.add", json!({"text": "call Ben"})).await;
    assert_eq!(fixture.say("note.list", json!({"count": 1})).await, "Your latest note: Call Ben.");
    let all = fixture.say("note.list", json!({})).await;
    for count in [json!({"count": 0}), json!({"count": -3}), json!({"count": 1_000_000})] {
        assert_eq!(fixture.say("note.list", count).await, all);
    }
}

#[tokio::test]
async fn empty_and_endless_notes_are_refused() {
    let fixture = Fixture::usual();
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
        let failed = fixture.fail(name, arguments).await;
        assert_eq!(failed, (ErrorCode::InvalidArguments, say.into()));
    }
    assert!(fixture.world.notes.lock().unwrap().is_empty());
    fixture.say("note.add", json!({"text": "ä".repeat(4_000)})).await;
}

#[tokio::test]
async fn ten_thousand_notes_give_short_answers() {
    let fixture = Fixture::usual();
    for n in 0..10_000 {
        let text = format!("milk {n} {}", "and more ".repeat(20));
        Notes::add(&*fixture.world, "ada", &text).await.unwrap();
    }
    for (name, arguments, begin) in [
        ("note.list", json!({}), "Here are your five latest notes. Milk 9999"),
        ("note.list", json!({"count": 3}), "Here are your three latest notes. Milk 9999"),
        ("note.search", json!({"query": "milk"}), "I found more than 20 notes about milk. The newest: Milk 9999"),
        ("note.delete", json!({"query": "milk"}), "Which note: milk 9999"),
    ] {
        let result = fixture.run(name, arguments).await;
        let say = result.say.unwrap();
        assert!(say.starts_with(begin), "{say}");
        assert!(say.len() < 600, "{say}");
        assert!(result.data.unwrap().to_string().len() < 8_000);
        assert!(result.content.len() < 8_000);
    }
    assert_eq!(fixture.world.notes.lock().unwrap().len(), 10_000);
    let say = fixture.say("note.search", json!({"query": "milk 77"})).await;
    assert!(say.starts_with("I found 1 note about milk 77. Milk 77 "), "{say}");
    fixture.say("note.delete", json!({"query": "milk 77"})).await;
    assert_eq!(fixture.world.notes.lock().unwrap().len(), 9_999);
}

#[tokio::test]
async fn all_notes_go_after_a_yes_only() {
    let fixture = Fixture::usual();
    assert_eq!(fixture.say("note.clear", json!({})).await, "You have no notes.");
    for text in ["milk", "eggs"] {
        fixture.say("note.add", json!({"text": text})).await;
    }
    Notes::add(&*fixture.world, "bob", "not hers").await.unwrap();
    *fixture.world.consent.lock().unwrap() = ApprovalOutcome::Denied;
    let (code, _) = fixture.fail("note.clear", json!({})).await;
    assert_eq!((code, fixture.world.notes.lock().unwrap().len()), (ErrorCode::ApprovalDenied, 3));
    *fixture.world.consent.lock().unwrap() = ApprovalOutcome::Approved;
    assert_eq!(fixture.say("note.clear", json!({})).await, "Deleted 2 notes.");
    assert_eq!(fixture.world.notes.lock().unwrap().len(), 1);
}
