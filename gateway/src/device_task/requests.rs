//! Model requests and tool calls of one device's conversation.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chat_models::{AHEAD_MAX, ChatModel, Matched, Request, Watch, would_differ};
use futures_util::FutureExt as _;
use gateway_core::{
    input::Input,
    limits::{TOOL_MS_DEFAULT, TOOL_MS_MAX},
    vocab::{
        ClientClass, CommandMatch, ErrorCode, FailureKind, Message, ModelEvent, Pending, Role, Scene, ToolCall, Turn,
    },
};
use tokio_util::sync::CancellationToken;
use tools::{
    call::CallContext,
    code::modules::Modules,
    conversation::{self, PastMessage},
    executor::Executor,
    in_flight::SessionLease,
    journal::LeftQuestion,
};

use super::{
    known,
    prepare::{Preparer, answered_late, are_ready},
    progress::OnDisplay,
    restored_approvals::RestoredApprovals,
    services::Assistant,
    streamed_answer::StreamedAnswer,
    turn_language::TurnLanguage,
};
use crate::{
    clock,
    mailbox::{DeviceMessage, Mailbox, RequestSent},
    models::chain::ModelChain,
    ports::context::ContextBuilder,
    runtime::spawn,
};

/// The executor and the core agree about the longest call.
const _: () = assert!(tools::limits::CALL_MS_MAX == TOOL_MS_MAX as u64);

/// Running requests and calls of one device.
pub(crate) struct Requests {
    user: String,
    device: String,
    session: String,
    pub(super) language: TurnLanguage,
    models: ModelChain,
    preparer: Preparer,
    executor: Executor,
    modules: Arc<Modules>,
    lease: SessionLease,
    context: Arc<ContextBuilder>,
    mailbox: Mailbox,
    called: BTreeMap<String, CancellationToken>,
    /// Calls about which the wearer was being asked when the process before this one died, and is asked again.
    restored_approvals: RestoredApprovals,
    /// The last request of the current turn.
    last: Option<Last>,
    /// The last turn for which a model was asked, and what was said up to then.
    conversation: Option<(u32, Arc<[PastMessage]>)>,
}

/// What was said, the request that it may answer, and what the wearer sees.
type Said = (Vec<Message>, Option<Pending>, Scene);

/// A request that was sent to a model.
struct Last {
    turn: Turn,
    model: Arc<dyn ChatModel>,
    request: Request,
    answer: StreamedAnswer,
}

/// The tools of a request, and the box's own answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    /// The catalogue's revision.
    pub revision: u64,
    /// Number of tools to choose from.
    pub known: u32,
    /// The box's own answer; `None` if a model was asked, whose answer arrives as [events](Requests::next_event).
    pub answer: Option<Vec<ModelEvent>>,
}

impl Requests {
    /// A state in which nothing runs.
    #[allow(clippy::too_many_arguments, reason = "all that a conversation works with")]
    pub(crate) fn new(
        user: String,
        device: String,
        session: String,
        language: String,
        assistant: &Assistant,
        executor: Executor,
        lease: SessionLease,
        mailbox: Mailbox,
    ) -> Self {
        Self {
            user,
            device,
            session,
            language: TurnLanguage::new(language),
            models: assistant.models.clone(),
            preparer: assistant.preparer.clone(),
            executor,
            modules: assistant.modules.clone(),
            lease,
            context: assistant.context.clone(),
            mailbox,
            called: BTreeMap::new(),
            restored_approvals: RestoredApprovals::default(),
            last: None,
            conversation: None,
        }
    }

    /// Asks the model of this rank, with the tools available now.
    pub(crate) fn ask_model(
        &mut self,
        turn: Turn,
        rank: u8,
        messages: Vec<Message>,
        (pending, scene): (Option<Pending>, Scene),
    ) -> Asked {
        self.last = None;
        self.conversation = Some((turn.id, conversation::recent(&messages)));
        let language = self.language.of(turn).to_owned();
        let (revision, mut request) = self.request((messages, pending, scene), language);
        tracing::debug!(turn = turn.id, rank, revision, tools = request.tools.len(), "asking a model");
        let mut asked = Asked { revision, known: count(request.tools.len()), answer: None };
        let Some(model) = self.models.get(usize::from(rank)).cloned() else {
            // Not another one in its place: this one was chosen for what it costs and where it runs.
            let message = format!("no model has rank {rank}; there are {}", self.models.len());
            tracing::error!(turn = turn.id, message);
            let event = ModelEvent::Failed { kind: FailureKind::Bug, message };
            drop(self.mailbox.try_send(DeviceMessage::from(Input::Model { turn, event })));
            return asked;
        };
        let ready = model.is_ready(&request.tools, &request.language);
        asked.answer = ready.then(|| model.answer_on_box(&request)).flatten();
        if asked.answer.is_some() {
            return asked;
        }
        let mut system = self.system(model.as_ref(), &request);
        let secrets = self.executor.secrets().clone();
        secrets.redact(&mut system);
        request.system = Some(system);
        request.watch = self.watch(turn);
        let (asked_of, sent) = (model.clone(), request.clone());
        let mailbox = self.mailbox.clone();
        let preparer = (!ready).then(|| self.preparer.clone());
        let answer = StreamedAnswer::begin(model.clone(), async move {
            let mut request = sent;
            if let Some(preparer) = preparer
                && answered_late(&preparer, &asked_of, &request, turn, &mailbox).await
            {
                return None;
            }
            // What leaves the box has no secrets in it.
            secrets.redact_messages(&mut request.messages);
            Some(request)
        });
        self.last = Some(Last { turn, model, request, answer });
        asked
    }

