//! Compares builds with the reference: objects, their order, the text, and errors where it has errors.
//!
//! The cases are those of `corpus/*.txt` and those that `generated.rs` makes of the tables. One case alone, with both
//! results printed: `CASE='part of its name' cargo test -p pintle-kustomize --test oracle -- --nocapture`.

#![allow(clippy::print_stdout, reason = "counts and differences are told")]
#![allow(clippy::disallowed_methods, reason = "it starts the oracle, and reads the corpus")]

#[path = "oracle/client.rs"]
mod client;
#[path = "oracle/corpus.rs"]
mod corpus;
#[path = "oracle/generated.rs"]
mod generated;

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_kustomize::{Built, Files, Options, Outcome, build, to_yaml};
use serde_json::{Value, json};

/// A tree of files to build.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// Unique.
    pub name: String,
    /// Texts by path.
    pub files: BTreeMap<String, String>,
    /// The folder to build.
    pub path: String,
    /// Without load restrictions.
    pub unrestricted: bool,
}

/// Cases where this crate differs on purpose, by the start of their name, with the reason.
const KNOWN_DIFFERENCES: &[(&str, &str)] = &[
    (
        "patch strategic: replace the object",
        "`$patch: replace` at the root of a patch: the reference leaves the object as it is",
    ),
    ("known: comments in a text", "comments inside of a text that a replacement changes are lost"),
    ("known: flow style in a text", "a text that a replacement changes is written in block style"),
    ("known: images with only a new name", "never reached: the reference has no overrides"),
];

struct Tree<'c>(&'c BTreeMap<String, String>);

impl Files for Tree<'_> {
    fn read(&self, path: &str) -> Option<Arc<[u8]>> {
        self.0.get(path).map(|text| text.as_bytes().into())
    }

    fn is_dir(&self, path: &str) -> bool {
        path.is_empty()
            || self.0.keys().any(|file| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    }

    fn list(&self, path: &str) -> Vec<String> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let names = self.0.keys().filter_map(|file| file.strip_prefix(&prefix));
        names.filter(|name| !name.contains('/')).map(str::to_owned).collect()
    }
}

fn ours(case: &Case) -> Result<Built, String> {
    let options = Options {
        load_restrictions: !case.unrestricted,
        version: "(devel)".to_owned(),
        ..Options::default()
    };
    match build(&Tree(&case.files), &case.path, &options, &[]) {
        Ok(Outcome::Done(built)) => Ok(built),
        Ok(Outcome::Needs(needs)) => Err(format!("needs {needs:?}")),
        Err(error) => Err(error.to_string()),
    }
}

/// What is different, if anything is.
fn difference(ours: &Result<Built, String>, theirs: &Value) -> Option<String> {
    let error = theirs["error"].as_str();
    match (ours, error) {
        (Err(_), Some(_)) => None,
        (Err(ours), None) => Some(format!("only we fail: {ours}\n--- reference\n{}", text_of(theirs))),
        (Ok(built), Some(error)) => {
            Some(format!("only the reference fails: {error}\n--- ours\n{}", to_yaml(built)))
        }
        (Ok(built), None) => {
            let objects: Vec<&Value> = built.objects.iter().map(|object| &object.value).collect();
            let text = to_yaml(built);
            if json!(objects) == theirs["ok"]["objects"] && text == text_of(theirs) {
                return None;
            }
            Some(format!("--- ours\n{text}--- reference\n{}", text_of(theirs)))
        }
    }
}

fn text_of(answer: &Value) -> &str {
    answer["ok"]["text"].as_str().unwrap_or_default()
}

#[test]
fn builds_are_those_of_the_reference() {
    let mut cases = corpus::cases();
    let written = cases.len();
    cases.extend(generated::cases());
    let wanted = std::env::var("CASE").ok();
    if let Some(wanted) = &wanted {
        cases.retain(|case| case.name.contains(wanted.as_str()));
    }
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    assert!(twice.is_empty(), "names that stand twice: {twice:?}");

    let requests: Vec<Value> = cases
        .iter()
        .map(|case| {
            let restrictions = if case.unrestricted { "none" } else { "" };
            json!({"op": "kustomize.build", "files": case.files, "path": case.path, "loadRestrictions": restrictions})
        })
        .collect();
    let answers = client::ask(&requests);
    let (mut equal, mut errors, mut failed, mut known) = (0, 0, Vec::new(), Vec::new());
    for (case, answer) in cases.iter().zip(&answers) {
        let ours = ours(case);
        if wanted.is_some() {
            let shown = ours.as_ref().map(to_yaml);
            println!(
                "=== {}\n--- ours\n{}",
                case.name,
                shown.unwrap_or_else(|error| format!("error: {error}\n"))
            );
            println!("--- reference\n{}", answer["error"].as_str().unwrap_or(text_of(answer)));
        }
        let reason =
            KNOWN_DIFFERENCES.iter().find(|(name, _)| case.name.starts_with(name)).map(|(_, reason)| *reason);
        match (difference(&ours, answer), reason) {
            (None, _) => {
                equal += 1;
                errors += usize::from(ours.is_err());
            }
            (Some(_), Some(reason)) => known.push(format!("{}: {reason}", case.name)),
            (Some(difference), None) => failed.push(format!("=== {}\n{difference}", case.name)),
        }
    }
    println!(
        "{equal} of {} builds equal the reference ({written} written, {errors} of them errors on both sides), {} known \
         differences",
        cases.len(),
        known.len()
    );
    for line in &known {
        println!("known difference: {line}");
    }
    assert!(wanted.is_some() || cases.len() >= 600, "the corpus shrank to {}", cases.len());
    assert!(failed.is_empty(), "{} differ:\n{}", failed.len(), failed.join("\n"));
}
