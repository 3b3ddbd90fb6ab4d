//! Assigns a server's messages to calls.

#![expect(deprecated, reason = "revisions before 2026-07-28 have sampling, roots and logging")]

use std::sync::{Arc, Mutex, Weak};

use rmcp::{
    ClientHandler, ErrorData,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
        ElicitResult, ElicitationAction, Implementation, ListRootsResult, LoggingMessageNotificationParam,
        ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId, ResourceUpdatedNotificationParam,
    },
    service::{InboundStreamOrigin, NotificationContext, RequestContext, RoleClient},
};
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast};

use super::{Downstream, OnBehalf, ServerChange};
use crate::{mutex::lock, secret::Secrets};

/// A call that waits for its answer.
struct Active {
    id: RequestId,
    token: ProgressToken,
    behalf: OnBehalf,
}

/// The pending calls of one connection.
#[derive(Default)]
pub(super) struct Routes {
    /// Held while a request is sent, until it is in `active`: messages that belong to it wait for this lock.
    pub(super) gate: tokio::sync::Mutex<()>,
    active: Mutex<Vec<Active>>,
}

impl Routes {
    pub(super) fn add(&self, id: RequestId, token: ProgressToken, behalf: OnBehalf) {
        lock(&self.active).push(Active { id, token, behalf });
    }

    pub(super) fn remove(&self, id: &RequestId) {
        lock(&self.active).retain(|active| active.id != *id);
    }

    async fn by_token(&self, token: &ProgressToken) -> Option<OnBehalf> {
        drop(self.gate.lock().await);
        lock(&self.active).iter().find(|active| active.token == *token).map(|active| active.behalf.clone())
    }

    /// The call that a message of the server belongs to. A transport with one stream for everything does not contain
    /// this information; the call is then only known while a single call is pending.
    async fn by_origin(&self, origin: Option<&InboundStreamOrigin>) -> Option<OnBehalf> {
        drop(self.gate.lock().await);
        let active = lock(&self.active);
        match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => {
                active.iter().find(|active| active.id == *id).map(|active| active.behalf.clone())
            }
            _ => match active.as_slice() {
                [only] => Some(only.behalf.clone()),
                _ => None,
            },
        }
    }
}

/// Lists that have to be requested again.
#[derive(Default)]
pub(super) struct Changed {
    pub(super) notify: Notify,
}

/// The gateway as a server's client.
pub(super) struct Handler {
    /// Weak, because its task closes the connection, and the connection holds this object.
    pub(super) server: Weak<Downstream>,
    pub(super) routes: Arc<Routes>,
    pub(super) changed: Arc<Changed>,
    pub(super) changes: broadcast::Sender<ServerChange>,
    /// What nothing that the server says of its own accord may contain.
    pub(super) secrets: Secrets,
}

impl Handler {
    async fn ask(&self, method: &str, mut params: Value, context: &RequestContext<RoleClient>) -> Option<Value> {
        let behalf = self.routes.by_origin(context.extensions.get()).await?;
        self.secrets.redact_value(&mut params);
        let mut request = json!({ "method": method });
        if !params.is_null() {
            request["params"] = params;
        }
        tokio::select! {
            answer = behalf.one(request) => answer,
            () = context.ct.cancelled() => None,
        }
    }
}

fn unable(what: &str) -> ErrorData {
    ErrorData::invalid_request(format!("{what} is not possible for this call"), None)
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().enable_sampling().build();
        let mut config = ClientConfig::new(capabilities, Implementation::new("lorgnette", env!("CARGO_PKG_VERSION")));
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(&request).unwrap_or_default();
        let answer = self.ask("elicitation/create", params, &context).await;
        let answer = answer.and_then(|answer| serde_json::from_value(answer).ok());
        Ok(answer.unwrap_or_else(|| ElicitResult::new(ElicitationAction::Decline)))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let params = serde_json::to_value(&params).unwrap_or_default();
        let answer = self.ask("sampling/createMessage", params, &context).await.ok_or_else(|| unable("sampling"))?;
        serde_json::from_value(answer).map_err(|_| unable("sampling"))
    }

    async fn list_roots(&self, context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let answer = self.ask("roots/list", Value::Null, &context).await.ok_or_else(|| unable("roots/list"))?;
        serde_json::from_value(answer).map_err(|_| unable("roots/list"))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        if let Some(behalf) = self.routes.by_token(&params.progress_token).await
            && let Some(caller) = &behalf.caller
        {
            let mut message = params.message;
            message.iter_mut().for_each(|message| self.secrets.redact(message));
            caller.progress(params.progress, params.total, message);
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        context: NotificationContext<RoleClient>,
    ) {
        if let Some(behalf) = self.routes.by_origin(context.extensions.get()).await
            && let Some(caller) = &behalf.caller
            && caller.log_level().is_some()
        {
            let mut message = json!({ "level": params.level, "logger": params.logger, "data": params.data });
            self.secrets.redact_value(&mut message);
            caller.log(message);
        } else if let Some(server) = self.server.upgrade() {
            server.wrote(&params.data.as_str().map_or_else(|| params.data.to_string(), str::to_owned));
        }
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        // There are no listeners.
        if let Some(server) = self.server.upgrade() {
            drop(self.changes.send(ServerChange::Updated { server: server.config.name.clone(), uri: params.uri }));
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify.notify_one();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify.notify_one();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify.notify_one();
    }
}
