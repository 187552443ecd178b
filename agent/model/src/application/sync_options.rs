//! Sync options: the `Option=value` texts of `spec.syncPolicy.syncOptions` and of the annotation
//! `argocd.argoproj.io/sync-options`, typed.

use serde::{Deserialize, Serialize};

use super::SpecError;
use crate::names::SYNC_OPTIONS;
use crate::nearest::suggestion;

/// Typed sync options of an application or of one object. `None` means that nothing was said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SyncOptions {
    /// `Prune`: may it be deleted when it left git? `false` keeps it, `confirm` asks for a person's word.
    pub prune: Option<Consent>,
    /// `Delete`: may it be deleted with its application? `false` keeps it, `confirm` asks for a person's word.
    pub delete: Option<Consent>,
    /// `PruneLast=true`: deletions wait until everything that was applied is healthy.
    pub prune_last: Option<bool>,
    /// `Replace=true`: the manifest replaces the object instead of being applied to it.
    pub replace: Option<bool>,
    /// `Force=true`: an object whose immutable fields changed is deleted and made anew.
    pub force: Option<bool>,
    /// `SkipDryRunOnMissingResource`. A kind that is not known yet is never dry-run; both values have one result.
    pub skip_dry_run_on_missing_resource: Option<bool>,
    /// `CreateNamespace=true` makes `destination.namespace`.
    pub create_namespace: Option<bool>,
    /// `ApplyOutOfSyncOnly`. The planner never applies an object that equals git, so both values have one result.
    pub apply_out_of_sync_only: Option<bool>,
    /// `ServerSideApply`. Both values apply server-side (docs/differences.md).
    pub server_side_apply: Option<bool>,
    /// `ClientSideApplyMigration`: take over the fields of client-side apply's managers. On unless switched off.
    pub client_side_apply_migration: Option<bool>,
    /// `RespectIgnoreDifferences`. Always on for objects that exist (docs/differences.md).
    pub respect_ignore_differences: Option<bool>,
    /// `FailOnSharedResource=true`: the sync fails when another application owns an object of this one.
    pub fail_on_shared_resource: Option<bool>,
    /// `Validate=false`: the API server ignores unknown and duplicate fields.
    pub validate: Option<bool>,
    /// `PrunePropagationPolicy`.
    pub prune_propagation_policy: Option<PropagationPolicy>,
}

/// May something be deleted?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consent {
    /// Yes.
    True,
    /// No: it stays.
    False,
    /// Only with a person's word.
    Confirm,
}

impl Consent {
    fn as_str(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::False => "false",
            Self::Confirm => "confirm",
        }
    }
}

/// How the API server deletes dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PropagationPolicy {
    /// Dependents first. Argo CD's default.
    Foreground,
    /// The object first, dependents by the garbage collector.
    Background,
    /// Dependents stay.
    Orphan,
}

impl PropagationPolicy {
    /// The value of `propagationPolicy` in DeleteOptions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Foreground => "Foreground",
            Self::Background => "Background",
            Self::Orphan => "Orphan",
        }
    }
}

/// What the API server does with fields that it does not know (`fieldValidation` of a write).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FieldValidation {
    /// Refuse them: a typing error in a manifest is found. The default, as in Argo CD.
    Strict,
    /// Drop them silently: `Validate=false`.
    Ignore,
}

impl FieldValidation {
    /// The value of the query parameter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::Ignore => "Ignore",
        }
    }
}

type Slot = fn(&mut SyncOptions) -> &mut Option<bool>;

/// Options with the values true and false.
const BOOLEAN: [(&str, Slot); 11] = [
    ("PruneLast", |options| &mut options.prune_last),
    ("Replace", |options| &mut options.replace),
    ("Force", |options| &mut options.force),
    ("SkipDryRunOnMissingResource", |options| &mut options.skip_dry_run_on_missing_resource),
    ("CreateNamespace", |options| &mut options.create_namespace),
    ("ApplyOutOfSyncOnly", |options| &mut options.apply_out_of_sync_only),
    ("ServerSideApply", |options| &mut options.server_side_apply),
    ("ClientSideApplyMigration", |options| &mut options.client_side_apply_migration),
    ("RespectIgnoreDifferences", |options| &mut options.respect_ignore_differences),
    ("FailOnSharedResource", |options| &mut options.fail_on_shared_resource),
    ("Validate", |options| &mut options.validate),
];

type ConsentSlot = fn(&mut SyncOptions) -> &mut Option<Consent>;

/// Options with the values true, false and confirm.
const CONSENT: [(&str, ConsentSlot); 2] =
    [("Prune", |options| &mut options.prune), ("Delete", |options| &mut options.delete)];

const PROPAGATION: &str = "PrunePropagationPolicy";

impl SyncOptions {
    /// These options of one object laid over those of its application: the object wins.
    pub fn over(&self, app: &Self) -> Self {
        Self {
            prune: self.prune.or(app.prune),
            delete: self.delete.or(app.delete),
            prune_last: self.prune_last.or(app.prune_last),
            replace: self.replace.or(app.replace),
            force: self.force.or(app.force),
            skip_dry_run_on_missing_resource: self
                .skip_dry_run_on_missing_resource
                .or(app.skip_dry_run_on_missing_resource),
            create_namespace: self.create_namespace.or(app.create_namespace),
            apply_out_of_sync_only: self.apply_out_of_sync_only.or(app.apply_out_of_sync_only),
            server_side_apply: self.server_side_apply.or(app.server_side_apply),
            client_side_apply_migration: self.client_side_apply_migration.or(app.client_side_apply_migration),
            respect_ignore_differences: self.respect_ignore_differences.or(app.respect_ignore_differences),
            fail_on_shared_resource: self.fail_on_shared_resource.or(app.fail_on_shared_resource),
            validate: self.validate.or(app.validate),
            prune_propagation_policy: self.prune_propagation_policy.or(app.prune_propagation_policy),
        }
    }

