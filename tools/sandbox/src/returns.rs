//! The results that a capability's file declares by a type, `returns: {} as Trip[]`, as JSON Schemas.
//!
//! Read are the types in the literal that `defineTool` is called with, and the interfaces and type aliases of the file
//! that they name, with the JSDoc comments before types and members. What a schema cannot express, and what is imported,
//! may be anything.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use swc_common::{BytePos, FileName, SourceMap, Spanned as _, comments::SingleThreadedComments, sync::Lrc};
use swc_ecma_ast::{
    Callee, Decl, EsVersion, Expr, Lit, Module, ModuleDecl, ModuleItem, ObjectLit, Prop, PropName, PropOrSpread, Stmt,
    TsEntityName, TsFnParam, TsInterfaceDecl, TsKeywordTypeKind as Keyword, TsLit, TsTupleType, TsType,
    TsTypeAliasDecl, TsTypeElement, TsTypeOperatorOp, TsTypeRef, TsUnionOrIntersectionType,
};
use swc_ecma_parser::{Syntax, TsSyntax, parse_file_as_module};

use crate::jsdoc::Docs;

/// The function that defines.
const DEFINE: &str = "defineTool";
/// Levels of a type that are read.
const DEPTH_MAX: usize = 20;
/// Nodes of one result's type that are read.
const NODES_MAX: usize = 2_000;
/// Bytes of a schema with comments; a longer one, which would be too long for the gateway, comes without.
const WITH_DOCS_BYTES_MAX: usize = 32 * 1024;

/// A declaration of the file.
#[derive(Clone, Copy)]
enum Declared<'a> {
    Interface(&'a TsInterfaceDecl),
    Alias(&'a TsTypeAliasDecl),
}

/// Declarations by name, each with its place.
type AllDeclared<'a> = BTreeMap<&'a str, (Declared<'a>, BytePos)>;

/// `{types, lines}`: the schemas by function, and the line of each function. Both are empty if the file cannot be parsed,
/// which its evaluation complains about.
pub fn of(source: &str) -> Value {
    let map: Lrc<SourceMap> = Lrc::default();
    let file = map.new_source_file(FileName::Anon.into(), source.to_owned());
    let syntax = Syntax::Typescript(TsSyntax::default());
    let comments = SingleThreadedComments::default();
    let parsed = parse_file_as_module(&file, syntax, EsVersion::latest(), Some(&comments), &mut Vec::new());
    let docs = Docs::new(source, file.start_pos, comments);
    let line = |at: BytePos| map.try_lookup_char_pos(at).map(|place| place.line).ok();
    parsed.map_or_else(|_| json!({"types": {}, "lines": {}}), |module| of_module(&module, &docs, &line))
}

fn of_module(module: &Module, docs: &Docs<'_>, line: &dyn Fn(BytePos) -> Option<usize>) -> Value {
    let (mut declared, mut calls) = (BTreeMap::new(), Vec::new());
    for item in &module.body {
        match item {
            ModuleItem::Stmt(Stmt::Expr(statement)) => calls.push(&*statement.expr),
            ModuleItem::Stmt(Stmt::Decl(declaration)) => {
                note((declaration, declaration.span_lo()), &mut declared, &mut calls);
            }
            ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => {
                note((&export.decl, export.span.lo), &mut declared, &mut calls);
            }
            ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultExpr(export)) => calls.push(&*export.expr),
            _ => {}
        }
    }
    let (mut types, mut lines) = (Map::new(), Map::new());
    for (name, at, function) in calls.into_iter().filter_map(defined).flat_map(functions) {
        lines.extend(line(at).map(|line| (name.clone(), line.into())));
        if let Some(written) = returned(function) {
            let read =
                |docs| Reader { declared: &declared, docs, named: BTreeMap::new(), left: NODES_MAX }.whole(written);
            let schema = read(Some(docs));
            let is_short = schema.to_string().len() <= WITH_DOCS_BYTES_MAX;
            types.insert(name, if is_short { schema } else { read(None) });
        }
    }
    json!({"types": types, "lines": lines})
}

fn note<'a>((declaration, at): (&'a Decl, BytePos), declared: &mut AllDeclared<'a>, calls: &mut Vec<&'a Expr>) {
    match declaration {
        Decl::TsInterface(it) => drop(declared.insert(it.id.sym.as_str(), (Declared::Interface(it), at))),
        Decl::TsTypeAlias(it) => drop(declared.insert(it.id.sym.as_str(), (Declared::Alias(it), at))),
        Decl::Var(it) => calls.extend(it.decls.iter().filter_map(|one| one.init.as_deref())),
        _ => {}
    }
}

