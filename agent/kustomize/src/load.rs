//! Files: where they are looked for, what may be read from where, and what lies in other places.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::error::Error;
use crate::remote;
use crate::{Answer, Files, Given, Remote, RemoteKind};

/// Bytes that one build may read. A kustomization that names a large file a hundred times stops here.
const MAX_BYTES: usize = 512 << 20;
/// Files that one build may read.
const MAX_FILES: usize = 50_000;
/// Depth of kustomizations below kustomizations.
const MAX_DEPTH: usize = 100;

/// All trees of a build: the first is its own, the others are answers to needs.
pub(crate) struct Sources<'a> {
    own: &'a dyn Files,
    answers: &'a [Answer<'a>],
    restrict: bool,
    needs: RefCell<Vec<Remote>>,
    bytes: Cell<usize>,
    files: Cell<usize>,
}

/// A folder from which paths are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// None: the own tree. Else the number of an answer.
    answer: Option<usize>,
    /// From the root of its tree, without `/` at the ends.
    pub(crate) path: String,
    /// Folders on the way here.
    visited: Vec<(Option<usize>, String)>,
}

impl Place {
    pub(crate) fn root(path: &str) -> Result<Self, Error> {
        let path = clean("", path).ok_or_else(|| {
            Error::new(format!("the path {path:?} leads out of the repository; remove the `..`"))
        })?;
        Ok(Self { answer: None, path, visited: Vec::new() })
    }

    /// A file of this folder, for messages.
    pub(crate) fn file(&self, name: &str) -> String {
        join(&self.path, name)
    }

    fn contains(outer: &(Option<usize>, String), inner: &(Option<usize>, String)) -> bool {
        outer.0 == inner.0 && is_in(&inner.1, &outer.1)
    }
}

impl<'a> Sources<'a> {
    pub(crate) fn new(own: &'a dyn Files, answers: &'a [Answer<'a>], restrict: bool) -> Self {
        Self { own, answers, restrict, needs: RefCell::default(), bytes: Cell::new(0), files: Cell::new(0) }
    }

    /// What the build lacks from other places.
    pub(crate) fn needs(&self) -> Vec<Remote> {
        self.needs.borrow().clone()
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.needs.borrow().is_empty()
    }

    fn tree(&self, place: &Place) -> &'a dyn Files {
        match place.answer.map(|at| &self.answers[at].given) {
            Some(Given::Tree(tree)) => *tree,
            _ => self.own,
        }
    }

    pub(crate) fn is_dir(&self, place: &Place) -> bool {
        self.tree(place).is_dir(&place.path)
    }

    /// Names in the folder.
    pub(crate) fn has_file(&self, place: &Place, name: &str) -> bool {
        self.tree(place).read(&place.file(name)).is_some()
    }

    /// Whether a path means a folder here.
    pub(crate) fn leads_to_dir(&self, place: &Place, path: &str) -> bool {
        !path.starts_with('/') && clean(&place.path, path).is_some_and(|path| self.tree(place).is_dir(&path))
    }

    /// Reads a file by its path from a folder.
    pub(crate) fn load(&self, place: &Place, path: &str) -> Result<Arc<[u8]>, Error> {
        if remote::is_http(path) {
            let remote = Remote {
                url: path.to_owned(),
                reference: String::new(),
                subpath: String::new(),
                kind: RemoteKind::File,
            };
            return match self.answer(&remote) {
                Some(at) => match &self.answers[at].given {
                    Given::File(bytes) => self.count(bytes.clone()),
                    Given::Tree(_) => {
                        Err(Error::new(format!("{path}: a file is wanted, a repository was given")))
                    }
                },
                None => Err(self.need(remote)),
            };
        }
        if path.starts_with('/') {
            return Err(Error::new(format!(
                "{path:?} is an absolute path; write it from the folder of this file"
            )));
        }
        let Some(whole) = clean(&place.path, path) else {
            return Err(Error::new(format!("{path:?} leads out of the repository; remove a `..`")));
        };
        let tree = self.tree(place);
        let Some(bytes) = tree.read(&whole) else {
            return Err(Error::new(if tree.is_dir(&whole) {
                format!("{whole:?} is a folder, but a file is wanted here")
            } else {
                format!("the file {whole:?} does not exist{}", self.near(tree, &whole))
            }));
        };
        let folder = whole.rsplit_once('/').map_or("", |(folder, _)| folder);
        if (self.restrict || place.answer.is_some()) && !is_in(folder, &place.path) {
            return Err(Error::new(format!(
                "{whole:?} is not in or below {:?}: a kustomization reads files only from its own folder; copy the file, make \
                 its folder a base, or build with the load restrictions lifted",
                shown(&place.path)
            )));
        }
        self.count(bytes)
    }

