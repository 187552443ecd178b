//! Connecting: client, cluster UID, claim, discovery.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_core::engine::event::Event;
use pintle_model::{Object, ObjectKey, Problem, Reason, names};
use serde_json::json;

use super::{Pipeline, blocking, watch, write};
use crate::cluster::{Cluster, Discovery};
use crate::records::CLUSTER_UID;
use crate::store::{Batch, Table};

/// Label on the claim, so that it can be watched.
pub(super) const CLAIM_LABEL: &str = "pintle.dev/claim";

pub(super) async fn connect(pipeline: &Pipeline) {
    connect_as(pipeline, pipeline.identity().take_over).await;
}

impl Pipeline {
    /// A person takes the cluster over from the agent that claims it: connects anew, with the claim rewritten.
    pub async fn take_over(&self) {
        connect_as(self, true).await;
    }
}

async fn connect_as(pipeline: &Pipeline, take_over: bool) {
    let event = match try_connect(pipeline, take_over).await {
        Ok(incomplete) => Event::ClusterReady { incomplete },
        Err(problem) => Event::ClusterLost(problem),
    };
    pipeline.send(event).await;
}

async fn try_connect(pipeline: &Pipeline, take_over: bool) -> Result<BTreeSet<Arc<str>>, Problem> {
    let found = pipeline.find_kubeconfig().await?;
    let client = Cluster::new(&found)?;
    let uid = client.uid().await?;
    let version = client.version().await?;
    bind_store(pipeline, &uid).await?;
    check_claim(pipeline, &client, take_over).await?;
    *write(&pipeline.inner.cluster.client) = Some(client);
    *write(&pipeline.inner.cluster.version) = version;
    let discovery = discover(pipeline).await?;
    Ok(discovery.incomplete_groups().into_iter().map(|group| Arc::from(&*group)).collect())
}

/// The store belongs to one cluster: another UID means touch nothing and say so.
async fn bind_store(pipeline: &Pipeline, uid: &str) -> Result<(), Problem> {
    let store = pipeline.store().clone();
    let uid = uid.to_owned();
    blocking(move || match store.get::<String>(Table::Meta, CLUSTER_UID)? {
        Some(known) if known == uid => Ok(()),
        Some(known) => Err(Problem::new(
            Reason::WrongCluster,
            format!(
                "the store belongs to the cluster {known} and the kubeconfig leads to {uid} (UIDs of kube-system); \
                 nothing is touched"
            ),
        )),
        None => {
            let mut batch = Batch::new();
            batch.put(Table::Meta, CLUSTER_UID, &uid)?;
            store.commit(batch).map(|_| ())
        }
    })
    .await
}

/// One ConfigMap claims the cluster for one agent id. Written once, then watched.
async fn check_claim(pipeline: &Pipeline, client: &Cluster, take_over: bool) -> Result<(), Problem> {
    claim(pipeline, client, take_over, pipeline.identity().observe && !take_over).await
}

/// Claims the cluster before the first write of an agent that only looked so far: a verb without the service.
pub(super) async fn claim_to_write(pipeline: &Pipeline) -> Result<(), Problem> {
    if !pipeline.identity().observe {
        return Ok(());
    }
    claim(pipeline, &pipeline.cluster()?, false, false).await
}

async fn claim(
    pipeline: &Pipeline,
    client: &Cluster,
    take_over: bool,
    only_look: bool,
) -> Result<(), Problem> {
    let identity = pipeline.identity();
    let claim = client
        .read_configmap(&identity.agent_namespace, names::CLAIM_CONFIGMAP)
        .await
        .map_err(|failure| failure.problem)?;
    let holder = claim.as_ref().map(holder_of).unwrap_or_default();
    if holder == identity.agent_id {
        return Ok(());
    }
    if !holder.is_empty() && !take_over {
        return Err(claimed(&holder, &identity.agent_id));
    }
    if only_look {
        return Ok(());
    }
    client.ensure_namespace(&identity.agent_namespace).await.map_err(|failure| failure.problem)?;
    let object = Object::try_from(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names::CLAIM_CONFIGMAP,
            "namespace": identity.agent_namespace,
            "labels": {CLAIM_LABEL: "true"},
        },
        "data": {"agent": identity.agent_id},
    }))
    .map_err(|error| Problem::new(Reason::Internal, format!("the claim {error}")))?;
    client.apply_configmap(&object).await.map_err(|failure| failure.problem)?;
    if !holder.is_empty() {
        tracing::warn!(
            from = holder,
            to = identity.agent_id,
            "the cluster was taken over from another agent"
        );
    }
    Ok(())
}

/// The agent id on a claim.
pub(super) fn holder_of(claim: &Object) -> String {
    claim.text(&["data", "agent"]).to_owned()
}

/// The problem of a cluster that another agent claims.
pub(super) fn claimed(holder: &str, own: &str) -> Problem {
    Problem::new(
        Reason::ClaimedByAnother,
        format!("this cluster is claimed by the agent {holder}, and this is {own}; nothing is touched"),
    )
}

/// Asks for all kinds; keeps them in memory and, where they changed, in the store for a start without a cluster.
pub(super) async fn discover(pipeline: &Pipeline) -> Result<Arc<Discovery>, Problem> {
    let client = pipeline.cluster()?;
    let discovery = client.discover().await.map_err(|failure| failure.problem)?;
    keep(pipeline, discovery).await
}

/// Asks anew for the kinds of one group only.
pub(super) async fn discover_group(pipeline: &Pipeline, group: &str) -> Result<Arc<Discovery>, Problem> {
    let client = pipeline.cluster()?;
    let fresh = client.discover_group(group).await.map_err(|failure| failure.problem)?;
    let mut discovery = pipeline.discovery().map(|known| (*known).clone()).unwrap_or_default();
    discovery.replace_group(group, fresh);
    keep(pipeline, discovery).await
}

async fn keep(pipeline: &Pipeline, discovery: Discovery) -> Result<Arc<Discovery>, Problem> {
    let discovery = Arc::new(discovery);
    *write(&pipeline.inner.discovery) = Some(discovery.clone());
    let (store, kept) = (pipeline.store().clone(), discovery.clone());
    let saved = blocking(move || {
        let mut batch = Batch::new();
        batch.put(Table::Discovery, "discovery", &*kept)?;
        store.commit(batch)
    })
    .await;
    if let Err(problem) = saved {
        // It is only a help for a start without a cluster.
        tracing::warn!("the discovered kinds were not stored: {problem}");
    }
    watch::refresh(pipeline);
    Ok(discovery)
}

/// The claim's key, for its watch.
pub(super) fn claim_key(agent_namespace: &str) -> ObjectKey {
    ObjectKey::new("", "ConfigMap", agent_namespace, names::CLAIM_CONFIGMAP)
}
