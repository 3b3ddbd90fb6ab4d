//! Tests of the tools that glasses may offer, and of offers that are rejected.

use std::sync::Arc;

use gateway_core::vocab::ErrorCode;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    executor::Executor,
    test_support::{World, call, context},
};

fn brightness() -> Offer {
    Offer {
        name: "display.brightness".into(),
        description: "Sets the brightness of the display.".into(),
        schema_json: json!({
            "type": "object",
            "properties": {"level": {"type": "integer", "minimum": 0, "maximum": 100, "examples": [50]}},
            "required": ["level"]
        })
        .to_string(),
        phrases_json: r#"{"en": ["set [the] brightness to {level} [percent]"]}"#.into(),
        reply: "Brightness is {level} percent.".into(),
        hints: Hints::default(),
        timeout_ms: Some(2_000),
    }
}

fn photo() -> Offer {
    Offer {
        name: "camera.photo".into(),
        description: "Takes a photo.".into(),
        phrases_json: r#"{"en": ["take a (photo|picture)"], "de": ["mach ein foto"]}"#.into(),
        ..Offer::default()
    }
}

fn fixture() -> (Arc<World>, Executor) {
    let world = World::usual();
    let executor = world.executor();
    (world, executor)
}

#[tokio::test(start_paused = true)]
async fn device_tools_come_are_called_and_go() {
    let (world, executor) = fixture();
    let registry = executor.registry();
    let before = registry.snapshot("ada", Some("glasses")).specs.len();
    let (revision, remarks) = register(registry, "glasses", vec![brightness(), photo()]).unwrap();
    assert_eq!((revision, remarks), (2, vec![]));
    assert_eq!(registry.snapshot("ada", Some("glasses")).specs.len(), before + 2);
    assert_eq!(registry.snapshot("ada", Some("other")).specs.len(), before);

    let dim = || call("display.brightness", json!({"level": 30}));
    let result = executor.call(context(), dim()).await;
    assert_eq!(result.say.as_deref(), Some("Brightness is 30 percent."));
    let result = executor.call(context(), call("camera.photo", json!({}))).await;
    assert!(!result.is_error(), "{result:?}");
    let calls = world.device_calls.lock().unwrap().clone();
    assert_eq!(calls[0].0, "glasses");
    assert_eq!(calls[0].1, "display.brightness");
    assert_eq!(calls[0].2, json!({"level": 30}));
    assert_eq!(calls[0].3, std::time::Duration::from_millis(2_000));

    // Invalid arguments never reach the device.
    for arguments in [json!({"level": 101}), json!({}), json!({"level": "x"})] {
        let result = executor.call(context(), call("display.brightness", arguments)).await;
        assert_eq!(result.error.unwrap().code, ErrorCode::InvalidArguments);
    }
    let result = executor.call(context(), call("camera.photo", json!({"x": 1}))).await;
    assert_eq!(result.error.unwrap().code, ErrorCode::InvalidArguments);
    assert_eq!(world.device_calls.lock().unwrap().len(), 2);

    // Help includes them while they are offered.
    let help = executor.call(context(), call("help.show", json!({}))).await;
    assert!(help.content.contains("take a photo"), "{}", help.content);
    assert!(help.content.contains("set brightness to 50"), "{}", help.content);

    // A new list replaces the old one.
    register(registry, "glasses", vec![photo()]).unwrap();
    let result = executor.call(context(), dim()).await;
    assert_eq!(result.error.unwrap().code, ErrorCode::ToolNotFound);
    assert_eq!(unregister(registry, "glasses"), Some(4));
    assert_eq!(unregister(registry, "glasses"), None);
    assert_eq!(registry.snapshot("ada", Some("glasses")).specs.len(), before);
    let help = executor.call(context(), call("help.show", json!({}))).await;
    assert!(!help.content.contains("take a photo"), "{}", help.content);
}

#[tokio::test]
async fn a_device_that_is_gone_is_told() {
    let (world, executor) = fixture();
    register(executor.registry(), "glasses", vec![photo()]).unwrap();
    *world.status.lock().unwrap() = None;
    let result = executor.call(context(), call("camera.photo", json!({}))).await;
    assert_eq!(result.error.unwrap().code, ErrorCode::AppNotAvailable);
    assert!(result.say.is_some());
}

#[test]
fn two_devices_may_offer_the_same() {
    let (_, executor) = fixture();
    let registry = executor.registry();
    for device in ["d1", "d2"] {
        let (_, remarks) = register(registry, device, vec![photo()]).unwrap();
        assert!(remarks.is_empty());
    }
    for device in ["d1", "d2"] {
        let snapshot = registry.snapshot("ada", Some(device));
        let found = snapshot.find("camera.photo").unwrap();
        assert_eq!(found.source, Source::Device(device.into()));
    }
}

