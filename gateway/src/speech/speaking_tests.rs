//! Volume and pace: tools, bounds, what is kept, and the sentences for them.

use std::sync::Arc;

use chat_models::{
    Request, Tools,
    intents::{Decision, Engine},
};
use gateway_core::vocab::{Message, Role};
use tools::{permissions::ConfiguredClients, registry::Registry, secret::Secrets};

use super::*;

const CONFIGURED: Voice = Voice { speed: 1.1, volume_percent: 70 };

async fn speaking(folder: &std::path::Path) -> (Store, Speaking) {
    let store = Store::open(folder, 16).unwrap();
    let speaking = Speaking::load(&store, "ann", "glasses", CONFIGURED);
    (store, speaking)
}

fn offer(name: &str) -> Offer {
    Offer { name: name.to_owned(), ..Offer::default() }
}

fn names(offers: &[Offer]) -> Vec<&str> {
    offers.iter().map(|offer| offer.name.as_str()).collect()
}

#[tokio::test]
async fn what_the_glasses_have_themselves_is_not_added() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut speaking) = speaking(folder.path()).await;
    assert_eq!(names(&speaking.complete(vec![offer("camera.photo")])), ["camera.photo", VOLUME, SPEED]);
    assert!(speaking.has(VOLUME) && speaking.has(SPEED) && !speaking.has("camera.photo"));
    assert_eq!(names(&speaking.complete(vec![offer(VOLUME)])), [VOLUME, SPEED]);
    assert!(!speaking.has(VOLUME) && speaking.has(SPEED));
}

#[tokio::test]
async fn levels_and_steps_are_bounded_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (store, mut speaking) = speaking(folder.path()).await;
    assert_eq!((speaking.volume_percent(), speaking.speed_percent()), (70, 110));
    let steps = [
        (VOLUME, json!({}), "Volume is 70 percent."),
        (VOLUME, json!({"change": "up"}), "Volume is 90 percent."),
        (VOLUME, json!({"change": "up"}), "Volume is 100 percent."),
        (VOLUME, json!({"change": "up"}), "Volume is already 100 percent."),
        (VOLUME, json!({"level": 10}), "Volume is 10 percent."),
        (VOLUME, json!({"change": "down"}), "Volume is 0 percent."),
        (VOLUME, json!({"level": 40}), "Volume is 40 percent."),
        (SPEED, json!({"change": "slower"}), "I speak at 95 percent of the usual speed."),
        (SPEED, json!({"level": 100}), "I speak at the usual speed."),
        (SPEED, json!({"level": 190}), "I speak at 190 percent of the usual speed."),
        (SPEED, json!({"change": "faster"}), "I speak at 200 percent of the usual speed."),
        (SPEED, json!({"change": "faster"}), "I already speak at 200 percent."),
    ];
    for (tool, arguments, said) in steps {
        let result = speaking.call(tool, &arguments);
        assert_eq!((result.content.as_str(), result.error), (said, None), "{tool} {arguments}");
    }
    let wrong =
        [json!({"level": 101}), json!({"level": -1}), json!({"change": "left"}), json!({"level": 1, "change": "up"})];
    for arguments in wrong {
        let refused = speaking.call(VOLUME, &arguments).error.unwrap();
        assert_eq!(refused.code, ErrorCode::InvalidArguments, "{arguments}");
    }
    assert!((speaking.gain() - 0.16).abs() < 1e-6, "{}", speaking.gain());
    assert_eq!(speaking.speed(), 2.0);
    store.settled().await.unwrap();
    let again = |user: &str, device: &str| Speaking::load(&store, user, device, CONFIGURED);
    assert_eq!((again("ann", "glasses").volume_percent(), again("ann", "glasses").speed_percent()), (40, 200));
    assert_eq!((again("ann", "other").volume_percent(), again("bob", "glasses").volume_percent()), (70, 70));
}

#[tokio::test]
async fn a_damaged_row_counts_as_none() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = speaking(folder.path()).await;
    let put = |value: &[u8]| Write::PutRow {
        kind: Kind::Speaking,
        owner: "ann".to_owned(),
        key: b"glasses".to_vec(),
        value: value.to_vec(),
    };
    for (row, wanted) in [
        (b"{\"volume\": 250, \"speed\": 60000}".as_slice(), (100, 200)),
        (b"{\"volume\": -4}", (70, 110)),
        (b"\xff\x00", (70, 110)),
        (b"{}", (70, 110)),
    ] {
        store.submit(put(row), |_| {}).unwrap();
        store.settled().await.unwrap();
        let speaking = Speaking::load(&store, "ann", "glasses", CONFIGURED);
        assert_eq!((speaking.volume_percent(), speaking.speed_percent()), wanted);
    }
}

/// All built-in tools, and those that the gateway adds.
fn all_tools() -> Tools {
    let registry = Registry::with_built_ins_and(Vec::new(), ConfiguredClients::new(), Secrets::default());
    let built_in = registry.expect("the built-in tools").snapshot("ann", None).specs.clone();
    let own = own_offers().map(|(name, offer)| {
        let (spec, lost) = tools::device::spec(offer).expect("a valid definition");
        assert!(lost.is_empty(), "{name}: {lost}");
        Arc::new(spec)
    });
    built_in.iter().cloned().chain(own).collect()
}

/// What is missed of the half that nobody tunes to is only counted.
#[test]
fn sentences_about_the_voice_are_understood() {
    let (engine, tools) = (Engine::new(), all_tools());
    let (mut rows, mut missed) = ([0; 2], [0; 2]);
    let table = include_str!("../../../tests/data/voice_settings.tsv");
    for (at, line) in table.lines().filter(|line| !line.starts_with('#')).enumerate() {
        let columns: Vec<&str> = line.split('\t').collect();
        let messages = vec![Message::text(Role::User, columns[0])];
        let request = Request { messages, tools: tools.clone(), ..Request::default() };
        let called = match engine.decide(&request) {
            Decision::Calls(calls) => calls.first().map(|call| (call.name.clone(), call.arguments.clone())),
            Decision::Say(_) | Decision::Ask(..) => None,
        };
        let wanted = match columns[..] {
            [_, tool, arguments] => Some((tool.to_owned(), serde_json::from_str(arguments).expect("arguments"))),
            _ => None,
        };
        // A question of other words may be answered by another tool, but not by these.
        let is_right = match wanted {
            Some(_) => called == wanted,
            None => called.as_ref().is_none_or(|(tool, _)| tool != VOLUME && tool != SPEED),
        };
        rows[at % 2] += 1;
        missed[at % 2] += usize::from(!is_right);
        if !is_right && at % 2 == 0 {
            println!("{}: {called:?}", columns[0]);
        }
    }
    println!("missed {missed:?} of {rows:?}");
    assert_eq!(rows, [24, 24]);
    assert!(missed[0] == 0 && missed[1] <= 2, "{missed:?}");
}
