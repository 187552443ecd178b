//! From what is written to what is valid: every error at once, and what is not built yet refused by name.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::raw::{
    RawApplication, RawAutomated, RawDestination, RawIgnoreDifferences, RawMetadata, RawNamespaceMetadata,
    RawRetry, RawSpec, RawSyncPolicy,
};
use super::settings::parse_settings;
use super::{
    AppKey, Application, Automated, Destination, IgnoreRule, NamespaceMetadata, Retry, SpecError,
    SyncOptions, sync_options,
};
use crate::names::{DEFAULT_APP_NAMESPACE, RESOURCES_FINALIZER};
use crate::nearest::suggestion;
use crate::{duration, limits, syntax};

mod source;

/// API server URL of the agent's own cluster, as Argo CD writes it.
pub const IN_CLUSTER_SERVER: &str = "https://kubernetes.default.svc";
/// Name of the agent's own cluster, as Argo CD writes it.
pub const IN_CLUSTER_NAME: &str = "in-cluster";
/// Version of the Application and AppProject types.
pub(crate) const API_VERSION: &str = "argoproj.io/v1alpha1";
/// The project of an Application that names none; it always exists.
pub(crate) const DEFAULT_PROJECT: &str = "default";

/// What validation must know besides the document.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The agent's own cluster name (`cluster.name`); empty where it has none.
    pub cluster_name: String,
    /// Names of the AppProjects that are known; `default` need not be among them.
    pub projects: BTreeSet<String>,
    /// Configured default annotations (`defaults.annotations`), already validated.
    pub default_annotations: BTreeMap<String, String>,
}

/// Validates a written Application.
///
/// Errors: all that is wrong, in the order of the document.
pub fn validate(raw: RawApplication, context: &Context) -> Result<Application, Vec<SpecError>> {
    let mut errors = Vec::new();
    let RawApplication { api_version, kind, metadata, spec, status: _, operation: _ } = raw;
    check_type("Application", api_version.as_deref(), kind.as_deref(), &mut errors);
    let metadata = Metadata::read(metadata.unwrap_or_default(), &mut errors);
    let mut notes = Vec::new();
    let finalizer_cascade = finalizers(&metadata.finalizers, &mut notes);
    foreign_annotations(&metadata.annotations, &mut errors, &mut notes);

    let mut annotations = context.default_annotations.clone();
    annotations.extend(metadata.annotations.clone());
    let settings = parse_settings(&annotations, "metadata.annotations", &mut errors);

    let Some(spec) = spec else {
        errors.push(SpecError::new("spec", "is missing"));
        return Err(errors);
    };
    let RawSpec {
        source,
        sources,
        source_hydrator,
        destination,
        project,
        sync_policy,
        ignore_differences,
        info,
        revision_history_limit,
    } = spec;
    refuse(source_hydrator.is_some(), "spec.sourceHydrator", &mut errors);
    let source = source::one(source, sources.unwrap_or_default(), source_hydrator.is_some(), &mut errors);
    let destination =
        cluster_and_namespace(destination.unwrap_or_default(), &context.cluster_name, &mut errors);
    let project = known_project(project.unwrap_or_default(), &context.projects, &mut errors);
    let policy = SyncPolicy::read(sync_policy.unwrap_or_default(), &mut errors);
    if policy.options.creates_namespace() && destination.namespace.is_empty() {
        notes.push("CreateNamespace=true has no effect without spec.destination.namespace".to_owned());
    }
    let ignore_differences = ignore_rules(ignore_differences.unwrap_or_default(), &mut errors);
    let history_limit = history(revision_history_limit, &mut errors);

    match source {
        Some(source) if errors.is_empty() => Ok(Application {
            key: AppKey::new(&metadata.namespace, &metadata.name),
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizer_cascade,
            project,
            source,
            destination,
            automated: policy.automated,
            retry: policy.retry,
            sync_options: policy.options,
            namespace_metadata: policy.namespace_metadata,
            ignore_differences,
            history_limit,
            settings,
            info: info
                .unwrap_or_default()
                .into_iter()
                .map(|entry| (entry.name.unwrap_or_default(), entry.value.unwrap_or_default()))
                .collect(),
            notes,
        }),
        _ => Err(errors),
    }
}

