//! Effects that look at the cluster or keep the ApplySet parents: probe, survey, rebuild, parent.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_core::engine::effect::Parent;
use pintle_core::engine::event::{Event, Found, Rebuilt};
use pintle_core::engine::record::{InventoryRecord, ObjectOptions, Pause, Pin};
use pintle_core::fields::{self, OwnedSet};
use pintle_core::{adopt, identity};
use pintle_model::application::{Consent, parse_compare_options, parse_sync_options};
use pintle_model::{AppKey, GroupKind, Object, ObjectKey, Problem, Reason, names};
use serde_json::json;

use super::apply::{patiently, resource_of};
use super::{Pipeline, lock};
use crate::cluster::Cluster;
use crate::records;

/// Annotation on a parent: `namespace/name` of its application.
const PARENT_APP: &str = "pintle.dev/application";
/// Annotation on a parent: the pin, as JSON.
const PARENT_PIN: &str = "pintle.dev/pin";
/// Annotation on a parent: the pause, as JSON.
const PARENT_PAUSE: &str = "pintle.dev/pause";
/// Annotation on a parent: `Prune=false` on the application.
const PARENT_KEEP: &str = "pintle.dev/prune";
/// Annotation on a parent: its application was forgotten, its objects stay.
const PARENT_ORPHANED: &str = "pintle.dev/orphaned";
/// Up to this many objects of one kind and namespace are looked at one by one; more are listed.
const LOOK_ONE_BY_ONE: usize = 8;

pub(super) async fn probe(pipeline: &Pipeline, key: ObjectKey) {
    let result = look(pipeline, &key, None).await.map(|found| found.map(Arc::new));
    pipeline.send(Event::Probed(key, result)).await;
}

impl Pipeline {
    /// Which of these objects exist.
    pub async fn survey(&self, keys: Vec<(ObjectKey, Arc<str>)>) -> Result<Vec<Found>, Problem> {
        try_survey(self, keys).await
    }

    /// A live object.
    pub async fn read_object(&self, key: &ObjectKey) -> Result<Option<Object>, Problem> {
        look(self, key, None).await
    }

    /// Binds the store to the cluster that the kubeconfig names now. What it knew of objects was of another
    /// cluster: it is forgotten, and rebuilt from this one.
    pub async fn rebind(&self) -> Result<pintle_api::StoreBinding, Problem> {
        let found = self.find_kubeconfig().await?;
        let uid = Cluster::new(&found)?.uid().await?;
        let (store, new) = (self.store().clone(), uid.clone());
        let old = super::blocking(move || records::rebind(&store, &new)).await?;
        Ok(pintle_api::StoreBinding { cluster_uid: uid, previous_cluster_uid: old })
    }
}

/// One GET, in the version that is watched.
async fn look(
    pipeline: &Pipeline,
    key: &ObjectKey,
    api_version: Option<&str>,
) -> Result<Option<Object>, Problem> {
    let cluster = pipeline.cluster()?;
    let resource = match resource_of(pipeline, key, api_version).await {
        Ok(resource) => resource,
        // No such kind: no such object. Only for a group that answered.
        Err(problem) if problem.reason == Reason::UnknownKind && is_complete(pipeline, &key.group) => {
            return Ok(None);
        }
        Err(problem) => return Err(problem),
    };
    patiently(|| cluster.get(&resource, key)).await
}

fn is_complete(pipeline: &Pipeline, group: &str) -> bool {
    pipeline.discovery().is_some_and(|discovery| discovery.is_complete(group))
}

pub(super) async fn survey(pipeline: &Pipeline, app: AppKey, op: u64, keys: Vec<(ObjectKey, Arc<str>)>) {
    let result = try_survey(pipeline, keys).await;
    pipeline.send(Event::Surveyed { app, op, result }).await;
}