    /// The next event of the model that answers; pending for ever where none does. Cancel safe.
    pub(super) async fn next_event(&mut self) -> (Turn, ModelEvent) {
        match &mut self.last {
            Some(Last { turn, answer, .. }) => (*turn, answer.next().await),
            None => std::future::pending().await,
        }
    }

    /// The system text of a request to this model.
    fn system(&self, model: &dyn ChatModel, request: &Request) -> String {
        let told = || self.modules.told(&self.executor, &self.user, &self.device, &request.messages);
        let modules = model.calls_by_programs().then(told).flatten();
        self.context.system(&self.user, &request.messages, model.name(), (&request.tools, modules.as_ref()))
    }

    /// A request with the tools available now and without the wearer's context, and the revision of its tools.
    fn request(&self, (messages, pending, scene): Said, language: String) -> (u64, Request) {
        let (revision, tools) = self.executor.offered(&self.user, Some(&self.device), ClientClass::Internal);
        let request = Request {
            messages,
            tools,
            now: clock::now(),
            zone: Some(clock::zone()),
            language,
            scene: Arc::new(scene),
            pending,
            ..Request::default()
        };
        (revision, request)
    }

    /// The wearer is speaking to the assistant: the model of this rank may open a connection meanwhile.
    pub(crate) fn expect_request(&self, rank: u8) {
        if let Some(model) = self.models.get(usize::from(rank)).cloned() {
            spawn("ahead", async move {
                if model.preconnect().await {
                    tokio::time::sleep(AHEAD_MAX).await;
                    model.close_unused();
                }
            });
        }
    }

    /// Notifies the device's task when the request has been sent.
    fn watch(&self, turn: Turn) -> Watch {
        let mailbox = self.mailbox.clone();
        Watch::new(move |tools| {
            let sent = RequestSent { turn, at_us: clock::mono_us(), tools: count(tools) };
            // With a full mailbox, the record loses a line; the answer is unaffected.
            drop(mailbox.try_send(DeviceMessage::RequestSent(sent)));
        })
    }

    /// A tool's title for the wearer.
    pub(crate) fn title(&self, tool: &str) -> String {
        known::title(self.executor.registry(), (self.user.as_str(), Some(self.device.as_str())), tool)
    }

    /// Whether the last request would now be offered other tools. If that is not known yet, the question returns as a
    /// message.
    pub(crate) fn tools_have_changed(&self) -> bool {
        let (_, now) = self.executor.offered(&self.user, Some(&self.device), ClientClass::Internal);
        let Some(last) = &self.last else {
            return false;
        };
        let language = last.request.language.clone();
        if last.model.is_ready(&now, &language) {
            return would_differ(last.model.as_ref(), &last.request, now);
        }
        let (preparer, mailbox) = (self.preparer.clone(), self.mailbox.clone());
        let models: ModelChain = [last.model.clone()].into();
        spawn("changed", async move {
            if preparer.ready(models, now, language).await {
                drop(mailbox.send(DeviceMessage::ApplyTools).await);
            }
        });
        false
    }

    /// How well a text matches a command of a tool, by the first model that knows commands; `pending`: what it may
    /// answer or continue. `None`: the tools are too new to decide, and the result arrives as a message.
    pub(crate) fn match_command(
        &self,
        (utterance, revision): (u32, u16),
        text: &str,
        pending: Option<Pending>,
        scene: Scene,
    ) -> Option<Input> {
        let language = self.language.tag_of(utterance).to_owned();
        let (_, request) = self.request((vec![Message::text(Role::User, text)], pending, scene), language);
        let models = self.models.clone();
        if are_ready(models.iter(), &request.tools, &request.language) {
            let found = models.iter().find_map(|model| model.match_command(&request));
            return Some(command_matched(utterance, revision, found));
        }
        let (preparer, mailbox) = (self.preparer.clone(), self.mailbox.clone());
        spawn("match-command", async move {
            let ready = preparer.ready(models.clone(), request.tools.clone(), request.language.clone()).await;
            let found = ready.then(|| models.iter().find_map(|model| model.match_command(&request))).flatten();
            drop(mailbox.send(DeviceMessage::from(command_matched(utterance, revision, found))).await);
        });
        None
    }

