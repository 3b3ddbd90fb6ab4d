//! An MCP server of the smallest kind: a shopping list over standard input and output. The demo
//! puts it behind the gateway; any other MCP client can start it as well.

use std::sync::{Mutex, PoisonError};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

/// More is no shopping list.
const ITEMS_MAX: usize = 100;

/// What is to be bought, until the server ends.
#[derive(Default)]
struct ShoppingList(Mutex<Vec<String>>);

/// The definitions. A host that knows nothing of `_meta` ignores it.
fn tools() -> Vec<Tool> {
    let definitions = json!([
        {
            "name": "add",
            "description": "Puts something on the shopping list.",
            "inputSchema": {
                "type": "object",
                "properties": { "item": { "type": "string", "maxLength": 80 } },
                "required": ["item"]
            },
            "_meta": { "mentraExtensions": { "sentenceTemplates": {
                "en": ["(put|add|write) {item} (on|to) (my|the|our) shopping list"]
            } } }
        },
        {
            "name": "list",
            "description": "Tells what is on the shopping list.",
            "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true },
            "_meta": { "mentraExtensions": { "sentenceTemplates": {
                "en": ["what (is|do we have) on (my|the|our) shopping list", "read [me] (my|the|our) shopping list"]
            } } }
        }
    ]);
    serde_json::from_value(definitions).unwrap_or_default()
}

impl ShoppingList {
    fn run(&self, name: &str, arguments: &Value) -> Result<String, String> {
        let mut items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match name {
            "add" => {
                let item = arguments.get("item").and_then(Value::as_str).map(str::trim).unwrap_or_default();
                if item.is_empty() {
                    return Err("Say what to put on the list.".to_owned());
                }
                if items.len() >= ITEMS_MAX {
                    return Err(format!("The shopping list is full: it holds {ITEMS_MAX} things."));
                }
                items.push(item.to_owned());
                Ok(format!("I put {item} on the shopping list."))
            }
            "list" if items.is_empty() => Ok("The shopping list is empty.".to_owned()),
            "list" => Ok(format!("On the shopping list: {}.", items.join(", "))),
            other => Err(format!("There is no tool `{other}` here.")),
        }
    }
}

impl ServerHandler for ShoppingList {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult { tools: tools(), ..Default::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let result = match self.run(&request.name, &arguments) {
            Ok(said) => CallToolResult::success(vec![ContentBlock::text(said)]),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
        };
        Ok(CallToolResponse::Complete(result))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let serving = ShoppingList::default().serve(rmcp::transport::stdio()).await?;
    serving.waiting().await?;
    Ok(())
}
