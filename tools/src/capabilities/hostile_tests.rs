//! The compiler before hostile names, texts and schemas.

use std::{collections::BTreeSet, sync::Arc};

use gateway_core::vocab::ToolSpec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    tests::{function, nothing, tool},
    *,
};
use crate::limits::{SCHEMA_BYTES_MAX, TYPES_COST_MAX};

/// Code without its strings and comments; panics where one of them does not end.
fn bare(code: &str) -> String {
    let (mut out, mut rest) = (String::new(), code);
    while let Some(c) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").expect("an end of the comment").1;
        } else if c == '\'' {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, c)| {
                let ends = *c == '\'' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            let (end, _) = end.expect("an end of the string");
            assert!(!rest[..end].contains(['\n', '\r', '\u{2028}', '\u{2029}']), "a line ends in a string: {rest}");
            rest = &rest[end + 1..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// What every module must be, whatever it was made of.
fn sound(bundle: &Bundle, functions: &[Function]) {
    let tools: BTreeSet<&str> = functions.iter().map(|function| function.spec.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    for module in bundle.modules() {
        let name = module.specifier.strip_prefix("@capabilities/").expect("the folder");
        assert_eq!(name, module.meta.name);
        assert!(!name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
        assert!(name.len() < 255 && !name.starts_with('-'), "{name}");
        let version = &module.meta.version;
        assert!(version.starts_with(|c: char| c.is_ascii_digit()) && !version.contains(['/', '\\']), "{version}");
        for (name, meta) in &module.meta.functions {
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{name}");
            assert!(!name.starts_with(|c: char| c.is_ascii_digit()));
            assert!(seen.insert(meta.tool.clone()), "{} has two places", meta.tool);
            let (found, back) = bundle.place(&meta.tool).expect("a place");
            assert_eq!((&found.specifier, back), (&module.specifier, name.as_str()));
            assert_eq!(bundle.tool(&module.specifier, name), Some(meta.tool.as_str()));
        }
        for code in [bare(&module.d_ts), bare(&module.js)] {
            let mut depth = 0_i32;
            for c in code.chars() {
                assert!(c.is_ascii_alphanumeric() || " \n{}()[]<>:;?|&.,=_$-+".contains(c), "{c:?} in {code}");
                depth += i32::from(matches!(c, '{' | '(' | '[')) - i32::from(matches!(c, '}' | ')' | ']'));
                assert!(depth >= 0, "{code}");
            }
            assert_eq!(depth, 0, "{code}");
        }
        assert!(
            module.d_ts.len() < 1_000 + module.meta.functions.len() * (4 * TYPES_COST_MAX),
            "{}",
            module.d_ts.len()
        );
    }
    let specifiers: BTreeSet<&str> = bundle.modules().iter().map(|module| module.specifier.as_str()).collect();
    assert_eq!(specifiers.len(), bundle.modules().len());
    assert_eq!(seen.iter().map(String::as_str).collect::<BTreeSet<_>>(), tools);
}

#[test]
fn hostile_schemas_are_bounded() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let levels = |count: usize, item: &dyn Fn(usize) -> Value| {
        let defs: serde_json::Map<String, Value> = (0..count).map(|at| (format!("d{at}"), item(at + 1))).collect();
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs})
    };
    let to = |at: usize| json!({"$ref": format!("#/$defs/d{at}")});
    let bomb = levels(200, &|next| json!({"anyOf": [{"type": "array", "items": to(next)}, to(next), to(next + 1)]}));
    let wide = levels(300, &|next| json!({"type": "object", "properties": {"x": to(next), "y": to(next + 7)}}));
    let many: Vec<String> = (0..1_000).map(|number| format!("choice {number}")).collect();
    let long = json!({"type": "object", "properties": {"x": {"const": "x".repeat(5_000)}}});
    let cycle = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/a/b"}},
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}});
    let huge = json!({"type": "object", "properties": {"a": {"description": "x".repeat(SCHEMA_BYTES_MAX)}}});
    let shapes = [
        (deep, "params?: { [key: string]: unknown }"),
        (bomb, "a?: "),
        (wide, "interface D1 {"),
        (json!({"type": "object", "properties": {"a": {"enum": many}}}), "a?: string;"),
        (long, "x?: string;"),
        (cycle, "a?: unknown;"),
        (huge, "params?: { [key: string]: unknown }"),
        (json!({"type": "object", "properties": 5, "required": 7, "anyOf": "x", "$ref": [], "enum": {}}), "Params"),
        (json!(null), "Params"),
    ];
    for (schema, text) in shapes {
        let functions = [function(Origin::Tool, "a", "a", schema.clone(), Some(schema.clone()))];
        let bundle = compile(&functions);
        sound(&bundle, &functions);
        let module = bundle.module("@capabilities/a").unwrap();
        assert!(module.d_ts.contains(text), "{text} is not in {}", &module.d_ts[..module.d_ts.len().min(2_000)]);
        drop(module.schema.to_string());
    }
}

