//! Packages of npm as capabilities: a real bundler makes one module of a package of several files with a dependency.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::json;

use super::handlers::{checked, result, world};
use crate::programs::Programs;

/// The flags in docs/capabilities.md.
const FLAGS: [&str; 6] = [
    "--bundle",
    "--format=esm",
    "--platform=neutral",
    "--main-fields=module,main",
    "--external:@lorgnette/*",
    "--external:@agent-spaces/*",
];
/// A package that depends on `ms`, which is in CommonJS.
const PACKAGE: [(&str, &str); 4] = [
    ("package.json", r#"{"name": "journeys", "version": "2.1.0", "type": "module", "dependencies": {"ms": "^2.1.3"}}"#),
    ("lines.json", r#"{"lake": {"minutes": 60}, "hill": {"minutes": 150}}"#),
    (
        "duration.ts",
        "import ms from 'ms';\n\
         export interface Duration { text: string; milliseconds: number }\n\
         export const duration = (minutes: number): Duration => {\n\
           const milliseconds = minutes * ms('1m');\n\
           return { text: ms(milliseconds, { long: true }), milliseconds };\n\
         };\n",
    ),
    (
        "index.ts",
        "import { defineTool } from '@lorgnette/capabilities';\n\
         import { fs } from '@agent-spaces/std';\n\
         import { duration } from './duration';\n\
         import lines from './lines.json';\n\
         export default defineTool({\n\
           name: 'journeys',\n\
           description: 'How long journeys take',\n\
           version: '2.1.0',\n\
           functions: {\n\
             takes: {\n\
               description: 'How long a line takes to its end',\n\
               parameters: { line: { type: 'string', enum: Object.keys(lines) } },\n\
               handler: ({ line }) => duration(lines[line].minutes),\n\
             },\n\
             keep: {\n\
               description: 'Keeps the durations of all lines in a file',\n\
               handler: () => fs.writeFile('durations.json', JSON.stringify(Object.keys(lines).map((line) => duration(lines[line].minutes)))),\n\
             },\n\
           },\n\
         });\n",
    ),
];

/// Bundles a package in a folder from which its dependencies are found.
fn bundled(tools: &Programs, folder: &Path, entry: &str, more: &[&str]) -> (PathBuf, Output) {
    let esbuild = tools.script("esbuild/bin/esbuild");
    // The package's installation puts the program itself in place of a script that starts it, where it can.
    let is_native = std::fs::read(&esbuild).expect("the bundler").starts_with(b"\x7fELF");
    let mut command = Command::new(if is_native { esbuild.clone() } else { tools.node() });
    if !is_native {
        command.arg(&esbuild);
    }
    let out = folder.join("bundle.mjs");
    command.arg(folder.join(entry)).args(FLAGS).args(more).arg(format!("--outfile={}", out.display()));
    (out, command.output().expect("the bundler"))
}

fn package(tools: &Programs, files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(tools.folder()).expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_with_a_dependency_is_one_module_and_its_functions_are_called() {
    let tools = Programs::providers();
    let folder = package(&tools, &PACKAGE);
    let (bundle, output) = bundled(&tools, folder.path(), "index.ts", &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(bundle).expect("a bundle");
    assert!(!text.contains("from \"ms\"") && !text.contains("from \"./"), "{text}");
    // What is documented is what was used.
    let told = include_str!("../../../docs/capabilities.md").replace('\'', "");
    assert!(told.contains(&FLAGS.join(" ")), "docs/capabilities.md names other flags");

    let world = world(&[("journeys.mjs", text)], "").await;
    for (line, text, milliseconds) in [("lake", "1 hour", 3_600_000), ("hill", "3 hours", 9_000_000)] {
        let took = result(&world, "journeys.takes", json!({"line": line})).await;
        assert_eq!(took.data, Some(json!({"text": text, "milliseconds": milliseconds})), "{took:?}");
    }
    let kept = result(&world, "journeys.keep", json!({})).await;
    assert!(kept.error.is_none(), "{kept:?}");
    let file = world.data().join("workspace").join(crate::world::USER).join("durations.json");
    assert!(std::fs::read_to_string(file).expect("its file").contains("3 hours"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_of_node_is_refused_by_the_bundler_or_by_the_gateway() {
    let tools = Programs::providers();
    let index = |line: &str, body: &str| {
        format!(
            "import {{ defineTool }} from '@lorgnette/capabilities';\n{line}\n\
             export default defineTool({{ name: 'disk', functions: {{ read: {{ handler: () => {body} }} }} }});\n"
        )
    };
    let import = index("import { readFileSync } from 'node:fs';", "readFileSync('/etc/passwd', 'utf8')");
    let folder = package(&tools, &[("index.ts", import.as_str())]);
    let (_, output) = bundled(&tools, folder.path(), "index.ts", &[]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("node:fs"), "{words}");

    // Left as an import, the gateway names it with its line.
    let (bundle, output) = bundled(&tools, folder.path(), "index.ts", &["--external:node:*"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(bundle).expect("a bundle");
    let line = text.lines().position(|line| line.contains("node:fs")).expect("an import") + 1;
    let told = checked(folder.path(), "disk.mjs", &text, "").await;
    assert!(told.contains("disk.mjs") && told.contains("node:fs"), "{told}");
    assert!(told.contains(&format!("line {line}")), "line {line}: {told}");

    // A part in CommonJS that requires it fails where it does.
    let required = index("import disk from './disk.cjs';", "disk('/etc/passwd')");
    let part = "const fs = require('node:fs');\nmodule.exports = (path) => fs.readFileSync(path, 'utf8');\n";
    let folder = package(&tools, &[("index.ts", required.as_str()), ("disk.cjs", part)]);
    let (bundle, output) = bundled(&tools, folder.path(), "index.ts", &["--external:node:*"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = checked(folder.path(), "disk.mjs", &std::fs::read_to_string(bundle).expect("a bundle"), "").await;
    assert!(told.contains("disk.mjs") && told.contains("node:fs"), "{told}");
}
