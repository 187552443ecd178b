//! The transformers, one file each, and the order in which a kustomization runs them.

use crate::config::FieldSpec;
use crate::error::Error;
use crate::kustfile::{Image, Replacement, Replica, SortOptions};
use crate::patch::PatchPlan;
use crate::patch::strategic::StrategicPlan;
use crate::resmap::ResMap;

pub(crate) mod entries;
pub(crate) mod hash;
pub(crate) mod images;
pub(crate) mod names;
pub(crate) mod namespace;
pub(crate) mod replacements;
pub(crate) mod replicas;
pub(crate) mod sort;
pub(crate) mod value_add;

/// A transformer with all that it needs.
pub(crate) enum Transformer {
    StrategicMerge(StrategicPlan),
    Patch(PatchPlan),
    Namespace(namespace::Namespace),
    Prefix {
        text: String,
        specs: Vec<FieldSpec>,
    },
    Suffix {
        text: String,
        specs: Vec<FieldSpec>,
    },
    /// Labels or annotations.
    Entries(entries::EntriesPlan),
    Replica {
        replica: Replica,
        specs: Vec<FieldSpec>,
    },
    Image {
        image: Image,
        specs: Vec<FieldSpec>,
    },
    Replacements(Vec<Replacement>),
    ValueAdd(value_add::ValueAdd),
    Hash,
    /// Only as a plugin.
    Several(Vec<Transformer>),
}

impl Transformer {
    pub(crate) fn run(&self, map: &mut ResMap) -> Result<(), Error> {
        match self {
            Self::StrategicMerge(plan) => plan.run(map),
            Self::Patch(plan) => plan.run(map),
            Self::Namespace(plan) => Ok(plan.run(map)?),
            Self::Prefix { text, specs } => Ok(names::add(map, specs, text, names::Side::Front)?),
            Self::Suffix { text, specs } => Ok(names::add(map, specs, text, names::Side::Back)?),
            Self::Entries(plan) => Ok(plan.run(map)?),
            Self::Replica { replica, specs } => Ok(replicas::set(map, replica, specs)?),
            Self::Image { image, specs } => Ok(images::set(map, image, specs)?),
            Self::Replacements(list) => Ok(replacements::run(map, list)?),
            Self::ValueAdd(plan) => Ok(plan.run(map)?),
            Self::Hash => Ok(hash::add(map)?),
            Self::Several(all) => all.iter().try_for_each(|one| one.run(map)),
        }
    }
}

/// Sorts the objects of the whole build.
pub(crate) fn sort(map: &mut ResMap, options: &SortOptions) -> Result<(), Error> {
    Ok(sort::run(map, options)?)
}
