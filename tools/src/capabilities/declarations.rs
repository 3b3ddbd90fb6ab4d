//! The TypeScript declarations of a module.

use serde_json::Value;

use super::{
    input::{Function, Origin},
    layout::Layout,
    text::{doc, quoted},
    types::{Parameters, Types},
};
use crate::{
    limits::{FUNCTION_DOC_BYTES_MAX, SCHEMA_BYTES_MAX},
    schema::check_depth,
};

/// Told about a function that waits for the wearer's yes.
const ASKS: &str = "Asks the wearer for approval.";

pub(super) fn render(layout: &Layout<'_>) -> String {
    let mut types = Types::default();
    let indent = if layout.object.is_some() { 4 } else { 2 };
    let start = if layout.object.is_some() { "    " } else { "  export function " };
    let mut functions = String::new();
    for (name, function) in &layout.functions {
        let result = types.result(name, function.spec.output_schema.as_ref().filter(|schema| is_small(schema)));
        let parameters = types.parameters(name, Some(&function.spec.input_schema).filter(|schema| is_small(schema)));
        let parameters = match parameters {
            Parameters::None => String::new(),
            Parameters::Optional(made) => format!("params?: {made}"),
            Parameters::Required(made) => format!("params: {made}"),
        };
        functions.push_str(&about(function, indent));
        functions.push_str(&format!("{start}{name}({parameters}): Promise<{result}>;\n"));
    }
    let mut out = format!("declare module {} {{\n", quoted(&layout.specifier));
    for declaration in types.declarations {
        out.push_str(&declaration);
        out.push('\n');
    }
    match &layout.object {
        Some(object) => {
            if let Some(Origin::Capability(about)) = layout.functions.values().next().map(|function| &function.origin) {
                out.push_str(&doc(&[&about.description], 2, FUNCTION_DOC_BYTES_MAX));
            }
            out.push_str(&format!("  export const {object}: {{\n{functions}  }};\n"));
        }
        None => out.push_str(&functions),
    }
    out.push_str("}\n");
    out
}

fn about(function: &Function, indent: usize) -> String {
    let spec = &function.spec;
    // A tool without a description is described by its name.
    let what = if spec.description == function.local_name { "" } else { &spec.description };
    let asks = if spec.flags.requires_approval { ASKS } else { "" };
    doc(&[what, asks], indent, FUNCTION_DOC_BYTES_MAX)
}

/// Whether a schema is within the limits of registration; one that is not is unknown.
pub(super) fn is_small(schema: &Value) -> bool {
    // Depth is checked first: everything after it may recurse.
    check_depth(schema).is_ok() && schema.to_string().len() <= SCHEMA_BYTES_MAX
}
