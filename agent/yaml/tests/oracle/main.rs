//! Differences from sigs.k8s.io/yaml: none may be left, in what is read, in what is refused and in what is written.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::disallowed_methods, reason = "the reference is a process of its own")]

mod client;
mod generate;
mod scalars;
mod texts;

use generate::Random;
use pintle_yaml::{Limits, Resolver, document, documents_as, to_json, to_json_as, to_string};
use serde_json::{Value, json};

const LIMITS: Limits =
    Limits { max_bytes: 10_000_000, max_documents: 1000, max_depth: 500, max_nodes: 3_000_000 };

/// Always the same documents, unless PINTLE_YAML_SEED asks for others.
fn seeded(seed: u64) -> Random {
    let more = std::env::var("PINTLE_YAML_SEED").ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    Random::new(seed.wrapping_add(more.wrapping_mul(1_000_003)))
}

/// What we read, and whether keys that Go tells apart become one in JSON, whose order is then Go's secret.
fn read(text: &str, strict: bool) -> (Option<Value>, bool) {
    let mut warnings = Vec::new();
    let value = match document(text.as_bytes(), &LIMITS) {
        Err(_) => None,
        Ok(None) => Some(Value::Null),
        Ok(Some(root)) => to_json(&root, &mut warnings, strict).ok(),
    };
    (value, strict && !warnings.is_empty())
}

fn equal(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => ours == theirs,
    }
}