    fn count(&self, bytes: Arc<[u8]>) -> Result<Arc<[u8]>, Error> {
        self.files.set(self.files.get() + 1);
        self.bytes.set(self.bytes.get().saturating_add(bytes.len()));
        if self.files.get() > MAX_FILES || self.bytes.get() > MAX_BYTES {
            return Err(Error::new(format!(
                "the build reads more than {MAX_FILES} files or {} MiB; split it",
                MAX_BYTES >> 20
            )));
        }
        Ok(bytes)
    }

    /// A file of the same folder whose name differs only in case or ending.
    fn near(&self, tree: &dyn Files, path: &str) -> String {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let stem = |name: &str| name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_lowercase();
        tree.list(folder)
            .into_iter()
            .find(|other| stem(other) == stem(name))
            .map(|other| format!("; is {:?} meant?", join(folder, &other)))
            .unwrap_or_default()
    }

    /// The folder of a base or component.
    pub(crate) fn enter(&self, place: &Place, path: &str) -> Result<Place, Error> {
        if path.is_empty() {
            return Err(Error::new("the path is empty; remove the entry"));
        }
        let mut visited = place.visited.clone();
        visited.push((place.answer, place.path.clone()));
        if visited.len() > MAX_DEPTH {
            return Err(Error::new(format!(
                "kustomizations below kustomizations, more than {MAX_DEPTH} deep"
            )));
        }
        if let Some(remote) = remote::repository(path) {
            let Some(at) = self.answer(&remote) else { return Err(self.need(remote)) };
            let Given::Tree(tree) = &self.answers[at].given else {
                return Err(Error::new(format!("{path}: a repository is wanted, a file was given")));
            };
            let folder =
                clean("", &remote.subpath).filter(|folder| tree.is_dir(folder)).ok_or_else(|| {
                    Error::new(format!("{path}: the repository has no folder {:?}", remote.subpath))
                })?;
            return circle_free(Place { answer: Some(at), path: folder, visited });
        }
        if path.starts_with('/') {
            return Err(Error::new(format!(
                "{path:?} is an absolute path; write it from the folder of this file"
            )));
        }
        if let Some(part) = path.split('/').find(|part| part.contains("..") && *part != "..") {
            return Err(Error::new(format!(
                "{path:?}: {part:?} looks like `..` with something glued to it; check the indentation of the list"
            )));
        }
        let Some(folder) = clean(&place.path, path) else {
            return Err(Error::new(format!("{path:?} leads out of the repository; remove a `..`")));
        };
        let tree = self.tree(place);
        if !tree.is_dir(&folder) {
            return Err(Error::new(if tree.read(&folder).is_some() {
                format!("{folder:?} is a file, but a folder with a kustomization is wanted here")
            } else {
                format!("{folder:?} does not exist{}", self.near(tree, &folder))
            }));
        }
        circle_free(Place { answer: place.answer, path: folder, visited })
    }

    fn answer(&self, remote: &Remote) -> Option<usize> {
        self.answers.iter().position(|answer| answer.remote == *remote)
    }

    fn need(&self, remote: Remote) -> Error {
        let mut needs = self.needs.borrow_mut();
        let error = Error::new(format!("{} has to be fetched first", remote.url));
        if !needs.contains(&remote) {
            needs.push(remote);
        }
        error
    }
}

/// A folder may not be one on the way to it, nor hold one.
fn circle_free(place: Place) -> Result<Place, Error> {
    let own = (place.answer, place.path.clone());
    match place.visited.iter().find(|visited| Place::contains(&own, visited)) {
        None => Ok(place),
        Some((_, visited)) => {
            let mut way: Vec<String> = place.visited.iter().map(|(_, path)| shown(path)).collect();
            way.push(shown(&place.path));
            Err(Error::new(format!(
                "the kustomizations go in a circle: {} ({:?} is, or holds, {:?})",
                way.join(" -> "),
                shown(&place.path),
                shown(visited)
            )))
        }
    }
}

fn shown(path: &str) -> String {
    if path.is_empty() { ".".to_owned() } else { path.to_owned() }
}

fn is_in(path: &str, folder: &str) -> bool {
    folder.is_empty() || path == folder || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A path from a folder, without `.` and `..`; none when it leads out of the tree.
pub(crate) fn clean(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
