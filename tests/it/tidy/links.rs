//! Links of Markdown pages: each leads to a file or folder of the checkout, and its anchor to a heading there. Addresses
//! elsewhere are not judged.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::File;
use super::{no_complaints, tree};

/// The lines of a page outside of fenced code.
fn prose(text: &str) -> Vec<&str> {
    let mut is_fenced = false;
    let is_prose = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fence && !is_fenced
    };
    text.lines().filter(is_prose).collect()
}

/// What GitHub calls the headings of a page: lower case, without punctuation, hyphens for spaces, repeats numbered.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let is_kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        let anchor: String = heading.trim().to_lowercase().chars().filter(is_kept).collect();
        let anchor = anchor.replace(' ', "-");
        let repeats = seen.entry(anchor.clone()).or_insert(0);
        anchors.insert(if *repeats == 0 { anchor } else { format!("{anchor}-{repeats}") });
        *repeats += 1;
    }
    anchors
}

/// The targets of a page's links. Inline code may go on in the next line, but not in the next paragraph.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text).join("\n");
    let outside_code = prose.split("\n\n").flat_map(|paragraph| paragraph.split('`').step_by(2));
    let behind_texts = outside_code.flat_map(|part| part.split("](").skip(1));
    behind_texts.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// The path in the checkout that a page's link names.
fn target(page: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(page.to_owned());
    }
    let mut path: Vec<&str> = page.split('/').collect();
    path.pop();
    for part in link.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." {
            path.pop()?;
        } else {
            path.push(part);
        }
    }
    Some(path.join("/"))
}

fn dead_links(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for page in files.iter().filter(|file| file.path.ends_with(".md")) {
        let links = links(&page.text);
        for link in links.iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link.as_str(), ""));
            let target = target(&page.path, path).unwrap_or_default();
            let leads = match files.iter().find(|file| file.path == target) {
                Some(file) => anchor.is_empty() || anchors(&file.text).contains(anchor),
                None => anchor.is_empty() && files.iter().any(|file| file.path.starts_with(&format!("{target}/"))),
            };
            if !leads {
                complaints.push(format!("{}: the link `{link}` leads to nothing", page.path));
            }
        }
    }
    complaints
}

#[test]
fn links_between_pages_lead_somewhere() {
    let files = tree::files();
    let found: usize = files.iter().filter(|file| file.path.ends_with(".md")).map(|page| links(&page.text).len()).sum();
    assert!(found > 100, "only {found} links were found");
    no_complaints(&dead_links(&files));
}

#[test]
fn links_to_lost_files_and_renamed_headings_are_found() {
    let dead = |text: &str| {
        let other = "# It's `one`, twice\n## Same\n### Same\n```\n# no heading\n```\n";
        dead_links(&[File::new("docs/a.md", text), File::new("docs/b.md", other), File::new("LICENSE", "")])
    };
    let alive = "## Own\n[a](#own) [a](b.md) [a](b.md#its-one-twice) [a](b.md#same) [`a`](./b.md#same-1)\n\n\
                 [a](../LICENSE) [a](../docs) [a](https://example.com/c.md#d) [a](mailto:c@example.com)\n\n\
                 `[a](c.md)` `x\n[a](c.md)`\n```\n[a](c.md)\n```\n";
    no_complaints(&dead(alive));
    let lost =
        ["c.md", "b.md#one", "b.md#same-2", "b.md#no-heading", "#own", "LICENSE", "../../LICENSE", "../docs#same"];
    for link in lost {
        let complaints = dead(&format!("an odd ` in a paragraph\n\n`x`\n[`a`]({link})"));
        assert_eq!(complaints, [format!("docs/a.md: the link `{link}` leads to nothing")], "{link}");
    }
}
