//! The JavaScript of a module: each function passes its argument on over the bridge.
//!
//! ```js
//! import { call as $call } from '@lorgnette/bridge';
//! export const slack = Object.freeze({
//!   listChannels: (params = {}) => $call('@capabilities/mcp-slack', 'listChannels', params),
//! });
//! ```
//!
//! A sandbox provides the module [`BRIDGE`] with `call(module, function, params)`, which returns a promise of the
//! result and rejects it where the call fails. The gateway knows the tool by module and function
//! ([`Bundle::tool`](super::Bundle::tool)): a program cannot name any other one.

use super::{layout::Layout, text::quoted};

/// The module that a sandbox provides.
pub const BRIDGE: &str = "@lorgnette/bridge";

/// `$` is in no generated name, so that no function hides the bridge's.
pub(super) fn render(layout: &Layout<'_>) -> String {
    let (bridge, module) = (quoted(BRIDGE), quoted(&layout.specifier));
    let mut out = format!("import {{ call as $call }} from {bridge};\n");
    match &layout.object {
        None => {
            for name in layout.functions.keys() {
                let function = quoted(name);
                out.push_str(&format!(
                    "export function {name}(params = {{}}) {{\n  return $call({module}, {function}, params);\n}}\n"
                ));
            }
        }
        Some(object) => {
            out.push_str(&format!("export const {object} = Object.freeze({{\n"));
            for name in layout.functions.keys() {
                let function = quoted(name);
                out.push_str(&format!("  {name}: (params = {{}}) => $call({module}, {function}, params),\n"));
            }
            out.push_str("});\n");
        }
    }
    out
}
