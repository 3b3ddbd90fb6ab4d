//! One client's session: a handler for each request of the protocol.

#![expect(deprecated, reason = "revisions before 2026-07-28 have logging and subscriptions to resources")]

use std::{
    collections::btree_map::Entry,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use gateway_core::vocab::ToolCall;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, GetPromptRequestParams,
        GetPromptResponse, Implementation, InputRequiredResult, InputResponses, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, Reference, ResultType, ServerCapabilities, ServerConfig,
        SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
        UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Endpoint, Who,
    call_channel::{self, Asking, Call, CallChannel, Step},
    changes::{self, Changes, Watched},
    lists::page,
    parked::{self, Waiting},
    results::{self, Outcome},
};
use crate::{call::CallContext, executor::arguments_hash, mcp::client::OnBehalf, mutex::lock, source::Source};

/// Timeout of a call whose tool declares none: an MCP client may wait longer than a wearer.
const CALL_MS_DEFAULT: u64 = 120_000;
/// Timeout of the other requests to downstream servers.
const REQUEST_MS_MAX: u64 = 60_000;
/// Maximum resources that one session watches.
const WATCHED_MAX: usize = 64;

/// One client's session; a request of 2026-07-28 is a session of its own.
pub(crate) struct Session {
    endpoint: Arc<Endpoint>,
    level: Mutex<Option<LoggingLevel>>,
    watched: Arc<Watched>,
    /// From its beginning, until they are told.
    changes: Mutex<Option<Changes>>,
    ended: CancellationToken,
    _end: DropGuard,
}

impl Session {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Self {
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let changes = Mutex::new(Some(Changes::of(&endpoint.hub)));
        Self { endpoint, level: Mutex::default(), watched: Arc::default(), changes, ended, _end: guard }
    }

    /// Starts the requested call, or continues a call that waited for the answers in the request.
    async fn converse<F>(
        &self,
        context: &RequestContext<RoleServer>,
        what: u64,
        responses: Option<InputResponses>,
        state: Option<String>,
        work: impl FnOnce(Arc<CallChannel>, CancellationToken) -> F,
    ) -> Result<Result<Outcome, InputRequiredResult>, ErrorData>
    where
        F: Future<Output = Result<Outcome, ErrorData>> + Send + 'static,
    {
        let endpoint = &self.endpoint;
        let level = self.log_level(context);
        let call = match state {
            Some(state) => {
                let waiting = endpoint.parked.take(&state, what)?;
                match parked::answers(&waiting.question, responses.unwrap_or_default()) {
                    Some(answers) => {
                        drop(waiting.question.reply.send(answers));
                        waiting.call
                    }
                    // An answer is missing: the same question is sent again.
                    None => return self.park(waiting).map(Err),
                }
            }
            None => {
                let cancel = CancellationToken::new();
                let Who { approves, is_operator, .. } = endpoint.who;
                let capabilities = capabilities(context);
                let asking = Asking { capabilities, level, given: responses, approves, is_operator };
                let (channel, call) = CallChannel::new(asking, cancel.clone());
                let work = work(channel.clone(), cancel);
                endpoint.hub.tracker.spawn(async move {
                    let outcome = work.await;
                    channel.done(outcome).await;
                });
                call
            }
        };
        self.step(call, context, level, what).await
    }

    async fn step(
        &self,
        call: Call,
        context: &RequestContext<RoleServer>,
        level: Option<LoggingLevel>,
        what: u64,
    ) -> Result<Result<Outcome, InputRequiredResult>, ErrorData> {
        match call.serve(context, level).await? {
            Step::Done(outcome) => Ok(Ok(outcome)),
            Step::Asks(call, question) => self.park(Waiting { call, question, what }).map(Err),
        }
    }

    fn park(&self, waiting: Waiting) -> Result<InputRequiredResult, ErrorData> {
        let requests = waiting.question.requests.clone();
        let handle = self.endpoint.parked.park(waiting, &self.endpoint.hub.tracker)?;
        Ok(call_channel::input_required(&requests, handle))
    }

    /// The least severe log level for a request: since 2026-07-28 only if the request sets it.
    fn log_level(&self, context: &RequestContext<RoleServer>) -> Option<LoggingLevel> {
        if call_channel::is_modern(context) {
            return context.meta.log_level();
        }
        Some(lock(&self.level).unwrap_or(LoggingLevel::Info))
    }

    fn on_behalf(channel: Arc<CallChannel>) -> OnBehalf {
        OnBehalf { caller: Some(channel), wearer: None }
    }
}

