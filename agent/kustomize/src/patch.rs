//! Patches: which objects they mean, and which of the two kinds they are.

use crate::error::Error;
use crate::kustfile;
use crate::load::{Place, Sources};
use crate::resmap::{self, ResMap};
use crate::resource::Resource;
use crate::selector::Selector;

pub(crate) mod json;
pub(crate) mod merge;
pub(crate) mod strategic;

/// A patch that is ready to run.
#[derive(Debug, Clone)]
pub(crate) struct PatchPlan {
    pub(crate) patches: Content,
    pub(crate) target: Option<Selector>,
    /// Where it stands, for messages and the history of objects.
    pub(crate) file: String,
    pub(crate) field: String,
    /// The file that it was read from, if any.
    pub(crate) path: String,
}

/// What is in it.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Nothing,
    /// Strategic merge patches.
    Merge(Vec<Resource>),
    /// A JSON patch, RFC 6902.
    Json(Vec<json::Operation>),
    /// One of `patchesJson6902`, which does not remember the id that the object had before.
    JsonKeepingId(Vec<json::Operation>),
}

impl PatchPlan {
    /// Reads an entry of `patches`.
    pub(crate) fn new(
        sources: &Sources<'_>,
        place: &Place,
        patch: &kustfile::Patch,
        file: &str,
        field: &str,
    ) -> Result<Self, Error> {
        let fail = |message: String| Error::from(message).at(file, field, None);
        let inline = patch.patch.trim();
        let (text, from): (std::sync::Arc<[u8]>, String) = match (inline.is_empty(), patch.path.is_empty()) {
            (true, true) => return Err(fail("a patch needs one of `patch` and `path`".to_owned())),
            (false, false) => return Err(fail("`patch` and `path` exclude each other; keep one".to_owned())),
            (false, true) => (inline.as_bytes().into(), file.to_owned()),
            (true, false) => {
                let bytes = sources.load(place, &patch.path).map_err(|error| error.at(file, field, None))?;
                (bytes, place.file(&patch.path))
            }
        };
        let merge = resmap::from_bytes(&text, &from);
        let json = json::parse(&text);
        let mut patches = match (merge, json) {
            (Ok(merge), Ok(json)) if !merge.is_empty() && !json.is_empty() => {
                return Err(fail("this is a strategic merge patch and a JSON patch at once".to_owned()));
            }
            (Ok(merge), _) if merge.is_empty() => Content::Nothing,
            (Ok(merge), _) => Content::Merge(merge),
            (Err(_), Ok(json)) if json.is_empty() => Content::Nothing,
            (Err(_), Ok(json)) => Content::Json(json),
            (Err(merge), Err(json)) => {
                let as_list =
                    text.trim_ascii_start().starts_with(b"-") || text.trim_ascii_start().starts_with(b"[");
                let message = if as_list { json } else { merge.message };
                let line = merge.line.filter(|_| !patch.path.is_empty());
                return Err(Error { line, ..Error::new(format!("this patch cannot be read: {message}")) }
                    .in_file(&from)
                    .at(file, field, None));
            }
        };
        if let Content::Merge(list) = &mut patches {
            for one in list {
                one.allow_changes(patch.allow_name_change, patch.allow_kind_change).map_err(fail)?;
            }
        }
        let path = if patch.path.is_empty() { String::new() } else { from };
        Ok(Self {
            patches,
            target: patch.target.clone(),
            file: file.to_owned(),
            field: field.to_owned(),
            path,
        })
    }

    /// The name of this patch in the history of an object.
    fn label(&self) -> String {
        let from = if self.path.is_empty() { String::new() } else { format!(" ({})", self.path) };
        format!("{}: {}{from}", self.file, self.field)
    }

    pub(crate) fn run(&self, map: &mut ResMap) -> Result<(), Error> {
        self.apply(map).map_err(|message| Error::from(message).at(&self.file, &self.field, None))
    }

    fn apply(&self, map: &mut ResMap) -> Result<(), String> {
        match (&self.patches, &self.target) {
            (Content::Nothing, _) => Ok(()),
            (Content::Merge(patches), Some(target)) => {
                let [patch] = &patches[..] else {
                    return Err(
                        "several patches in one entry cannot have a `target`; make each its own entry"
                            .to_owned(),
                    );
                };
                let selected = map.select(target)?;
                strategic::apply_to(map, &selected, patch, &self.label())
            }
            (Content::Merge(patches), None) => {
                for patch in patches {
                    let id = patch.original_id(&map.schemas);
                    let at = map.target(&id)?;
                    strategic::merge_into(map, at, patch, &self.label())?;
                }
                Ok(())
            }
            (Content::Json(_) | Content::JsonKeepingId(_), None) => {
                Err("a JSON patch does not say which objects it means; add a `target`".to_owned())
            }
            (Content::Json(operations) | Content::JsonKeepingId(operations), Some(target)) => {
                let remember = matches!(self.patches, Content::Json(_));
                for at in map.select(target)? {
                    json::apply_to(map, at, operations, remember, &self.label())?;
                }
                Ok(())
            }
        }
    }
}
