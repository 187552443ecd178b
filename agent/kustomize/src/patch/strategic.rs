//! Strategic merge patches on objects.

use crate::error::{Error, Step};
use crate::load::{Place, Sources};
use crate::patch::merge;
use crate::resmap::{self, ResMap};
use crate::resource::Resource;

/// `patchesStrategicMerge`: files or texts, each patch with its own target.
#[derive(Debug, Clone)]
pub(crate) struct StrategicPlan {
    patches: Vec<(Resource, String)>,
    file: String,
}

impl StrategicPlan {
    /// Reads the entries: a text that is a patch, or the path of a file.
    pub(crate) fn new(
        sources: &Sources<'_>,
        place: &Place,
        entries: &[String],
        text: &str,
        file: &str,
    ) -> Result<Self, Error> {
        let mut patches = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let field = format!("patchesStrategicMerge[{at}]");
            let found = match resmap::from_bytes(entry.as_bytes(), file) {
                Ok(found) => found,
                Err(inline) => {
                    let bytes = sources.load(place, entry).map_err(|error| {
                        // A text of several lines is no path: what is wrong with it tells more.
                        let error = if entry.contains('\n') { Error::new(inline.message) } else { error };
                        error.at(file, &field, None)
                    })?;
                    resmap::from_bytes(&bytes, &place.file(entry))?
                }
            };
            patches.extend(found.into_iter().map(|patch| (patch, field.clone())));
        }
        if !text.is_empty() {
            let found = resmap::from_bytes(text.as_bytes(), file)?;
            patches.extend(found.into_iter().map(|patch| (patch, "patches".to_owned())));
        }
        if patches.is_empty() {
            return Err(Error::new("there is no patch in it; remove the entry").at(
                file,
                "patchesStrategicMerge",
                None,
            ));
        }
        Ok(Self { patches, file: file.to_owned() })
    }

    pub(crate) fn run(&self, map: &mut ResMap) -> Result<(), Error> {
        for (patch, field) in &self.patches {
            let mut apply = || -> Step<()> {
                let id = patch.original_id(&map.schemas);
                let at = map.target(&id)?;
                apply_to(map, &[at], patch, &format!("{}: {field}", self.file))
            };
            apply().map_err(|message| Error::from(message).at(&self.file, field, None))?;
        }
        Ok(())
    }
}

/// Applies one patch to several objects: it takes the kind of each.
pub(crate) fn apply_to(map: &mut ResMap, selected: &[usize], patch: &Resource, label: &str) -> Step<()> {
    let schemas = map.schemas.clone();
    let ids: Vec<_> = selected.iter().map(|at| map.list[*at].id(&schemas)).collect();
    for at in 0..map.list.len() {
        let id = map.list[at].id(&schemas);
        if !ids.contains(&id) {
            continue;
        }
        let mut copy = patch.clone();
        copy.take_metadata_from(patch)?;
        copy.set_api_version(&id.gvk.api_version())?;
        copy.set_kind(patch.kind())?;
        merge_into(map, at, &copy, label)?;
    }
    map.drop_gone();
    // Kinds and names may have changed, so that two objects are one now.
    let list = std::mem::take(&mut map.list);
    map.append(list)
}

/// Merges a patch into an object, which may be gone afterwards.
pub(crate) fn merge_into(map: &mut ResMap, at: usize, patch: &Resource, label: &str) -> Step<()> {
    let schemas = map.schemas.clone();
    let resource = &mut map.list[at];
    let (name, namespace, kind) =
        (resource.name().to_owned(), resource.namespace().to_owned(), resource.kind().to_owned());
    if patch.may_change_name() || patch.may_change_kind() {
        resource.remember_id(&schemas)?;
    }
    let node = std::mem::take(&mut resource.node);
    resource.history.touched_by.push(label.to_owned());
    let id = patch.id(&schemas);
    match merge::merge(node, patch.node.clone(), &schemas)
        .map_err(|error| format!("patch of {id}: {error}"))?
    {
        // Null stands for a deleted object until the list is cleaned.
        None => return Ok(()),
        Some(merged) => resource.node = merged,
    }
    if resource.is_gone() {
        return Ok(());
    }
    if !patch.may_change_kind() {
        resource.set_kind(&kind)?;
    }
    if !patch.may_change_name() {
        resource.set_name(&name)?;
    }
    resource.set_namespace(&namespace)
}
