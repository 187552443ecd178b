//! The seeded world around the engine: clock, git, disk, API server, people, faults. It carries out effects after
//! random delays, drops them when the agent is killed, and judges the promises after every event.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use pintle_core::engine::effect::{Effect, Parent, Report};
use pintle_core::engine::event::{
    Child, Event, Found, FoundApp, Now, Rebuilt, RefKey, Request, RollbackRequest, SyncRequest,
};
use pintle_core::engine::record::{
    AppRecord, ApplyWay, DesiredEntry, HistoryRecord, HookEntry, InventoryRecord, ObjectOptions,
    OperationRecord, Place, Records, RefRecord, RenderRecord, Write,
};
use pintle_core::engine::{self, Mode, Settings, State};
use pintle_core::fields::OwnedSet;
use pintle_core::hook::{Hook, Phase, Removal, When};
use pintle_core::identity::{self, Marks};
use pintle_core::plan::PruneLimits;
use pintle_core::{adopt, fields};
use pintle_model::application::Application;
use pintle_model::{AppKey, Digest, Object, ObjectKey, Origin, Problem, Reason, Revision, names};
use serde_json::json;

use crate::cluster::{Asker, Change, FakeCluster, digest};
use crate::rng::Rng;

const AGENT: &str = "agent-1";
const NAMESPACE: &str = "pintle-system";
const URL: &str = "https://git.example/fleet.git";

/// What git holds at one commit: the objects of each application.
pub type Commit = BTreeMap<AppKey, BTreeMap<ObjectKey, Object>>;

/// What survives a kill.
#[derive(Debug, Default, Clone)]
pub struct Disk {
    pub apps: BTreeMap<AppKey, AppRecord>,
    pub inventory: BTreeMap<AppKey, BTreeMap<ObjectKey, InventoryRecord>>,
    pub sets: BTreeMap<Digest, OwnedSet>,
    pub operations: BTreeMap<AppKey, OperationRecord>,
    pub history: BTreeMap<AppKey, BTreeMap<u64, HistoryRecord>>,
    pub refs: BTreeMap<(String, String), RefRecord>,
    pub renders: BTreeMap<Digest, RenderRecord>,
    pub manifests: BTreeMap<Digest, Object>,
    pub rebuilt: bool,
    pub commits: u64,
}

pub struct World {
    pub rng: Rng,
    pub mono: Duration,
    pub state: State,
    pub cluster: FakeCluster,
    pub disk: Disk,
    pub commits: Vec<Commit>,
    pub cached: BTreeSet<Revision>,
    pub queue: VecDeque<(Duration, u64, Effect)>,
    pub sequence: u64,
    pub link_up: bool,
    pub api_up: bool,
    pub disk_full: bool,
    pub watched: BTreeSet<pintle_model::GroupKind>,
    pub trace: VecDeque<String>,
    pub automated: bool,
    /// Application two is a child in the render of one.
    pub nested: bool,
    /// Application one has hooks.
    pub hooked: bool,
    /// Jobs that run: when they end, which, with which UID, and whether well.
    pub jobs: Vec<(Duration, ObjectKey, String, bool)>,
    /// Hooks that completed, by operation.
    pub completed: BTreeSet<(u64, ObjectKey)>,
    /// A rollback ends only with `resume`.
    pub until_resume: bool,
    /// ApplySet parents in the cluster.
    pub parents: BTreeMap<AppKey, Parent>,
    pub ever_wanted: BTreeSet<ObjectKey>,
    pub reverts: u64,
}

pub fn revision(index: usize) -> Revision {
    let mut bytes = [0_u8; 20];
    bytes[..8].copy_from_slice(&(index as u64 + 1).to_be_bytes());
    Revision::from_bytes(bytes)
}

