//! Mini-apps: which are installed.

pub mod installed;
