//! What is known of a tool by its name: its title, and what it declares about itself, also where its glasses are yet to offer it
//! after a restart.

use std::time::Duration;

use gateway_core::{
    input::Input,
    vocab::{ToolCall, Turn},
};
use tokio::time::timeout;
use tools::registry::Registry;

/// How long a call about which the wearer is asked again waits for its tool. The wearer is asked 4 s at least after the glasses have come
/// back, so that they have 12 s to offer what they offered before: as long as they take over a poor link.
const OFFERED_WITHIN: Duration = Duration::from_secs(8);

/// A tool's title for the wearer; `device`: the one that it is offered on.
pub(super) fn title(registry: &Registry, (user, device): (&str, Option<&str>), tool: &str) -> String {
    let offered = registry.snapshot(user, device);
    offered.find(tool).map_or_else(|| tools::wording::words(tool), |tool| tool.headline())
}

/// What the tool of a call declares; `None`: there is no such tool.
pub(super) fn declared(
    registry: &Registry,
    (user, device): (&str, &str),
    turn: Turn,
    call: &ToolCall,
) -> Option<Input> {
    let offered = registry.snapshot(user, Some(device));
    let spec = &offered.find(&call.name)?.spec;
    Some(Input::ToolKnown { turn, call_id: call.id.clone(), flags: spec.flags, timeout_ms: spec.timeout_ms })
}

/// As [`declared`], once the tool is offered; `None`: it was already, or is not in time.
pub(super) async fn declared_later(
    registry: &Registry,
    (user, device): (&str, &str),
    turn: Turn,
    call: &ToolCall,
) -> Option<Input> {
    let mut changes = registry.changes();
    if declared(registry, (user, device), turn, call).is_some() {
        return None;
    }
    let coming = async {
        while changes.changed().await.is_ok() {
            if let Some(known) = declared(registry, (user, device), turn, call) {
                return Some(known);
            }
        }
        None
    };
    timeout(OFFERED_WITHIN, coming).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::time::advance;
    use tools::{definition::Hints, device::Offer};

    use super::*;

    const DEVICE: &str = "glasses";
    const TURN: Turn = Turn { id: 1, revision: 0 };

    fn offer(registry: &Registry, device: &str, name: &str) {
        let offer = Offer {
            name: name.into(),
            description: "Opens the door.".into(),
            schema_json: String::new(),
            phrases_json: String::new(),
            reply: String::new(),
            hints: Hints { destructive: true, ..Hints::default() },
            timeout_ms: None,
        };
        tools::device::register(registry, device, vec![offer]).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_glasses_offer_a_little_later_is_waited_for() {
        let registry = Registry::new();
        let call = ToolCall { id: "c1".into(), name: "door.open".into(), arguments: serde_json::json!({}) };
        let of = ("ann", DEVICE);
        let mut waiting = Box::pin(declared_later(&registry, of, TURN, &call));
        assert!((&mut waiting).now_or_never().is_none());
        // Another one, and another device's.
        offer(&registry, DEVICE, "door.close");
        offer(&registry, "others", "door.open");
        advance(OFFERED_WITHIN / 2).await;
        assert!((&mut waiting).now_or_never().is_none());
        offer(&registry, DEVICE, "door.open");
        let Some(Input::ToolKnown { call_id, flags, .. }) = waiting.await else { panic!("it is known") };
        assert!(call_id == "c1" && flags.requires_approval, "{flags:?}");
        assert_eq!(declared_later(&registry, of, TURN, &call).await, None, "it was known at once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_is_not_offered_again_is_waited_for_in_vain() {
        let registry = Registry::new();
        let call = ToolCall { id: "c1".into(), name: "door.open".into(), arguments: serde_json::json!({}) };
        assert_eq!(declared_later(&registry, ("ann", DEVICE), TURN, &call).await, None);
    }
}