/// Without parentheses.
fn bare(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(inner) => bare(&inner.expr),
        other => other,
    }
}

/// The literal that a call of `defineTool` gets.
fn defined(expression: &Expr) -> Option<&ObjectLit> {
    let Expr::Call(call) = bare(expression) else { return None };
    let Callee::Expr(callee) = &call.callee else { return None };
    let is_it = matches!(bare(callee), Expr::Ident(name) if name.sym.as_str() == DEFINE);
    match call.args.first().filter(|_| is_it).map(|argument| bare(&argument.expr)) {
        Some(Expr::Object(literal)) => Some(literal),
        _ => None,
    }
}

/// The functions of a definition, with their places.
fn functions(definition: &ObjectLit) -> Vec<(String, BytePos, &Expr)> {
    match field(definition, "functions") {
        Some(Expr::Object(functions)) => entries(functions).collect(),
        _ => Vec::new(),
    }
}

/// The type of a function's result.
fn returned(function: &Expr) -> Option<&TsType> {
    let Expr::Object(function) = function else { return None };
    match field(function, "returns")? {
        Expr::TsAs(cast) => Some(&cast.type_ann),
        Expr::TsTypeAssertion(cast) => Some(&cast.type_ann),
        _ => None,
    }
}

fn entries(literal: &ObjectLit) -> impl Iterator<Item = (String, BytePos, &Expr)> {
    literal.props.iter().filter_map(|property| match property {
        PropOrSpread::Prop(property) => match &**property {
            Prop::KeyValue(pair) => Some((key(&pair.key)?, pair.key.span_lo(), bare(&pair.value))),
            _ => None,
        },
        PropOrSpread::Spread(_) => None,
    })
}

fn field<'a>(literal: &'a ObjectLit, name: &str) -> Option<&'a Expr> {
    entries(literal).filter(|(key, ..)| key == name).map(|(.., value)| value).last()
}

fn key(name: &PropName) -> Option<String> {
    match name {
        PropName::Ident(name) => Some(name.sym.as_str().to_owned()),
        PropName::Str(text) => Some(text.value.to_string_lossy().into_owned()),
        PropName::Num(number) => Some(number.value.to_string()),
        PropName::Computed(_) | PropName::BigInt(_) => None,
    }
}

/// Reads the type of one result.
struct Reader<'a> {
    declared: &'a AllDeclared<'a>,
    /// `None`: comments are left out.
    docs: Option<&'a Docs<'a>>,
    /// Schemas of the declarations that are referred to.
    named: BTreeMap<String, Value>,
    /// Nodes that may still be read.
    left: usize,
}

