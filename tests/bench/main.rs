//! `make bench`: the release binary against a real API server and real git over HTTPS. Ratios within one run on one
//! machine are what counts; absolute times are those of this machine and of the API server in it.
//!
//! `BENCH_LARGE=1` takes 5,000 objects too. `BENCH_ROUNDS=N` takes the best of N first syncs (default 3).
//! `BENCH_QUICK=1` leaves out kubectl, and takes one first sync and one bare loop: for work on the agent.

#![allow(clippy::print_stdout, reason = "a benchmark prints a table")]

#[path = "../support/mod.rs"]
mod support;

mod figures;
mod held;
mod load;
mod process;
mod scene;
mod start;
mod sync;

use std::process::ExitCode;

use figures::{Figures, say};
use scene::Scene;

fn main() -> ExitCode {
    if cfg!(debug_assertions) && std::env::var_os("PINTLE_TEST_BINARY").is_none() {
        say("this build is not optimised: run `make bench`, or name a release binary in PINTLE_TEST_BINARY");
        return ExitCode::FAILURE;
    }
    let rounds = std::env::var("BENCH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let sizes: &[usize] = if std::env::var_os("BENCH_LARGE").is_some() { &[1_000, 5_000] } else { &[1_000] };
    let mut figures = Figures::default();
    for (index, count) in sizes.iter().enumerate() {
        say(&format!("{count} objects"));
        let scene = Scene::new(*count);
        let mut held = if std::env::var_os("BENCH_QUICK").is_some() {
            sync::first_sync(&scene, 1, &[16], false, &mut figures)
        } else {
            sync::first_sync(&scene, rounds, &sync::AT_ONCE, index == 0, &mut figures)
        };
        held::at_rest(&scene, &mut held, &mut figures);
        held::drift(&scene, &mut held, &mut figures);
        held::one_file(&scene, &mut held, &mut figures);
        held::a_minute(&scene, &mut held, &mut figures);
        start::offline(&scene, &mut held, &mut figures);
        start::once(&scene, &mut held, &mut figures);
    }
    start::size(&mut figures);
    if figures.finish() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
