//! Applications from folders of files.
//!
//! A file that cannot be read or parsed keeps its own applications as they were; a folder that is unreadable, or empty
//! where it was not, keeps the last good set. What vanished is not reported: the engine sees that it is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_core::engine::event::FoundApp;
use pintle_core::engine::record::Place;
use pintle_model::application::{Application, Context, RawApplication, validate};
use pintle_model::{AppKey, Object, Origin, Problem, Reason, limits};
use pintle_yaml::{Limits, Node};

const LIMITS: Limits = Limits {
    max_bytes: limits::YAML_FILE_MAX_BYTES,
    max_documents: limits::YAML_MAX_DOCUMENTS,
    max_depth: 100,
    max_nodes: limits::YAML_MAX_NODES,
};

/// What stands in the folders now.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Valid applications.
    pub apps: Vec<FoundApp>,
    /// Applications that stay as they were, because their place cannot be read now.
    pub held: BTreeSet<AppKey>,
    /// What is wrong, by application where it is known.
    pub problems: Vec<(Option<AppKey>, Problem)>,
    /// Which file holds which applications, for the next time.
    pub files: BTreeMap<PathBuf, BTreeSet<AppKey>>,
}

/// Reads the folders. `before` says what each file held the last time.
pub fn load(folders: &[PathBuf], before: &BTreeMap<PathBuf, BTreeSet<AppKey>>, context: &Context) -> Loaded {
    let mut loaded = Loaded::default();
    for folder in folders {
        load_folder(folder, before, context, &mut loaded);
    }
    loaded
}

fn load_folder(
    folder: &Path,
    before: &BTreeMap<PathBuf, BTreeSet<AppKey>>,
    context: &Context,
    loaded: &mut Loaded,
) {
    let known: Vec<(&PathBuf, &BTreeSet<AppKey>)> =
        before.iter().filter(|(file, apps)| file.starts_with(folder) && !apps.is_empty()).collect();
    let files = match files_in(folder) {
        Ok(files) if files.is_empty() && !known.is_empty() => {
            keep(&known, loaded);
            let text = format!(
                "the folder of applications {} is empty; its {} applications are kept as they were",
                folder.display(),
                known.iter().map(|(_, apps)| apps.len()).sum::<usize>()
            );
            loaded.problems.push((None, Problem::new(Reason::InvalidConfig, text)));
            return;
        }
        Ok(files) => files,
        // A folder that was never there holds nothing.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && known.is_empty() => return,
        Err(error) => {
            keep(&known, loaded);
            let text = format!(
                "the folder of applications {} cannot be read: {error}; its applications are kept as they were",
                folder.display()
            );
            loaded.problems.push((None, Problem::new(Reason::InvalidConfig, text)));
            return;
        }
    };
    for file in files {
        load_file(&file, before.get(&file), context, loaded);
    }
}

fn keep(known: &[(&PathBuf, &BTreeSet<AppKey>)], loaded: &mut Loaded) {
    for (file, apps) in known {
        loaded.held.extend(apps.iter().cloned());
        loaded.files.insert((*file).clone(), (*apps).clone());
    }
}

fn files_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let ending =
            path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if matches!(ending.as_str(), "yaml" | "yml" | "json") && !hidden && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn load_file(file: &Path, before: Option<&BTreeSet<AppKey>>, context: &Context, loaded: &mut Loaded) {
    let name: Arc<str> = file.display().to_string().into();
    let content = std::fs::read(file).map_err(|error| format!("{name}: cannot be read: {error}"));
    let documents = content.and_then(|content| {
        pintle_yaml::documents(&content, &LIMITS).map_err(|error| format!("{name}:{error}"))
    });
    let documents = match documents {
        Ok(documents) => documents,
        Err(text) => {
            let held = before.cloned().unwrap_or_default();
            let text = format!("{text}; its {} applications are kept as they were", held.len());
            loaded.held.extend(held.iter().cloned());
            loaded.files.insert(file.to_owned(), held);
            loaded.problems.push((None, Problem::new(Reason::InvalidSpecError, text)));
            return;
        }
    };
    let mut keys = BTreeSet::new();
    for document in documents {
        let origin = Origin { file: name.clone(), line: document.line };
        match read(&document.root, &origin, context) {
            Ok(found) => add(found, before, &mut keys, loaded),
            Err((key, text)) => {
                let known = key.clone().filter(|key| before.is_some_and(|held| held.contains(key)));
                if let Some(key) = &known {
                    loaded.held.insert(key.clone());
                    keys.insert(key.clone());
                }
                loaded.problems.push((known, Problem::new(Reason::InvalidSpecError, text)));
            }
        }
    }
    loaded.files.insert(file.to_owned(), keys);
}

