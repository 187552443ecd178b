//! Effects that write objects: apply, revert, delete.

use std::sync::Arc;
use std::time::Duration;

use pintle_core::adopt::{self, Decision};
use pintle_core::diff;
use pintle_core::engine::effect::{Apply, Expect, HookApply};
use pintle_core::engine::event::{Applied, Event};
use pintle_core::engine::record::{Adopted, ApplyWay};
use pintle_core::fields::{self, OwnedSet};
use pintle_core::hook;
use pintle_core::identity;
use pintle_model::{AppKey, Object, ObjectKey, Problem, Reason, limits, names};

use super::{Pipeline, blocking};
use crate::cluster::{ApiFailure, ApiResource, ApplyOptions, Cluster, FieldValidation};
use crate::{backups, crash};

/// Kinds that are never deleted to be made anew.
const NEVER_RECREATED: [(&str, &str); 4] = [
    ("", "PersistentVolumeClaim"),
    ("", "PersistentVolume"),
    ("", "Namespace"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];
/// How long something that has to be gone before it is made anew may take, and how often it is looked at.
const GONE_WITHIN: Duration = Duration::from_mins(2);
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// The Pods of a hook's Job go with it.
const HOOK_PROPAGATION: &str = "Background";
/// Tries of one request when the server asks to wait or fails for a moment.
const TRIES: u32 = 5;

pub(super) async fn step(pipeline: &Pipeline, app: AppKey, op: u64, apply: Apply) {
    let _permit = pipeline.inner.requests.acquire().await;
    crash::point("applying");
    let result = run(pipeline, &app, &apply).await;
    crash::point("applied");
    pipeline.send(Event::StepApplied { app, op, key: apply.key, result }).await;
}

/// The server's word on what an apply would do.
pub(super) async fn check(pipeline: &Pipeline, app: AppKey, op: u64, apply: Apply) {
    let _permit = pipeline.inner.requests.acquire().await;
    let result = match pipeline.dry_run(&app, &apply).await {
        Ok(_) => Ok(()),
        // A webhook that cannot be asked without side effects: not checkable, and left to the real apply.
        Err(problem) if problem.message.contains("does not support dry run") => Ok(()),
        Err(problem) => Err(with_remedy(problem)),
    };
    pipeline.send(Event::StepChecked { app, op, key: apply.key, result }).await;
}

/// A hook's object goes by its delete policy; a look afterwards tells the engine.
pub(super) async fn remove_hook(pipeline: &Pipeline, key: ObjectKey, uid: &str) {
    let _permit = pipeline.inner.requests.acquire().await;
    if let Err(problem) = delete_now(pipeline, &key, uid, HOOK_PROPAGATION).await {
        tracing::warn!(object = %key, "the hook's object was not deleted: {problem}");
    }
    super::inventory::probe(pipeline, key).await;
}

async fn delete_now(
    pipeline: &Pipeline,
    key: &ObjectKey,
    uid: &str,
    propagation: &str,
) -> Result<bool, Problem> {
    let cluster = pipeline.cluster()?;
    let resource = resource_of(pipeline, key, None).await?;
    patiently(|| cluster.delete(&resource, key, uid, propagation)).await.map(|deleted| deleted.gone)
}

pub(super) async fn revert(pipeline: &Pipeline, app: AppKey, apply: Apply, before: Option<Arc<Object>>) {
    // No permit: a revert does not queue behind a large sync.
    let result = run(pipeline, &app, &apply).await;
    crash::point("reverted");
    pipeline.send(Event::Reverted { app, key: apply.key, before, result }).await;
}

pub(super) async fn delete(
    pipeline: &Pipeline,
    app: AppKey,
    op: u64,
    key: ObjectKey,
    uid: &str,
    propagation: &'static str,
) {
    let _permit = pipeline.inner.requests.acquire().await;
    crash::point("deleting");
    let result = match backup(pipeline, &app, &key, "pruned").await {
        Ok(()) => delete_now(pipeline, &key, uid, propagation).await,
        Err(problem) => Err(problem),
    };
    crash::point("deleted");
    pipeline.send(Event::StepDeleted { app, op, key, result }).await;
}

/// An immutable field: with the option that would make the object anew.
fn with_remedy(problem: Problem) -> Problem {
    if problem.reason != Reason::ImmutableField {
        return problem;
    }
    let text = format!(
        "{}; the sync option Force=true on the object would delete it and make it anew",
        problem.message
    );
    Problem::new(problem.reason, text)
}

/// Before something is deleted, replaced or made anew, what is there is kept. Without a backup it is not touched.
async fn backup(pipeline: &Pipeline, app: &AppKey, key: &ObjectKey, why: &str) -> Result<(), Problem> {
    let Some(live) = pipeline.read_object(key).await? else { return Ok(()) };
    let record = backups::Backup::new(app, &live, why);
    let store = pipeline.store().clone();
    blocking(move || backups::save(&store, &record)).await
}

impl Pipeline {
    /// What an apply would make of an object.
    pub async fn dry_run(&self, app: &AppKey, apply: &Apply) -> Result<Object, Problem> {
        let cluster = self.cluster()?;
        let payload = payload(self, apply).await?;
        let resource = resource_of(self, &apply.key, Some(payload.api_version())).await?;
        let target = Target { pipeline: self, cluster: &cluster, resource: &resource, app, apply };
        let mut payload = payload;
        fields::remove_pointers(&mut payload, &apply.ignored);
        match apply.adopted {
            Adopted::No => {}
            Adopted::Equal => payload.set_annotation(names::ADOPTED_ANNOTATION, "equal"),
            Adopted::Changed => payload.set_annotation(names::ADOPTED_ANNOTATION, "changed"),
        }
        Ok(target.request(&payload, None, true).await?.0)
    }

    /// Puts a backup back: made anew where nothing is there; over what is there only with `force`, and then that is
    /// kept too.
    pub async fn put_back(&self, backup: &backups::Backup, force: bool) -> Result<(), Problem> {
        let cluster = self.cluster()?;
        let mut object = Object::try_from(backup.object.clone()).map_err(|error| {
            Problem::new(Reason::StoreError, format!("the backup {}: {error}", backup.id))
        })?;
        let resource = resource_of(self, &backup.key, Some(object.api_version())).await?;
        let live = patiently(|| cluster.get(&resource, &backup.key)).await?;
        match live {
            None => patiently(|| cluster.create(&resource, &object)).await.map(|_| ()),
            Some(_) if !force => Err(Problem::new(
                Reason::Conflict,
                format!("{} is there; --force puts the backup over it", backup.key),
            )),
            Some(live) => {
                self::backup(self, &backup.app, &backup.key, "replaced").await?;
                object.metadata_mut().insert("resourceVersion".to_owned(), live.resource_version().into());
                patiently(|| cluster.replace(&resource, &object)).await.map(|_| ())
            }
        }
    }

    /// A stored payload.
    pub async fn read_manifest(&self, digest: pintle_model::Digest) -> Result<Object, Problem> {
        read_payload(self, digest, "the object").await
    }
}

/// One server-side apply with everything that belongs to it.
async fn run(pipeline: &Pipeline, app: &AppKey, apply: &Apply) -> Result<Applied, Problem> {
    let cluster = pipeline.cluster()?;
    let payload = payload(pipeline, apply).await?;
    let resource = resource_of(pipeline, &apply.key, Some(payload.api_version())).await?;
    let target = Target { pipeline, cluster: &cluster, resource: &resource, app, apply };
    if let Some(hook) = apply.hook {
        return target.hook(payload, hook).await;
    }
    match &apply.expect {
        Expect::Absent => target.send(payload, None, apply.adopted).await,
        Expect::Uid(uid) => target.update(payload, uid, apply.adopted).await,
        Expect::Look => target.look(payload).await,
    }
}

struct Target<'a> {
    pipeline: &'a Pipeline,
    cluster: &'a Cluster,
    resource: &'a ApiResource,
    app: &'a AppKey,
    apply: &'a Apply,
}

