//! The only file that knows the order of stages: it carries out the engine's effects and feeds back events. It
//! holds no policy: what to do was decided by `pintle_core`.
//!
//! Guarantees
//! - Each effect that has an answer is answered exactly once; every wait on the network has a deadline.
//! - The store is written by one task, in the order of the effects.

mod apply;
mod connect;
mod inventory;
mod source;
mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLock};

use pintle_core::engine::effect::{Answer, Effect};
use pintle_core::engine::event::Event;
use pintle_core::engine::record::Write;
use pintle_model::{AppKey, Problem, limits};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::cluster::{Cluster, Discovery};
use crate::source::Sources;
use crate::store::Store;
use crate::{crash, records, report};

/// What the runtime receives.
pub enum Message {
    /// Something happened.
    Event(Event),
    /// Somebody asks, through the socket.
    Call(crate::handle::Ask),
    /// Read the state.
    Query(Box<dyn FnOnce(&pintle_core::engine::State, pintle_core::engine::Now) + Send>),
    /// Go on with a call, once what it waited for is there.
    Then(Box<dyn FnOnce(&mut crate::runtime::Runtime) + Send>),
    /// Read the configuration and the folders of applications again.
    Reload,
    /// End.
    Stop,
    /// End, and begin anew from the store.
    Restart,
}

/// Identity of the agent and its place in the cluster.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Agent id.
    pub agent_id: String,
    /// Namespace of its own objects.
    pub agent_namespace: String,
    /// What child Applications are validated with.
    pub children: pintle_model::application::Context,
    /// Take the cluster over from another agent.
    pub take_over: bool,
    /// Write nothing to the cluster that a person did not ask for.
    pub observe: bool,
}

/// Carries out effects. Cheap to clone.
#[derive(Clone)]
pub struct Pipeline {
    inner: Arc<Inner>,
}

struct Inner {
    identity: Identity,
    store: Store,
    sources: Sources,
    cluster: ClusterSlot,
    discovery: RwLock<Option<Arc<Discovery>>>,
    watches: Mutex<watch::Watches>,
    sender: mpsc::Sender<Message>,
    writer: mpsc::Sender<StoreJob>,
    requests: Semaphore,
    waiters: Mutex<BTreeMap<u64, oneshot::Sender<Result<Answer, Problem>>>>,
    mask_key: Vec<u8>,
    /// ApplySet parents as they were written last: an unchanged one is not written again.
    parents: Mutex<BTreeMap<AppKey, pintle_model::Object>>,
    tasks: tracker::Tracker,
}

/// The client, or why there is none: a kubeconfig may come later (k3s writes it after its first start).
struct ClusterSlot {
    setting: String,
    client: RwLock<Option<Cluster>>,
    version: RwLock<String>,
}

enum StoreJob {
    Commit {
        ticket: u64,
        writes: Vec<Write>,
    },
    Render {
        render: Box<pintle_core::engine::record::RenderRecord>,
        payloads: Vec<Vec<u8>>,
        done: oneshot::Sender<Result<(), Problem>>,
    },
    Flush(oneshot::Sender<()>),
    Close,
}

impl Pipeline {
    /// Starts the pipeline's tasks.
    pub fn new(
        identity: Identity,
        store: Store,
        sources: Sources,
        kubeconfig: String,
        sender: mpsc::Sender<Message>,
    ) -> Self {
        let (writer, jobs) = mpsc::channel(limits::ENGINE_QUEUE);
        let discovery = store.get::<Discovery>(crate::store::Table::Discovery, "discovery").ok().flatten();
        let mask_key = store.mask_key();
        let pipeline = Self {
            inner: Arc::new(Inner {
                identity,
                store,
                sources,
                cluster: ClusterSlot {
                    setting: kubeconfig,
                    client: RwLock::new(None),
                    version: RwLock::default(),
                },
                discovery: RwLock::new(discovery.map(Arc::new)),
                watches: Mutex::new(watch::Watches::default()),
                sender,
                writer,
                requests: Semaphore::new(limits::API_CONCURRENCY),
                waiters: Mutex::new(BTreeMap::new()),
                mask_key,
                parents: Mutex::new(BTreeMap::new()),
                tasks: tracker::Tracker::default(),
            }),
        };
        tokio::spawn(pipeline.clone().write_store(jobs));
        pipeline
    }

