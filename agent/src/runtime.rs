//! The runtime: owns the state, runs `step` for every event, hands effects to the pipeline, keeps time, answers
//! calls, and ends in order. The one place with a loop.
//!
//! One task owns the whole state. Regions of many applications are moved by one loop, since a step takes
//! microseconds and the World needs to see all of them; what takes time is done by the pipeline's tasks.

mod calls;
mod lifecycle;
mod settings;
mod views;

use std::path::PathBuf;
use std::time::Duration;

use pintle_core::engine::{self, Effect, Event, State};
use pintle_model::{Problem, limits};
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::pipeline::{Message, Pipeline};

pub use lifecycle::{OnceSummary, ShortLived, once, run, start_short_lived, start_observer};
pub use settings::RunSettings;

/// How often an injected clock is looked at.
const CLOCK_CHECK: Duration = Duration::from_millis(50);
/// A busy loop answers the watchdog at least this often.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// What a loop needs beside the state.
pub(crate) struct Runtime {
    pub(crate) state: State,
    pub(crate) pipeline: Pipeline,
    pub(crate) clock: Clock,
    pub(crate) messages: mpsc::Receiver<Message>,
    pub(crate) apps: crate::runtime::settings::AppFolders,
    pub(crate) facts: views::Facts,
    /// End as soon as everything that can be done is done (`pintle once`).
    pub(crate) until_quiet: bool,
}

impl Runtime {
    /// Runs until told to stop. Returns the last state, for a summary.
    pub(crate) async fn run(mut self) -> State {
        self.load_apps();
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let due = engine::next_due(&self.state).map(|mono| self.clock.instant(mono));
            let sleep = wait_until(due, self.clock.is_injected());
            tokio::select! {
                message = self.messages.recv() => match message {
                    Some(Message::Stop) | None => break,
                    Some(message) => self.handle(message),
                },
                () = sleep => self.step(Event::Tick),
                _ = heartbeat.tick() => lifecycle::heartbeat(&self.state, self.clock.now().wall),
            }
            if self.until_quiet && self.state.is_quiet(self.clock.now()) {
                break;
            }
        }
        self.stop().await
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Event(event) => self.step(event),
            Message::Call(call, reply) => calls::call(self, call, reply),
            Message::Query(query) => query(&self.state, self.clock.now()),
            Message::Reload => self.load_apps(),
            Message::Stop => {}
        }
    }

    /// One event through the engine.
    pub(crate) fn step(&mut self, event: Event) {
        let effects = engine::step(&mut self.state, event, self.clock.now());
        for effect in effects {
            self.pipeline.execute(effect);
        }
    }

    /// Reads the folders of applications.
    pub(crate) fn load_apps(&mut self) {
        let event = self.apps.load();
        self.step(event);
    }

    /// Starts nothing new, lets what is under way end, and writes what is not yet on disk.
    async fn stop(mut self) -> State {
        self.step(Event::Shutdown);
        lifecycle::stopping();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(15);
        let pipeline = self.pipeline.clone();
        let drain = pipeline.drain(Duration::from_secs(10));
        tokio::pin!(drain);
        loop {
            tokio::select! {
                () = &mut drain => break,
                message = self.messages.recv() => match message {
                    Some(message) => self.handle(message),
                    None => break,
                },
                () = tokio::time::sleep_until(deadline) => break,
            }
        }
        // Answers that arrived while the last jobs ended.
        while let Ok(message) = self.messages.try_recv() {
            self.handle(message);
        }
        self.state
    }
}

async fn wait_until(due: Option<tokio::time::Instant>, injected: bool) {
    let check = injected.then(|| tokio::time::Instant::now() + CLOCK_CHECK);
    match due.into_iter().chain(check).min() {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// A channel into the loop, bounded: a full one makes the senders wait.
pub(crate) fn channel() -> (mpsc::Sender<Message>, mpsc::Receiver<Message>) {
    mpsc::channel(limits::ENGINE_QUEUE)
}

/// Where the state of the agent lies, for messages.
pub(crate) fn store_path(settings: &RunSettings) -> PathBuf {
    settings.config.store.path.clone()
}

/// A result whose failure ends the process.
pub type Outcome<T> = Result<T, Problem>;
