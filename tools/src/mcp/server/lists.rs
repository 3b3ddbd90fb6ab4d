//! The lists that a client sees: tools, prompts, resources and templates, sorted and in pages.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use gateway_core::vocab::ToolSpec;
use rmcp::{
    ErrorData,
    model::{MetaObject, PaginatedRequestParams, Prompt, Resource, ResourceTemplate, Tool},
};

use super::Endpoint;
use crate::{definition, mcp::client::Downstream, permissions, registry::Registered, source::Source};

/// Items per page: a page of large schemas stays below a megabyte.
const PAGE_MAX: usize = 250;
/// Maximum length of a cursor.
const CURSOR_BYTES_MAX: usize = 1024;
/// Prefix of a cursor's text, so that a client does not mistake it for a name.
const CURSOR: &str = "after:";

impl Endpoint {
    /// Tools by the names that the client sees, sorted.
    pub(super) fn tools(&self) -> BTreeMap<String, Arc<Registered>> {
        // Tools that are switched off are not listed; a call of one returns an error that says so.
        let callable = self.hub.executor.callable(&self.who.user, self.device().as_deref(), self.who.class);
        let flatten = self.hub.pool.prefixes().flatten();
        let mut seen = BTreeMap::new();
        let mut flat = BTreeMap::new();
        for tool in callable.tools() {
            match &tool.source {
                Source::Mcp(server) if Some(server.as_str()) == flatten => {
                    flat.insert(local_name(server, &tool.spec.name).to_owned(), tool.clone());
                }
                _ => {
                    seen.insert(tool.spec.name.clone(), tool.clone());
                }
            }
        }
        // A name of the server that is exposed unrenamed takes precedence.
        seen.extend(flat);
        seen
    }

    /// The tool with this client-visible name.
    pub(super) fn tool(&self, name: &str) -> Option<Arc<Registered>> {
        let snapshot = self.hub.executor.registry().snapshot(&self.who.user, self.device().as_deref());
        let flat = self.hub.pool.prefixes().flatten();
        let found = flat.and_then(|server| {
            let tool = snapshot.find(&format!("{server}.{name}"))?;
            (tool.source == Source::Mcp(server.to_owned())).then_some(tool)
        });
        let found = found.or_else(|| {
            let tool = snapshot.find(name)?;
            (!matches!(&tool.source, Source::Mcp(server) if Some(server.as_str()) == flat)).then_some(tool)
        });
        found.filter(|tool| permissions::is_for(&tool.spec, self.who.class)).cloned()
    }

    /// The downstream servers that the client sees.
    fn servers(&self) -> impl Iterator<Item = &Arc<Downstream>> {
        self.hub.pool.servers().filter(|server| server.config.is_for(&self.who.user, self.who.class))
    }

    /// The downstream server of this name, if the client sees it.
    pub(super) fn server(&self, name: &str) -> Option<&Arc<Downstream>> {
        self.hub.pool.server(name).filter(|server| server.config.is_for(&self.who.user, self.who.class))
    }

    /// A tool in the form for the client: as its server defines it, otherwise as the gateway does, in either case with
    /// the gateway's extensions.
    pub(super) fn describe(&self, name: &str, tool: &Registered) -> Option<Tool> {
        let original = match &tool.source {
            Source::Mcp(server) => self
                .hub
                .pool
                .server(server)
                .and_then(|downstream| downstream.offers().tools.get(local_name(server, &tool.spec.name)).cloned()),
            _ => None,
        };
        match original {
            Some(mut original) => {
                original.name = Cow::Owned(name.to_owned());
                original.meta = extended(original.meta, &tool.spec);
                Some(original)
            }
            None => own(name, &tool.spec),
        }
    }

    /// All prompts, by the names that the client sees.
    pub(super) fn prompts(&self) -> BTreeMap<String, Prompt> {
        let mut seen = BTreeMap::new();
        for server in self.servers() {
            for prompt in server.offers().prompts.iter() {
                let name = self.hub.pool.prefixes().name_out(&server.config.name, &prompt.name);
                let mut prompt = prompt.clone();
                prompt.name.clone_from(&name);
                seen.insert(name, prompt);
            }
        }
        seen
    }

    /// All resources, by the URIs that the client sees.
    pub(super) fn resources(&self) -> BTreeMap<String, Resource> {
        let mut seen = BTreeMap::new();
        for server in self.servers() {
            for resource in server.offers().resources.iter() {
                let uri = self.hub.pool.prefixes().uri_out(&server.config.name, &resource.uri);
                let mut resource = resource.clone();
                resource.uri.clone_from(&uri);
                seen.insert(uri, resource);
            }
        }
        seen
    }

