//! The session names of an app, under which published apps keep their data.

use gateway::{
    control::{Answer, Request, apps::AppsRequest, memory},
    store::{Kind, Write},
};
use gateway_core::vocab::AppStopReason;
use serde_json::json;

use super::fake::{PACKAGE, Reply, Socket, Stage};
use crate::{
    process::succeeds,
    world::{USER, World},
};

/// Starts the app, stops it, and returns the name of its session.
async fn session(stage: &Stage) -> String {
    let socket = stage.run().await;
    let session = socket.session.clone();
    stop(stage, socket).await;
    session
}

async fn stop(stage: &Stage, socket: Socket) {
    let before = stage.app.count("stop_request");
    let apps = stage.world.gateway().services().apps.clone();
    let stopping = tokio::spawn(async move { apps.stop(USER, PACKAGE, AppStopReason::User).await });
    stage.app.got("stop_request", before).await;
    socket.close().await;
    assert!(stopping.await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_called_the_same_until_the_app_or_the_user_is_gone() {
    let stage = Stage::new().await;
    let first = session(&stage).await;
    assert!(first.starts_with(&format!("{USER}-{PACKAGE}-")) && first.len() > 24 + USER.len(), "{first}");
    assert_eq!(session(&stage).await, first);

    // It survives a restart of the gateway.
    let Stage { world, glasses, app } = stage;
    glasses.goodbye().await;
    let world = world.again().await;
    let glasses = world.glasses("ws", "glasses").await;
    let stage = Stage { world, glasses, app };
    assert_eq!(session(&stage).await, first);

    // It is erased with all data of the user.
    let request = memory::MemoryRequest::EraseUser { user: USER.into(), devices: false };
    stage.world.ask(Request::Memory { request }).await.unwrap();
    let glasses = stage.world.glasses("ws", "glasses").await;
    let stage = Stage { glasses, ..stage };
    let second = session(&stage).await;
    assert_ne!(second, first);
    assert_eq!(session(&stage).await, second);

    // And with the app, which is stopped before.
    let socket = stage.run().await;
    let (app, stops) = (stage.app.manifest(), stage.app.count("stop_request"));
    let request = AppsRequest::Remove { package: PACKAGE.into() };
    let asking = stage.world.ask(Request::Apps { request });
    let closing = async {
        stage.app.got("stop_request", stops).await;
        socket.close().await;
    };
    let (removed, ()) = tokio::join!(asking, closing);
    removed.unwrap();
    stage.world.gateway().admin().installed.add(app).await.unwrap();
    assert_ne!(session(&stage).await, second);
}

/// While everything of a user is being erased, nothing of that user can be written.
#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_removed_for_all_others_while_an_erasure_of_one_user_is_pending() {
    let stage = Stage::new().await;
    let first = session(&stage).await;
    let store = stage.world.gateway().services().store.clone();
    // In the order of their names this one is before the wearer.
    let (owner, key, value) = ("ann".to_owned(), PACKAGE.as_bytes().to_vec(), b"a name".to_vec());
    store.write(Write::PutRow { kind: Kind::AppSessionNames, owner, key, value }).await.unwrap();
    store.bar("ann", true);
    let app = stage.app.manifest();
    let request = AppsRequest::Remove { package: PACKAGE.into() };
    stage.world.ask(Request::Apps { request }).await.unwrap();
    assert!(store.disk().row(Kind::AppSessionNames, USER, PACKAGE.as_bytes()).unwrap().is_none());
    // The task of the wearer's apps has forgotten it, too.
    stage.world.gateway().admin().installed.add(app).await.unwrap();
    assert_ne!(session(&stage).await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_and_a_wrong_package_are_told_by_the_command_that_started_the_app() {
    let stage = Stage::new().await;
    // As the SDK, whose webhook is answered much later.
    stage.app.answers(Reply::Never);
    let config = stage.world.folder().join("lorgnette.toml");
    std::fs::write(&config, crate::world::basics(&stage.world.data())).unwrap();
    let config = config.display().to_string();
    let cases = [
        (PACKAGE, "wrong", "its API key is not the one that it was installed with"),
        (
            "com.example.else",
            super::fake::KEY,
            "its server says that it is `com.example.else`, and it was installed as",
        ),
    ];
    for (number, (package, key, wanted)) in cases.into_iter().enumerate() {
        let command = ["apps", "start", PACKAGE, "--config", &config];
        let starting = crate::process::fails(&command);
        let dialling = async {
            let request = stage.app.got("session_request", number).await.json();
            let url = request["mentraOSWebsocketUrl"].as_str().unwrap();
            let (_, answer) = Socket::init(url, request["sessionId"].as_str().unwrap(), package, key).await;
            assert_eq!(answer["type"], json!("tpa_connection_error"));
        };
        let (error, ()) = tokio::join!(starting, dialling);
        assert!(error.contains(&format!("{PACKAGE} did not start: {wanted}")), "{error}");
        let logs = stage.logs().await;
        assert_eq!((logs.len(), logs[number].what.as_str()), (number + 1, "socket"), "{logs:#?}");
        assert!(logs[number].message.contains(wanted) && logs[number].user.as_deref() == Some(USER), "{logs:#?}");
    }
    let shown = succeeds(&["apps", "logs", PACKAGE, "--config", &config]).await;
    assert!(shown.contains("PERMISSION_DENIED: INVALID_API_KEY: its API key is not"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_user_is_gone_from_the_apps_log() {
    let stage = Stage::on(World::start().await, |app| app).await;
    session(&stage).await;
    assert!(!stage.log().await.is_empty());
    let request = memory::MemoryRequest::EraseUser { user: USER.into(), devices: false };
    stage.world.ask(Request::Memory { request }).await.unwrap();
    assert_eq!(stage.log().await, []);
    let Ok(Answer::Apps { apps }) = stage.world.ask(Request::Apps { request: AppsRequest::List }).await else {
        panic!()
    };
    assert!(apps[0].running.is_empty() && apps[0].last_fault.is_none(), "{apps:?}");
}