    /// Carries out one effect.
    pub fn execute(&self, effect: Effect) {
        match effect {
            Effect::Poll(key) => self.spawn(|this| async move { source::poll(&this, key).await }),
            Effect::Fetch(key, revision) => {
                self.spawn(move |this| async move { source::fetch(&this, key, revision).await });
            }
            Effect::Render { app, spec, revision, ticket } => {
                self.spawn(
                    move |this| async move { source::render(&this, app, spec, revision, ticket).await },
                );
            }
            Effect::LoadRender { app, render, ticket } => {
                self.spawn(move |this| async move { source::load(&this, app, render, ticket).await });
            }
            Effect::Connect => self.spawn(|this| async move { connect::connect(&this).await }),
            Effect::Rebuild => self.spawn(|this| async move { inventory::rebuild(&this).await }),
            Effect::Watch(wanted) => watch::set(self, wanted),
            Effect::Probe(key) => self.spawn(|this| async move { inventory::probe(&this, key).await }),
            Effect::Survey { app, op, keys } => {
                self.spawn(move |this| async move { inventory::survey(&this, app, op, keys).await });
            }
            Effect::Begin { app, op, parent } => {
                self.spawn(move |this| async move { inventory::begin(&this, app, op, parent).await });
            }
            Effect::Commit { ticket, writes } => self.store_job(StoreJob::Commit { ticket, writes }),
            Effect::Check { app, op, apply } => {
                self.spawn(move |this| async move { apply::check(&this, app, op, apply).await });
            }
            Effect::RemoveHook { key, uid } => {
                self.spawn(move |this| async move { apply::remove_hook(&this, key, &uid).await });
            }
            Effect::Apply { app, op, apply } => {
                self.spawn(move |this| async move { apply::step(&this, app, op, apply).await });
            }
            Effect::Revert { app, apply, before } => {
                self.spawn(move |this| async move { apply::revert(&this, app, apply, before).await });
            }
            Effect::Delete { app, op, key, uid, propagation } => {
                self.spawn(
                    move |this| async move { apply::delete(&this, app, op, key, &uid, propagation).await },
                );
            }
            Effect::Parent(parent) => {
                self.spawn(|this| async move { inventory::write_parent_again(&this, parent).await });
            }
            Effect::Report(told) => self.report(told),
            Effect::Answer { ticket, result } => self.answer(ticket, result),
        }
    }

    /// Remembers who waits for the answer with this ticket.
    pub fn wait_for(&self, ticket: u64, waiter: oneshot::Sender<Result<Answer, Problem>>) {
        lock(&self.inner.waiters).insert(ticket, waiter);
    }

    fn answer(&self, ticket: u64, result: Result<Answer, Problem>) {
        if let Some(waiter) = lock(&self.inner.waiters).remove(&ticket) {
            // Whoever asked may have gone.
            let _ = waiter.send(result);
        }
    }

    fn report(&self, told: pintle_core::engine::effect::Report) {
        let record = report::tell(told, &self.inner.mask_key);
        if let (Some(record), Ok(cluster)) = (record, self.cluster()) {
            self.spawn(|_| async move { report::write(&cluster, record).await });
        }
    }

    /// Waits until the store has written everything it was given, and what is under way has ended or `limit` has
    /// passed.
    pub async fn drain(&self, limit: std::time::Duration) {
        let deadline = tokio::time::Instant::now() + limit;
        let _ = tokio::time::timeout_at(deadline, self.inner.tasks.idle()).await;
        let (done, wait) = oneshot::channel();
        if self.inner.writer.send(StoreJob::Flush(done)).await.is_ok() {
            let _ = tokio::time::timeout_at(deadline + limit, wait).await;
        }
    }

    /// Ends the tasks that live as long as the pipeline, and that hold it: only then is the store closed and its lock
    /// free for a new start in the same process.
    pub async fn close(&self) {
        *lock(&self.inner.watches) = watch::Watches::default();
        let _ = self.inner.writer.send(StoreJob::Close).await;
    }

    /// The client of the cluster, if there is one.
    pub fn cluster(&self) -> Result<Cluster, Problem> {
        read(&self.inner.cluster.client).clone().ok_or_else(|| {
            Problem::new(pintle_model::Reason::ClusterUnreachable, "the cluster has not been reached yet")
        })
    }