    /// All templates, by the URIs that the client sees.
    pub(super) fn templates(&self) -> BTreeMap<String, ResourceTemplate> {
        let mut seen = BTreeMap::new();
        for server in self.servers() {
            for template in server.offers().templates.iter() {
                let uri = self.hub.pool.prefixes().uri_out(&server.config.name, &template.uri_template);
                let mut template = template.clone();
                template.uri_template.clone_from(&uri);
                seen.insert(uri, template);
            }
        }
        seen
    }
}

/// A tool's name at its server; the prefix was added by the client side.
fn local_name<'a>(server: &str, name: &'a str) -> &'a str {
    name.strip_prefix(server).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name)
}

/// A tool whose definition the gateway has itself.
fn own(name: &str, spec: &ToolSpec) -> Option<Tool> {
    let mut definition = definition::to_mcp(spec);
    let fields = definition.as_object_mut()?;
    fields.insert("name".to_owned(), name.into());
    // The protocol has no other schemas of results.
    if fields.get("outputSchema").is_some_and(|schema| !schema.is_object()) {
        fields.remove("outputSchema");
    }
    serde_json::from_value(definition)
        .inspect_err(|error| tracing::error!(tool = name, %error, "a tool cannot be described to MCP clients"))
        .ok()
}

/// A server's metadata of a tool with the extensions as the gateway applies them: the operator may have set others.
fn extended(meta: Option<MetaObject>, spec: &ToolSpec) -> Option<MetaObject> {
    let mut meta = meta.unwrap_or_default();
    meta.0.remove(definition::EXTENSIONS);
    meta.0.extend(definition::extensions_of(spec));
    (!meta.0.is_empty()).then_some(meta)
}

/// Items by their keys, and the cursor of the next page.
pub(super) type Page<T> = (Vec<(String, T)>, Option<String>);

/// One page of sorted items, and the cursor of the next. A cursor contains the last item's key, so that items which are
/// added or removed in between do not shift the pages.
pub(super) fn page<T>(
    items: BTreeMap<String, T>,
    request: Option<PaginatedRequestParams>,
) -> Result<Page<T>, ErrorData> {
    let cursor = request.and_then(|request| request.cursor);
    let after = match &cursor {
        None => "",
        Some(cursor) if cursor.len() <= CURSOR_BYTES_MAX => {
            let wrong = || ErrorData::invalid_params("this cursor is none of ours", None);
            cursor.strip_prefix(CURSOR).ok_or_else(wrong)?
        }
        Some(_) => return Err(ErrorData::invalid_params("this cursor is too long", None)),
    };
    let mut rest = items.into_iter().filter(|(key, _)| cursor.is_none() || key.as_str() > after);
    let page: Vec<_> = rest.by_ref().take(PAGE_MAX).collect();
    let more = rest.next().is_some();
    let next = page.last().filter(|_| more).map(|(key, _)| format!("{CURSOR}{key}"));
    Ok((page, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(count: usize) -> Vec<Vec<String>> {
        let items: BTreeMap<String, ()> = (0..count).map(|n| (format!("{n:05}"), ())).collect();
        let mut pages = Vec::new();
        let mut cursor = None;
        loop {
            let request = PaginatedRequestParams::default().with_cursor(cursor);
            let (page, next) = page(items.clone(), Some(request)).unwrap();
            pages.push(page.into_iter().map(|(key, ())| key).collect());
            cursor = next;
            if cursor.is_none() {
                return pages;
            }
        }
    }

    #[test]
    fn pages_hold_everything_once_and_in_order() {
        for (count, wanted) in [(0, 1), (1, 1), (PAGE_MAX, 1), (PAGE_MAX + 1, 2), (3 * PAGE_MAX, 3)] {
            let pages = pages(count);
            assert_eq!(pages.len(), wanted, "{count}");
            let all: Vec<_> = pages.concat();
            assert_eq!(all.len(), count);
            assert!(all.is_sorted());
        }
    }

    #[test]
    fn a_foreign_cursor_is_refused() {
        for cursor in ["x".to_owned(), "9".repeat(2 * CURSOR_BYTES_MAX)] {
            let request = PaginatedRequestParams::default().with_cursor(Some(cursor));
            assert!(page(BTreeMap::<String, ()>::new(), Some(request)).is_err());
        }
    }
}