/// Which of these objects exist: few by GET, many by one paged list of metadata for each kind and namespace.
async fn try_survey(pipeline: &Pipeline, keys: Vec<(ObjectKey, Arc<str>)>) -> Result<Vec<Found>, Problem> {
    let mut groups: BTreeMap<(GroupKind, Arc<str>, Arc<str>), Vec<ObjectKey>> = BTreeMap::new();
    for (key, api_version) in keys {
        groups.entry((key.group_kind(), api_version, key.namespace.clone())).or_default().push(key);
    }
    let mut found = Vec::new();
    for ((_, api_version, namespace), keys) in groups {
        let Some(first) = keys.first() else { continue };
        let resource = match resource_of(pipeline, first, Some(&api_version)).await {
            Ok(resource) => resource,
            // Its definition is part of the same sync, or missing: the apply will say so.
            Err(problem) if problem.reason == Reason::UnknownKind => continue,
            Err(problem) => return Err(problem),
        };
        let cluster = pipeline.cluster()?;
        if keys.len() <= LOOK_ONE_BY_ONE {
            for key in keys {
                if let Some(object) = patiently(|| cluster.get(&resource, &key)).await? {
                    found.push(Found { key, object: Arc::new(object) });
                }
            }
            continue;
        }
        let scope = (!namespace.is_empty()).then_some(&*namespace);
        let listed = patiently(|| cluster.list(&resource, scope, None, true)).await?;
        let mut by_name: BTreeMap<String, Object> =
            listed.into_iter().map(|object| (object.name().to_owned(), object)).collect();
        for key in keys {
            if let Some(object) = by_name.remove(&*key.name) {
                found.push(Found { key, object: Arc::new(object) });
            }
        }
    }
    Ok(found)
}

pub(super) async fn begin(pipeline: &Pipeline, app: AppKey, op: u64, parent: Parent) {
    crate::crash::point("journalled");
    let result = match super::connect::claim_to_write(pipeline).await {
        Ok(()) => write_parent(pipeline, &parent).await,
        Err(problem) => Err(problem),
    };
    crate::crash::point("begun");
    pipeline.send(Event::Begun { app, op, result }).await;
}

/// Writes the ApplySet parent of an application (KEP-3659): it must name every kind and namespace before the first
/// create, so that nothing can be forgotten.
pub(super) async fn write_parent(pipeline: &Pipeline, parent: &Parent) -> Result<(), Problem> {
    let cluster = pipeline.cluster()?;
    let identity = pipeline.identity();
    let kinds: Vec<String> = parent.group_kinds.iter().map(ToString::to_string).collect();
    let namespaces: Vec<&str> = parent
        .namespaces
        .iter()
        .map(|namespace| &**namespace)
        .filter(|n| *n != identity.agent_namespace)
        .collect();
    let mut annotations = json!({
        names::APPLYSET_TOOLING: format!("pintle/{}", env!("CARGO_PKG_VERSION")),
        names::APPLYSET_GROUP_KINDS: kinds.join(","),
        names::APPLYSET_NAMESPACES: namespaces.join(","),
        PARENT_APP: parent.app.to_string(),
    });
    if let Some(pin) = &parent.pin {
        annotations[PARENT_PIN] = records::pin_text(pin).into();
    }
    if let Some(pause) = &parent.pause {
        annotations[PARENT_PAUSE] = serde_json::to_string(pause).unwrap_or_default().into();
    }
    if parent.keep {
        annotations[PARENT_KEEP] = "false".into();
    }
    if parent.orphaned {
        annotations[PARENT_ORPHANED] = "true".into();
    }
    let object = Object::try_from(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": identity::parent_name(&parent.app),
            "namespace": identity.agent_namespace,
            "labels": {
                names::APPLYSET_ID_LABEL: identity::applyset_id(&identity.agent_namespace, &parent.app),
            },
            "annotations": annotations,
        },
    }))
    .map_err(|error| Problem::new(Reason::Internal, format!("the ApplySet parent {error}")))?;
    if lock(&pipeline.inner.parents).get(&parent.app) == Some(&object) {
        return Ok(());
    }
    patiently(|| cluster.apply_configmap(&object)).await?;
    lock(&pipeline.inner.parents).insert(parent.app.clone(), object);
    Ok(())
}

/// A pin was let go: the parent must forget it, or a lost store would hold it again.
pub(super) async fn write_parent_again(pipeline: &Pipeline, parent: Parent) {
    if let Err(problem) = write_parent(pipeline, &parent).await {
        tracing::warn!(app = %parent.app, "the ApplySet parent was not updated: {problem}");
    }
}

