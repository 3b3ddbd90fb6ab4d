//! Recognises names of mini-apps in an utterance, by sound.

use super::utterance::View;

/// Every app name that begins at `at`: one past its last word, and the app's name as written. Matches names that sound
/// the same, or with `alike` those that sound similar. If several fit equally well, the words as recognised.
pub(super) fn read(view: View<'_>, at: usize, alike: bool) -> Vec<(usize, String)> {
    let apps = view.utterance.apps();
    let longest = apps.clone().map(|(name, _)| name.words_max()).max().unwrap_or(0).min(view.end.saturating_sub(at));
    let mut out = Vec::new();
    let mut heard = String::new();
    for count in 1..=longest {
        let end = at + count;
        if count > 1 {
            heard.push(' ');
        }
        heard.push_str(view.text(end - 1));
        let near = apps.clone().filter(|(name, _)| count <= name.words_max()).filter_map(|(name, app)| {
            let off = name.distance(&heard)?;
            ((off > 0) == alike).then(|| (off, app.name.clone()))
        });
        let near: Vec<(u16, String)> = near.collect();
        let Some(least) = near.iter().map(|(off, _)| *off).min() else {
            continue;
        };
        let mut nearest = near.into_iter().filter(|(off, _)| *off == least).map(|(_, name)| name);
        let Some(first) = nearest.next() else {
            continue;
        };
        let is_only = nearest.all(|other| other == first);
        out.push((end, if is_only { first } else { heard.clone() }));
    }
    out.reverse();
    out
}
