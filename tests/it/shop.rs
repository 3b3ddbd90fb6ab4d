//! A shop whose functions are a capability: a real HTTP server carries them out, records each call, and keeps a call of
//! its door until the test opens it.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Response;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{http, world::WAIT};

/// What makes the gateway offer it: the definition is in the data folder.
pub const SETTINGS: &str = "[capabilities]\nglobal = [\"shop\"]\n";

/// Clones share one server and its record of calls.
#[derive(Clone)]
pub struct Shop {
    url: String,
    calls: watch::Sender<Vec<(String, Value)>>,
    open: watch::Sender<bool>,
    tries: Arc<Mutex<u32>>,
}

impl Shop {
    /// Starts its server.
    pub async fn start() -> Self {
        let (listener, address) = http::bind().await;
        let shop = Self {
            url: format!("http://{address}/calls"),
            calls: watch::Sender::default(),
            open: watch::Sender::new(false),
            tries: Arc::default(),
        };
        let server = shop.clone();
        http::serve(listener, move |request| {
            let shop = server.clone();
            async move {
                let body = request.into_body().collect().await.expect("a body").to_bytes();
                let call: Value = serde_json::from_slice(&body).expect("JSON");
                let reply = shop.reply(call["function"].as_str().expect("a function"), &call["parameters"]).await;
                let json = Full::new(Bytes::from(reply.to_string()));
                Response::builder().header("content-type", "application/json").body(json).expect("a response")
            }
        });
        shop
    }

    /// Writes its definition into the data folder of a gateway that is not running.
    pub fn put(&self, data: &Path) {
        let function = |name: &str, description: &str, properties: Value, required: &[&str]| {
            let parameters = json!({"type": "object", "properties": properties, "required": required});
            json!({"name": name, "description": description, "parameters": parameters})
        };
        let text = json!({"type": "string"});
        let number = json!({"type": "integer"});
        let mut delete = function("deleteList", "Delete a list.", json!({"list": text}), &["list"]);
        delete["requiresApproval"] = json!(true);
        delete["approvalMessage"] = json!("Delete the list {list}?");
        let reading = |mut function: Value| {
            function["annotations"] = json!({"readOnlyHint": true});
            function
        };
        let mut door = reading(function("openDoor", "Waits until somebody opens.", json!({}), &[]));
        door["progressMessage"] = json!("Waiting at the door");
        let definition = json!({
            "name": "shop",
            "description": "Orders and customers of a shop.",
            "version": "1.0.0",
            "config": {"timeoutMs": 100_000},
            "functions": [
                reading(function("listOrders", "The orders, a page at a time.", json!({"page": number}), &[])),
                reading(function("getCustomer", "A customer.", json!({"id": number}), &["id"])),
                reading(function("checkStock", "Answers at the third try.", json!({}), &[])),
                reading(function("readReport", "The report: long.", json!({}), &[])),
                reading(function("readPrices", "A price list as CSV.", json!({}), &[])),
                door,
                function("addItem", "Puts an item into the basket.", json!({"item": text}), &["item"]),
                delete,
            ],
            "endpoint": {"url": self.url},
        });
        let folder = data.join("capabilities");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("shop.json"), definition.to_string()).expect("a definition");
    }

    /// Every call so far, with its arguments.
    pub fn calls(&self) -> Vec<(String, Value)> {
        self.calls.borrow().clone()
    }

    /// The items that were put into the basket, in that order.
    pub fn items(&self) -> Vec<String> {
        let added = |(function, arguments): (String, Value)| {
            (function == "addItem").then(|| arguments["item"].as_str().unwrap_or_default().to_owned())
        };
        self.calls().into_iter().filter_map(added).collect()
    }

    /// Waits until somebody stands at the door.
    pub async fn knocked(&self) {
        let mut calls = self.calls.subscribe();
        let waited = calls.wait_for(|calls| calls.iter().any(|(function, _)| function == "openDoor"));
        tokio::time::timeout(WAIT, waited).await.expect("a call in time").expect("a server");
    }

    /// Opens the door, for good.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    async fn reply(&self, function: &str, arguments: &Value) -> Value {
        self.calls.send_modify(|calls| calls.push((function.to_owned(), arguments.clone())));
        match function {
            "listOrders" => {
                let page = arguments["page"].as_i64().unwrap_or(1);
                let order = |number: i64| {
                    let id = 4 * (page - 1) + number;
                    json!({"id": id, "customer": id % 3, "cents": 250 * id, "open": id % 2 == 0})
                };
                let next = (page < 3).then_some(page + 1);
                json!({"success": true, "structuredContent": {"orders": (1..=4).map(order).collect::<Vec<_>>(), "next": next}})
            }
            "getCustomer" => match arguments["id"].as_u64().and_then(|id| ["Ada", "Ben", "Cleo"].get(id as usize)) {
                Some(name) => json!({"success": true, "structuredContent": {"name": name}}),
                None => json!({"success": false, "error":
                    {"code": "EXECUTION_ERROR", "message": "There is no such customer.", "retryable": false}}),
            },
            "checkStock" => {
                let mut tries = self.tries.lock().unwrap();
                *tries += 1;
                if tries.is_multiple_of(3) {
                    return json!({"success": true, "structuredContent": {"left": 7}});
                }
                json!({"success": false, "error":
                    {"code": "RATE_LIMITED", "message": "Try again.", "retryable": true}})
            }
            "readReport" => json!({"success": true, "content": report()}),
            "readPrices" => {
                json!({"success": true, "content": "item,cents\nbread,320\n\"milk, oat\",210\napples,450\n"})
            }
            "openDoor" => {
                let mut open = self.open.subscribe();
                open.wait_for(|open| *open).await.expect("a shop");
                json!({"success": true, "content": "come in"})
            }
            _ => json!({"success": true, "content": "done"}),
        }
    }
}

/// 200 kB, of which one line is of interest.
pub fn report() -> String {
    let line = |number: u32| match number {
        3_210 => "TOTAL: 4711 CHF\n".to_owned(),
        _ => format!("{number:05} an entry of no interest that fills a line\n"),
    };
    (0..4_200).map(line).collect()
}
