//! A model that is offered only the tools relevant to the wearer's words.
//!
//! It wraps each remote model directly, inside whatever answers on the box: the offline engine needs all tools, since
//! it understands their phrases.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use chat_models::{ChatModel, Request, Tools};
use gateway_core::vocab::ModelEvent;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tools::{
    code::tools::{Programs, offered_to},
    router::{Query, Router},
};

use crate::models::tool_selection::ToolSelector;

/// Lists of tools that are kept without those that the model is not offered: more than users speak at the same time.
const LISTS_MAX: usize = 16;

/// A model with a router.
pub(crate) struct SelectingModel {
    model: Arc<dyn ChatModel>,
    router: Arc<Router>,
    selector: Option<Arc<ToolSelector>>,
    programs: Programs,
    /// Lists, and what the model is offered of them. Other caches know a list by its address, so it must stay the same.
    lists: Mutex<VecDeque<(Tools, Tools)>>,
}

impl SelectingModel {
    /// Wraps this model.
    pub(crate) fn new(
        model: Arc<dyn ChatModel>,
        router: Arc<Router>,
        selector: Option<Arc<ToolSelector>>,
        programs: Programs,
    ) -> Self {
        Self { model, router, selector, programs, lists: Mutex::default() }
    }

    /// What the model is offered of these tools.
    fn offered(&self, tools: &Tools) -> Tools {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, offered)) = lists.iter().find(|(list, _)| Arc::ptr_eq(list, tools)) {
            return Arc::clone(offered);
        }
        let offered = offered_to(self.programs, tools);
        if !Arc::ptr_eq(&offered, tools) {
            lists.truncate(LISTS_MAX - 1);
            lists.push_front((Arc::clone(tools), Arc::clone(&offered)));
        }
        offered
    }
}

