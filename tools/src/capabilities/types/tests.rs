//! Schemas and the types that they become.

use serde_json::json;

use super::*;

/// The type of a result with this schema, and the declarations that it needs.
fn result(schema: &Value) -> (String, String) {
    let mut types = Types::default();
    let made = types.result("get", Some(schema));
    (made, types.declarations.join("\n"))
}

#[test]
fn schemas_become_types() {
    for (schema, made) in [
        (json!(true), "unknown"),
        (json!(false), "never"),
        (json!({}), "unknown"),
        (json!(5), "unknown"),
        (json!({"type": "string"}), "string"),
        (json!({"type": "integer"}), "number"),
        (json!({"type": ["string", "null"]}), "string | null"),
        (json!({"type": "string", "nullable": true}), "string | null"),
        (json!({"type": "date"}), "unknown"),
        (json!({"const": "it's"}), "'it\\'s'"),
        (json!({"const": null}), "null"),
        (json!({"enum": ["a", "b", 1, -2.5, true, null, "a"]}), "'a' | 'b' | 1 | -2.5 | true | null"),
        (json!({"type": "string", "enum": ["a"]}), "'a'"),
        (json!({"enum": []}), "never"),
        (json!({"enum": [{"a": 1}, [1]]}), "{ [key: string]: unknown } | unknown[]"),
        (json!({"type": "array"}), "unknown[]"),
        (json!({"type": "array", "items": {"type": "string"}}), "string[]"),
        (json!({"type": "array", "items": {"type": ["string", "null"]}}), "(string | null)[]"),
        (json!({"items": {"items": {"enum": ["a", "b"]}}}), "('a' | 'b')[][]"),
        (json!({"type": "array", "items": false}), "[]"),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 1}),
            "[string, number?, ...unknown[]]",
        ),
        (json!({"prefixItems": [{"enum": [1, 2]}], "items": false}), "[(1 | 2)?]"),
        (json!({"items": [{"type": "string"}], "additionalItems": {"type": "number"}}), "[string?, ...number[]]"),
        (json!({"type": "object"}), "{ [key: string]: unknown }"),
        (json!({"type": "object", "additionalProperties": false}), "{ [key: string]: never }"),
        (json!({"type": "object", "additionalProperties": {"type": "number"}}), "{ [key: string]: number }"),
        (json!({"type": "object", "patternProperties": {"^a": {"type": "null"}}}), "{ [key: string]: null }"),
        (json!({"type": "object", "required": ["a-b"]}), "{ 'a-b': unknown }"),
        (json!({"anyOf": [{"type": "string"}, {"type": "number"}]}), "string | number"),
        (json!({"oneOf": [{"type": "string"}, {}]}), "unknown"),
        (json!({"anyOf": []}), "never"),
        (json!({"type": "string", "anyOf": [{"const": "a"}, {"const": "b"}]}), "string & ('a' | 'b')"),
        (
            json!({"anyOf": [{"allOf": [{"required": ["a"], "type": "object"}, {"required": ["b"], "type": "object"}]}, {"type": "null"}]}),
            "{ a: unknown } & { b: unknown } | null",
        ),
        (json!({"$ref": "http://example.com/a"}), "unknown"),
        (json!({"$ref": "#/$defs/none"}), "unknown"),
        (json!({"$ref": "#"}), "unknown"),
        (json!({"$ref": "#/$defs/m%20ode", "$defs": {"m ode": {"enum": ["a"]}}}), "'a'"),
        (json!({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "number"}}}), "number"),
        (
            json!({"$ref": "#/$defs/J", "$defs": {"J": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/J"}}]}}}),
            "null | unknown[]",
        ),
    ] {
        let (found, declared) = result(&schema);
        assert_eq!(found, made, "{schema}");
        assert_eq!(declared, "", "{schema}");
    }
}

#[test]
fn objects_become_interfaces() {
    let (made, declared) =
        result(&json!({"type": "object", "description": "not told", "required": ["b", "a-1"], "properties": {
        "a-1": {"type": "string", "description": "With\nlines.", "default": "x"},
        "b": {"type": "object", "properties": {"c": {"type": "number"}}},
        "d": {"type": "object", "required": [], "properties": {"e": {"description": "Told."}, "f": {"type": "null"}}},
        "g": {"type": "object", "properties": {"h": {}}, "additionalProperties": {"type": "number"}}}}));
    assert_eq!(made, "GetResult");
    assert_eq!(
        declared,
        "  export interface GetResult {
    b: { c: number };
    /** With lines.; default: \"x\" */
    'a-1': string;
    d?: {
      /** Told. */
      e?: unknown;
      f?: null;
    };
    g?: { h: unknown; [key: string]: unknown };
  }
"
    );
}

