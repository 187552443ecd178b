//! What was measured, as a table and as target/bench/results.json.

use std::path::PathBuf;

use serde_json::{Value, json};

/// One measured figure.
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    limits: Limits,
    peers: Value,
}

/// What is asked of a figure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// At most this, else the run fails. `None`: told, not judged.
    pub target: Option<f64>,
    /// What the design wants in the end.
    pub goal: Option<f64>,
}

impl Limits {
    pub fn at_most(target: f64, goal: f64) -> Self {
        Self { target: Some(target), goal: Some(goal) }
    }

    pub fn goal(goal: f64) -> Self {
        Self { target: None, goal: Some(goal) }
    }
}

/// All figures of a run.
#[derive(Default)]
pub struct Figures {
    list: Vec<Figure>,
}

impl Figures {
    /// Adds a figure that is only told.
    pub fn tell(&mut self, name: &str, value: f64, unit: &'static str) {
        self.add(name, value, unit, Limits::default(), json!({}));
    }

    /// Adds a figure. `peers` are other tools' figures, measured here or on the same kind of machine.
    pub fn add(&mut self, name: &str, value: f64, unit: &'static str, limits: Limits, peers: Value) {
        let figure = Figure { name: name.to_owned(), value, unit, limits, peers };
        say(&line(&figure));
        self.list.push(figure);
    }

    /// Prints the table and writes the file. Tells whether every target was met.
    pub fn finish(self) -> bool {
        say("");
        say(&format!("{:<52} {:>10} {:<9} {:>7} {:>7}", "figure", "value", "unit", "target", "goal"));
        for figure in &self.list {
            say(&line(figure));
        }
        let list: Vec<Value> = self.list.iter().map(as_json).collect();
        let folder = target().join("bench");
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("results.json");
        let text = serde_json::to_string_pretty(&list).expect("JSON");
        std::fs::write(&file, text + "\n").expect("a file");
        say(&format!("\nwritten to {}", file.display()));
        self.list.iter().all(Figure::is_ok)
    }
}

impl Figure {
    fn is_ok(&self) -> bool {
        self.limits.target.is_none_or(|target| self.value <= target)
    }
}

fn line(figure: &Figure) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), round);
    let mark = match (figure.limits.target, figure.is_ok()) {
        (None, _) => "",
        (Some(_), true) => "ok",
        (Some(_), false) => "MISSED",
    };
    let peers = match figure.peers.as_object() {
        Some(peers) if !peers.is_empty() => {
            let list: Vec<String> = peers.iter().map(|(name, value)| format!("{name} {value}")).collect();
            format!(" ({})", list.join(", "))
        }
        _ => String::new(),
    };
    format!(
        "{:<52} {:>10} {:<9} {:>7} {:>7} {mark}{peers}",
        figure.name,
        round(figure.value),
        figure.unit,
        number(figure.limits.target),
        number(figure.limits.goal)
    )
}

fn as_json(figure: &Figure) -> Value {
    json!({
        "name": figure.name,
        "value": (figure.value * 1000.0).round() / 1000.0,
        "unit": figure.unit,
        "target": figure.limits.target,
        "goal": figure.limits.goal,
        "ok": figure.is_ok(),
        "goalMet": figure.limits.goal.map(|goal| figure.value <= goal),
        "peers": figure.peers,
    })
}

fn round(value: f64) -> String {
    if value.fract() == 0.0 || value >= 1_000.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Cargo's target folder: the binary lies in `<target>/release/`.
fn target() -> PathBuf {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_pintle"));
    binary.ancestors().nth(2).expect("a target folder").to_owned()
}

/// A line on the terminal.
pub fn say(text: &str) {
    println!("{text}");
}

/// The value in the middle.
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50.0)
}

/// The smallest value that is not below `percent` of all.
pub fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[index.clamp(1, sorted.len()) - 1]
}

/// The smallest value.
pub fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
