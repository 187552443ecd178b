//! Argo CD's `source.kustomize`: changes to the kustomization of the application before it is built, with the meaning
//! that `kustomize edit` gives them.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::id::{Gvk, ResId};
use crate::kustfile::{Image, Kustomization, Label, Patch, Replica};
use crate::selector::Selector;
use crate::transform::images::split;

/// Changes to the kustomization. Empty fields change nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// Replaces `namePrefix`.
    pub name_prefix: String,
    /// Replaces `nameSuffix`.
    pub name_suffix: String,
    /// Replaces `namespace`.
    pub namespace: String,
    /// `name=new-name:tag`, `name:tag`, `name@digest`; `*` keeps what is there.
    pub images: Vec<String>,
    /// Numbers of replicas.
    pub replicas: Vec<OverrideReplica>,
    /// Labels for all objects.
    pub common_labels: BTreeMap<String, String>,
    /// A label of the kustomization may be replaced.
    pub force_common_labels: bool,
    /// Labels do not go to selectors.
    pub label_without_selector: bool,
    /// Labels without selectors go to templates too.
    pub label_include_templates: bool,
    /// Annotations for all objects.
    pub common_annotations: BTreeMap<String, String>,
    /// An annotation of the kustomization may be replaced.
    pub force_common_annotations: bool,
    /// Further patches, after those of the kustomization.
    pub patches: Vec<OverridePatch>,
    /// Further components, after those of the kustomization.
    pub components: Vec<String>,
    /// Components that do not exist are left out.
    pub ignore_missing_components: bool,
}

/// A number of replicas.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OverrideReplica {
    /// Name of the object.
    pub name: String,
    /// Number.
    pub count: i64,
}

/// A patch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OverridePatch {
    /// Path of a file.
    pub path: String,
    /// The patch itself.
    pub patch: String,
    /// Which objects.
    pub target: Option<OverrideTarget>,
    /// The patch may change the name.
    pub allow_name_change: bool,
    /// The patch may change the kind.
    pub allow_kind_change: bool,
}

/// Which objects a patch means; empty fields match everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OverrideTarget {
    /// Group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Selector of labels.
    pub label_selector: String,
    /// Selector of annotations.
    pub annotation_selector: String,
}

impl Overrides {
    /// Changes the kustomization. `exists` tells whether there is a folder for a component.
    pub(crate) fn apply(
        &self,
        kustomization: &mut Kustomization,
        exists: impl Fn(&str) -> bool,
    ) -> Result<(), Error> {
        let set = |field: &mut String, value: &str| {
            if !value.is_empty() {
                value.clone_into(field);
            }
        };
        set(&mut kustomization.name_prefix, &self.name_prefix);
        set(&mut kustomization.name_suffix, &self.name_suffix);
        set(&mut kustomization.namespace, &self.namespace);
        self.set_images(kustomization)?;
        for replica in &self.replicas {
            let new = Replica { name: replica.name.clone(), count: replica.count };
            match kustomization.replicas.iter_mut().find(|known| known.name == new.name) {
                Some(known) => *known = new,
                None => kustomization.replicas.push(new),
            }
        }
        self.add_labels(kustomization)?;
        add(
            &mut kustomization.common_annotations,
            &self.common_annotations,
            self.force_common_annotations,
            "commonAnnotations",
        )?;
        kustomization.patches.extend(self.patches.iter().map(OverridePatch::to_patch));
        for component in &self.components {
            let left_out = self.ignore_missing_components && !exists(component);
            if !left_out && !kustomization.components.contains(component) {
                kustomization.components.push(component.clone());
            }
        }
        Ok(())
    }