    /// The kinds of the cluster, as last discovered or as stored.
    pub fn discovery(&self) -> Option<Arc<Discovery>> {
        read(&self.inner.discovery).clone()
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// The git sources.
    pub fn sources(&self) -> &Sources {
        &self.inner.sources
    }

    /// Identity of the agent.
    pub fn identity(&self) -> &Identity {
        &self.inner.identity
    }

    /// Key for masks of secret values.
    pub fn mask_key(&self) -> &[u8] {
        &self.inner.mask_key
    }

    /// The way into the loop.
    pub fn sender(&self) -> mpsc::Sender<Message> {
        self.inner.sender.clone()
    }

    /// Reads something of the state.
    pub async fn query<T: Send + 'static>(
        &self,
        read: impl FnOnce(&pintle_core::engine::State, pintle_core::engine::Now) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let (sender, receiver) = oneshot::channel();
        let gone = || Problem::new(pintle_model::Reason::Terminated, "the agent is stopping");
        let query = Box::new(move |state: &pintle_core::engine::State, now: pintle_core::engine::Now| {
            let _ = sender.send(read(state, now));
        });
        self.inner.sender.send(Message::Query(query)).await.map_err(|_| gone())?;
        receiver.await.map_err(|_| gone())
    }

    /// Finds the kubeconfig, as a connect would.
    pub async fn find_kubeconfig(&self) -> Result<crate::cluster::Found, Problem> {
        crate::cluster::find_kubeconfig(&self.inner.cluster.setting).await
    }

    /// Version of the API server, as it said at the last connect.
    pub fn cluster_version(&self) -> String {
        read(&self.inner.cluster.version).clone()
    }

    async fn send(&self, event: Event) {
        // The runtime is gone: the process is ending.
        let _ = self.inner.sender.send(Message::Event(event)).await;
    }

    fn spawn<F>(&self, work: impl FnOnce(Self) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let guard = self.inner.tasks.enter();
        let future = work(self.clone());
        tokio::spawn(async move {
            let _guard = guard;
            future.await;
        });
    }

    fn store_job(&self, job: StoreJob) {
        if let Err(error) = self.inner.writer.try_send(job) {
            // The queue holds more jobs than the engine can have under way; should it be full after all, the jobs
            // must stay in order, so waiting is done by a task that keeps the order by being the only one.
            let writer = self.inner.writer.clone();
            let job = match error {
                mpsc::error::TrySendError::Full(job) | mpsc::error::TrySendError::Closed(job) => job,
            };
            self.spawn(|_| async move {
                let _ = writer.send(job).await;
            });
        }
    }

    /// The one task that writes the store, in order.
    async fn write_store(self, mut jobs: mpsc::Receiver<StoreJob>) {
        while let Some(job) = jobs.recv().await {
            match job {
                StoreJob::Commit { ticket, writes } => {
                    let result = self.commit(writes).await;
                    crash::point("committed");
                    self.send(Event::Committed { ticket, result }).await;
                }
                StoreJob::Render { render, payloads, done } => {
                    let store = self.inner.store.clone();
                    let result = blocking(move || records::save_render(&store, &render, &payloads)).await;
                    let _ = done.send(result);
                }
                StoreJob::Flush(done) => {
                    let _ = done.send(());
                }
                StoreJob::Close => return,
            }
        }
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<(), Problem> {
        let store = self.inner.store.clone();
        let collect = writes.contains(&Write::Collect);
        blocking(move || {
            let batch = records::batch(&store, &writes)?;
            store.commit(batch)?;
            if collect {
                let keep = records::manifests_in_use(&store)?;
                store.collect_blobs(&keep)?;
                // The end of an operation: the only moment at which an export is worth its bytes. The commit itself
                // is on disk; an export that fails is told and tried with the next operation.
                if let Err(problem) = store.export() {
                    tracing::warn!("the store was not exported: {problem}");
                }
            }
            Ok(())
        })
        .await
    }
}

/// Runs blocking work off the async threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            Err(Problem::new(pintle_model::Reason::Internal, format!("a worker ended early: {error}")))
        }
    }
}

/// A lock whose holder panicked is still a lock: the data behind it is replaced whole, never half.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn read<T>(slot: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    slot.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn write<T>(slot: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    slot.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Counts tasks under way, so that a shutdown can wait for them.
mod tracker {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    #[derive(Default, Clone)]
    pub struct Tracker(Arc<Shared>);

    #[derive(Default)]
    struct Shared {
        count: AtomicUsize,
        idle: Notify,
    }

    pub struct Guard(Arc<Shared>);

    impl Tracker {
        pub fn enter(&self) -> Guard {
            self.0.count.fetch_add(1, Ordering::SeqCst);
            Guard(self.0.clone())
        }

        pub async fn idle(&self) {
            loop {
                let notified = self.0.idle.notified();
                if self.0.count.load(Ordering::SeqCst) == 0 {
                    return;
                }
                notified.await;
            }
        }
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
                self.0.idle.notify_waiters();
            }
        }
    }
}