#[test]
fn cycles_end_in_names() {
    let (made, declared) = result(&json!({"$ref": "#/$defs/tree node", "$defs": {
        "tree node": {"type": "object", "description": "A tree.", "required": ["kids"], "properties": {
            "kids": {"type": "array", "items": {"$ref": "#/$defs/tree node"}}, "leaf": {"$ref": "#/$defs/Leaf"}}},
        "Leaf": {"type": "object", "required": ["of"], "properties": {"of": {"$ref": "#/$defs/tree node"}}}}}));
    assert_eq!(made, "TreeNode");
    assert_eq!(
        declared,
        "  /** A tree. */
  export interface TreeNode {
    kids: TreeNode[];
    leaf?: Leaf;
  }

  export interface Leaf {
    of: TreeNode;
  }
"
    );
    let (made, declared) =
        result(&json!({"type": "object", "title": "Node", "required": [], "properties": {"next": {"$ref": "#"}}}));
    assert_eq!((made.as_str(), declared.contains("    next?: Node;\n")), ("Node", true), "{declared}");
}

#[test]
fn equal_types_are_one_and_others_are_told_apart() {
    let with = |kind: &str| {
        json!({"type": "array", "items": {"$ref": "#/$defs/Item"}, "$defs": {
            "Item": {"type": "object", "properties": {"part": {"$ref": "#/$defs/Part"}}},
            "Part": {"type": "object", "properties": {"x": {"type": kind}}}}})
    };
    let mut types = Types::default();
    let mut made = |kind: &str| types.result(kind, Some(&with(kind)));
    let (first, same, other) = (made("string"), made("string"), made("number"));
    assert_eq!((first.as_str(), same.as_str()), ("Item[]", "Item[]"));
    assert!(other.starts_with("Item_"), "what it refers to differs: {other}");
    let part = |declaration: &&String| declaration.contains("interface Part");
    assert_eq!(types.declarations.iter().filter(part).count(), 2);
    // The language's own names are not taken.
    let promise = json!({"$ref": "#/$defs/Promise", "$defs": {"Promise": {"type": "object", "properties": {"a": {}}}}});
    assert!(result(&promise).0.starts_with("Promise_"));
}

#[test]
fn parameters_are_required_if_one_of_them_is() {
    let parameters = |schema: Value| {
        let mut types = Types::default();
        let (mark, made) = match types.parameters("set", Some(&schema)) {
            Parameters::None => return (String::new(), String::new()),
            Parameters::Optional(made) => ("?", made),
            Parameters::Required(made) => ("", made),
        };
        (format!("params{mark}: {made}"), types.declarations.join("\n"))
    };
    let property = json!({"a": {"type": "string"}});
    for (schema, made) in [
        (json!({"type": "object"}), ""),
        (json!({"type": "object", "properties": {}, "additionalProperties": false}), ""),
        (json!({"type": "object", "properties": property}), "params?: SetParams"),
        (json!({"type": "object", "properties": property, "required": []}), "params?: SetParams"),
        (json!({"type": "object", "properties": property, "required": ["a"]}), "params: SetParams"),
        (json!({"type": "object", "required": ["a"]}), "params: { a: unknown }"),
        (json!({"type": "object", "additionalProperties": true}), "params?: { [key: string]: unknown }"),
        (json!({"type": "object", "additionalProperties": {"type": "null"}}), "params?: { [key: string]: null }"),
        (json!({"type": "object", "anyOf": [{"properties": property}]}), "params: SetParams"),
    ] {
        assert_eq!(parameters(schema.clone()).0, made, "{schema}");
    }
    let (_, declared) = parameters(json!({"type": "object", "properties": property, "anyOf": [{"required": ["a"]}]}));
    assert_eq!(declared, "  export type SetParams = { a?: string };\n");
    let (_, declared) =
        parameters(json!({"type": "object", "$ref": "#/$defs/P", "$defs": {"P": {"properties": property}}}));
    assert_eq!(declared, "  export interface P {\n    a?: string;\n  }\n\n  export type SetParams = P;\n");
}