fn settings() -> Settings {
    Settings {
        mode: Mode::Run,
        agent_id: AGENT.into(),
        agent_namespace: NAMESPACE.into(),
        poll_interval: Duration::from_mins(3),
        poll_jitter: Duration::from_secs(30),
        prune: PruneLimits { max_share: 1.0, max_small: 1_000, max_per_hour: 100_000 },
    }
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let automated = rng.chance(90);
        let nested = rng.chance(40);
        let until_resume = rng.chance(30);
        let hooked = rng.chance(40);
        let mut world = Self {
            rng,
            mono: Duration::ZERO,
            state: State::new(settings()),
            cluster: FakeCluster::default(),
            disk: Disk::default(),
            commits: Vec::new(),
            cached: BTreeSet::new(),
            queue: VecDeque::new(),
            sequence: 0,
            link_up: true,
            api_up: true,
            disk_full: false,
            watched: BTreeSet::new(),
            trace: VecDeque::new(),
            automated,
            nested,
            until_resume,
            hooked,
            jobs: Vec::new(),
            completed: BTreeSet::new(),
            parents: BTreeMap::new(),
            ever_wanted: BTreeSet::new(),
            reverts: 0,
        };
        let first = world.random_commit(None);
        world.commits.push(first);
        world.start();
        world
    }

    pub fn now(&self) -> Now {
        let seconds = i64::try_from(self.mono.as_secs()).unwrap_or(i64::MAX);
        let wall =
            jiff::Timestamp::from_second(1_800_000_000 + seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        Now { mono: self.mono, wall }
    }

    fn log(&mut self, text: String) {
        // Polls are the noise of every story.
        if text.contains("Poll(") || text.contains("Polled(") && text.contains("Ok(") {
            return;
        }
        if self.trace.len() == 400 {
            self.trace.pop_front();
        }
        self.trace.push_back(format!("{:>9.3} {text}", self.mono.as_secs_f64()));
    }

    /// The agent starts from its disk: fresh at first or when the store was lost.
    pub fn start(&mut self) {
        self.queue.clear();
        self.watched.clear();
        let mut records = Records {
            apps: self.disk.apps.clone(),
            inventory: self.disk.inventory.clone(),
            sets: self.disk.sets.clone(),
            operations: self.disk.operations.clone(),
            refs: self.disk.refs.clone(),
            renders: self.disk.renders.clone(),
            last_operation: self.disk.commits * 1_000,
            fresh: !self.disk.rebuilt,
            ..Records::default()
        };
        for key in self.disk.apps.keys() {
            records.specs.insert(key.clone(), Arc::new(self.spec(key)));
            if let Some((_, last)) = self.disk.history.get(key).and_then(|history| history.last_key_value()) {
                records.last.insert(key.clone(), last.clone());
            }
        }
        self.state = engine::restore(settings(), records);
        self.load_apps();
    }

    pub fn load_apps(&mut self) {
        let apps = self
            .app_keys()
            .into_iter()
            .take(if self.nested { 1 } else { 2 })
            .map(|key| {
                let place = Place::File(Origin { file: "apps.yaml".into(), line: 1 });
                self.found(&key, place)
            })
            .collect();
        self.event(Event::AppsLoaded { apps, held: BTreeSet::new(), problems: Vec::new() });
    }

    fn found(&self, key: &AppKey, place: Place) -> FoundApp {
        FoundApp { spec: Arc::new(self.spec(key)), raw: json!({"metadata": {"name": &*key.name}}), place }
    }

    /// The applications that a render of `app` brings.
    fn children(&self, app: &AppKey) -> Vec<AppKey> {
        let keys = self.app_keys();
        if self.nested && *app == keys[0] { keys[1..].to_vec() } else { Vec::new() }
    }

    #[allow(clippy::unused_self, reason = "reads as a property of the world")]
    pub fn app_keys(&self) -> Vec<AppKey> {
        vec![AppKey::new("argocd", "one"), AppKey::new("argocd", "two")]
    }

    fn spec(&self, key: &AppKey) -> Application {
        crate::spec(key, URL, self.automated, self.until_resume)
    }

    /// A commit made from the one before: objects added, changed, removed, moved between applications.
    pub fn random_commit(&mut self, before: Option<&Commit>) -> Commit {
        let mut commit = before.cloned().unwrap_or_default();
        for key in self.app_keys() {
            commit.entry(key).or_default();
        }
        for _ in 0..self.rng.between(1, 5) {
            let app = self.rng.pick(&self.app_keys());
            let name = format!("object-{}", self.rng.below(8));
            let key = ObjectKey::new("", "ConfigMap", "shop", &name);
            let taken = commit.iter().any(|(other, objects)| *other != app && objects.contains_key(&key));
            match self.rng.below(4) {
                0 => {
                    if let Some(objects) = commit.get_mut(&app)
                        && objects.len() > 1
                    {
                        objects.remove(&key);
                    }
                }
                1 => {
                    // Moved: the other application lets go in the same commit.
                    for objects in commit.values_mut() {
                        objects.remove(&key);
                    }
                    commit.entry(app).or_default().insert(key.clone(), self.random_object(&key));
                }
                _ if !taken => {
                    commit.entry(app).or_default().insert(key.clone(), self.random_object(&key));
                }
                _ => {}
            }
        }
        // No application is ever empty: an empty render is refused, and that has tests of its own.
        for (index, key) in self.app_keys().into_iter().enumerate() {
            let fixed = ObjectKey::new("", "ConfigMap", "shop", &format!("fixed-{index}"));
            let object = self.random_object(&fixed);
            commit.entry(key).or_default().entry(fixed).or_insert(object);
        }
        commit
    }

    fn random_object(&mut self, key: &ObjectKey) -> Object {
        let value = format!("{}", self.rng.below(5));
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": &*key.name, "namespace": &*key.namespace}, "data": {"a": value}});
        if self.rng.chance(50) {
            object["data"]["b"] = json!("b");
        }
        Object::try_from(object).expect("an object")
    }

    /// One event into the engine, its effects into the queue, and the judgement.
    pub fn event(&mut self, event: Event) {
        if !matches!(event, Event::Tick) {
            let text = format!("-> {}", crate::short(&event));
            self.log(text);
        }
        let now = self.now();
        let effects = engine::step(&mut self.state, event, now);
        for effect in effects {
            let text = format!("   {}", crate::short(&effect));
            self.log(text);
            match effect {
                Effect::Report(Report::DriftReverted { .. }) => self.reverts += 1,
                Effect::Report(_) | Effect::Answer { .. } => {}
                Effect::Watch(wanted) => {
                    let kinds: BTreeSet<_> = wanted.iter().map(|(kind, _)| kind.clone()).collect();
                    self.schedule(Effect::Watch(wanted));
                    self.watched.retain(|kind| kinds.contains(kind));
                }
                other => self.schedule(other),
            }
        }
        crate::invariants::after_event(self);
    }

    fn schedule(&mut self, effect: Effect) {
        let delay = Duration::from_millis(self.rng.between(1, 400));
        // The store is written in order; everything else may overtake.
        let at = match &effect {
            Effect::Commit { .. } => {
                let last =
                    self.queue.iter().filter(|(_, _, queued)| is_store(queued)).map(|(at, _, _)| *at).max();
                last.map_or(self.mono + delay, |last| last.max(self.mono + delay))
            }
            _ => self.mono + delay,
        };
        self.sequence += 1;
        self.queue.push_back((at, self.sequence, effect));
    }

    /// Carries out the next effect or timer, whichever is first. Returns false when nothing is left before `until`.
    pub fn advance(&mut self, until: Duration) -> bool {
        let next = self.queue.iter().map(|(at, sequence, _)| (*at, *sequence)).min();
        let job = self.jobs.iter().map(|(at, ..)| *at).min();
        let timer = engine::next_due(&self.state);
        if let Some(at) = job.filter(|at| *at <= until)
            && next.is_none_or(|(next, _)| at <= next)
            && timer.is_none_or(|timer| at <= timer)
        {
            self.mono = self.mono.max(at);
            self.end_jobs();
            return true;
        }
        match (next, timer) {
            (Some((at, sequence)), timer) if at <= until && timer.is_none_or(|timer| at <= timer) => {
                self.mono = self.mono.max(at);
                let index = self.queue.iter().position(|(_, known, _)| *known == sequence).expect("queued");
                let (_, _, effect) = self.queue.remove(index).expect("queued");
                self.carry_out(effect, true);
                self.deliver_changes();
                true
            }
            (_, Some(timer)) if timer <= until => {
                self.mono = self.mono.max(timer);
                self.event(Event::Tick);
                true
            }
            _ => {
                self.mono = self.mono.max(until);
                false
            }
        }
    }

    /// Watches deliver what changed, in order.
    pub fn deliver_changes(&mut self) {
        let changes = std::mem::take(&mut self.cluster.changes);
        for (key, change) in changes {
            if !self.api_up || !self.watched.contains(&key.group_kind()) {
                continue;
            }
            match change {
                Change::Seen(object) => self.event(Event::Seen(Box::new(object))),
                Change::Left(last) => self.event(Event::Left(key, Some(Arc::new(last)))),
            }
        }
    }

    /// kill -9: what was under way may or may not have happened; nobody hears of it.
    pub fn kill(&mut self, lose_store: bool) {
        self.log(format!("== killed{}", if lose_store { ", the store is lost" } else { "" }));
        let under_way: Vec<Effect> = self.queue.drain(..).map(|(_, _, effect)| effect).collect();
        let mut store_alive = true;
        for effect in under_way {
            if is_store(&effect) {
                // In order: once one is lost, all later ones are.
                store_alive &= self.rng.chance(50);
                if store_alive {
                    self.carry_out(effect, false);
                }
            } else if self.rng.chance(50) {
                self.carry_out(effect, false);
            }
        }
        self.cluster.changes.clear();
        if lose_store {
            self.disk = Disk { commits: self.disk.commits + 1, ..Disk::default() };
        }
        self.start();
    }

    fn answer(&mut self, heard: bool, event: Event) {
        if heard {
            self.event(event);
        }
    }

    fn unreachable() -> Problem {
        Problem::new(Reason::ClusterUnreachable, "the API server does not answer")
    }

    /// Does what an effect asks and tells the engine, unless it was killed meanwhile.
    fn carry_out(&mut self, effect: Effect, heard: bool) {
        match effect {
            Effect::Poll(key) => {
                let result = if self.link_up {
                    Ok(revision(self.commits.len() - 1))
                } else {
                    Err(Problem::new(Reason::GitUnreachable, "no link"))
                };
                self.answer(heard, Event::Polled(key, result));
            }
            Effect::Fetch(key, revision) => self.fetch(key, revision, heard),
            Effect::Render { app, revision, ticket, .. } => {
                let render = self.render(&app, revision);
                self.disk.renders.insert(render.id, render.clone());
                let place = || Place::Parent(app.clone(), Origin { file: "apps.yaml".into(), line: 1 });
                let children =
                    self.children(&app).iter().map(|key| Child::Valid(self.found(key, place()))).collect();
                self.answer(heard, Event::Rendered { app, ticket, result: Ok((Arc::new(render), children)) });
            }
            Effect::LoadRender { app, render, ticket } => {
                let result = match self.disk.renders.get(&render) {
                    Some(render) => Ok((Arc::new(render.clone()), Vec::new())),
                    None => Err(Problem::new(Reason::NoSuch, "the render is not in the store")),
                };
                self.answer(heard, Event::Rendered { app, ticket, result });
            }
            Effect::Connect => {
                let event = if self.api_up {
                    Event::ClusterReady { incomplete: BTreeSet::new() }
                } else {
                    Event::ClusterLost(Self::unreachable())
                };
                self.answer(heard, event);
            }
            Effect::Rebuild => {
                let result = if self.api_up { Ok(self.rebuild()) } else { Err(Self::unreachable()) };
                let rebuilt = result.is_ok();
                self.answer(heard, Event::Rebuilt(result));
                if heard && rebuilt {
                    crate::invariants::after_rebuild(self);
                }
            }
            Effect::Watch(wanted) => self.watch(&wanted, heard),
            Effect::Probe(key) => {
                let result = if self.api_up {
                    Ok(self.cluster.objects.get(&key).map(|object| Arc::new(object.clone())))
                } else {
                    Err(Self::unreachable())
                };
                self.answer(heard, Event::Probed(key, result));
            }
            Effect::Survey { app, op, keys } => {
                let result = if self.api_up {
                    Ok(keys
                        .into_iter()
                        .filter_map(|(key, _)| {
                            let object = self.cluster.objects.get(&key)?;
                            Some(Found { key, object: Arc::new(object.clone()) })
                        })
                        .collect())
                } else {
                    Err(Self::unreachable())
                };
                self.answer(heard, Event::Surveyed { app, op, result });
            }
            Effect::Begin { app, op, parent } => {
                let result = if self.api_up { Ok(()) } else { Err(Self::unreachable()) };
                if self.api_up {
                    self.parents.insert(app.clone(), parent);
                }
                self.answer(heard, Event::Begun { app, op, result });
            }
            Effect::Commit { ticket, writes } => {
                let result = self.write(writes);
                self.answer(heard, Event::Committed { ticket, result });
            }
            Effect::Apply { app, op, apply } => {
                let result = self.apply(&app, &apply);
                self.answer(heard, Event::StepApplied { app, op, key: apply.key, result });
            }
            Effect::Revert { app, apply, before } => {
                let result = self.apply(&app, &apply);
                self.answer(heard, Event::Reverted { app, key: apply.key, before, result });
            }
            Effect::Check { app, op, apply } => {
                let key = apply.key;
                self.answer(heard, Event::StepChecked { app, op, key, result: Ok(()) });
            }
            Effect::RemoveHook { key, uid } => {
                if self.api_up {
                    crate::invariants::before_hook_goes(self, &key, &uid);
                    let _ = self.cluster.delete(&key, &uid);
                }
                self.carry_out(Effect::Probe(key), heard);
            }
            Effect::Delete { app, op, key, uid, .. } => {
                crate::invariants::before_delete(self, &app, &key, &uid);
                let result =
                    if self.api_up { self.cluster.delete(&key, &uid) } else { Err(Self::unreachable()) };
                self.answer(heard, Event::StepDeleted { app, op, key, result });
            }
            Effect::Parent(parent) => {
                if self.api_up {
                    self.parents.insert(parent.app.clone(), parent);
                }
            }
            Effect::Report(_) | Effect::Answer { .. } => {}
        }
    }

    fn fetch(&mut self, key: RefKey, revision: Revision, heard: bool) {
        let result = if self.cached.contains(&revision) || self.link_up {
            self.cached.insert(revision);
            Ok(())
        } else {
            Err(Problem::new(Reason::GitUnreachable, "no link"))
        };
        self.answer(heard, Event::Fetched(key, revision, result));
    }

    fn watch(&mut self, wanted: &BTreeSet<(pintle_model::GroupKind, Arc<str>)>, heard: bool) {
        for (kind, _) in wanted {
            if !heard || self.watched.contains(kind) {
                continue;
            }
            if !self.api_up {
                self.schedule(Effect::Watch(wanted.clone()));
                return;
            }
            self.watched.insert(kind.clone());
            let objects: Vec<(ObjectKey, Object)> = self
                .cluster
                .objects
                .iter()
                .filter(|(key, object)| {
                    key.group_kind() == *kind && object.label(names::AGENT_LABEL) == Some(AGENT)
                })
                .map(|(key, object)| (key.clone(), object.clone()))
                .collect();
            let present = objects.iter().map(|(key, _)| key.clone()).collect();
            for (_, object) in objects {
                self.event(Event::Seen(Box::new(object)));
            }
            self.event(Event::WatchSynced { kind: kind.clone(), present });
        }
    }

    fn apply(
        &mut self,
        app: &AppKey,
        apply: &pintle_core::engine::effect::Apply,
    ) -> Result<pintle_core::engine::event::Applied, Problem> {
        if !self.api_up {
            return Err(Self::unreachable());
        }
        if self.rng.chance(3) {
            return Err(Problem::new(Reason::ServerError, "500"));
        }
        let Some(payload) = self.disk.manifests.get(&apply.manifest).cloned() else {
            return Err(Problem::new(Reason::Internal, "the manifest is not in the store"));
        };
        let part_of = identity::applyset_id(NAMESPACE, app);
        let mut payload = payload;
        if let Some(hook) = &apply.hook {
            payload.set_annotation(names::OPERATION_ANNOTATION, &hook.operation.to_string());
            let live = self.cluster.objects.get(&apply.key);
            let over = |live: &Object| {
                hook.recreate
                    || !matches!(pintle_core::hook::outcome(live), pintle_core::hook::Outcome::Running(_))
            };
            if live.is_some_and(|live| live.label(names::PART_OF_LABEL) == Some(&*part_of) && over(live)) {
                self.cluster.remove(&apply.key);
            }
            crate::invariants::before_hook(self, &apply.key, hook.operation);
        }
        let tracking_id = apply.key.tracking_id(&app.to_string());
        let asker = Asker { part_of: &part_of, tracking_id: &tracking_id, agent_id: AGENT };
        let applied = self.cluster.apply(apply, &payload, &asker)?;
        if apply.hook.is_some() && applied.created {
            let at = self.mono + Duration::from_millis(self.rng.between(100, 20_000));
            let ok = self.rng.chance(85);
            self.jobs.push((at, apply.key.clone(), applied.answer.uid().to_owned(), ok));
        }
        Ok(applied)
    }

    /// Jobs that end now; some have a TTL of nothing and are gone at once.
    fn end_jobs(&mut self) {
        let (due, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.jobs).into_iter().partition(|(at, ..)| *at <= self.mono);
        self.jobs = rest;
        for (_, key, uid, ok) in due {
            let there = self.cluster.objects.get(&key).filter(|live| live.uid() == uid);
            let Some(operation) = there.and_then(pintle_core::hook::operation_of) else { continue };
            // Where a kill came before its start was on disk, nobody can know of a Job that is gone since.
            let recorded = self.disk.inventory.values().any(|inventory| {
                inventory.get(&key).is_some_and(|record| record.uid.as_deref() == Some(&*uid))
            });
            if ok && recorded {
                self.completed.insert((operation, key.clone()));
            }
            self.cluster.end_job(&key, &uid, ok);
            if self.rng.chance(20) {
                self.cluster.remove(&key);
            }
        }
        self.deliver_changes();
    }

    fn render(&mut self, app: &AppKey, at: Revision) -> RenderRecord {
        let index = (0..self.commits.len()).find(|index| revision(*index) == at).expect("a commit");
        let part_of = identity::applyset_id(NAMESPACE, app);
        let marks = Marks { app, agent_id: AGENT, part_of: &part_of };
        let mut objects = Vec::new();
        for (key, object) in self.commits[index].get(app).cloned().unwrap_or_default() {
            let payload = identity::payload(object, &key, &marks);
            let manifest = digest(&payload);
            self.disk.manifests.insert(manifest, payload);
            self.ever_wanted.insert(key.clone());
            objects.push(DesiredEntry {
                key,
                api_version: "v1".into(),
                manifest,
                wave: 0,
                options: ObjectOptions::default(),
                way: ApplyWay::Apply,
                no_migration: false,
                ignore: false,
                adopt: false,
                lenient: false,
                ignore_health: false,
                ignored: Vec::new(),
                only_create: false,
                fail_on_shared: false,
                origin: Origin { file: "a.yaml".into(), line: 1 },
            });
        }
        let hooks = self.hooks(app, index);
        let text = format!("{app} {at} {objects:?} {hooks:?}");
        RenderRecord {
            hooks,
            id: Digest::of(text.as_bytes()),
            revision: at,
            objects,
            commit: None,
            warnings: Vec::new(),
            children: self.children(app),
        }
    }

    /// Hooks of application one: a migration before, a notification after, a word when it failed. The migration's
    /// content changes with every third commit.
    fn hooks(&mut self, app: &AppKey, commit: usize) -> Vec<HookEntry> {
        if !self.hooked || *app != self.app_keys()[0] {
            return Vec::new();
        }
        let part_of = identity::applyset_id(NAMESPACE, app);
        let marks = Marks { app, agent_id: AGENT, part_of: &part_of };
        let of = [
            (Phase::PreSync, "migrate", Removal::BeforeHookCreation),
            (Phase::PostSync, "notify", Removal::HookSucceeded),
            (Phase::SyncFail, "sorry", Removal::BeforeHookCreation),
        ];
        let mut entries = Vec::new();
        for (phase, name, removal) in of {
            let key = ObjectKey::new("batch", "Job", "shop", name);
            let value = json!({"apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": name, "namespace": "shop"}, "spec": {"version": commit / 3}});
            let payload = identity::payload(Object::try_from(value).expect("an object"), &key, &marks);
            let manifest = digest(&payload);
            self.disk.manifests.insert(manifest, payload);
            entries.push(HookEntry {
                entry: DesiredEntry {
                    key,
                    api_version: "batch/v1".into(),
                    manifest,
                    wave: 0,
                    options: ObjectOptions::default(),
                    way: ApplyWay::Apply,
                    no_migration: false,
                    ignore: false,
                    adopt: false,
                    lenient: false,
                    ignore_health: false,
                    ignored: Vec::new(),
                    only_create: false,
                    fail_on_shared: false,
                    origin: Origin { file: "hooks.yaml".into(), line: 1 },
                },
                hook: Hook { phases: vec![(phase, When::Always)], removal: vec![removal] },
                generated: false,
            });
        }
        entries
    }

    fn write(&mut self, writes: Vec<Write>) -> Result<(), Problem> {
        if self.disk_full {
            return Err(Problem::new(Reason::StoreError, "no space left"));
        }
        self.disk.commits += 1;
        let disk = &mut self.disk;
        for write in writes {
            match write {
                Write::App(key, Some(record)) => drop(disk.apps.insert(key, record)),
                Write::App(key, None) => drop(disk.apps.remove(&key)),
                Write::Inventory(app, key, Some(record)) => {
                    disk.inventory.entry(app).or_default().insert(key, record);
                }
                Write::Inventory(app, key, None) => {
                    disk.inventory.entry(app).or_default().remove(&key);
                }
                Write::Set(digest, set) => drop(disk.sets.insert(digest, (*set).clone())),
                Write::Operation(key, Some(record)) => drop(disk.operations.insert(key, record)),
                Write::Operation(key, None) => drop(disk.operations.remove(&key)),
                Write::History(key, record) => {
                    drop(disk.history.entry(key).or_default().insert(record.id, record));
                }
                Write::DropHistory(key, ids) => {
                    for id in ids {
                        disk.history.entry(key.clone()).or_default().remove(&id);
                    }
                }
                Write::Ref(url, target, record) => drop(disk.refs.insert((url, target), record)),
                Write::Rebuilt => disk.rebuilt = true,
                Write::Collect => {}
            }
        }
        Ok(())
    }

    fn rebuild(&self) -> BTreeMap<AppKey, Rebuilt> {
        let mut found: BTreeMap<AppKey, Rebuilt> = BTreeMap::new();
        for (app, parent) in self.parents.iter().filter(|(_, parent)| !parent.orphaned) {
            found.entry(app.clone()).or_default().pin.clone_from(&parent.pin);
            let part_of = identity::applyset_id(NAMESPACE, app);
            for (key, object) in &self.cluster.objects {
                if !adopt::is_ours(object, &part_of, &key.tracking_id(&app.to_string())) {
                    continue;
                }
                let set = OwnedSet::from_answer(object, names::FIELD_MANAGER).map(Arc::new);
                let record = InventoryRecord {
                    uid: Some(object.uid().into()),
                    manifest: None,
                    set: set.as_ref().map(|set| set.digest()),
                    projection: set.as_ref().map(|set| fields::projection_digest(object, set)),
                    adopted: match object.annotation(names::ADOPTED_ANNOTATION) {
                        Some(_) => pintle_core::engine::record::Adopted::Changed,
                        None => pintle_core::engine::record::Adopted::No,
                    },
                    options: ObjectOptions::default(),
                    hook: engine::hook_mark(object, key),
                    wave: 0,
                    deleting: false,
                };
                found.entry(app.clone()).or_default().inventory.insert(key.clone(), (record, set));
            }
        }
        found
    }

    /// A person's request.
    pub fn request(&mut self, app: &AppKey, kind: u64) {
        let request = match kind {
            0 => Request::Sync(SyncRequest { by: "person".into(), prune: true, ..SyncRequest::default() }),
            1 => Request::Resume { by: "person".into() },
            2 => Request::Refresh { hard: self.rng.chance(50) },
            _ => {
                let Some((id, record)) = self
                    .disk
                    .history
                    .get(app)
                    .and_then(|history| history.first_key_value())
                    .map(|(a, b)| (*a, b.clone()))
                else {
                    return;
                };
                let Some(render) = self.disk.renders.get(&record.render).cloned() else { return };
                Request::Rollback(RollbackRequest {
                    by: "person".into(),
                    id,
                    render: Arc::new(render),
                    prune: self.rng.chance(30),
                })
            }
        };
        self.event(Event::Requested { app: app.clone(), request, ticket: 0 });
    }
}

fn is_store(effect: &Effect) -> bool {
    matches!(effect, Effect::Commit { .. })
}