    fn add_labels(&self, kustomization: &mut Kustomization) -> Result<(), Error> {
        if self.common_labels.is_empty() {
            return Ok(());
        }
        if !self.label_without_selector {
            let labels = &mut kustomization.common_labels;
            return add(labels, &self.common_labels, self.force_common_labels, "commonLabels");
        }
        let same = |label: &&mut Label| !label.selectors && label.templates == self.label_include_templates;
        match kustomization.labels.iter_mut().find(same) {
            Some(label) => add(&mut label.pairs, &self.common_labels, self.force_common_labels, "labels"),
            None => {
                let pairs = self.common_labels.clone();
                kustomization.labels.push(Label {
                    pairs,
                    templates: self.label_include_templates,
                    ..Label::default()
                });
                Ok(())
            }
        }
    }

    fn set_images(&self, kustomization: &mut Kustomization) -> Result<(), Error> {
        if self.images.is_empty() {
            return Ok(());
        }
        let mut new: BTreeMap<String, Image> = BTreeMap::new();
        for text in &self.images {
            let image = parse_image(text)?;
            new.insert(image.name.clone(), image);
        }
        for old in std::mem::take(&mut kustomization.images) {
            let image = match new.remove(&old.name) {
                Some(image) => merged(image, &old),
                None => old,
            };
            new.insert(image.name.clone(), image);
        }
        kustomization.images = new
            .into_values()
            .map(|mut image| {
                for field in [&mut image.new_name, &mut image.new_tag, &mut image.digest] {
                    if field == "*" {
                        field.clear();
                    }
                }
                image
            })
            .collect();
        Ok(())
    }
}

/// `*` keeps what is there. So does an override that names only another image, where Argo CD would drop tag and digest
/// and run whatever is the latest.
fn merged(mut new: Image, old: &Image) -> Image {
    if new.new_name == "*" {
        new.new_name.clone_from(&old.new_name);
    }
    if new.new_tag == "*" {
        new.new_tag.clone_from(&old.new_tag);
    }
    if new.digest == "*" {
        new.digest.clone_from(&old.digest);
    }
    if new.new_tag.is_empty() && new.digest.is_empty() {
        new.new_tag.clone_from(&old.new_tag);
        new.digest.clone_from(&old.digest);
        new.tag_suffix.clone_from(&old.tag_suffix);
    }
    new
}

/// `name=new-name:tag@digest`, or `name:tag`.
fn parse_image(text: &str) -> Result<Image, Error> {
    if let Some((name, new)) = text.split_once('=') {
        let (new_name, new_tag, digest) = split(new);
        if name.is_empty() || new_name.is_empty() {
            return Err(Error::new(format!("the image {text:?} is no `name=new-name:tag`")));
        }
        return Ok(Image { name: name.to_owned(), new_name, new_tag, digest, ..Image::default() });
    }
    let (name, new_tag, digest) = split(text);
    if name.is_empty() || (new_tag.is_empty() && digest.is_empty()) {
        return Err(Error::new(format!(
            "the image {text:?} has no tag and no digest; write `name:tag` or `name=new-name`"
        )));
    }
    Ok(Image { name, new_tag, digest, ..Image::default() })
}

fn add(
    known: &mut BTreeMap<String, String>,
    more: &BTreeMap<String, String>,
    force: bool,
    field: &str,
) -> Result<(), Error> {
    for (name, value) in more {
        if known.contains_key(name) && !force {
            return Err(Error::new(format!(
                "{name:?} of the application is in the kustomization's {field} already; remove one, or force it"
            )));
        }
        known.insert(name.clone(), value.clone());
    }
    Ok(())
}

impl OverridePatch {
    fn to_patch(&self) -> Patch {
        Patch {
            path: self.path.clone(),
            patch: self.patch.clone(),
            target: self.target.as_ref().map(OverrideTarget::to_selector),
            allow_name_change: self.allow_name_change,
            allow_kind_change: self.allow_kind_change,
        }
    }
}

impl OverrideTarget {
    fn to_selector(&self) -> Selector {
        let gvk = Gvk { group: self.group.clone(), version: self.version.clone(), kind: self.kind.clone() };
        let id = ResId { gvk, name: self.name.clone(), namespace: self.namespace.clone(), cluster: false };
        Selector { id, annotations: self.annotation_selector.clone(), labels: self.label_selector.clone() }
    }
}
