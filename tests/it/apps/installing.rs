//! An installation that is interrupted.

use gateway::control::{
    Answer, Request,
    apps::{AppsRequest, Given},
};
use tokio::{io::AsyncReadExt as _, net::TcpListener};

use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn who_has_left_before_the_key_is_shown_has_installed_nothing() {
    let world = World::start().await;
    let ask = async |request: AppsRequest| world.ask(Request::Apps { request }).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let add = || {
        let (package, name) = (Some("com.example.todo".to_owned()), Some("Todo".to_owned()));
        AppsRequest::Add(Given { package, name, url: Some(url.clone()), ..Given::default() })
    };
    let client = world.send(&Request::Apps { request: add() }).await;
    // The app's server takes the request that looks for it, and never answers.
    let (mut probe, _) = listener.accept().await.unwrap();
    let Ok(Answer::Apps { apps }) = ask(AppsRequest::List).await else { panic!("no list") };
    assert!(apps.is_empty(), "its key has not been shown: {apps:?}");
    drop(client);
    drop(probe.read_to_end(&mut Vec::new()).await);
    // Nobody is there any more, and the next look for it fails at once.
    drop(listener);
    let Ok(Answer::Done { message }) = ask(add()).await else { panic!("it is not installed") };
    assert!(message.contains("its key, which is shown only now: "), "{message}");
}
