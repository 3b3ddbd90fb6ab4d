//! Tests that need a part of the system of their own: file systems, a network.

use std::process::Command;

/// Set in the test that runs there.
const INSIDE: &str = "LORGNETTE_TEST_NAMESPACES";

/// Runs a test of this program again, as root of a user namespace of its own and of those that these options of `unshare`
/// name: what it changes there nobody else sees, and it goes with the test. `false`: this is it.
pub fn again_in(namespaces: &[&str], test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return false;
    }
    let own = std::env::current_exe().expect("the test's own path");
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
