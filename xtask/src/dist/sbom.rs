//! The software bill of materials: CycloneDX 1.6 in JSON (ECMA-424).

use std::fmt::Write as _;

use super::crates::Crate;

/// A document without a serial number or a time, so that two builds of one commit have the same. C code is in crates of
/// the list, whose versions fix it.
pub(super) fn text(crates: &[Crate], version: &str) -> String {
    let root = format!("pkg:generic/lorgnette@{version}");
    let components: Vec<String> = crates.iter().filter(|one| !one.is_ours()).map(component).collect();
    let ours = crates.iter().enumerate().filter(|(_, one)| one.is_ours());
    let mut dependencies = vec![dependency(&root, ours.map(|(at, _)| reference(&crates[at])).collect())];
    dependencies.extend(
        crates
            .iter()
            .map(|one| dependency(&reference(one), one.needs.iter().map(|&at| reference(&crates[at])).collect())),
    );
    let own: Vec<String> = crates.iter().filter(|one| one.is_ours()).map(component).collect();
    format!(
        "{{\n\"bomFormat\": \"CycloneDX\",\n\"specVersion\": \"1.6\",\n\"version\": 1,\n\"metadata\": {{\"component\": \
         {{\"type\": \"application\", \"bom-ref\": {root}, \"name\": \"lorgnette\", \"version\": {version}, \"licenses\": \
         [{{\"expression\": \"Apache-2.0 OR MIT\"}}], \"components\": [\n{own}\n]}}}},\n\
         \"components\": [\n{components}\n],\n\"dependencies\": [\n{dependencies}\n]\n}}\n",
        root = quoted(&root),
        version = quoted(version),
        own = own.join(",\n"),
        components = components.join(",\n"),
        dependencies = dependencies.join(",\n"),
    )
}

fn component(one: &Crate) -> String {
    let reference = reference(one);
    let mut text = format!(
        "{{\"type\": \"library\", \"bom-ref\": {}, \"name\": {}, \"version\": {}, \"licenses\": [{{\"expression\": {}}}]",
        quoted(&reference),
        quoted(&one.name),
        quoted(&one.version),
        quoted(&one.licence)
    );
    if let Some(checksum) = &one.checksum {
        let _ = write!(
            text,
            ", \"purl\": {}, \"hashes\": [{{\"alg\": \"SHA-256\", \"content\": {}}}]",
            quoted(&reference),
            quoted(checksum)
        );
    }
    if one.repository.starts_with("https://") {
        let url = quoted(&one.repository);
        let _ = write!(text, ", \"externalReferences\": [{{\"type\": \"vcs\", \"url\": {url}}}]");
    }
    text + "}"
}

/// The package URL; crates of this workspace are in no registry, and have a reference only.
fn reference(one: &Crate) -> String {
    if one.is_ours() {
        format!("{}@{}", one.name, one.version)
    } else {
        format!("pkg:cargo/{}@{}", one.name, one.version)
    }
}

fn dependency(of: &str, on: Vec<String>) -> String {
    let on: Vec<String> = on.iter().map(|reference| quoted(reference)).collect();
    format!("{{\"ref\": {}, \"dependsOn\": [{}]}}", quoted(of), on.join(", "))
}

/// The text as a JSON string, with its quotation marks.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if u32::from(letter) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(quoted("a \"b\" \\ \n é"), r#""a \"b\" \\ \u000a é""#);
    }

    #[test]
    fn a_crate_has_its_checksum_and_its_dependencies() {
        let one = |name: &str, checksum: Option<&str>, needs: &[usize]| Crate {
            name: name.into(),
            version: "1.0.0".into(),
            licence: "MIT".into(),
            repository: String::new(),
            checksum: checksum.map(str::to_owned),
            needs: needs.to_vec(),
        };
        let text = text(&[one("gateway", None, &[1]), one("hound", Some("cafe"), &[])], "0.1.0");
        assert!(text.contains(r#""purl": "pkg:cargo/hound@1.0.0", "hashes": [{"alg": "SHA-256", "content": "cafe"}]"#));
        assert!(text.contains(r#"{"ref": "gateway@1.0.0", "dependsOn": ["pkg:cargo/hound@1.0.0"]}"#), "{text}");
        assert!(text.contains(r#"{"ref": "pkg:generic/lorgnette@0.1.0", "dependsOn": ["gateway@1.0.0"]}"#), "{text}");
    }
}