impl Reader<'_> {
    fn whole(mut self, written: &TsType) -> Value {
        let mut schema = self.read(written, 0);
        if !self.named.is_empty()
            && let Some(fields) = schema.as_object_mut()
        {
            fields.insert("$defs".to_owned(), Map::from_iter(self.named).into());
        }
        schema
    }

    fn read(&mut self, written: &TsType, depth: usize) -> Value {
        let affordable = depth < DEPTH_MAX && self.left > 0;
        self.left = self.left.saturating_sub(1);
        if !affordable {
            return json!({});
        }
        let depth = depth + 1;
        match written {
            TsType::TsKeywordType(keyword) => of_keyword(keyword.kind),
            TsType::TsArrayType(array) => json!({"type": "array", "items": self.read(&array.elem_type, depth)}),
            TsType::TsTupleType(tuple) => self.tuple(tuple, depth),
            TsType::TsTypeLit(literal) => self.object(&literal.members, &mut Map::new(), depth),
            TsType::TsParenthesizedType(inner) => self.read(&inner.type_ann, depth),
            TsType::TsTypeOperator(operator) if operator.op == TsTypeOperatorOp::ReadOnly => {
                self.read(&operator.type_ann, depth)
            }
            TsType::TsLitType(literal) => match &literal.lit {
                TsLit::Str(text) => json!({"const": text.value.to_string_lossy()}),
                TsLit::Bool(flag) => json!({"const": flag.value}),
                TsLit::Number(number) => json!({"const": number_of(number.value)}),
                TsLit::Tpl(_) => json!({"type": "string"}),
                TsLit::BigInt(_) => json!({}),
            },
            TsType::TsUnionOrIntersectionType(TsUnionOrIntersectionType::TsUnionType(union)) => {
                self.union(&union.types, depth)
            }
            TsType::TsUnionOrIntersectionType(TsUnionOrIntersectionType::TsIntersectionType(both)) => {
                let parts: Vec<Value> = both.types.iter().map(|part| self.read(part, depth)).collect();
                json!({"allOf": parts})
            }
            TsType::TsTypeRef(reference) => self.reference(reference, depth),
            _ => json!({}),
        }
    }

    /// A schema with the comment before this place.
    fn told(&self, mut schema: Value, at: BytePos) -> Value {
        if let Some(text) = self.docs.and_then(|docs| docs.before(at))
            && let Some(fields) = schema.as_object_mut()
        {
            fields.insert("description".to_owned(), text.into());
        }
        schema
    }

    fn tuple(&mut self, tuple: &TsTupleType, depth: usize) -> Value {
        let (mut first, mut needed, mut rest) = (Vec::new(), 0, json!(false));
        for element in &tuple.elem_types {
            match &*element.ty {
                TsType::TsOptionalType(optional) => first.push(self.read(&optional.type_ann, depth)),
                TsType::TsRestType(others) => {
                    let list = self.read(&others.type_ann, depth);
                    rest = list.get("items").cloned().unwrap_or_else(|| json!({}));
                }
                one => {
                    first.push(self.read(one, depth));
                    needed = first.len();
                }
            }
        }
        json!({"type": "array", "prefixItems": first, "minItems": needed, "items": rest})
    }

    fn union(&mut self, types: &[Box<TsType>], depth: usize) -> Value {
        let there: Vec<Value> =
            types.iter().filter(|one| !is_undefined(one)).map(|one| self.read(one, depth)).collect();
        let constants: Option<Vec<Value>> = there.iter().map(|one| one.get("const").cloned()).collect();
        match (constants, there.as_slice()) {
            (Some(constants), _) if !constants.is_empty() => json!({"enum": constants}),
            (_, [one]) => one.clone(),
            _ => json!({"anyOf": there}),
        }
    }

    /// Members with those that the object has already: later ones replace them.
    fn object(&mut self, members: &[TsTypeElement], properties: &mut Map<String, Value>, depth: usize) -> Value {
        let mut required = Vec::new();
        let mut others = None;
        self.members(members, (properties, &mut required, &mut others), depth);
        object(std::mem::take(properties), required, others)
    }

    fn members(
        &mut self,
        members: &[TsTypeElement],
        (properties, required, others): (&mut Map<String, Value>, &mut Vec<String>, &mut Option<Value>),
        depth: usize,
    ) {
        for member in members {
            match member {
                TsTypeElement::TsPropertySignature(property) if !property.computed => {
                    let Some(name) = name_of(&property.key) else { continue };
                    let written = property.type_ann.as_deref().map(|note| &*note.type_ann);
                    let may_lack = property.optional || written.is_some_and(may_be_undefined);
                    // JSON has no functions.
                    if matches!(written, Some(TsType::TsFnOrConstructorType(_))) {
                        continue;
                    }
                    let schema = written.map_or_else(|| json!({}), |written| self.read(written, depth));
                    let schema = self.told(schema, property.span.lo);
                    required.retain(|known| *known != name);
                    if !may_lack {
                        required.push(name.clone());
                    }
                    properties.insert(name, schema);
                }
                TsTypeElement::TsIndexSignature(index) => {
                    let is_named = matches!(index.params.first(), Some(TsFnParam::Ident(_)));
                    if let Some(note) = index.type_ann.as_deref().filter(|_| is_named) {
                        *others = Some(self.read(&note.type_ann, depth));
                    }
                }
                _ => {}
            }
        }
    }

    fn reference(&mut self, reference: &TsTypeRef, depth: usize) -> Value {
        let TsEntityName::Ident(name) = &reference.type_name else { return json!({}) };
        let arguments = reference.type_params.as_deref().map(|all| all.params.as_slice()).unwrap_or_default();
        match (name.sym.as_str(), arguments) {
            ("Array" | "ReadonlyArray", [item]) => json!({"type": "array", "items": self.read(item, depth)}),
            ("Promise" | "Awaited" | "Readonly", [inner]) => self.read(inner, depth),
            ("Record", [_, value]) => {
                json!({"type": "object", "additionalProperties": self.read(value, depth)})
            }
            // As JSON has it.
            ("Date", []) => json!({"type": "string", "format": "date-time"}),
            (name, []) => self.named(name, depth),
            _ => json!({}),
        }
    }

    fn named(&mut self, name: &str, depth: usize) -> Value {
        let Some((declared, at)) = self.declared.get(name).copied() else { return json!({}) };
        if !self.named.contains_key(name) {
            // It may refer to itself.
            self.named.insert(name.to_owned(), json!({}));
            let schema = match declared {
                Declared::Alias(alias) if alias.type_params.is_none() => self.read(&alias.type_ann, depth),
                Declared::Interface(interface) if interface.type_params.is_none() => {
                    let (mut properties, mut required, mut others) = (Map::new(), Vec::new(), None);
                    self.inherited(interface, (&mut properties, &mut required, &mut others), depth);
                    object(properties, required, others)
                }
                _ => json!({}),
            };
            let schema = self.told(schema, at);
            self.named.insert(name.to_owned(), schema);
        }
        json!({"$ref": format!("#/$defs/{name}")})
    }

    /// The members of an interface after those that it extends.
    fn inherited(
        &mut self,
        interface: &TsInterfaceDecl,
        (properties, required, others): (&mut Map<String, Value>, &mut Vec<String>, &mut Option<Value>),
        depth: usize,
    ) {
        if depth >= DEPTH_MAX || self.left == 0 {
            return;
        }
        self.left -= 1;
        for base in &interface.extends {
            if let Expr::Ident(name) = &*base.expr
                && let Some((Declared::Interface(base), _)) = self.declared.get(name.sym.as_str()).copied()
            {
                self.inherited(base, (properties, required, others), depth + 1);
            }
        }
        self.members(&interface.body.body, (properties, required, others), depth);
    }
}