    /// Discards all further output of the model in this turn.
    pub(crate) fn cancel_model(&mut self, turn: Turn) {
        self.last.take_if(|last| last.turn == turn);
    }

    /// Forgets what the turn's model was sent.
    pub(crate) fn turn_done(&mut self, turn: Turn) {
        self.last.take_if(|last| last.turn.id == turn.id);
        self.conversation.take_if(|(id, _)| *id == turn.id);
    }

    /// The wearer was being asked about these calls when the process died, and is asked again when they are run.
    pub(crate) fn ask_again(&mut self, questions: Vec<LeftQuestion>) -> Vec<ToolCall> {
        self.restored_approvals = RestoredApprovals::of(questions);
        self.restored_approvals.calls()
    }

    /// The wearer is not asked about them any more.
    pub(crate) fn give_up_asking(&mut self) {
        self.restored_approvals.give_up(&self.executor, &self.user);
    }

    /// Runs a tool until its single result. Returns what it declares about itself, if there is such a tool.
    pub(crate) fn run_tool(&mut self, turn: Turn, call: ToolCall) -> Option<Input> {
        let declared = known::declared(self.executor.registry(), (&self.user, &self.device), turn, &call);
        let before = self.restored_approvals.take(&call);
        let cancel = CancellationToken::new();
        self.called.retain(|_, cancel| !cancel.is_cancelled());
        self.called.insert(call.id.clone(), cancel.clone());
        let conversation = self.conversation.as_ref().filter(|(id, _)| *id == turn.id).map(|(_, said)| said.clone());
        let context = CallContext {
            user: self.user.clone(),
            device: Some(self.device.clone()),
            session: Some(self.session.clone()),
            turn: Some(turn),
            cancel,
            default_timeout: Duration::from_millis(u64::from(TOOL_MS_DEFAULT)),
            conversation: conversation.unwrap_or_default(),
            language: Some(self.language.of(turn).to_owned()),
            client: ClientClass::Internal,
            caller: None,
            session_lease: Some(self.lease.clone()),
            watcher: Some(Arc::new(OnDisplay::new(turn, self.mailbox.clone()))),
        };
        let (executor, mailbox, device) = (self.executor.clone(), self.mailbox.clone(), self.device.clone());
        let mut calling = Box::pin(async move {
            let call_id = call.id.clone();
            let began_us = clock::mono_us();
            let name = call.name.clone();
            let user = context.user.clone();
            let is_new = before.is_none();
            let mut result = match before {
                Some(question) => {
                    let of = (user.as_str(), device.as_str());
                    if let Some(known) = known::declared_later(executor.registry(), of, turn, &call).await {
                        drop(mailbox.send(DeviceMessage::from(known)).await);
                    }
                    executor.call_again(context, question).await
                }
                None => executor.call(context, call).await,
            };
            if is_new && result.error.as_ref().is_some_and(|error| error.code == ErrorCode::ToolNotFound) {
                let (_, offered) = executor.offered(&user, Some(&device), ClientClass::Internal);
                tools::alike::name_some(&mut result, &name, &offered);
            }
            tracing::info!(
                tool = name,
                ms = (clock::mono_us() - began_us) / 1000,
                error = result.error.as_ref().map(|error| tracing::field::debug(error.code)),
                "tool executed"
            );
            drop(mailbox.send(DeviceMessage::from(Input::Tool { turn, call_id, result })).await);
        });
        // A call that completes at once is not spawned: its task would queue behind those of all other glasses.
        if (&mut calling).now_or_never().is_none() {
            spawn("tool", calling);
        }
        declared
    }

    /// The turn was interrupted: stops the call if that is safe.
    pub(crate) fn cancel_tool(&mut self, call_id: &str) {
        if let Some(cancel) = self.called.get(call_id) {
            cancel.cancel();
        }
    }

    /// Removes a call that has its result.
    pub(crate) fn tool_done(&mut self, call_id: &str) {
        self.called.remove(call_id);
    }
}

/// The input for the core; `found` is `None` if no model knows commands.
fn command_matched(utterance: u32, revision: u16, found: Option<Matched>) -> Input {
    let (matched, vocabulary) = found.map(|Matched { matched, vocabulary }| (matched, vocabulary)).unzip();
    Input::CommandMatched { utterance, revision, matched: matched.unwrap_or(CommandMatch::None), vocabulary }
}

fn count(tools: usize) -> u32 {
    u32::try_from(tools).unwrap_or(u32::MAX)
}

impl Drop for Requests {
    fn drop(&mut self) {
        for cancel in self.called.values() {
            cancel.cancel();
        }
    }
}
