//! Effects of the source region: poll, fetch, render, read a stored render.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pintle_core::engine::event::{Child, Event, RefKey};
use pintle_core::engine::record::{CommitRecord, RenderRecord};
use pintle_model::application::Application;
use pintle_model::{AppKey, Digest, Problem, Reason, Revision, limits};
use pintle_render::SourceTree;
use tokio::sync::oneshot;

use super::{Pipeline, StoreJob, blocking};
use crate::prepare::{self, Context};
use crate::records;
use crate::source::{Entry, Tree};

pub(super) async fn poll(pipeline: &Pipeline, key: RefKey) {
    let result = pipeline.sources().resolve(&key.url, &key.target).await.map(|resolved| resolved.revision);
    pipeline.send(Event::Polled(key, result)).await;
}

pub(super) async fn fetch(pipeline: &Pipeline, key: RefKey, revision: Revision) {
    crate::crash::point("fetching");
    let result = pipeline.sources().fetch(&key.url, &key.target, revision).await;
    crate::crash::point("fetched");
    let fetched = result.is_ok();
    pipeline.send(Event::Fetched(key, revision, result)).await;
    if fetched {
        clear_caches(pipeline).await;
    }
}

/// What no ref stands at any more goes from the caches: renders are stored, so older trees are not needed. Only after
/// a fetch, so that nothing is written at rest.
async fn clear_caches(pipeline: &Pipeline) {
    let wanted = pipeline
        .query(|state, _| {
            let mut keep: BTreeMap<String, Vec<Revision>> = BTreeMap::new();
            for (key, known) in &state.refs {
                let revisions = keep.entry(key.url.clone()).or_default();
                revisions.extend(known.resolved.into_iter().chain(known.available));
            }
            keep.into_iter().collect::<Vec<_>>()
        })
        .await;
    if let Ok(keep) = wanted {
        pipeline.sources().remove_unused(&keep).await;
    }
}

/// Files for the renderer. A submodule's content is not here: what would be missing is named.
fn source_tree(tree: Tree) -> Result<SourceTree, Problem> {
    if !tree.submodules.is_empty() {
        return Err(Problem::new(
            Reason::RenderError,
            format!("{}: git submodules are not supported by this version", tree.submodules.join(", ")),
        ));
    }
    let entries = tree.files.into_iter().map(|(path, entry)| match entry {
        Entry::File(bytes) => (path, pintle_render::Entry::File(bytes)),
        Entry::Symlink(target) => (path, pintle_render::Entry::Symlink(target)),
    });
    Ok(entries.collect())
}

pub(super) async fn render(
    pipeline: &Pipeline,
    app: AppKey,
    spec: Arc<Application>,
    revision: Revision,
    ticket: u64,
) {
    let deadline = Duration::from_secs(limits::RENDER_TIMEOUT_SECS);
    let result = match tokio::time::timeout(deadline, render_now(pipeline, spec, revision)).await {
        Ok(result) => result,
        Err(_) => Err(too_slow()),
    };
    crate::crash::point("rendered");
    pipeline.send(Event::Rendered { app, ticket, result }).await;
}

impl Pipeline {
    /// Renders an application at another revision than the one it follows: resolved, fetched, rendered and stored.
    pub async fn render_at(
        &self,
        spec: Arc<Application>,
        revision: &str,
    ) -> Result<Arc<RenderRecord>, Problem> {
        let url = spec.source.repo_url.clone();
        let resolved = self.sources().resolve(&url, revision).await?.revision;
        self.sources().fetch(&url, revision, resolved).await?;
        let deadline = Duration::from_secs(limits::RENDER_TIMEOUT_SECS);
        match tokio::time::timeout(deadline, render_now(self, spec, resolved)).await {
            Ok(result) => result.map(|(render, _)| render),
            Err(_) => Err(too_slow()),
        }
    }
}

fn too_slow() -> Problem {
    Problem::new(
        Reason::RenderError,
        format!("rendering did not end within {} s", limits::RENDER_TIMEOUT_SECS),
    )
}

async fn render_now(
    pipeline: &Pipeline,
    spec: Arc<Application>,
    revision: Revision,
) -> Result<(Arc<RenderRecord>, Vec<Child>), Problem> {
    let discovery = pipeline.discovery().ok_or_else(|| {
        Problem::new(
            Reason::ClusterUnreachable,
            "the kinds of the cluster are not known: it was never reached",
        )
    })?;
    let sources = pipeline.sources();
    let url = &spec.source.repo_url;
    let tree = sources.tree(url, revision, &spec.source.path).await?;
    let commit = sources.commit(url, revision).await.ok().map(|info| CommitRecord {
        author: info.author,
        subject: info.subject,
        time: info.time,
    });
    let identity = pipeline.identity().clone();
    let prepared = blocking(move || {
        let tree = source_tree(tree)?;
        prepare::prepare(
            &tree,
            &Context {
                spec: &spec,
                revision,
                commit,
                discovery: &discovery,
                agent_id: &identity.agent_id,
                agent_namespace: &identity.agent_namespace,
                children: &identity.children,
            },
        )
    })
    .await?;
    let (done, wait) = oneshot::channel();
    let render = Box::new(prepared.render.clone());
    pipeline.store_job(StoreJob::Render { render, payloads: prepared.payloads, done });
    wait.await.map_err(|_| Problem::new(Reason::StoreError, "the store is closed"))??;
    Ok((Arc::new(prepared.render), prepared.children))
}

pub(super) async fn load(pipeline: &Pipeline, app: AppKey, id: Digest, ticket: u64) {
    let store = pipeline.store().clone();
    let result = blocking(move || {
        records::render(&store, id)?.ok_or_else(|| {
            Problem::new(
                Reason::NoSuch,
                format!("the render {} that the pin holds is not in the store", id.short(12)),
            )
        })
    })
    .await;
    let result = result.map(|render| (Arc::new(render), Vec::new()));
    pipeline.send(Event::Rendered { app, ticket, result }).await;
}