/// Refuses a field that is not built yet, if it is there.
pub(crate) fn refuse(present: bool, field: &str, errors: &mut Vec<SpecError>) {
    if present {
        errors.push(SpecError::new(field, format!("{field} is not supported by this version")));
    }
}

/// `apiVersion` and `kind` must be what the caller was told they are.
pub(crate) fn check_type(
    wanted: &str,
    api_version: Option<&str>,
    kind: Option<&str>,
    errors: &mut Vec<SpecError>,
) {
    if api_version != Some(API_VERSION) {
        let found = api_version.unwrap_or_default();
        errors.push(SpecError::new("apiVersion", format!("is `{found}`; it must be {API_VERSION}")));
    }
    if kind != Some(wanted) {
        let found = kind.unwrap_or_default();
        errors.push(SpecError::new("kind", format!("is `{found}`; it must be {wanted}")));
    }
}

/// The part of `metadata` that means something.
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    finalizers: Vec<String>,
}

impl Metadata {
    pub(crate) fn read(raw: RawMetadata, errors: &mut Vec<SpecError>) -> Self {
        let name = raw.name.unwrap_or_default();
        if name.is_empty() {
            errors.push(SpecError::new("metadata.name", "is missing"));
        } else if !syntax::is_dns_subdomain(&name) {
            errors.push(SpecError::new(
                "metadata.name",
                format!("`{name}` is not a name: lower-case letters, digits, `-` and `.` only"),
            ));
        }
        let namespace =
            raw.namespace.filter(|text| !text.is_empty()).unwrap_or_else(|| DEFAULT_APP_NAMESPACE.to_owned());
        check_namespace(&namespace, "metadata.namespace", errors);
        // A null value is an empty string, as Go reads it.
        let filled = |map: Option<BTreeMap<String, Option<String>>>| {
            map.unwrap_or_default().into_iter().map(|(key, value)| (key, value.unwrap_or_default())).collect()
        };
        Self {
            name,
            namespace,
            labels: filled(raw.labels),
            annotations: filled(raw.annotations),
            finalizers: raw.finalizers.unwrap_or_default(),
        }
    }
}

fn check_namespace(namespace: &str, field: &str, errors: &mut Vec<SpecError>) {
    if !syntax::is_dns_label(namespace) {
        let rule = "lower-case letters, digits and `-`, at most 63 characters";
        errors.push(SpecError::new(field, format!("`{namespace}` is not a namespace name: {rule}")));
    }
}

/// Does one of the finalizers ask for a cascade? Others are kept by nobody here, and said so.
fn finalizers(list: &[String], notes: &mut Vec<String>) -> bool {
    let mut cascade = false;
    for finalizer in list {
        let base = finalizer.split('/').next().unwrap_or_default();
        if base == RESOURCES_FINALIZER {
            cascade = true;
        } else {
            notes.push(format!("the finalizer {finalizer} has no effect"));
        }
    }
    cascade
}

/// Argo CD's annotations on the Application itself that would have to change what is done.
fn foreign_annotations(
    annotations: &BTreeMap<String, String>,
    errors: &mut Vec<SpecError>,
    notes: &mut Vec<String>,
) {
    for (key, value) in annotations {
        let field = format!("metadata.annotations[{key}]");
        match key.as_str() {
            "argocd.argoproj.io/skip-reconcile" if value == "true" => refuse(true, &field, errors),
            "argocd.argoproj.io/manifest-generate-paths"
            | "argocd.argoproj.io/refresh"
            | "argocd.argoproj.io/hydrate"
            | "argocd.argoproj.io/client-side-apply-migration-manager"
            | "argocd.argoproj.io/managed-by-url" => {
                notes.push(format!("the annotation {key} has no effect in this version"));
            }
            _ if key.starts_with("notifications.argoproj.io/") => {
                notes
                    .push(format!("the annotation {key} has no effect: this version sends no notifications"));
            }
            _ => {}
        }
    }
}

