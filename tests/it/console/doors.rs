//! Who gets in: links, cookies, names of this machine, switches, and the live updates of a session that ends.

use gateway::{
    config,
    identity::operators::{Operators, Role},
    serve,
};
use reqwest::header::SET_COOKIE;

use super::{Visitor, link, plain};
use crate::{
    namespaces::{OUTSIDE, again_outside},
    process::{Process, configure, succeeds},
    world::{WAIT, World, basics},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_link_lets_one_browser_in_once() {
    let world = World::start().await;
    let stranger = Visitor::stranger(&world);
    let page = stranger.get("/console").await;
    assert_eq!(page.status(), 401);
    let headers = page.headers().clone();
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(headers["cache-control"] == "no-store" && headers["referrer-policy"] == "same-origin", "{headers:?}");
    assert!(page.text().await.unwrap().contains("lorgnette console"));

    // What only looks at the link uses up nothing.
    let token = link(&world, Role::Viewer).await;
    for _ in 0..2 {
        assert!(stranger.text(&format!("/console/enter?link={token}")).await.contains("Sign in"));
    }
    let answer = stranger.post("/console/enter", &[("link", &token)]).await;
    assert_eq!(answer.status(), 303);
    let cookie = answer.headers()[SET_COOKIE].to_str().unwrap().to_owned();
    for part in ["Path=/console", "HttpOnly", "SameSite=Strict"] {
        assert!(cookie.contains(part), "{part} in {cookie}");
    }
    assert!(!cookie.contains("Secure"), "this was no encrypted connection: {cookie}");
    let again = stranger.post("/console/enter", &[("link", &token)]).await;
    assert!(again.status() == 403 && again.text().await.unwrap().contains("used already"));

    // Wrong ones are refused unread after some.
    let mut last = 0;
    for _ in 0..6 {
        last = stranger.post("/console/enter", &[("link", "guess")]).await.status().as_u16();
    }
    assert_eq!(last, 429);
    let good = link(&world, Role::Operator).await;
    assert_eq!(stranger.post("/console/enter", &[("link", &good)]).await.status(), 429);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_ends_its_live_updates() {
    let world = World::start().await;
    let (one, other) =
        (Visitor::signed_in(&world, Role::Operator).await, Visitor::signed_in(&world, Role::Viewer).await);
    let mut stream = other.get("/console/live/overview?").await;
    assert_eq!(
        (stream.status().as_u16(), &stream.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    let first = tokio::time::timeout(WAIT, stream.chunk()).await.expect("in time").unwrap().expect("an event");
    assert!(String::from_utf8_lossy(&first).starts_with("data: "));
    assert!(one.text("/console/access").await.contains("viewer"));
    assert_eq!(one.post("/console/access/end", &[("session", "2")]).await.status(), 303);
    let ended = async { while stream.chunk().await.unwrap().is_some() {} };
    tokio::time::timeout(WAIT, ended).await.expect("the stream ends with the session");
    assert_eq!(other.get("/console").await.status(), 401);
    assert!(one.text("/console/access").await.contains("1 session ended"));

    // Signing out is everybody's.
    let viewer = Visitor::signed_in(&world, Role::Viewer).await;
    let out = viewer.post("/console/leave", &[]).await;
    assert!(out.headers()[SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    assert_eq!(viewer.get("/console").await.status(), 401);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn switched_off_it_does_not_exist_and_the_command_says_so() {
    let world = World::with("listen.console = false\n").await;
    let stranger = Visitor::stranger(&world);
    for path in ["/console", "/console/enter", "/console/console.css", "/console/live/overview"] {
        assert_eq!(stranger.get(path).await.status(), 404, "{path}");
    }
    let refused = world.ask(gateway::control::Request::ConsoleLink { role: Role::Viewer }).await.unwrap_err();
    assert!(refused.contains("listen.console"), "{refused}");
    world.stop().await;
}

/// From another machine it is reached over TLS only, whatever else is.
#[tokio::test(flavor = "multi_thread")]
async fn other_machines_get_in_over_tls_only() {
    if again_outside("console::doors::other_machines_get_in_over_tls_only") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let settings = format!(
        "{}listen.plain = true\n",
        basics(&folder.path().join("data"))
            .replace("listen.web = \"127.0.0.1:0\"", &format!("listen.web = \"{OUTSIDE}:0\""))
    );
    let running = serve::start(config::check(&settings, "world").unwrap()).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().danger_accept_invalid_certs(true).build().unwrap();
    let get = async |scheme: &str| {
        let answer = client.get(format!("{scheme}://{}/console", running.web)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let (status, told) = get("http").await;
    assert!(status == 403 && told.contains("https://"), "{status} {told}");
    assert_eq!(get("https").await.0, 401);
    let operators: &Operators = &running.admin().console.as_ref().unwrap().operators;
    let link = operators.link(gateway::clock::mono_us(), Role::Viewer).unwrap();
    let entered = client
        .post(format!("https://{}/console/enter", running.web))
        .header("origin", format!("https://{}", running.web))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("link={link}"));
    let client = reqwest::redirect::Policy::none();
    let strict =
        reqwest::Client::builder().no_proxy().danger_accept_invalid_certs(true).redirect(client).build().unwrap();
    let answer = strict.execute(entered.build().unwrap()).await.unwrap();
    assert_eq!(answer.status(), 303);
    assert!(answer.headers()[SET_COOKIE].to_str().unwrap().contains("; Secure"));
    running.stop().await;
}

/// The command prints a link that works.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_prints_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let process = Process::start(&data, "", &[]).await;
    let file = configure(&data, "");
    let printed = succeeds(&["--config", file.to_str().unwrap(), "console", "--viewer", "--json"]).await;
    let told: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&told["role"], &told["expires_s"]), (&"viewer".into(), &300.into()));
    let link = told["links"][0].as_str().unwrap();
    let page = plain().get(link).send().await.unwrap();
    assert!(page.status() == 200 && page.text().await.unwrap().contains("Sign in"), "{link}");
    process.terminate().await;
}
