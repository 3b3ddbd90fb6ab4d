//! Parts that end by themselves are noticed, and the service manager knows how the gateway is.

use std::{
    fs::read_dir,
    net::SocketAddr,
    os::{fd::OwnedFd, unix::net::UnixDatagram},
};

use gateway::control::{Answer, Request};
use rustix::{
    net::{Shutdown, getsockname, shutdown, sockopt::socket_acceptconn},
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

use crate::{
    process::Process,
    world::{WAIT, World},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_ends_makes_the_gateway_unhealthy_and_ends_it() {
    let world = World::start().await;
    let address = format!("http://{}/healthz", world.web());
    assert_eq!(reqwest::get(&address).await.unwrap().status(), 200);
    // The store's thread ends, as after a bug.
    world.gateway().services().store.close().await.unwrap();
    let part = tokio::time::timeout(WAIT, world.gateway().failed()).await.expect("it is noticed");
    assert_eq!(part, "store");
    // The result of before is cached for a moment.
    let told = async {
        loop {
            let health = reqwest::get(&address).await.unwrap();
            if health.status() == 503 {
                return health.json::<serde_json::Value>().await.unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    let told = tokio::time::timeout(WAIT, told).await.expect("it is told");
    let parts: Vec<_> = told["problems"].as_array().unwrap().iter().map(|problem| &problem["part"]).collect();
    assert_eq!(parts, ["gateway", "store"], "{told}");
    assert!(told["problems"][0]["why"].as_str().unwrap().contains("start it again"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_threads_of_every_gateway_are_watched() {
    let world = World::start().await;
    let watched = world.gateway().watched();
    for thread in
        ["store", "log", "recognition", "synthesis", "files", "preparation", "photos", "firmware", "workspaces"]
    {
        assert!(watched.contains(&thread), "{thread}: {watched:?}");
    }
}

/// Another process's listener on this address: the same socket.
fn listener_of(process: u32, address: SocketAddr) -> OwnedFd {
    let pid = Pid::from_raw(process.try_into().expect("a process")).expect("a process");
    let process_fd = pidfd_open(pid, PidfdFlags::empty()).expect("the process");
    let numbers = read_dir(format!("/proc/{process}/fd")).expect("its descriptors");
    let is_it = |socket: &OwnedFd| {
        let own = getsockname(socket).ok().and_then(|own| SocketAddr::try_from(own).ok());
        own == Some(address) && socket_acceptconn(socket).is_ok_and(|listens| listens)
    };
    numbers
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|number| pidfd_getfd(&process_fd, number, PidfdGetfdFlags::empty()).ok())
        .find(is_it)
        .expect("it listens there")
}

/// A supervisor starts again what ends with a status that is not 0.
#[tokio::test(flavor = "multi_thread")]
async fn a_vital_part_that_ends_ends_the_process_with_a_status() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Process::start(&folder.path().join("data"), "", &[]).await;
    // Its listener is no listener any more.
    shutdown(listener_of(gateway.id(), gateway.web), Shutdown::Both).expect("shut down");
    let (status, log) = gateway.ended().await;
    assert_eq!(status.code(), Some(1), "{log:#?}");
    let said = |words: &str| log.iter().any(|line| line.contains(words));
    assert!(said("a part that the gateway cannot do without ended by itself: listen"), "{log:#?}");
    assert!(said("takes no connections any more"), "{log:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_has_descriptors_and_queues() {
    let world = World::start().await;
    world.gateway().services().telemetry.sound.add(40, 2);
    let Ok(Answer::Status { status }) = world.ask(Request::Status).await else { panic!("no status") };
    assert!(status.descriptors.is_some_and(|(open, most)| open > 0 && open < most), "{status:?}");
    assert_eq!(status.sound, (40, 2));
    let names: Vec<&str> = status.queues.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, ["synthesis", "files", "preparation", "long reads", "writes"], "the tests judge no pauses");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_manager_is_told_of_the_start_of_health_and_of_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(WAIT)).unwrap();
    let next = || {
        let mut message = [0; 64];
        let length = manager.recv(&mut message).expect("a message");
        String::from_utf8(message[..length].to_vec()).unwrap()
    };
    let environment = [("NOTIFY_SOCKET", socket.to_str().unwrap()), ("WATCHDOG_USEC", "3000000")];
    let gateway = Process::start(&folder.path().join("data"), "", &environment).await;
    let started = tokio::task::block_in_place(|| [next(), next(), next()]);
    assert_eq!(started, ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]);
    gateway.terminate().await;
    let stopping = tokio::task::block_in_place(|| std::iter::repeat_with(next).find(|message| message != "WATCHDOG=1"));
    assert_eq!(stopping.as_deref(), Some("STOPPING=1"));
}