    /// May the object be pruned? Yes unless `Prune=false`.
    pub fn may_prune(&self) -> bool {
        self.prune != Some(Consent::False)
    }

    /// Is the destination namespace made? No unless `CreateNamespace=true`.
    pub fn creates_namespace(&self) -> bool {
        self.create_namespace.unwrap_or(false)
    }

    /// Are fields of client-side apply's managers taken over? Yes unless switched off.
    pub fn migrates_client_side_apply(&self) -> bool {
        self.client_side_apply_migration.unwrap_or(true)
    }

    /// Does a shared object fail the sync? No unless `FailOnSharedResource=true`.
    pub fn fails_on_shared_resource(&self) -> bool {
        self.fail_on_shared_resource.unwrap_or(false)
    }

    /// `fieldValidation` of writes: Strict unless `Validate=false`.
    pub fn field_validation(&self) -> FieldValidation {
        if self.validate.unwrap_or(true) { FieldValidation::Strict } else { FieldValidation::Ignore }
    }

    /// How dependents go with a pruned object: foreground unless said otherwise.
    pub fn propagation(&self) -> PropagationPolicy {
        self.prune_propagation_policy.unwrap_or(PropagationPolicy::Foreground)
    }

    /// The texts that make these options, in a fixed order.
    pub fn to_texts(&self) -> Vec<String> {
        let mut options = self.clone();
        let mut texts: Vec<String> = CONSENT
            .iter()
            .filter_map(|(name, slot)| slot(&mut options).map(|value| format!("{name}={}", value.as_str())))
            .collect();
        texts.extend(
            BOOLEAN
                .iter()
                .filter_map(|(name, slot)| slot(&mut options).map(|value| format!("{name}={value}"))),
        );
        if let Some(policy) = self.prune_propagation_policy {
            texts.push(format!("{PROPAGATION}={}", policy.as_str().to_lowercase()));
        }
        texts
    }
}

/// Reads the comma list of an object's annotation. Blanks around the parts and empty parts are allowed.
pub fn parse_sync_options(text: &str) -> Result<SyncOptions, SpecError> {
    let mut options = SyncOptions::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        set(&mut options, part)
            .map_err(|message| SpecError::new(format!("metadata.annotations[{SYNC_OPTIONS}]"), message))?;
    }
    Ok(options)
}

/// Reads the list `spec.syncPolicy.syncOptions`; every bad entry is reported with its index.
pub(super) fn from_list(list: &[String], field: &str, errors: &mut Vec<SpecError>) -> SyncOptions {
    let mut options = SyncOptions::default();
    for (index, text) in list.iter().enumerate() {
        if let Err(message) = set(&mut options, text.trim()) {
            errors.push(SpecError::new(format!("{field}[{index}]"), message));
        }
    }
    options
}

fn set(options: &mut SyncOptions, text: &str) -> Result<(), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    if let Some((_, slot)) = BOOLEAN.iter().find(|(known, _)| *known == name) {
        let value = match value {
            "true" => true,
            "false" => false,
            _ => return Err(format!("`{text}` is not a sync option; valid: {name}=true, {name}=false")),
        };
        return put(slot(options), value, name);
    }
    if let Some((_, slot)) = CONSENT.iter().find(|(known, _)| *known == name) {
        let value = match value {
            "true" => Consent::True,
            "false" => Consent::False,
            "confirm" => Consent::Confirm,
            _ => {
                return Err(format!(
                    "`{text}` is not a sync option; valid: {name}=true, {name}=false, {name}=confirm"
                ));
            }
        };
        return put(slot(options), value, name);
    }
    if name == PROPAGATION {
        let policy = match value {
            "foreground" => PropagationPolicy::Foreground,
            "background" => PropagationPolicy::Background,
            "orphan" => PropagationPolicy::Orphan,
            _ => {
                return Err(format!(
                    "`{text}` is not a sync option; valid: {name}=foreground, {name}=background, {name}=orphan"
                ));
            }
        };
        return put(&mut options.prune_propagation_policy, policy, name);
    }
    let known = known_names();
    Err(format!(
        "`{text}` is not a sync option{}; valid: {}",
        suggestion(name, &known),
        known.iter().map(|name| format!("{name}=...")).collect::<Vec<_>>().join(", ")
    ))
}

/// One option said twice with two values has no meaning that everybody would guess.
fn put<T: PartialEq>(slot: &mut Option<T>, value: T, name: &str) -> Result<(), String> {
    match slot {
        Some(before) if *before != value => Err(format!("{name} is given twice with different values")),
        _ => {
            *slot = Some(value);
            Ok(())
        }
    }
}

fn known_names() -> Vec<&'static str> {
    let consent = CONSENT.iter().map(|(name, _)| *name);
    consent.chain(BOOLEAN.iter().map(|(name, _)| *name)).chain([PROPAGATION]).collect()
}
