//! Which fields the transformers change: the default tables with what `configurations` and `crds` add.

use std::cmp::Ordering;

use crate::error::Step;
use crate::id::Gvk;

/// A field of a kind; empty parts of the kind match everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FieldSpec {
    pub(crate) gvk: Gvk,
    pub(crate) path: String,
    pub(crate) create: bool,
}

/// The fields that hold names of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct BackReferences {
    pub(crate) gvk: Gvk,
    pub(crate) referrers: Vec<FieldSpec>,
}

/// All lists of fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Config {
    pub(crate) name_prefix: Vec<FieldSpec>,
    pub(crate) name_suffix: Vec<FieldSpec>,
    pub(crate) namespace: Vec<FieldSpec>,
    pub(crate) common_labels: Vec<FieldSpec>,
    pub(crate) labels: Vec<FieldSpec>,
    pub(crate) template_labels: Vec<FieldSpec>,
    pub(crate) volume_claim_template_labels: Vec<FieldSpec>,
    pub(crate) common_annotations: Vec<FieldSpec>,
    pub(crate) name_reference: Vec<BackReferences>,
    pub(crate) var_reference: Vec<FieldSpec>,
    pub(crate) images: Vec<FieldSpec>,
    pub(crate) replicas: Vec<FieldSpec>,
}

/// Names of the lists of fields in a configuration file.
pub(crate) const LISTS: [&str; 11] = [
    "namePrefix",
    "nameSuffix",
    "namespace",
    "commonLabels",
    "labels",
    "templateLabels",
    "volumeClaimTemplateLabels",
    "commonAnnotations",
    "varReference",
    "images",
    "replicas",
];

impl Config {
    /// A list by its name in a configuration file.
    pub(crate) fn list(&mut self, name: &str) -> Option<&mut Vec<FieldSpec>> {
        Some(match name {
            "namePrefix" => &mut self.name_prefix,
            "nameSuffix" => &mut self.name_suffix,
            "namespace" => &mut self.namespace,
            "commonLabels" => &mut self.common_labels,
            "labels" => &mut self.labels,
            "templateLabels" => &mut self.template_labels,
            "volumeClaimTemplateLabels" => &mut self.volume_claim_template_labels,
            "commonAnnotations" => &mut self.common_annotations,
            "varReference" => &mut self.var_reference,
            "images" => &mut self.images,
            "replicas" => &mut self.replicas,
            _ => return None,
        })
    }

    pub(crate) fn sort(&mut self) {
        let by_kind = |a: &FieldSpec, b: &FieldSpec| -> Ordering { a.gvk.order(&b.gvk) };
        for name in LISTS {
            if let Some(list) = self.list(name) {
                list.sort_by(by_kind);
            }
        }
        self.name_reference.sort_by(|a, b| a.gvk.order(&b.gvk));
    }

    /// Adds what another one has more.
    ///
    /// # Errors
    /// The same field with another `create`.
    pub(crate) fn merge(&mut self, mut other: Config) -> Step<()> {
        for name in LISTS {
            let more = other.list(name).map(std::mem::take).unwrap_or_default();
            if let Some(list) = self.list(name) {
                merge_specs(list, more).map_err(|error| format!("{name}: {error}"))?;
            }
        }
        for more in other.name_reference {
            self.merge_references(more)?;
        }
        self.sort();
        Ok(())
    }

    pub(crate) fn merge_references(&mut self, more: BackReferences) -> Step<()> {
        match self.name_reference.iter_mut().find(|known| known.gvk == more.gvk) {
            Some(known) => merge_specs(&mut known.referrers, more.referrers)
                .map_err(|error| format!("nameReference: {error}")),
            None => {
                self.name_reference.push(more);
                Ok(())
            }
        }
    }
}

/// Adds fields that are not there yet.
pub(crate) fn merge_specs(list: &mut Vec<FieldSpec>, more: Vec<FieldSpec>) -> Step<()> {
    for spec in more {
        match list.iter().find(|known| known.gvk.is_selected(&spec.gvk) && known.path == spec.path) {
            Some(known) if known.create != spec.create => {
                return Err(format!(
                    "the field {:?} of {} is configured twice, with `create: true` and without; make them equal",
                    spec.path, spec.gvk
                ));
            }
            Some(_) => {}
            None => list.push(spec),
        }
    }
    Ok(())
}
