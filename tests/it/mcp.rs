//! MCP in both directions: checked by the official suite, used by foreign clients, and with foreign and faulty servers.

mod access;
mod client_judge;
mod faults;
pub mod fixture;
mod lost;
mod operator;
mod peers;
mod programs;
mod server_judge;
mod sessions;

use std::{sync::Arc, time::Duration};

use gateway_core::vocab::{ClientClass, ToolCall, ToolResult};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tools::{call::CallContext, caller::Caller, mcp::client::State};

use crate::world::{USER, WAIT, World};

/// Waits until a downstream server is up.
pub async fn up(world: &World, server: &str) {
    state(world, server, |state| matches!(state, State::Up(_))).await;
}

/// Waits until a downstream server is in this state; checked again at changes of the registry and after a time.
async fn state(world: &World, server: &str, wanted: impl Fn(&State) -> bool) {
    let looked = async {
        loop {
            let states = world.gateway().admin().mcp.servers();
            if states.iter().any(|(name, state)| name == server && wanted(state)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let seen = tokio::time::timeout(WAIT, looked).await;
    assert!(seen.is_ok(), "{server}: {:?}", world.gateway().admin().mcp.servers());
}

/// Calls a tool as the wearer's assistant does, or as a client.
async fn call(world: &World, name: &str, caller: Option<Arc<dyn Caller>>) -> ToolResult {
    cancellable(world, name, Value::Object(Default::default()), caller, CancellationToken::new()).await
}

async fn cancellable(
    world: &World,
    name: &str,
    arguments: Value,
    caller: Option<Arc<dyn Caller>>,
    cancel: CancellationToken,
) -> ToolResult {
    let context = CallContext {
        session: None,
        user: USER.to_owned(),
        device: None,
        turn: None,
        cancel,
        default_timeout: WAIT,
        conversation: Arc::default(),
        language: None,
        client: ClientClass::Internal,
        caller,
        session_lease: None,
        watcher: None,
    };
    let call = ToolCall { id: format!("test-{name}"), name: name.to_owned(), arguments };
    world.gateway().services().executor.call(context, call).await
}