#[async_trait]
impl ChatModel for SelectingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn tools_max(&self) -> usize {
        self.model.tools_max()
    }

    /// `None` if a selecting model would have to be asked.
    fn offers(&self, request: &Request) -> Option<Tools> {
        let said = Query::of(&request.messages);
        let tools = self.offered(&request.tools);
        let choose = || self.router.choose(&tools, &said, self.model.tools_max()).tools;
        self.selector.is_none().then(choose)
    }

    fn calls_by_programs(&self) -> bool {
        self.programs == Programs::Instead
    }

    fn prepare(&self, tools: &Tools, language: &str) {
        let tools = &self.offered(tools);
        self.model.prepare(tools, language);
        // Reads the tools' descriptions. Of the possible lists, the one for words without any match is known now.
        // none is known already.
        let doubt = self.router.choose(tools, &Query::default(), self.model.tools_max());
        self.model.prepare(&doubt.tools, language);
    }

    fn is_ready(&self, tools: &Tools, language: &str) -> bool {
        self.model.is_ready(&self.offered(tools), language)
    }

    async fn preconnect(&self) -> bool {
        self.model.preconnect().await
    }

    fn close_unused(&self) {
        self.model.close_unused();
    }

    async fn stream(&self, mut request: Request, events: mpsc::Sender<ModelEvent>, cancel: CancellationToken) {
        let (said, tools_max) = (Query::of(&request.messages), self.model.tools_max());
        request.tools = self.offered(&request.tools);
        let choice = match &self.selector {
            Some(selector) => selector.choose(&self.router, &request.tools, &said, tools_max).await,
            None => self.router.choose(&request.tools, &said, tools_max),
        };
        let (all, chosen) = (request.tools.len(), choice.tools.len());
        tracing::debug!(model = self.model.name(), all, chosen, reason = ?choice.reason, "tools chosen");
        request.tools = choice.tools;
        self.model.stream(request, events, cancel).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use gateway_core::vocab::{Message, Role, ToolSpec};

    use super::*;

    /// Records the tools of each request.
    #[derive(Default)]
    struct Witness(Mutex<Vec<Vec<String>>>);

    #[async_trait]
    impl ChatModel for Witness {
        fn name(&self) -> &str {
            "witness"
        }

        fn tools_max(&self) -> usize {
            20
        }

        async fn stream(&self, request: Request, _: mpsc::Sender<ModelEvent>, _: CancellationToken) {
            self.0.lock().unwrap().push(request.tools.iter().map(|tool| tool.name.clone()).collect());
        }
    }

    fn tool(name: &str, description: &str) -> Arc<ToolSpec> {
        Arc::new(ToolSpec { name: name.into(), description: description.into(), ..ToolSpec::default() })
    }

    #[tokio::test]
    async fn a_model_sees_what_the_words_speak_for_and_never_more_than_it_takes() {
        let mut tools: Vec<_> = (0..40).map(|number| tool(&format!("x.{number:02}"), "Does a thing.")).collect();
        tools.push(tool("zoo.feed", "Feeds the penguins."));
        let witness = Arc::new(Witness::default());
        let routed = SelectingModel::new(witness.clone(), Arc::new(Router::default()), None, Programs::None);
        for said in ["Feed the penguins, please", "Good evening"] {
            let request = Request {
                messages: vec![Message::text(Role::User, said)],
                tools: tools.clone().into(),
                ..Request::default()
            };
            routed.stream(request, mpsc::channel(1).0, CancellationToken::new()).await;
        }
        let seen = witness.0.lock().unwrap();
        assert_eq!(seen[0], ["zoo.feed"]);
        assert_eq!(seen[1].len(), 20);
    }

    #[test]
    fn a_list_that_is_offered_in_part_is_the_same_each_time() {
        let tools: Tools = ["code.api", "code.run", "note.add"].map(|name| tool(name, "Does a thing.")).into();
        for (programs, count) in [(Programs::None, 1), (Programs::Beside, 3), (Programs::Instead, 2)] {
            let model = SelectingModel::new(Arc::<Witness>::default(), Arc::new(Router::default()), None, programs);
            let offered = model.offered(&tools);
            assert_eq!(offered.len(), count);
            assert!(Arc::ptr_eq(&offered, &model.offered(&tools)));
        }
    }

    #[test]
    fn what_a_router_leaves_out_is_no_change() {
        let plain: Arc<dyn ChatModel> = Arc::<Witness>::default();
        let routed = SelectingModel::new(plain.clone(), Arc::new(Router::default()), None, Programs::None);
        let others: Vec<_> = (0..40).map(|number| tool(&format!("x.{number:02}"), "Does a thing.")).collect();
        let with = |more: &[Arc<ToolSpec>]| -> Tools { others.iter().chain(more).cloned().collect() };
        let (feed, paint) = (tool("zoo.feed", "Feeds the penguins."), tool("zoo.paint", "Paints the penguins."));
        let last = Request {
            messages: vec![Message::text(Role::User, "Feed the penguins, please")],
            tools: with(std::slice::from_ref(&feed)),
            ..Request::default()
        };
        let changed = tool("zoo.feed", "Feeds the penguins twice.");
        // The present tools, and whether they apply: with a router, and for a model that gets all.
        for (now, behind, all) in [
            (with(std::slice::from_ref(&feed)), false, false),
            (others[1..].iter().chain([&feed]).cloned().collect(), false, true),
            (with(&[feed.clone(), tool("zoz.sing", "Sings.")]), false, true),
            (with(&[feed.clone(), paint]), true, true),
            (with(&[changed]), true, true),
            (with(&[]), true, true),
        ] {
            let names: Vec<&str> = now.iter().skip(38).map(|tool| tool.name.as_str()).collect();
            assert_eq!(chat_models::would_differ(&routed, &last, now.clone()), behind, "{names:?}");
            assert_eq!(chat_models::would_differ(plain.as_ref(), &last, now.clone()), all, "{names:?}");
        }
    }
}
