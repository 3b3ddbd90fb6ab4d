//! Paths that several files of the console share; the others are in the files of their pages.

/// Overview of the gateway's state: where sign-in leads.
pub(super) const HOME: &str = "/console";
/// Where a session ends itself.
pub(super) const LEAVE: &str = "/console/leave";
/// Folder of the streams of live updates.
pub(super) const LIVE: &str = "/console/live/";
/// Findings of `lorgnette doctor`.
pub(super) const PROBLEMS: &str = "/console/problems";
/// The list of devices.
pub(super) const DEVICES: &str = "/console/devices";

/// The page of a device.
pub(super) fn device(fingerprint: &str) -> String {
    format!("/console/devices/of/{fingerprint}")
}