/// Reads every text in both modes and compares.
///
/// Left out: a text with two byte order marks, after which go-yaml drops the first character of further lines.
fn compare(texts: &[String]) {
    let texts: Vec<&String> = texts.iter().filter(|text| text.matches('\u{feff}').count() < 2).collect();
    let requests = texts
        .iter()
        .flat_map(|text| {
            [false, true].map(|strict| json!({"op": "yaml.read", "text": text, "strict": strict}).to_string())
        })
        .collect();
    let answers = client::ask(requests);
    let mut differences = Vec::new();
    let mut refused = 0;
    for (text, theirs) in texts.iter().zip(answers.chunks(2)) {
        let (strict, ambiguous) = read(text, true);
        for (mode, ours, theirs) in
            [("plain", read(text, false).0, &theirs[0]), ("strict", strict, &theirs[1])]
        {
            refused += usize::from(theirs.is_none());
            let same = match (&ours, theirs) {
                (None, None) => true,
                (Some(a), Some(b)) => ambiguous || equal(a, b),
                _ => false,
            };
            if !same {
                let show = |value: Option<&Value>| value.map_or("an error".to_owned(), ToString::to_string);
                differences.push(format!(
                    "{mode}, {text:?}\n  ours:   {}\n  theirs: {}",
                    show(ours.as_ref()),
                    show(theirs.as_ref())
                ));
            }
        }
    }
    let total = texts.len();
    assert!(
        differences.is_empty(),
        "{} differences in {total} texts ({refused} refusals):\n{}",
        differences.len(),
        differences.iter().take(40).cloned().collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn scalars_have_the_same_type_wherever_they_stand() {
    let mut texts = Vec::new();
    for scalar in scalars::SCALARS {
        texts.push(format!("{scalar}\n"));
        texts.push(format!("a: {scalar}\n"));
        texts.push(format!("- {scalar}\n- {scalar} # c\n"));
        texts.push(format!("{scalar}: 1\n"));
        texts.push(format!("[{scalar}, {{b: {scalar}}}]\n"));
        texts.push(format!("a: \"{scalar}\"\nb: '{scalar}'\n"));
    }
    for tag in scalars::TAGS {
        for text in scalars::TAGGED {
            texts.push(format!("a: {tag} {text}\n"));
        }
    }
    assert!(texts.len() >= 1000);
    compare(&texts);
}

#[test]
fn each_rule_of_the_grammar_is_the_same() {
    let mut texts: Vec<String> = texts::TEXTS.iter().map(|text| (*text).to_owned()).collect();
    assert!(texts.len() >= 300, "{}", texts.len());
    texts.extend(texts::long_ones());
    // The same with the line ends of Windows, and without the last one.
    let windows: Vec<String> = texts.iter().map(|text| text.replace('\n', "\r\n")).collect();
    let cut: Vec<String> = texts.iter().map(|text| text.trim_end_matches('\n').to_owned()).collect();
    texts.extend(windows);
    texts.extend(cut);
    compare(&texts);
}

#[test]
fn generated_documents_read_the_same() {
    let mut random = seeded(20_240_117);
    let texts: Vec<String> = (0..12_000).map(|_| random.document()).collect();
    compare(&texts);
}

#[test]
fn mutated_documents_read_the_same() {
    let mut random = seeded(7_919);
    let texts: Vec<String> = (0..30_000)
        .map(|number| {
            let mut text = match number % 3 {
                0 => texts::TEXTS[random.below(texts::TEXTS.len())].to_owned(),
                _ => random.document(),
            };
            for _ in 0..=random.below(4) {
                text = random.mutate(&text);
            }
            text
        })
        .collect();
    compare(&texts);
}

/// `1`, `09` and `0x` stand in a circle in Go's order of keys, whose outcome is then random: the lines are the same.
fn is_a_circle(ours: &str, theirs: &str) -> bool {
    let lines = |text: &str| {
        let mut lines: Vec<String> =
            text.lines().map(|line| line.trim_start_matches([' ', '-', '?', ':']).to_owned()).collect();
        lines.sort();
        lines
    };
    ours.contains('0') && lines(ours) == lines(theirs)
}

/// As [`compare`], with the rules of kustomize.
fn compare_v3(texts: &[String]) {
    let requests = texts.iter().map(|text| json!({"op": "yaml.read3", "text": text}).to_string()).collect();
    let mut differences = Vec::new();
    for (text, theirs) in texts.iter().zip(client::ask(requests)) {
        let whole = documents_as(text.as_bytes(), Resolver::V3, &LIMITS);
        // What stands behind a first document is refused by us and dropped by kustomize.
        if whole.is_err() && document(text.as_bytes(), &LIMITS).is_ok() {
            continue;
        }
        let ours = match whole.as_deref() {
            Err(_) => None,
            Ok([]) => Some(Value::Null),
            Ok([first, ..]) => to_json_as(&first.root, Resolver::V3, &mut Vec::new(), false).ok(),
        };
        let same = match (&ours, &theirs) {
            (None, None) => true,
            (Some(a), Some(b)) => equal(a, b),
            _ => false,
        };
        if !same {
            differences.push(format!("{text:?}\n  ours:   {ours:?}\n  theirs: {theirs:?}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differences in {} texts:\n{}",
        differences.len(),
        texts.len(),
        differences.iter().take(40).cloned().collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn kustomize_reads_the_same() {
    let mut random = seeded(31_337);
    let mut texts: Vec<String> = texts::TEXTS.iter().map(|text| (*text).to_owned()).collect();
    for scalar in scalars::SCALARS {
        texts.push(format!("a: {scalar}\n"));
        texts.push(format!("{scalar}: 1\n"));
        texts.push(format!("[{scalar}]\n"));
    }
    for tag in scalars::TAGS {
        texts.extend(scalars::TAGGED.iter().map(|text| format!("a: {tag} {text}\n")));
    }
    texts.extend((0..5000).map(|_| random.document()));
    texts.retain(|text| !text.contains("---") && !text.contains("..."));
    compare_v3(&texts);
}

/// Real files, where PINTLE_YAML_DIR names a directory of them; each part between separators on its own.
#[test]
fn files_of_a_directory_read_the_same() {
    let Ok(root) = std::env::var("PINTLE_YAML_DIR") else { return };
    let mut texts = Vec::new();
    let mut directories = vec![std::path::PathBuf::from(root)];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
            if path.is_dir() && !path.is_symlink() {
                directories.push(path);
            } else if yaml && let Ok(text) = std::fs::read_to_string(&path) {
                texts.extend(text.split("\n---").map(ToOwned::to_owned));
            }
        }
    }
    assert!(!texts.is_empty());
    compare(&texts);
    let values: Vec<Value> = texts.iter().filter_map(|text| read(text, false).0).collect();
    compare_written(&values);
}

#[test]
fn values_are_written_byte_for_byte() {
    let mut random = seeded(104_729);
    let mut values: Vec<Value> = (0..20_000).map(|_| random.value(4)).collect();
    for scalar in scalars::SCALARS.iter().chain(scalars::TAGGED).chain(texts::TEXTS) {
        values.push(json!(scalar));
        values.push(json!({"a": [scalar], *scalar: {"b": scalar}}));
    }
    compare_written(&values);
}

fn compare_written(values: &[Value]) {
    let requests = values
        .iter()
        .map(|value| format!("{{\"op\":\"yaml.write\",\"value\":{}}}", client::json(value)))
        .collect();
    let answers = client::ask(requests);
    let mut differences = Vec::new();
    for (value, theirs) in values.iter().zip(&answers) {
        let ours = to_string(value);
        // The reference refuses names that are longer than a key of JSON may be in YAML.
        if let Some(theirs) = theirs.as_ref().and_then(Value::as_str)
            && ours != theirs
            && !is_a_circle(&ours, theirs)
        {
            differences.push(format!("{value}\n  ours:   {ours:?}\n  theirs: {theirs:?}"));
        }
    }
    let refused = answers.iter().filter(|answer| answer.is_none()).count();
    assert!(refused * 50 < values.len(), "{refused} of {} refused", values.len());
    assert!(
        differences.is_empty(),
        "{} differences in {} values:\n{}",
        differences.len(),
        values.len(),
        differences.iter().take(30).cloned().collect::<Vec<_>>().join("\n")
    );
}