#[test]
fn hostile_offers_are_left_out_and_the_others_stay() {
    let change = |change: &dyn Fn(&mut Offer)| {
        let mut offer = brightness();
        change(&mut offer);
        offer
    };
    let table = [
        (change(&|offer| offer.name = "timer.set".into()), "everybody"),
        (change(&|offer| offer.name = "camera.photo".into()), "twice"),
        (change(&|offer| offer.name.clear()), "/name"),
        (change(&|offer| offer.name = "x".repeat(10_000)), "/name"),
        (change(&|offer| offer.name = "a b\n".into()), "/name"),
        (change(&|offer| offer.name = " display.brightness ".into()), "/name"),
        (change(&|offer| offer.description = "x".repeat(200_000)), "bytes; at most"),
        (change(&|offer| offer.schema_json = "{".into()), "schema: not JSON"),
        (change(&|offer| offer.schema_json = "[]".into()), "/inputSchema"),
        (change(&|offer| offer.schema_json = "[".repeat(30_000)), "schema: not JSON"),
        (change(&|offer| offer.schema_json = " ".repeat(200_000)), "schema:"),
        (change(&|offer| offer.schema_json = r#"{"type":"object","$ref":"http://x.test/"}"#.into()), "/inputSchema"),
        (change(&|offer| offer.phrases_json = "3".into()), "/sentenceTemplates"),
        (change(&|offer| offer.phrases_json = "[1]".into()), "/sentenceTemplates/0"),
        (change(&|offer| offer.phrases_json = r#"{"en": ["dim (it"]}"#.into()), "/sentenceTemplates/en/0"),
        (change(&|offer| offer.phrases_json = r#"{"en": ["say {other}"]}"#.into()), "no property 'other'"),
        (change(&|offer| offer.phrases_json = r#"{"en": ["{level=3}"]}"#.into()), "only slots"),
        (change(&|offer| offer.reply = "x".repeat(2_000)), "/replyTemplate"),
    ];
    for (offer, reason) in table {
        let (_, executor) = fixture();
        let registry = executor.registry();
        let before = registry.snapshot("ada", Some("glasses")).specs.len();
        let (_, remarks) = register(registry, "glasses", vec![photo(), offer]).unwrap();
        let [one] = remarks.as_slice() else {
            panic!("{reason}: {remarks:?}");
        };
        assert!(one.left_out && one.reason.contains(reason), "{reason}: {one:?}");
        assert!(one.reason.len() < 2_000);
        let source = Source::Device("glasses".into());
        assert!(matches!(registry.reports().as_slice(), [(of, notes)] if *of == source && notes.len() == 1));
        assert_eq!(registry.snapshot("ada", Some("glasses")).specs.len(), before + 1);
    }
}

/// The hints of a definition have the same meaning for every kind of source.
#[test]
fn every_hint_means_what_it_means_of_any_tool() {
    let plain = spec(photo()).unwrap().0.flags;
    assert_eq!(plain, ToolFlags { always: true, persistent: true, ..ToolFlags::default() });
    for bits in 0..16_u8 {
        let [read_only, destructive, idempotent, slow] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
        let flags =
            spec(Offer { hints: Hints { read_only, destructive, idempotent, slow }, ..photo() }).unwrap().0.flags;
        assert_eq!((flags.destructive, flags.requires_approval), (destructive, destructive), "{bits}");
        // A tool that is declared destructive is never read-only.
        assert_eq!(flags.read_only, read_only && !destructive, "{bits}");
        assert_eq!((flags.idempotent, flags.slow), (idempotent || flags.read_only, slow), "{bits}");
        let mcp = json!({"name": "camera.photo", "slow": slow, "always": true, "annotations": {
            "readOnlyHint": read_only && !destructive, "destructiveHint": destructive, "idempotentHint": idempotent}});
        assert_eq!(definition::read(&mcp, Naming::AsIs).unwrap().0.flags, flags, "{bits}");
    }
}

#[test]
fn what_is_lost_of_a_tool_that_is_taken_is_told() {
    let (_, executor) = fixture();
    let offer = Offer { description: "x".repeat(5_000), ..photo() };
    let (_, remarks) = register(executor.registry(), "glasses", vec![offer]).unwrap();
    assert!(matches!(remarks.as_slice(), [one] if !one.left_out && one.reason.contains("was cut")), "{remarks:?}");
}

#[test]
fn a_device_offers_only_so_many_and_decides_only_about_itself() {
    let (_, executor) = fixture();
    let registry = executor.registry();
    let many = (0..100).map(|n| Offer {
        name: format!("tool{n}"),
        hints: Hints { read_only: true, ..Hints::default() },
        timeout_ms: Some(u32::MAX),
        ..photo()
    });
    let (_, remarks) = register(registry, "glasses", many.collect()).unwrap();
    assert_eq!(remarks.len(), 100 - TOOLS_PER_DEVICE_MAX);
    let snapshot = registry.snapshot("ada", Some("glasses"));
    let spec = &snapshot.find("tool0").unwrap().spec;
    assert!(spec.flags.always && !spec.flags.persistent);
    assert_eq!(spec.timeout_ms, Some(DEVICE_MS_MAX));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_offer_ends_in_a_definition_or_a_reason(
        name in "\\PC{0,40}",
        description in any::<String>(),
        schema_json in prop_oneof![any::<String>(), Just(r#"{"type":"object"}"#.to_owned())],
        phrases_json in prop_oneof![any::<String>(), "\\{\"en\": \\[\"[a-z{}()|\\[\\]:= ]{0,30}\"\\]\\}"],
        reply in any::<String>(),
        timeout_ms in any::<Option<u32>>(),
    ) {
        let offer = Offer { name, description, schema_json, phrases_json, reply, timeout_ms, ..Offer::default() };
        if let Err(reason) = spec(offer) {
            prop_assert!(!reason.is_empty());
        }
    }
}
