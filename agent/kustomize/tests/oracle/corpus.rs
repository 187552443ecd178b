//! The written cases: `corpus/*.txt`.
//!
//! A case begins with `=== name`, and ` | path=folder` or ` | unrestricted` where needed. A file of it begins with
//! `-- path`; `-- path < fixture` is a file with the content of a fixture, which begins with `=== fixture name`.
//!
//! `=== name | each=file` makes a case of every text that begins with `++ variant`: the text is that file's content. Where
//! the file is `kustomization.yaml`, `resources: [a.yaml]` stands before it unless it has resources itself.

use std::collections::BTreeMap;
use std::path::Path;

use super::Case;

/// All cases of all files.
pub fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("the corpus").map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let texts: Vec<String> =
        paths.iter().map(|path| std::fs::read_to_string(path).expect("a text")).collect();
    let mut fixtures = BTreeMap::new();
    let mut blocks = Vec::new();
    for text in &texts {
        for block in split(text, "=== ") {
            match block.0.strip_prefix("fixture ") {
                Some(name) => {
                    fixtures.insert(name.to_owned(), block.1);
                }
                None => blocks.push(block),
            }
        }
    }
    blocks.into_iter().flat_map(|(head, body)| block(&head, &body, &fixtures)).collect()
}

fn block(head: &str, body: &str, fixtures: &BTreeMap<String, String>) -> Vec<Case> {
    let Some((name, file)) = head.split_once(" | each=") else { return vec![case(head, body, fixtures)] };
    let (file, options) =
        file.split_once(" | ").map_or((file, String::new()), |(file, rest)| (file, format!(" | {rest}")));
    let files = body.split("++ ").next().unwrap_or_default();
    let common = case(&format!("{name}{options}"), files, fixtures);
    split(body, "++ ")
        .into_iter()
        .map(|(variant, text)| {
            let mut case = common.clone();
            case.name = format!("{name}: {variant}");
            let alone =
                file != "kustomization.yaml" || text.lines().any(|line| line.starts_with("resources:"));
            let text = if alone { text } else { format!("resources: [a.yaml]\n{text}") };
            case.files.insert(file.to_owned(), text);
            case
        })
        .collect()
}

fn case(head: &str, body: &str, fixtures: &BTreeMap<String, String>) -> Case {
    let mut parts = head.split(" | ");
    let mut case = Case { name: parts.next().unwrap_or_default().to_owned(), ..Case::default() };
    for part in parts {
        match part.split_once('=') {
            Some(("path", path)) => path.clone_into(&mut case.path),
            None if part == "unrestricted" => case.unrestricted = true,
            _ => panic!("{head}: {part}"),
        }
    }
    for (file, text) in split(body, "-- ") {
        match file.split_once(" < ") {
            Some((file, fixture)) => {
                let text = fixtures.get(fixture).unwrap_or_else(|| panic!("{head}: no fixture {fixture}"));
                case.files.insert(file.to_owned(), text.clone());
            }
            None => {
                case.files.insert(file, text);
            }
        }
    }
    case
}

/// Blocks that begin with a line of this mark.
fn split(text: &str, mark: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        match line.strip_prefix(mark) {
            Some(head) => blocks.push((head.trim_end().to_owned(), String::new())),
            None => {
                if let Some((_, body)) = blocks.last_mut() {
                    body.push_str(line);
                }
            }
        }
    }
    blocks
}