pub(super) async fn rebuild(pipeline: &Pipeline) {
    let result = try_rebuild(pipeline).await;
    pipeline.send(Event::Rebuilt(result)).await;
}

/// Reads all ApplySet parents and lists their members.
async fn try_rebuild(pipeline: &Pipeline) -> Result<BTreeMap<AppKey, Rebuilt>, Problem> {
    let cluster = pipeline.cluster()?;
    let identity = pipeline.identity();
    let sample = ObjectKey::new("", "ConfigMap", &identity.agent_namespace, "any");
    let resource = resource_of(pipeline, &sample, Some("v1")).await?;
    let parents = patiently(|| {
        cluster.list(&resource, Some(&identity.agent_namespace), Some(names::APPLYSET_ID_LABEL), false)
    })
    .await?;
    let mut found = BTreeMap::new();
    for parent in parents {
        let Some(app) = parent.annotation(PARENT_APP).and_then(|text| text.parse::<AppKey>().ok()) else {
            continue;
        };
        if parent.annotation(PARENT_ORPHANED) == Some("true") {
            continue;
        }
        let rebuilt = rebuild_one(pipeline, &cluster, &app, &parent).await?;
        found.insert(app, rebuilt);
    }
    Ok(found)
}

async fn rebuild_one(
    pipeline: &Pipeline,
    cluster: &Cluster,
    app: &AppKey,
    parent: &Object,
) -> Result<Rebuilt, Problem> {
    let part_of = identity::applyset_id(&pipeline.identity().agent_namespace, app);
    let selector = format!("{}={part_of}", names::PART_OF_LABEL);
    let mut rebuilt = Rebuilt {
        pin: parent.annotation(PARENT_PIN).and_then(|text| serde_json::from_str::<Pin>(text).ok()),
        pause: parent.annotation(PARENT_PAUSE).and_then(|text| serde_json::from_str::<Pause>(text).ok()),
        ..Rebuilt::default()
    };
    let keep = parent.annotation(PARENT_KEEP) == Some("false");
    let kinds = parent.annotation(names::APPLYSET_GROUP_KINDS).unwrap_or_default().to_owned();
    for kind in kinds.split(',').filter_map(|text| text.parse::<GroupKind>().ok()) {
        let Some(resource) =
            pipeline.discovery().and_then(|discovery| discovery.resolve(&kind.group, &kind.kind).cloned())
        else {
            // The kind is gone, and its objects with it; or its group does not answer now, and then they are
            // found by the next sync's survey.
            continue;
        };
        for object in patiently(|| cluster.list(&resource, None, Some(&selector), false)).await? {
            let key = ObjectKey::new(&kind.group, &kind.kind, object.namespace(), object.name());
            if adopt::is_ours(&object, &part_of, &key.tracking_id(&app.to_string())) {
                let record = record_of(&object, &key, keep);
                rebuilt.inventory.insert(key, record);
            }
        }
    }
    Ok(rebuilt)
}

/// An inventory entry from a live object: the manifest that was applied is not known, so that the next sync applies
/// it once more.
fn record_of(object: &Object, key: &ObjectKey, app_keeps: bool) -> (InventoryRecord, Option<Arc<OwnedSet>>) {
    let set = OwnedSet::from_answer(object, names::FIELD_MANAGER).map(Arc::new);
    let mut sync = object
        .annotation(names::SYNC_OPTIONS)
        .and_then(|text| parse_sync_options(text).ok())
        .unwrap_or_default();
    // The object's own word wins, as in a render.
    sync.prune = sync.prune.or(app_keeps.then_some(Consent::False));
    let compare = object
        .annotation(names::COMPARE_OPTIONS)
        .and_then(|text| parse_compare_options(text).ok())
        .unwrap_or_default();
    let record = InventoryRecord {
        uid: Some(object.uid().into()),
        manifest: None,
        set: set.as_ref().map(|set| set.digest()),
        projection: set.as_ref().map(|set| fields::projection_digest(object, set)),
        adopted: adopt::adopted_mark(object),
        options: ObjectOptions::new(&sync, compare),
        hook: pintle_core::engine::hook_mark(object, key),
        wave: pintle_core::hook::wave(object).unwrap_or_default(),
        deleting: false,
    };
    (record, set)
}
