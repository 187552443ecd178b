//! Watches: one for each kind and version of managed objects, selected by our label, and one of the claim.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pintle_core::engine::event::Event;
use pintle_model::{GroupKind, names};
use tokio::sync::mpsc;

use super::{Pipeline, connect, lock};
use crate::cluster::{WatchEvent, WatchGuard};

/// Running watches.
#[derive(Default)]
pub struct Watches {
    wanted: BTreeSet<(GroupKind, Arc<str>)>,
    running: BTreeMap<(GroupKind, Arc<str>), WatchGuard>,
    claim: Option<WatchGuard>,
}

/// These kinds, and no others, are watched from now on.
pub(super) fn set(pipeline: &Pipeline, wanted: BTreeSet<(GroupKind, Arc<str>)>) {
    {
        let mut watches = lock(&pipeline.inner.watches);
        watches.running.retain(|key, _| wanted.contains(key));
        watches.wanted = wanted;
    }
    refresh(pipeline);
}

/// Starts what is wanted and not running: after new kinds were discovered, too.
pub(super) fn refresh(pipeline: &Pipeline) {
    let (Ok(cluster), Some(discovery)) = (pipeline.cluster(), pipeline.discovery()) else { return };
    let mut unknown = Vec::new();
    let mut watches = lock(&pipeline.inner.watches);
    let missing: Vec<_> =
        watches.wanted.iter().filter(|key| !watches.running.contains_key(*key)).cloned().collect();
    for (kind, api_version) in missing {
        match discovery.resolve_version(&api_version, &kind.kind) {
            Some(resource) => {
                let selector = format!("{}={}", names::AGENT_LABEL, pipeline.identity().agent_id);
                let (sink, events) = mpsc::channel(256);
                let guard = cluster.watch(resource.clone(), None, selector, sink);
                tokio::spawn(translate(pipeline.clone(), kind.clone(), events));
                watches.running.insert((kind, api_version), guard);
            }
            None => unknown.push((kind, api_version)),
        }
    }
    if watches.claim.is_none()
        && let Some(resource) = discovery.resolve_version("v1", "ConfigMap")
    {
        let (sink, events) = mpsc::channel(16);
        let namespace = Some(pipeline.identity().agent_namespace.clone());
        let selector = format!("{}=true", connect::CLAIM_LABEL);
        watches.claim = Some(cluster.watch(resource.clone(), namespace, selector, sink));
        tokio::spawn(watch_claim(pipeline.clone(), events));
    }
    drop(watches);
    for (kind, api_version) in unknown {
        let this = pipeline.clone();
        pipeline.spawn(|_| async move {
            let text = format!("the API server does not know {} in {api_version} yet", kind.kind);
            let problem = pintle_model::Problem::new(pintle_model::Reason::UnknownKind, text);
            this.send(Event::WatchLost(kind, problem)).await;
        });
    }
}

/// The one function that feeds the engine from a watch.
async fn translate(pipeline: Pipeline, kind: GroupKind, mut events: mpsc::Receiver<WatchEvent>) {
    while let Some(event) = events.recv().await {
        let event = match event {
            WatchEvent::Applied { object, .. } => Event::Seen(object),
            WatchEvent::Left { key, last, .. } => Event::Left(key, Some(Arc::new(*last))),
            WatchEvent::Synced { keys, .. } => Event::WatchSynced {
                kind: kind.clone(),
                present: keys.into_iter().map(|(key, _)| key).collect(),
            },
            WatchEvent::Failed { problem, .. } => Event::WatchLost(kind.clone(), problem),
        };
        pipeline.send(event).await;
    }
}

/// Another agent may take the cluster over: from that moment nothing is touched.
async fn watch_claim(pipeline: Pipeline, mut events: mpsc::Receiver<WatchEvent>) {
    let own = pipeline.identity().agent_id.clone();
    let key = connect::claim_key(&pipeline.identity().agent_namespace);
    while let Some(event) = events.recv().await {
        if let WatchEvent::Applied { object, .. } = event
            && object.key() == key
        {
            let holder = connect::holder_of(&object);
            if holder != own && !holder.is_empty() {
                pipeline.send(Event::ClusterLost(connect::claimed(&holder, &own))).await;
            }
        }
    }
}