#[test]
fn texts_stay_texts() {
    let evil = "*/ } export const x = 1; /* \u{2028}\n*/\u{202e}' \\' ${x} @ts-nocheck";
    let schema = json!({"type": "object", "required": [evil], "title": evil, "properties": {
        (evil): {"type": "string", "description": evil, "default": evil, "format": evil},
        "e": {"enum": [evil, "'", "\\"], "title": evil},
        "__proto__": {"type": "object", "properties": {"constructor": {"const": evil}}}}});
    let spec = ToolSpec { description: evil.to_owned(), ..(*tool("x").spec).clone() };
    let about = About { name: "evil".into(), version: "../\u{0}".into(), description: evil.into(), rate_limit: None };
    let functions = [
        Function {
            spec: Arc::new(ToolSpec { input_schema: schema.clone(), output_schema: Some(schema), ..spec }),
            local_name: evil.to_owned(),
            origin: Origin::Capability(Arc::new(about)),
        },
        function(Origin::Mcp(evil.to_owned()), "y", evil, nothing(), None),
    ];
    let bundle = compile(&functions);
    sound(&bundle, &functions);
    for module in bundle.modules() {
        let code = bare(&module.d_ts) + &bare(&module.js);
        assert!(!code.contains("const x"), "{}", module.d_ts);
    }
}

/// Names that become the same, look like suffixes, or are no names.
fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c_.-]{1,4}",
        "(get|list|a)[_.-]?(it|It|all)",
        "(get|a)[-_][0-9a-f]{8}",
        "(delete|then|constructor|__proto__|default|new|await|toString|eval|call|params)",
        "\\PC{0,12}",
        ".{0,8}",
    ]
}

fn origins() -> impl Strategy<Value = Origin> {
    let about =
        |name: String| Origin::Capability(Arc::new(About { name, version: "1.0.0".into(), ..About::default() }));
    prop_oneof![
        Just(Origin::Tool),
        names().prop_map(Origin::Mcp),
        names().prop_map(Origin::App),
        names().prop_map(Origin::Device),
        names().prop_map(about),
    ]
}

/// JSON that uses the keywords of schemas, in their places or not.
fn schemas() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "string",
        "number",
        "integer",
        "boolean",
        "null",
        "array",
        "object",
        "#",
        "#/$defs/a",
        "#/$defs/b",
        "#/properties/a",
        "#/items",
        "#/%24defs/a",
        "#x",
        "http://a/b",
        "*/",
        "it's",
        "a b",
        "",
    ]);
    let key = prop::sample::select(vec![
        "type",
        "properties",
        "items",
        "required",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "$defs",
        "enum",
        "const",
        "additionalProperties",
        "patternProperties",
        "prefixItems",
        "minItems",
        "description",
        "title",
        "default",
        "format",
        "nullable",
        "a",
        "b",
        "a b",
        "*/",
    ]);
    let leaf = prop_oneof![
        word.prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(6, 96, 6, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn functions() -> impl Strategy<Value = Vec<Function>> {
    let one = (origins(), names(), names(), schemas(), prop::option::of(schemas()))
        .prop_map(|(origin, tool, local, parameters, returns)| function(origin, &tool, &local, parameters, returns));
    prop::collection::vec(one, 0..12)
}

proptest! {
    #[test]
    fn any_tools_make_sound_modules(functions in functions(), seed in any::<usize>()) {
        let bundle = compile(&functions);
        sound(&bundle, &functions);
        // The same in any order, also where a name occurs twice.
        let mut turned = functions;
        let middle = seed % turned.len().max(1);
        turned.rotate_left(middle);
        turned.reverse();
        let again = compile(&turned);
        prop_assert_eq!(again.modules(), bundle.modules());
    }
}
