//! Questions that an operator answers on the page of approvals.

use gateway::{
    control::{Answer, Request},
    identity::operators::Role,
};
use gateway_core::vocab::ErrorCode;
use serde_json::json;

use super::Visitor;
use crate::{
    approvals::Wiper,
    world::{USER, World},
};

/// Calls a tool that needs consent, outside of any turn; the error code if it was refused.
async fn call(world: &World) -> Option<ErrorCode> {
    let (user, name) = (USER.to_owned(), "com.example.todo.wipe".to_owned());
    let request = Request::CallTool { user, name, arguments: json!({"list": "shopping"}) };
    match world.ask(request).await.expect("an answer") {
        Answer::ToolResult { result, .. } => result.error.map(|error| error.code),
        answer => panic!("{answer:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_glasses_an_operator_who_looks_at_the_page_is_asked_and_a_viewer_is_not() {
    let world = World::start().await;
    let wiper = Wiper::plant(&world);
    let viewer = Visitor::signed_in(&world, Role::Viewer).await;
    let mut seen = viewer.get("/console/live/approvals").await;
    seen.chunk().await.expect("a stream").expect("it is followed");
    assert_eq!(call(&world).await, Some(ErrorCode::ApprovalExpired));

    let operator = Visitor::signed_in(&world, Role::Operator).await;
    let mut page = operator.get("/console/live/approvals").await;
    page.chunk().await.expect("a stream").expect("it is followed");
    let answering = async {
        let mut shown = String::new();
        while !shown.contains("Wipe the list") {
            let chunk = page.chunk().await.expect("a stream").expect("it goes on");
            shown.push_str(&String::from_utf8_lossy(&chunk));
        }
        let id = world.gateway().services().approvals.list()[0].id.to_string();
        operator.post("/console/approvals/answer", &[("id", &id), ("answer", "yes")]).await.status().as_u16()
    };
    assert_eq!(tokio::join!(call(&world), answering), (None, 303));
    assert_eq!(wiper.runs(), 1);
    world.stop().await;
}