fn cluster_and_namespace(raw: RawDestination, own_name: &str, errors: &mut Vec<SpecError>) -> Destination {
    let RawDestination { server, name, namespace } = raw;
    let server = server.unwrap_or_default();
    let name = name.unwrap_or_default();
    let mut valid = vec![format!("server {IN_CLUSTER_SERVER}"), format!("name {IN_CLUSTER_NAME}")];
    if !own_name.is_empty() && own_name != IN_CLUSTER_NAME {
        valid.push(format!("name {own_name}"));
    }
    let valid = valid.join(", ");
    match (server.as_str(), name.as_str()) {
        ("", "") => {
            errors.push(SpecError::new("spec.destination", format!("names no cluster; valid: {valid}")));
        }
        ("", name) if name == IN_CLUSTER_NAME || name == own_name => {}
        ("", name) => errors.push(SpecError::new(
            "spec.destination.name",
            format!("`{name}` is not a cluster of this agent; valid: {valid}"),
        )),
        (server, "") if server.trim_end_matches('/') == IN_CLUSTER_SERVER => {}
        (server, "") => errors.push(SpecError::new(
            "spec.destination.server",
            format!("`{server}` is not a cluster of this agent; valid: {valid}"),
        )),
        _ => errors.push(SpecError::new(
            "spec.destination",
            format!("server and name are both given; give one of: {valid}"),
        )),
    }
    let namespace = namespace.unwrap_or_default();
    if !namespace.is_empty() {
        check_namespace(&namespace, "spec.destination.namespace", errors);
    }
    let cluster = if own_name.is_empty() { IN_CLUSTER_NAME } else { own_name };
    Destination { cluster: cluster.to_owned(), namespace }
}

fn known_project(project: String, known: &BTreeSet<String>, errors: &mut Vec<SpecError>) -> String {
    if project.is_empty() {
        return DEFAULT_PROJECT.to_owned();
    }
    if project != DEFAULT_PROJECT && !known.contains(&project) {
        let names: Vec<&str> =
            std::iter::once(DEFAULT_PROJECT).chain(known.iter().map(String::as_str)).collect();
        errors.push(SpecError::new(
            "spec.project",
            format!(
                "there is no AppProject `{project}`{}; known: {}",
                suggestion(&project, &names),
                names.join(", ")
            ),
        ));
    }
    project
}

struct SyncPolicy {
    automated: Option<Automated>,
    retry: Option<Retry>,
    options: SyncOptions,
    namespace_metadata: Option<NamespaceMetadata>,
}

impl SyncPolicy {
    fn read(raw: RawSyncPolicy, errors: &mut Vec<SpecError>) -> Self {
        let RawSyncPolicy { automated, sync_options, retry, managed_namespace_metadata } = raw;
        let list = sync_options.unwrap_or_default();
        let options = sync_options::from_list(&list, "spec.syncPolicy.syncOptions", errors);
        Self {
            automated: automated.and_then(is_automated),
            retry: retry.map(|retry| backoff(retry, errors)),
            namespace_metadata: managed_namespace_metadata
                .map(|metadata| namespace_metadata(metadata, options.creates_namespace(), errors)),
            options,
        }
    }
}

/// `enabled: null` means on, as everything of `automated` is a pointer in Argo CD.
fn is_automated(raw: RawAutomated) -> Option<Automated> {
    let RawAutomated { prune, self_heal, allow_empty, enabled } = raw;
    enabled.unwrap_or(true).then(|| Automated {
        prune: prune.unwrap_or(false),
        self_heal: self_heal.unwrap_or(false),
        allow_empty: allow_empty.unwrap_or(false),
    })
}

