//! The files that the pages load: what /try looks like too, one stylesheet, one script, one picture.

use axum::{
    Router,
    http::{HeaderName, header},
    routing::get,
};

use super::Pages;

pub(super) const LOOK: &str = "/console/look.css";
pub(super) const STYLE: &str = "/console/console.css";
pub(super) const SCRIPT: &str = "/console/console.js";
pub(super) const ICON: &str = "/console/icon.svg";

/// Path, type, content.
const FILES: [(&str, &str, &str); 4] = [
    (LOOK, "text/css; charset=utf-8", include_str!("../static/look.css")),
    (STYLE, "text/css; charset=utf-8", include_str!("../static/console/console.css")),
    (SCRIPT, "text/javascript; charset=utf-8", include_str!("../static/console/console.js")),
    (ICON, "image/svg+xml", include_str!("../static/icon.svg")),
];

/// Whether a path is that of a file, which everybody may have: nothing of a gateway is in it.
pub(super) fn is_file(path: &str) -> bool {
    FILES.iter().any(|(own, _, _)| *own == path)
}

pub(super) fn routes() -> Router<Pages> {
    let file = |router: Router<Pages>, (path, kind, content): (&'static str, &'static str, &'static str)| {
        let answer: ([(HeaderName, &'static str); 1], &'static str) = ([(header::CONTENT_TYPE, kind)], content);
        router.route(path, get(async move || answer))
    };
    FILES.into_iter().fold(Router::new(), file)
}
