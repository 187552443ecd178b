//! The runtime: owns the state, runs `step` for every event, hands effects to the pipeline, keeps time, answers
//! calls, and ends in order. The one place with a loop.
//!
//! One task owns the whole state. Regions of many applications are moved by one loop, since a step takes
//! microseconds and the World needs to see all of them; what takes time is done by the pipeline's tasks.

mod calls;
mod lifecycle;
mod settings;
mod views;

use std::time::Duration;

use pintle_core::engine::{self, Event, State};
use pintle_model::limits;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::pipeline::{Message, Pipeline};

pub use lifecycle::{OnceSummary, ShortLived, check_store, once, run, start_short_lived};
pub use settings::RunSettings;

/// How often an injected clock is looked at.
const CLOCK_CHECK: Duration = Duration::from_millis(50);
/// A busy loop answers the watchdog at least this often.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// What a loop needs beside the state.
pub struct Runtime {
    pub(crate) state: State,
    pub(crate) pipeline: Pipeline,
    pub(crate) clock: Clock,
    pub(crate) messages: mpsc::Receiver<Message>,
    pub(crate) apps: crate::runtime::settings::AppFolders,
    pub(crate) facts: views::Facts,
    /// End as soon as everything that can be done is done (`pintle once`).
    pub(crate) until_quiet: bool,
    /// End in order to be started anew.
    pub(crate) restart: bool,
}

impl Runtime {
    /// Runs until told to stop. Returns the last state, and whether it is to be started anew.
    pub(crate) async fn run(mut self) -> (State, bool) {
        self.load_apps();
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let due = engine::next_due(&self.state).map(|mono| self.clock.instant(mono));
            let sleep = wait_until(due, self.clock.is_injected());
            tokio::select! {
                message = self.messages.recv() => match message {
                    Some(Message::Stop) | None => break,
                    Some(Message::Restart) => {
                        self.restart = true;
                        break;
                    }
                    Some(message) => {
                        self.handle(message);
                        if self.restart {
                            break;
                        }
                    }
                },
                () = sleep => self.step(Event::Tick),
                _ = heartbeat.tick() => lifecycle::heartbeat(&self.state),
            }
            if self.until_quiet && self.state.is_quiet(self.clock.now()) {
                break;
            }
        }
        let again = self.restart;
        (self.stop().await, again)
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Event(event) => self.step(event),
            Message::Call(ask) => calls::call(self, ask),
            Message::Query(query) => query(&self.state, self.clock.now()),
            Message::Then(then) => then(self),
            Message::Reload => self.reload(),
            Message::Stop | Message::Restart => {}
        }
    }

    /// One event through the engine.
    pub(crate) fn step(&mut self, event: Event) {
        let effects = engine::step(&mut self.state, event, self.clock.now());
        for effect in effects {
            self.pipeline.execute(effect);
        }
    }

    /// The number of a request's answer; the engine's own tickets are others, since both count upwards from the
    /// same counter.
    pub(crate) fn next_ticket(&mut self) -> u64 {
        self.state.last_ticket += 1;
        self.state.last_ticket
    }

    /// Reads the configuration again: one that changed begins anew from the store, one that is refused leaves the old
    /// one in force and says so.
    fn reload(&mut self) {
        match self.apps.reload() {
            Ok(true) => self.restart = true,
            Ok(false) => {
                self.facts.refused = None;
                self.load_apps();
            }
            Err(problem) => {
                let text = format!("the new configuration is refused, the old one stays in force: {problem}");
                tracing::warn!("{text}");
                self.facts.refused = Some(text);
                self.load_apps();
            }
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
        self.pipeline.close().await;
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
