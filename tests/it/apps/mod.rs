//! Mini-apps against a real gateway: the twenty rules of docs/apps-host.md with an app that is played by hand, and
//! an app on the published SDK.

mod fake;
mod faults;
mod life;
mod rest;
mod rules;
mod sdk;