impl Target<'_> {
    /// The object is there with this UID. Ignored fields are released first and then left out, so that nothing
    /// is reset.
    async fn update(&self, mut payload: Object, uid: &str, adopted: Adopted) -> Result<Applied, Problem> {
        let mut released = Vec::new();
        if !self.apply.ignored.is_empty()
            && let Some(live) = self.get().await?
        {
            released = self.release(&live, &mut payload).await?;
        }
        if self.apply.way == ApplyWay::Replace {
            self.replace(&payload, uid).await?;
        }
        let sent = self.send(payload.clone(), Some(uid), adopted).await;
        let mut applied = match sent {
            Err(problem)
                if problem.reason == Reason::ImmutableField && self.apply.way == ApplyWay::Recreate =>
            {
                self.recreate(payload, uid).await?
            }
            other => other.map_err(with_remedy)?,
        };
        applied.released = released;
        Ok(applied)
    }

    /// `Replace=true`: what the manifest does not say goes; the server-side apply that follows makes the owned set
    /// exact.
    async fn replace(&self, payload: &Object, uid: &str) -> Result<(), Problem> {
        let Some(live) = self.get().await? else { return Ok(()) };
        backup(self.pipeline, self.app, &self.apply.key, "replaced").await?;
        let mut whole = payload.clone();
        whole.metadata_mut().insert("uid".to_owned(), uid.into());
        whole.metadata_mut().insert("resourceVersion".to_owned(), live.resource_version().into());
        patiently(|| self.cluster.replace(self.resource, &whole)).await.map(|_| ())
    }

    /// `Force=true` where an immutable field changed: the manifest is tried under another name first, then what is
    /// there goes, and when it is gone the new one is made.
    async fn recreate(&self, payload: Object, uid: &str) -> Result<Applied, Problem> {
        let key = &self.apply.key;
        if NEVER_RECREATED.iter().any(|(group, kind)| key.is(group, kind)) {
            return Err(Problem::new(
                Reason::ImmutableField,
                format!(
                    "{key} has immutable fields that changed, and is never deleted for that: it holds data or others' objects"
                ),
            ));
        }
        let mut probe = payload.clone();
        let name: String = key.name.chars().take(50).collect();
        probe
            .metadata_mut()
            .insert("name".to_owned(), format!("{}-pintle-try", name.trim_end_matches('-')).into());
        self.request(&probe, None, true).await?;
        backup(self.pipeline, self.app, key, "made anew").await?;
        self.remove(uid, "Foreground").await?;
        self.send(payload, None, Adopted::No).await
    }

    /// Deletes and waits until it is gone.
    async fn remove(&self, uid: &str, propagation: &str) -> Result<(), Problem> {
        patiently(|| self.cluster.delete(self.resource, &self.apply.key, uid, propagation)).await?;
        let deadline = tokio::time::Instant::now() + GONE_WITHIN;
        loop {
            match self.get().await? {
                Some(live) if live.uid() == uid => {
                    if tokio::time::Instant::now() > deadline {
                        let health = pintle_core::health::health(&live);
                        return Err(Problem::new(
                            Reason::DeadlineExceeded,
                            format!("{} was deleted and is still there: {}", self.apply.key, health.message),
                        ));
                    }
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                _ => return Ok(()),
            }
        }
    }

    /// A hook: an object of an earlier run goes first, by its policy or because it has ended.
    async fn hook(&self, mut payload: Object, hook: HookApply) -> Result<Applied, Problem> {
        payload.metadata_mut().remove("generateName");
        payload.metadata_mut().insert("name".to_owned(), (*self.apply.key.name).into());
        let tracking = self.apply.key.tracking_id(&self.app.to_string());
        payload.set_annotation(names::TRACKING_ANNOTATION, &tracking);
        payload.set_annotation(names::OPERATION_ANNOTATION, &hook.operation.to_string());
        if let Some(live) = self.get().await? {
            let part_of = identity::applyset_id(&self.pipeline.identity().agent_namespace, self.app);
            let ours = live.label(names::PART_OF_LABEL) == Some(&*part_of);
            let earlier = hook::operation_of(&live).is_some_and(|operation| operation != hook.operation);
            let over = hook.recreate || !matches!(hook::outcome(&live), hook::Outcome::Running(_));
            if ours && earlier && over {
                let uid = live.uid().to_owned();
                self.remove(&uid, HOOK_PROPAGATION).await?;
            }
        }
        self.look(payload).await
    }

    /// Nothing is known: look, then create, adopt, or leave it to its owner.
    async fn look(&self, payload: Object) -> Result<Applied, Problem> {
        let key = &self.apply.key;
        let live = self.get().await?;
        let part_of = identity::applyset_id(&self.pipeline.identity().agent_namespace, self.app);
        let tracking_id = key.tracking_id(&self.app.to_string());
        let identity = self.pipeline.identity();
        let agent = adopt::Agent { id: &identity.agent_id, namespace: &identity.agent_namespace };
        match adopt::decide(live.as_ref(), &part_of, &tracking_id, &agent, self.apply.take_over) {
            Decision::Create => self.send(payload, None, Adopted::No).await,
            Decision::Update(uid) => {
                // An application of ours adopted it a moment ago, or before its record was lost: that stays on it.
                let mark = live.as_ref().map_or(Adopted::No, adopt::adopted_mark);
                let mut applied = self.update(payload, &uid, mark).await?;
                applied.adopted = (mark != Adopted::No).then_some(mark);
                Ok(applied)
            }
            Decision::Refuse(mark) => Err(Problem::new(Reason::OwnedByAnother, adopt::refusal(key, &mark))),
            Decision::Adopt(uid) => self.adopt(payload, live.as_ref(), &uid).await,
        }
    }

    /// The object exists without an owner. A dry run tells whether it equals git already: if so, it may be pruned
    /// later without a person's word.
    async fn adopt(&self, mut payload: Object, live: Option<&Object>, uid: &str) -> Result<Applied, Problem> {
        let dry = self.request(&payload, Some(uid), true).await?;
        let equal = live.is_some_and(|live| {
            OwnedSet::from_answer(&dry.0, names::FIELD_MANAGER).is_some_and(|set| {
                diff::differences(live, &dry.0, &[&set])
                    .iter()
                    .all(|difference| is_our_mark(&difference.path))
            })
        });
        let adopted = if equal { Adopted::Equal } else { Adopted::Changed };
        let mut migrated = None;
        if self.apply.migrate
            && let Some(live) = live
            && let Some(patch) = fields::migration_patch(live, names::FIELD_MANAGER, names::LAST_APPLIED)
        {
            let patched =
                patiently(|| self.cluster.json_patch(self.resource, &self.apply.key, &patch)).await?;
            migrated = Some(patched);
        }
        if let Some(live) = migrated.as_ref().or(live)
            && !self.apply.ignored.is_empty()
        {
            self.release(live, &mut payload).await?;
        }
        let mut applied = self.send(payload, Some(uid), adopted).await?;
        applied.adopted = Some(adopted);
        Ok(applied)
    }

    async fn get(&self) -> Result<Option<Object>, Problem> {
        patiently(|| self.cluster.get(self.resource, &self.apply.key)).await
    }

    /// Releases ignored fields that we own and takes them out of the payload; below an atomic list or map, where
    /// nothing can be released, the payload carries the live value instead.
    async fn release(&self, live: &Object, payload: &mut Object) -> Result<Vec<String>, Problem> {
        let ignored = &self.apply.ignored;
        let stuck = fields::unreleasable(live, ignored, names::FIELD_MANAGER);
        let free: Vec<String> = ignored.iter().filter(|pointer| !stuck.contains(pointer)).cloned().collect();
        let mut released = Vec::new();
        if let Some(patch) = fields::release_patch(live, &free, names::FIELD_MANAGER) {
            patiently(|| self.cluster.json_patch(self.resource, &self.apply.key, &patch)).await?;
            released.clone_from(&free);
        }
        fields::overlay_live(payload, live, &stuck);
        fields::remove_pointers(payload, &free);
        Ok(released)
    }

    async fn send(
        &self,
        mut payload: Object,
        uid: Option<&str>,
        adopted: Adopted,
    ) -> Result<Applied, Problem> {
        match adopted {
            Adopted::No => {}
            Adopted::Equal => payload.set_annotation(names::ADOPTED_ANNOTATION, "equal"),
            Adopted::Changed => payload.set_annotation(names::ADOPTED_ANNOTATION, "changed"),
        }
        let (answer, created) = self.request(&payload, uid, false).await?;
        // We meant to create it and somebody was faster: it was there before us, and is treated so. Where only we
        // ever wrote it, it is ours: the answer to a first try was lost, or a revert and a sync met.
        let surprised = self.apply.expect == Expect::Absent && !created && adopt::has_foreign_fields(&answer);
        Ok(Applied {
            manifest: self.apply.manifest,
            ignored: self.apply.ignored.clone(),
            answer: Arc::new(answer),
            created,
            adopted: surprised.then_some(Adopted::Changed),
            released: Vec::new(),
        })
    }

    async fn request(
        &self,
        payload: &Object,
        uid: Option<&str>,
        dry_run: bool,
    ) -> Result<(Object, bool), Problem> {
        let mut payload = payload.clone();
        if let Some(uid) = uid {
            payload.metadata_mut().insert("uid".to_owned(), uid.into());
        }
        let field_validation =
            if self.apply.lenient { FieldValidation::Ignore } else { FieldValidation::Strict };
        let options = ApplyOptions { dry_run, field_validation };
        let applied = patiently(|| self.cluster.apply(self.resource, &payload, &options)).await?;
        for warning in &applied.warnings {
            tracing::debug!(object = %self.apply.key, "the API server warns: {warning}");
        }
        Ok((applied.object, applied.created))
    }
}