fn object(properties: Map<String, Value>, required: Vec<String>, others: Option<Value>) -> Value {
    let mut schema = json!({"type": "object", "properties": properties, "required": required});
    if let (Some(others), Some(fields)) = (others, schema.as_object_mut()) {
        fields.insert("additionalProperties".to_owned(), others);
    }
    schema
}

fn of_keyword(kind: Keyword) -> Value {
    match kind {
        Keyword::TsStringKeyword => json!({"type": "string"}),
        Keyword::TsNumberKeyword => json!({"type": "number"}),
        Keyword::TsBooleanKeyword => json!({"type": "boolean"}),
        Keyword::TsNullKeyword => json!({"type": "null"}),
        Keyword::TsObjectKeyword => json!({"type": "object"}),
        _ => json!({}),
    }
}

fn is_undefined(written: &TsType) -> bool {
    let nothing = [Keyword::TsUndefinedKeyword, Keyword::TsVoidKeyword];
    matches!(written, TsType::TsKeywordType(keyword) if nothing.contains(&keyword.kind))
}

fn may_be_undefined(written: &TsType) -> bool {
    match written {
        TsType::TsUnionOrIntersectionType(TsUnionOrIntersectionType::TsUnionType(union)) => {
            union.types.iter().any(|one| is_undefined(one))
        }
        one => is_undefined(one),
    }
}

/// Whole numbers without a point.
#[expect(clippy::cast_possible_truncation, reason = "it is compared with what it was")]
fn number_of(value: f64) -> Value {
    let whole = value as i64;
    #[expect(clippy::cast_precision_loss, clippy::float_cmp, reason = "whole numbers of this size are exact")]
    let is_whole = value.abs() < 9e15 && whole as f64 == value;
    if is_whole { json!(whole) } else { json!(value) }
}

