//! The capability compiler: how long it takes for 60, 500 and 1,000 tools, and how much of it a model would read.
//!
//! `cargo xtask bench capabilities`

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::{hint::black_box, sync::Arc, time::Instant};

use gateway_core::vocab::{ToolSpec, tokens_of};
use serde_json::json;
use tools::capabilities::{Function, Origin, compile};

/// Compilations that are timed.
const ROUNDS: usize = 30;
/// The aim for a thousand tools, in milliseconds.
const AIM_MS: u128 = 100;

fn main() {
    println!("| tools | modules | schemas, tokens | declarations, tokens | median | slowest |");
    for count in [60, 500, 1_000] {
        let functions: Vec<Function> = (0..count).map(function).collect();
        let mut times: Vec<_> = (0..ROUNDS)
            .map(|_| {
                let began = Instant::now();
                black_box(compile(black_box(&functions)));
                began.elapsed()
            })
            .collect();
        times.sort();
        let (median, slowest) = (times[ROUNDS / 2], times[ROUNDS - 1]);
        let bundle = compile(&functions);
        let direct = |function: &Function| {
            let spec = &function.spec;
            let schema = json!({"name": spec.name, "description": spec.description, "parameters": spec.input_schema});
            tokens_of(&schema.to_string())
        };
        let declared = bundle.modules().iter().map(|module| tokens_of(&module.d_ts));
        println!(
            "| {count} | {} | {} | {} | {median:?} | {slowest:?} |",
            bundle.modules().len(),
            functions.iter().map(direct).sum::<u32>(),
            declared.sum::<u32>(),
        );
        if count == 1_000 && median.as_millis() > AIM_MS {
            println!("slower than the aim of {AIM_MS} ms");
        }
    }
}

/// A tool of one of a few servers, as published ones are: five parameters, one of them an object, and a result.
fn function(number: usize) -> Function {
    let server = format!("server{}", number % 12);
    let local_name = format!("{server}_update_record_{number}");
    let item = json!({"type": "object", "title": "Record", "required": ["id"], "properties": {
        "id": {"type": "string"}, "title": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}});
    let spec = ToolSpec {
        name: format!("{server}.{local_name}"),
        description: format!("Updates record number {number} and returns all records that depend on it."),
        input_schema: json!({"type": "object", "required": ["record_id", "fields"], "properties": {
            "record_id": {"type": "string", "description": "Identifier of the record, as listed"},
            "fields": {"$ref": "#/$defs/Fields"},
            "mode": {"type": "string", "enum": ["merge", "replace", "append"], "description": "How fields are set"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
            "since": {"type": "string", "format": "date-time", "description": "Only records changed since then"}},
            "$defs": {"Fields": {"type": "object", "properties": {
                "title": {"type": "string"}, "parent": {"$ref": "#/$defs/Fields"},
                "state": {"anyOf": [{"const": "open"}, {"const": "closed"}, {"type": "null"}]}}}}}),
        output_schema: Some(json!({"type": "object", "required": ["records"], "properties": {
            "records": {"type": "array", "items": item}, "next": {"type": ["string", "null"]}}})),
        ..ToolSpec::default()
    };
    Function { spec: Arc::new(spec), local_name, origin: Origin::Mcp(server) }
}