fn capabilities(context: &RequestContext<RoleServer>) -> Value {
    let capabilities = context.client_capabilities().map(|capabilities| serde_json::to_value(&capabilities));
    capabilities.and_then(Result::ok).unwrap_or_else(|| json!({}))
}

fn unexpected() -> ErrorData {
    ErrorData::internal_error("an outcome of another kind", None)
}

fn no_prompt(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("unknown prompt: {name}"), None)
}

fn no_resource(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri })))
}

fn too_many() -> ErrorData {
    ErrorData::internal_error("too many subscriptions", None)
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("lorgnette", env!("CARGO_PKG_VERSION")))
            .with_instructions("Tools of a wearer of smart glasses: the gateway's own, the glasses', mini-apps', and those of its MCP servers.")
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tool = self.endpoint.tool(name)?;
        self.endpoint.describe(name, &tool)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let (page, next_cursor) = page(self.endpoint.tools(), request)?;
        let tools = page.iter().filter_map(|(name, tool)| self.endpoint.describe(name, tool)).collect();
        Ok(ListToolsResult { next_cursor, ..ListToolsResult::with_all_items(tools) })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.endpoint.tool(&request.name) else {
            return Err(ErrorData::invalid_params(format!("unknown tool: {}", request.name), None));
        };
        let endpoint = self.endpoint.clone();
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let what = arguments_hash(&request.name, &arguments);
        let work = |channel: Arc<CallChannel>, cancel: CancellationToken| async move {
            let call = ToolCall { id: endpoint.hub.call_id(), name: tool.spec.name.clone(), arguments };
            let context = CallContext {
                user: endpoint.who.user.clone(),
                device: endpoint.device(),
                turn: None,
                cancel,
                default_timeout: Duration::from_millis(CALL_MS_DEFAULT),
                conversation: Arc::default(),
                language: None,
                session: None,
                client: endpoint.who.class,
                caller: Some(channel.clone()),
                session_lease: None,
                watcher: None,
            };
            let result = endpoint.hub.executor.call(context, call).await;
            let server = match &tool.source {
                Source::Mcp(server) => Some(server.as_str()),
                _ => None,
            };
            results::tool(result, channel.exact(), server, endpoint.hub.pool.prefixes()).map(Outcome::Tool)
        };
        match self.converse(&context, what, request.input_responses, request.request_state, work).await? {
            Ok(Outcome::Tool(result)) => Ok(CallToolResponse::Complete(result)),
            Ok(_) => Err(unexpected()),
            Err(asks) => Ok(CallToolResponse::InputRequired(asks)),
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let (page, next_cursor) = page(self.endpoint.prompts(), request)?;
        let prompts = page.into_iter().map(|(_, prompt)| prompt).collect();
        Ok(ListPromptsResult { next_cursor, ..ListPromptsResult::with_all_items(prompts) })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prefixes = self.endpoint.hub.pool.prefixes();
        let (server, name) = prefixes.name_in(&request.name).ok_or_else(|| no_prompt(&request.name))?;
        let server = self.endpoint.server(server).ok_or_else(|| no_prompt(&request.name))?.clone();
        let mut params = GetPromptRequestParams::new(name);
        params.arguments = request.arguments.clone();
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let what = arguments_hash(&format!("prompt {}", request.name), &arguments);
        let prefixes = prefixes.clone();
        let work = |channel: Arc<CallChannel>, _cancel| async move {
            let behalf = Self::on_behalf(channel);
            let got = server.get_prompt(params, &behalf, Duration::from_millis(REQUEST_MS_MAX)).await;
            let name = &server.config.name;
            let result = got.map_err(|failure| results::error(name, failure))?;
            let mut json = serde_json::to_value(&result).unwrap_or_default();
            for message in json.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(block) = message.get_mut("content") {
                    results::rename(block, name, &prefixes);
                }
            }
            Ok(Outcome::Prompt(results::complete_prompt(serde_json::from_value(json).map_err(|_| unexpected())?)))
        };
        match self.converse(&context, what, request.input_responses, request.request_state, work).await? {
            Ok(Outcome::Prompt(result)) => Ok(GetPromptResponse::Complete(result)),
            Ok(_) => Err(unexpected()),
            Err(asks) => Ok(GetPromptResponse::InputRequired(asks)),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (page, next_cursor) = page(self.endpoint.resources(), request)?;
        let resources = page.into_iter().map(|(_, resource)| resource).collect();
        Ok(ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(resources) })
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let (page, next_cursor) = page(self.endpoint.templates(), request)?;
        let templates = page.into_iter().map(|(_, template)| template).collect();
        Ok(ListResourceTemplatesResult { next_cursor, ..ListResourceTemplatesResult::with_all_items(templates) })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let prefixes = self.endpoint.hub.pool.prefixes();
        let (server, uri) = prefixes.uri_in(&request.uri).ok_or_else(|| no_resource(&request.uri))?;
        let server = self.endpoint.server(server).ok_or_else(|| no_resource(&request.uri))?.clone();
        let params = ReadResourceRequestParams::new(uri);
        let what = arguments_hash(&format!("resource {}", request.uri), &Value::Null);
        let prefixes = prefixes.clone();
        let work = |channel: Arc<CallChannel>, _cancel| async move {
            let behalf = Self::on_behalf(channel);
            let read = server.read_resource(params, &behalf, Duration::from_millis(REQUEST_MS_MAX)).await;
            let name = &server.config.name;
            let result = read.map_err(|failure| results::error(name, failure))?;
            let mut json = serde_json::to_value(&result).unwrap_or_default();
            for part in json.get_mut("contents").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(uri) = part.get_mut("uri")
                    && let Some(inner) = uri.as_str()
                {
                    *uri = prefixes.uri_out(name, inner).into();
                }
            }
            Ok(Outcome::Resource(results::complete_resource(serde_json::from_value(json).map_err(|_| unexpected())?)))
        };
        match self.converse(&context, what, request.input_responses, request.request_state, work).await? {
            Ok(Outcome::Resource(result)) => Ok(ReadResourceResponse::Complete(result)),
            Ok(_) => Err(unexpected()),
            Err(asks) => Ok(ReadResourceResponse::InputRequired(asks)),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let prefixes = self.endpoint.hub.pool.prefixes();
        let mut params = request.clone();
        let server = match (&request.r#ref, &mut params.r#ref) {
            (Reference::Prompt(asked), Reference::Prompt(inner)) => {
                let (server, name) = prefixes.name_in(&asked.name).ok_or_else(|| no_prompt(&asked.name))?;
                inner.name = name.to_owned();
                server
            }
            (Reference::Resource(asked), Reference::Resource(inner)) => {
                let (server, uri) = prefixes.uri_in(&asked.uri).ok_or_else(|| no_resource(&asked.uri))?;
                inner.uri = uri.to_owned();
                server
            }
            _ => return Ok(CompleteResult::default()),
        };
        params.meta = None;
        let Some(server) = self.endpoint.server(server) else {
            return Ok(CompleteResult::default());
        };
        let completed = server.complete(params, Duration::from_millis(REQUEST_MS_MAX)).await;
        let mut completed = completed.map_err(|failure| results::error(&server.config.name, failure))?;
        completed.result_type.get_or_insert(ResultType::COMPLETE);
        Ok(completed)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if call_channel::is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        *lock(&self.level) = Some(request.level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let pool = &self.endpoint.hub.pool;
        let (server, uri) = pool.prefixes().uri_in(&request.uri).ok_or_else(|| no_resource(&request.uri))?;
        let key = (server.to_owned(), uri.to_owned());
        let server = self.endpoint.server(server).ok_or_else(|| no_resource(&request.uri))?;
        let watch = {
            let mut watched = lock(&self.watched);
            let is_full = watched.len() >= WATCHED_MAX;
            match watched.entry(key) {
                Entry::Occupied(entry) => entry.get().clone(),
                Entry::Vacant(_) if is_full => {
                    return Err(ErrorData::invalid_params(format!("at most {WATCHED_MAX} subscriptions"), None));
                }
                Entry::Vacant(entry) => entry.insert(server.watch(uri).ok_or_else(too_many)?).clone(),
            }
        };
        watch.asked().await;
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let pool = &self.endpoint.hub.pool;
        let (server, uri) = pool.prefixes().uri_in(&request.uri).ok_or_else(|| no_resource(&request.uri))?;
        lock(&self.watched).remove(&(server.to_owned(), uri.to_owned()));
        Ok(())
    }

    /// Before 2026-07-28 changes are sent to every session. A request may be answered before this runs.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(changes) = lock(&self.changes).take() else { return };
        let (hub, watched, ended) = (self.endpoint.hub.clone(), self.watched.clone(), self.ended.clone());
        self.endpoint.hub.tracker.spawn(async move {
            changes::tell_session(&hub, changes, context.peer, &watched, ended).await;
        });
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            let prefixes = self.endpoint.hub.pool.prefixes();
            uris.retain(|uri| prefixes.uri_in(uri).is_some_and(|(server, _)| self.endpoint.server(server).is_some()));
            uris.truncate(WATCHED_MAX);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        changes::tell_subscription(&self.endpoint.hub, &context).await;
        Ok(())
    }
}
