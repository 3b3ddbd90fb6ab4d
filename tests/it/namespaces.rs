//! Tests that need a part of the system of their own: file systems, a network.

use std::{net::Ipv4Addr, process::Command};

/// An address of this machine in the network of [`again_outside`], beside loopback: connections to it count as external. It is
/// one for documentation.
pub const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);

/// Set in the test that runs there.
const INSIDE: &str = "LORGNETTE_TEST_NAMESPACES";

/// Runs a test of this program again, as root of a user namespace of its own and of those that these options of `unshare`
/// name: what it changes there nobody else sees, and it goes with the test. `false`: this is it.
pub fn again_in(namespaces: &[&str], test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return false;
    }
    let own = std::env::current_exe().expect("the test's own path");
    // Under a wrong name none would run, and that would be no failure.
    let listed = Command::new(&own).args(["--exact", test, "--list"]).output().expect("the tests");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.lines().any(|line| line == format!("{test}: test")), "no test is called {test}: {listed}");
    let ended = Command::new("unshare")
        .args(["--user", "--map-root-user"])
        .args(namespaces)
        .arg(own)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status();
    let ended = ended.expect("unshare, of util-linux: apt-get install util-linux");
    assert!(
        ended.success(),
        "`unshare --user --map-root-user {}` did not run {test} to its end. If it says nothing above, user namespaces must \
         be allowed (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces)",
        namespaces.join(" ")
    );
    true
}

/// As [`again_in`], in a network in which this machine has the address [`OUTSIDE`], and no other one but loopback.
pub fn again_outside(test: &str) -> bool {
    if again_in(&["--net"], test) {
        return true;
    }
    for words in ["link set lo up".to_owned(), format!("address add {OUTSIDE}/32 dev lo")] {
        let done = Command::new("ip").args(words.split(' ')).status();
        assert!(done.expect("ip, of iproute2: apt-get install iproute2").success(), "ip {words}");
    }
    false
}