fn backoff(raw: RawRetry, errors: &mut Vec<SpecError>) -> Retry {
    let RawRetry { limit, backoff, refresh } = raw;
    let backoff = backoff.unwrap_or_default();
    let mut pause = |text: Option<String>, name: &str, default: u64| {
        let default = Duration::from_secs(default);
        text.filter(|text| !text.is_empty()).map_or(default, |text| {
            duration::parse(&text).unwrap_or_else(|message| {
                errors.push(SpecError::new(format!("spec.syncPolicy.retry.backoff.{name}"), message));
                default
            })
        })
    };
    let backoff_duration = pause(backoff.duration, "duration", limits::RETRY_BACKOFF_FIRST_SECS);
    let backoff_max_duration = pause(backoff.max_duration, "maxDuration", limits::RETRY_BACKOFF_MAX_SECS);
    let backoff_factor = match backoff.factor {
        None => limits::RETRY_BACKOFF_FACTOR,
        Some(factor) => u64::try_from(factor).ok().filter(|factor| *factor >= 1).unwrap_or_else(|| {
            errors.push(SpecError::new(
                "spec.syncPolicy.retry.backoff.factor",
                format!("is {factor}; it must be 1 or more"),
            ));
            1
        }),
    };
    Retry { limit, backoff_duration, backoff_factor, backoff_max_duration, refresh: refresh.unwrap_or(false) }
}

fn namespace_metadata(
    raw: RawNamespaceMetadata,
    creates_namespace: bool,
    errors: &mut Vec<SpecError>,
) -> NamespaceMetadata {
    const FIELD: &str = "spec.syncPolicy.managedNamespaceMetadata";
    if !creates_namespace {
        errors.push(SpecError::new(
            FIELD,
            "needs the sync option CreateNamespace=true; without it nobody writes the namespace",
        ));
    }
    let metadata = NamespaceMetadata {
        labels: raw.labels.unwrap_or_default(),
        annotations: raw.annotations.unwrap_or_default(),
    };
    for (key, value) in &metadata.labels {
        if !syntax::is_qualified_name(key) || !syntax::is_label_value(value) {
            errors.push(SpecError::new(format!("{FIELD}.labels[{key}]"), "is not a valid label"));
        }
    }
    for key in metadata.annotations.keys().filter(|key| !syntax::is_qualified_name(key)) {
        errors.push(SpecError::new(format!("{FIELD}.annotations[{key}]"), "is not a valid annotation key"));
    }
    metadata
}

fn ignore_rules(list: Vec<RawIgnoreDifferences>, errors: &mut Vec<SpecError>) -> Vec<IgnoreRule> {
    let mut rules = Vec::new();
    for (index, raw) in list.into_iter().enumerate() {
        let field = format!("spec.ignoreDifferences[{index}]");
        let RawIgnoreDifferences {
            group,
            kind,
            name,
            namespace,
            json_pointers,
            jq_path_expressions,
            managed_fields_managers,
        } = raw;
        let some = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
        refuse(some(&jq_path_expressions), &format!("{field}.jqPathExpressions"), errors);
        refuse(some(&managed_fields_managers), &format!("{field}.managedFieldsManagers"), errors);
        let rule = IgnoreRule {
            group: group.unwrap_or_default(),
            kind: kind.unwrap_or_default(),
            name: name.unwrap_or_default(),
            namespace: namespace.unwrap_or_default(),
            json_pointers: json_pointers.unwrap_or_default(),
        };
        if rule.kind.is_empty() {
            errors.push(SpecError::new(format!("{field}.kind"), "is missing (`*` is every kind)"));
        }
        for (index, pointer) in rule.json_pointers.iter().enumerate() {
            if let Err(message) = check_pointer(pointer) {
                errors.push(SpecError::new(format!("{field}.jsonPointers[{index}]"), message));
            }
        }
        rules.push(rule);
    }
    rules
}

/// RFC 6901, without the pointer to the whole document, which would ignore the object.
fn check_pointer(pointer: &str) -> Result<(), String> {
    if !pointer.starts_with('/') {
        return Err(format!("`{pointer}` is not a JSON pointer; write it like /spec/replicas"));
    }
    let bad_escape = pointer.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1']));
    if bad_escape {
        return Err(format!("`{pointer}` has a bare `~`; write ~0 for `~` and ~1 for `/`"));
    }
    Ok(())
}

fn history(limit: Option<i64>, errors: &mut Vec<SpecError>) -> usize {
    let Some(limit) = limit else { return limits::HISTORY_DEFAULT };
    usize::try_from(limit).unwrap_or_else(|_| {
        errors.push(SpecError::new(
            "spec.revisionHistoryLimit",
            format!("is {limit}; it must be 0 or more (0 keeps no history)"),
        ));
        0
    })
}