/// Our own label or annotation: not a difference from what git wants.
fn is_our_mark(path: &fields::FieldPath) -> bool {
    let text = path.to_string();
    [names::AGENT_LABEL, names::PART_OF_LABEL, names::TRACKING_ANNOTATION, names::ADOPTED_ANNOTATION]
        .iter()
        .any(|name| text.contains(name))
}

async fn payload(pipeline: &Pipeline, apply: &Apply) -> Result<Object, Problem> {
    read_payload(pipeline, apply.manifest, &apply.key.to_string()).await
}

async fn read_payload(
    pipeline: &Pipeline,
    digest: pintle_model::Digest,
    key: &str,
) -> Result<Object, Problem> {
    let store = pipeline.store().clone();
    let key = key.to_owned();
    blocking(move || {
        let bytes = store.get_blob(digest)?.ok_or_else(|| {
            Problem::new(
                Reason::StoreError,
                format!("the manifest of {key} is not in the store; `pintle app get --hard-refresh` renders it anew"),
            )
        })?;
        serde_json::from_slice::<Object>(&bytes)
            .map_err(|error| Problem::new(Reason::StoreError, format!("the stored manifest of {key} is damaged: {error}")))
    })
    .await
}

/// The resource of a kind, in the version wanted or the server's preferred one. An unknown kind is looked up once
/// more: its definition may just have been applied.
pub(super) async fn resource_of(
    pipeline: &Pipeline,
    key: &ObjectKey,
    api_version: Option<&str>,
) -> Result<ApiResource, Problem> {
    let find = |discovery: &crate::cluster::Discovery| match api_version {
        Some(version) => discovery.resolve_version(version, &key.kind).cloned(),
        None => discovery.resolve(&key.group, &key.kind).cloned(),
    };
    if let Some(found) = pipeline.discovery().and_then(|discovery| find(&discovery)) {
        return checked(found, key);
    }
    let discovery = super::connect::discover_group(pipeline, &key.group).await?;
    match find(&discovery) {
        Some(found) => checked(found, key),
        None => {
            let installed = discovery.installed_versions(&key.group, &key.kind);
            let installed = if installed.is_empty() { "none".to_owned() } else { installed.join(", ") };
            Err(Problem::new(
                Reason::UnknownKind,
                format!(
                    "{key}: the API server knows no kind {} in {}; installed versions: {installed}",
                    key.kind,
                    api_version.unwrap_or(&key.group)
                ),
            ))
        }
    }
}

