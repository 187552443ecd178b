//! `spec.source` as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Any;

/// One source.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawSource {
    /// Repository.
    #[serde(rename = "repoURL")]
    pub repo_url: Option<String>,
    /// Path below the repository's root.
    pub path: Option<String>,
    /// Branch, tag or commit; HEAD when empty.
    pub target_revision: Option<String>,
    /// Helm settings.
    pub helm: Option<RawHelm>,
    /// Kustomize settings.
    pub kustomize: Option<RawKustomize>,
    /// Directory settings.
    pub directory: Option<RawDirectory>,
    /// Plugin settings.
    pub plugin: Option<RawPlugin>,
    /// Chart of a Helm repository.
    pub chart: Option<String>,
    /// Name by which other sources refer to this one.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// Name of this source, for people.
    pub name: Option<String>,
    /// Prefix of git tags for a semver range.
    pub tag_prefix: Option<String>,
}

/// `source.directory`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawDirectory {
    /// Read folders below, too.
    pub recurse: Option<bool>,
    /// Glob of files to read.
    pub include: Option<String>,
    /// Glob of files to leave out; wins over `include`.
    pub exclude: Option<String>,
    /// Read files of any extension.
    pub disable_extension_filter: Option<bool>,
    /// Jsonnet settings.
    pub jsonnet: Option<RawJsonnet>,
}

/// `source.directory.jsonnet`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawJsonnet {
    /// External variables.
    pub ext_vars: Option<Vec<RawJsonnetVar>>,
    /// Top-level arguments.
    pub tlas: Option<Vec<RawJsonnetVar>>,
    /// Library folders.
    pub libs: Option<Vec<String>>,
}

/// A jsonnet variable.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawJsonnetVar {
    /// Name.
    pub name: Option<String>,
    /// Value.
    pub value: Option<String>,
    /// Is the value code?
    pub code: Option<bool>,
}

/// `source.helm`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawHelm {
    /// Values files.
    pub value_files: Option<Vec<String>>,
    /// `--set` parameters.
    pub parameters: Option<Vec<RawHelmParameter>>,
    /// Release name.
    pub release_name: Option<String>,
    /// Values as text.
    pub values: Option<String>,
    /// Values as an object; beats `values`.
    pub values_object: Option<Any>,
    /// `--set-file` parameters.
    pub file_parameters: Option<Vec<RawHelmFileParameter>>,
    /// Helm's version.
    pub version: Option<String>,
    /// Pass credentials to all domains.
    pub pass_credentials: Option<bool>,
    /// Missing values files are no error.
    pub ignore_missing_value_files: Option<bool>,
    /// Leave out crds/.
    pub skip_crds: Option<bool>,
    /// Leave out tests.
    pub skip_tests: Option<bool>,
    /// Do not check values against the schema.
    pub skip_schema_validation: Option<bool>,
    /// Namespace of the release.
    pub namespace: Option<String>,
    /// Kubernetes version for the templates.
    pub kube_version: Option<String>,
    /// API versions for the templates.
    pub api_versions: Option<Vec<String>>,
}

/// One `source.helm.parameters` entry.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawHelmParameter {
    /// Name.
    pub name: Option<String>,
    /// Value.
    pub value: Option<String>,
    /// Keep the value a string.
    pub force_string: Option<bool>,
}

/// One `source.helm.fileParameters` entry.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawHelmFileParameter {
    /// Name.
    pub name: Option<String>,
    /// Path of the file.
    pub path: Option<String>,
}

/// `source.kustomize`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawKustomize {
    /// Prefix of names.
    pub name_prefix: Option<String>,
    /// Suffix of names.
    pub name_suffix: Option<String>,
    /// Image overrides.
    pub images: Option<Vec<String>>,
    /// Replica overrides.
    pub replicas: Option<Vec<RawKustomizeReplica>>,
    /// Labels on everything.
    pub common_labels: Option<BTreeMap<String, String>>,
    /// Annotations on everything.
    pub common_annotations: Option<BTreeMap<String, String>>,
    /// Substitute the build environment in `commonAnnotations`.
    pub common_annotations_envsubst: Option<bool>,
    /// Override labels that exist.
    pub force_common_labels: Option<bool>,
    /// Override annotations that exist.
    pub force_common_annotations: Option<bool>,
    /// Leave selectors alone.
    pub label_without_selector: Option<bool>,
    /// Label templates, too.
    pub label_include_templates: Option<bool>,
    /// Namespace override.
    pub namespace: Option<String>,
    /// Patches.
    pub patches: Option<Vec<RawKustomizePatch>>,
    /// Components.
    pub components: Option<Vec<String>>,
    /// Missing components are no error.
    pub ignore_missing_components: Option<bool>,
    /// Kustomize's version.
    pub version: Option<String>,
    /// Kubernetes version for Helm charts.
    pub kube_version: Option<String>,
    /// API versions for Helm charts.
    pub api_versions: Option<Vec<String>>,
}

/// One `source.kustomize.replicas` entry.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawKustomizeReplica {
    /// Name.
    pub name: Option<String>,
    /// Number or its text.
    pub count: Option<Any>,
}

/// One `source.kustomize.patches` entry.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawKustomizePatch {
    /// File.
    pub path: Option<String>,
    /// Text.
    pub patch: Option<String>,
    /// What it applies to.
    pub target: Option<Any>,
    /// Options.
    pub options: Option<BTreeMap<String, bool>>,
}

/// `source.plugin`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawPlugin {
    /// Name.
    pub name: Option<String>,
    /// Environment.
    pub env: Option<Vec<RawPluginEnv>>,
    /// Parameters.
    pub parameters: Option<Vec<RawPluginParameter>>,
}

/// One `source.plugin.env` entry.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawPluginEnv {
    /// Name.
    pub name: Option<String>,
    /// Value.
    pub value: Option<String>,
}

/// One `source.plugin.parameters` entry.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RawPluginParameter {
    /// Name.
    pub name: Option<String>,
    /// A string.
    pub string: Option<String>,
    /// A map.
    pub map: Option<BTreeMap<String, String>>,
    /// A list.
    pub array: Option<Vec<String>>,
}