/// The known one of two with one key stays; both places are named.
fn add(found: FoundApp, before: Option<&BTreeSet<AppKey>>, keys: &mut BTreeSet<AppKey>, loaded: &mut Loaded) {
    let key = found.spec.key.clone();
    let twin = loaded.apps.iter().position(|app| app.spec.key == key);
    let Some(twin) = twin else {
        keys.insert(key);
        loaded.apps.push(found);
        return;
    };
    let newcomer_was_known = before.is_some_and(|held| held.contains(&key));
    let twin_was_known = loaded.files.values().any(|held| held.contains(&key));
    let (stays, goes) = if newcomer_was_known && !twin_was_known {
        let old = std::mem::replace(&mut loaded.apps[twin], found);
        keys.insert(key.clone());
        (loaded.apps[twin].place.to_string(), old.place.to_string())
    } else {
        (loaded.apps[twin].place.to_string(), found.place.to_string())
    };
    let text = format!("application {key} stands at {stays} and at {goes}; the one at {stays} counts");
    loaded.problems.push((Some(key), Problem::new(Reason::InvalidSpecError, text)));
}

/// One document. An error names the application where its name can be read.
fn read(node: &Node, origin: &Origin, context: &Context) -> Result<FoundApp, (Option<AppKey>, String)> {
    let kind = node.get("kind").and_then(Node::text).unwrap_or_default();
    let key = node.get("metadata").and_then(|metadata| {
        let name = metadata.get("name")?.text()?;
        let namespace = metadata.get("namespace").and_then(Node::text).unwrap_or("argocd");
        Some(AppKey::new(namespace, name))
    });
    if kind == "AppProject" {
        let text = format!(
            "{origin}: AppProject: projects are not supported by this version; the project `default` always exists"
        );
        return Err((None, text));
    }
    if kind != "Application" {
        return Err((
            None,
            format!("{origin}: kind {kind:?} is no Application; only Applications belong here"),
        ));
    }
    let (raw, notes) = pintle_yaml::from_node_with_notes::<RawApplication>(node)
        .map_err(|error| (key.clone(), format!("{}:{error}", origin.file)))?;
    for note in notes.iter().filter(|note| note.path.ends_with("targetRevision") && note.text != note.became)
    {
        tracing::warn!(
            "{}:{}: {}: {} is read as {:?}; put it in quotes",
            origin.file,
            note.line,
            note.path,
            note.text,
            note.became
        );
    }
    let spec = validate(raw, context).map_err(|errors| {
        let texts: Vec<String> = errors
            .iter()
            .map(|error| {
                let line = line_of(node, &error.field).unwrap_or(origin.line);
                format!("{}:{line}: {error}", origin.file)
            })
            .collect();
        (key.clone(), texts.join("; "))
    })?;
    let mut warnings = Vec::new();
    let raw = pintle_yaml::to_json(node, &mut warnings, false)
        .map_err(|error| (key, format!("{}:{error}", origin.file)))?;
    Ok(FoundApp { spec: Arc::new(spec), raw, place: Place::File(origin.clone()) })
}

/// The line of a field such as `spec.source.path`, or of its nearest parent that stands there.
fn line_of(node: &Node, field: &str) -> Option<u32> {
    let mut at = node;
    let mut line = None;
    for part in field.split(['.', '[']) {
        let Some(next) = at.get(part.trim_end_matches(']')) else { break };
        at = next;
        line = Some(at.span.line);
    }
    line
}

/// A child Application that was found in a render.
pub fn application_from_object(object: &Object, context: &Context) -> Result<Application, Problem> {
    let text = serde_json::to_vec(&object.to_value()).unwrap_or_default();
    let documents = pintle_yaml::documents(&text, &LIMITS)
        .map_err(|error| Problem::new(Reason::InvalidSpecError, error.message))?;
    let Some(document) = documents.first() else {
        return Err(Problem::new(Reason::InvalidSpecError, "the Application is empty"));
    };
    let raw: RawApplication = pintle_yaml::from_node(&document.root).map_err(|error| {
        Problem::new(
            Reason::InvalidSpecError,
            format!("Application {}: {}: {}", object.name(), error.path, error.message),
        )
    })?;
    validate(raw, context).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Problem::new(Reason::InvalidSpecError, format!("Application {}: {}", object.name(), texts.join("; ")))
    })
}