/// A key made before its kind was known may have guessed the scope wrong.
fn checked(found: ApiResource, key: &ObjectKey) -> Result<ApiResource, Problem> {
    if found.namespaced == key.namespace.is_empty() {
        let scope = if found.namespaced { "namespaced" } else { "cluster-scoped" };
        return Err(Problem::new(
            Reason::UnknownKind,
            format!("{key}: the kind turned out to be {scope}; it is rendered anew"),
        ));
    }
    Ok(found)
}

/// Tries again what the server wants later (429, 5xx), as long as it says and at most a few times; everything else
/// is the engine's to decide.
pub(super) async fn patiently<T, F>(request: impl Fn() -> F) -> Result<T, Problem>
where
    F: Future<Output = Result<T, ApiFailure>>,
{
    let mut wait = Duration::from_millis(200);
    for attempt in 1.. {
        match request().await {
            Ok(answer) => return Ok(answer),
            Err(failure) if attempt < TRIES && failure.retryable => {
                let asked = failure.retry_after.unwrap_or(wait);
                tokio::time::sleep(asked.min(Duration::from_secs(limits::API_TIMEOUT_SECS))).await;
                wait *= 2;
            }
            Err(failure) => return Err(failure.problem),
        }
    }
    unreachable!("the loop ends by returning")
}