fn name_of(key: &Expr) -> Option<String> {
    match key {
        Expr::Ident(name) => Some(name.sym.as_str().to_owned()),
        Expr::Lit(Lit::Str(text)) => Some(text.value.to_string_lossy().into_owned()),
        Expr::Lit(Lit::Num(number)) => Some(number.value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(declarations: &str, written: &str) -> Value {
        let source = format!(
            "{declarations}\nexport const x = defineTool({{ name: 'x', functions: {{ f: {{ returns: {{}} as {written}, \
             handler: async () => 1 }}, g: {{ returns: {{}} }} }} }});"
        );
        let told = of(&source);
        assert_eq!(told["types"].as_object().map(Map::len), Some(1), "{source}: {told}");
        assert_eq!(told["lines"]["g"], declarations.lines().count().max(1) + 1, "{told}");
        told["types"]["f"].clone()
    }

    #[test]
    fn a_list_of_an_interface() {
        let found = schema("interface Trip { id: string; hour?: number; note: string | undefined }", "Trip[]");
        let trip = json!({"type": "object", "required": ["id"], "properties": {
            "id": {"type": "string"}, "hour": {"type": "number"}, "note": {"type": "string"}}});
        assert_eq!(found, json!({"type": "array", "items": {"$ref": "#/$defs/Trip"}, "$defs": {"Trip": trip}}));
    }

    #[test]
    fn what_types_are_written_as() {
        for (written, wanted) in [
            ("unknown", json!({})),
            ("string | null", json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
            ("'a' | 'b' | 3", json!({"enum": ["a", "b", 3]})),
            (
                "Array<readonly number[]>",
                json!({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}),
            ),
            ("Record<string, boolean>", json!({"type": "object", "additionalProperties": {"type": "boolean"}})),
            ("Promise<Date>", json!({"type": "string", "format": "date-time"})),
            (
                "[string, number?]",
                json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 1,
                    "items": false}),
            ),
            (
                "{ [key: string]: number }",
                json!({"type": "object", "properties": {}, "required": [], "additionalProperties": {"type": "number"}}),
            ),
            ("Foreign<string>", json!({})),
            ("keyof Foreign", json!({})),
            ("(() => void)", json!({})),
        ] {
            assert_eq!(schema("", written), wanted, "{written}");
        }
    }

    #[test]
    fn interfaces_may_extend_others_and_name_themselves() {
        let found = schema(
            "interface Base { id: string; call(): void; go: () => void }\n\
             export interface Node extends Base { id: number; next?: Node }\ntype Nodes = Node[];",
            "Nodes",
        );
        assert_eq!(found["$ref"], "#/$defs/Nodes");
        assert_eq!(found["$defs"]["Nodes"], json!({"type": "array", "items": {"$ref": "#/$defs/Node"}}));
        let node = json!({"type": "object", "required": ["id"],
            "properties": {"id": {"type": "number"}, "next": {"$ref": "#/$defs/Node"}}});
        assert_eq!(found["$defs"]["Node"], node);
    }

    #[test]
    fn comments_before_types_and_members_are_kept() {
        let found = schema(
            "/** Not this one. */\n/**\n * A trip\n * of a train.\n * @see nothing\n */\nexport interface Trip {\n  \
             // no JSDoc\n  id: string;\n  /** Departure, 0 to 23. */\n  readonly hour: number;\n  /** Where. */ to?: \
             { /** In letters. */ name: string };\n  /** The next one. */\n  next: Trip;\n  /* plain */\n  a: 1;\n  \
             /** @deprecated */\n  b: 2;\n}",
            "Trip",
        );
        let trip = &found["$defs"]["Trip"];
        assert_eq!(trip["description"], "A trip\nof a train.");
        let told = |name: &str| trip["properties"][name]["description"].as_str();
        assert_eq!(
            ["id", "hour", "to", "next", "a", "b"].map(told),
            [None, Some("Departure, 0 to 23."), Some("Where."), Some("The next one."), None, None]
        );
        assert_eq!(trip["properties"]["to"]["properties"]["name"]["description"], "In letters.");
        assert_eq!(trip["properties"]["next"]["$ref"], "#/$defs/Trip");
        // Comments never cost a type.
        let line = |at: usize| format!("/** {} */\nm{at}: string;\n", "x".repeat(1_000));
        for (count, with) in [(60, true), (200, false)] {
            let found = schema(&format!("interface A {{\n{} }}", (0..count).map(line).collect::<String>()), "A");
            let text = found.to_string();
            assert!(text.len() < 32 * 1024 && text.contains("xxx") == with, "{}", text.len());
            assert_eq!(found["$defs"]["A"]["properties"].as_object().map(Map::len), Some(count));
        }
    }

    #[test]
    fn hostile_types_end() {
        for (declarations, written) in [
            ("type A = A", "A".to_owned()),
            ("interface A extends A { a: A }", "A".to_owned()),
            ("interface A extends B {}\ninterface B extends A {}", "A".to_owned()),
            ("", format!("{}string{}", "Array<".repeat(200), ">".repeat(200))),
            ("", (0..5_000).map(|at| format!("'{at}'")).collect::<Vec<_>>().join(" | ")),
        ] {
            let text = schema(declarations, &written).to_string();
            assert!(text.len() < 64 * 1024, "{declarations} {}", text.len());
        }
        assert_eq!(of("const = ;"), json!({"types": {}, "lines": {}}));
    }
}
