//! What Argo CD has no field for: annotations `pintle.dev/*` on an Application, typed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::SpecError;
use crate::names::{ADOPT, ADOPTED_ANNOTATION, DRY_RUN, ROLLBACK_UNTIL, SYNC_TIMEOUT, TRACKING_ANNOTATION};
use crate::nearest::suggestion;
use crate::{duration, limits};

/// Prefix of our annotations.
const PREFIX: &str = "pintle.dev/";

/// Settings that are read.
const KNOWN: [&str; 4] = [SYNC_TIMEOUT, ADOPT, ROLLBACK_UNTIL, DRY_RUN];

/// Settings of later versions: refused, so that nobody believes they work.
const LATER: [&str; 7] = [
    "pintle.dev/prune-limit",
    "pintle.dev/depends-on",
    "pintle.dev/rollback-on-degraded",
    "pintle.dev/image-preflight",
    "pintle.dev/tracking",
    "pintle.dev/replicas",
    "pintle.dev/render-twice",
];

/// Marks that the agent itself puts on objects; on an exported Application they ask for nothing.
const MARKS: [&str; 2] = [TRACKING_ANNOTATION, ADOPTED_ANNOTATION];

/// Typed settings of one application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Deadline of one (phase, wave) step: `pintle.dev/sync-timeout`, 10 min unless set.
    pub sync_timeout: Duration,
    /// Adopt objects with another owner's mark: `pintle.dev/adopt`.
    pub adopt: bool,
    /// When a rollback ends by itself: `pintle.dev/rollback-until`.
    pub rollback_until: RollbackUntil,
    /// What is dry-run on the server before a wave begins: `pintle.dev/dry-run`.
    #[serde(default)]
    pub dry_run: DryRun,
}

/// What is dry-run on the server before the first write of a wave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DryRun {
    /// Creates too.
    All,
    /// What exists and would change: a first sync runs at the API server's own speed.
    #[default]
    Changed,
    /// Nothing.
    None,
}

/// When a rollback stops holding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RollbackUntil {
    /// When a revision arrives that is neither the pinned nor the abandoned one, or a person resumes.
    #[default]
    Newer,
    /// Only when a person resumes.
    Resume,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sync_timeout: Duration::from_secs(limits::SYNC_TIMEOUT_SECS),
            adopt: false,
            rollback_until: RollbackUntil::default(),
            dry_run: DryRun::default(),
        }
    }
}

/// Reads the settings of `annotations`; an unknown `pintle.dev/*` key is an error. `field` is the path of the
/// map in messages (`metadata.annotations`, or `defaults.annotations` of the configuration).
pub fn parse_settings(
    annotations: &BTreeMap<String, String>,
    field: &str,
    errors: &mut Vec<SpecError>,
) -> Settings {
    let mut settings = Settings::default();
    for (key, value) in annotations.iter().filter(|(key, _)| key.starts_with(PREFIX)) {
        if let Err(message) = set(&mut settings, key, value) {
            errors.push(SpecError::new(format!("{field}[{key}]"), message));
        }
    }
    settings
}

fn set(settings: &mut Settings, key: &str, value: &str) -> Result<(), String> {
    match key {
        SYNC_TIMEOUT => {
            let timeout = duration::parse(value)?;
            if timeout.is_zero() {
                return Err(
                    "a deadline of zero can never be met; leave the annotation out for 10m".to_owned()
                );
            }
            settings.sync_timeout = timeout;
        }
        ADOPT => {
            settings.adopt = match value {
                "true" => true,
                "false" => false,
                _ => return Err(format!("`{value}` is not valid; valid: \"true\", \"false\"")),
            };
        }
        ROLLBACK_UNTIL => {
            settings.rollback_until = match value {
                "newer" => RollbackUntil::Newer,
                "resume" => RollbackUntil::Resume,
                _ => return Err(format!("`{value}` is not valid; valid: newer, resume")),
            };
        }
        DRY_RUN => {
            settings.dry_run = match value {
                "all" => DryRun::All,
                "changed" => DryRun::Changed,
                "none" => DryRun::None,
                _ => return Err(format!("`{value}` is not valid; valid: all, changed, none")),
            };
        }
        _ if MARKS.contains(&key) => {}
        _ if LATER.contains(&key) => return Err(format!("{key} is not supported by this version")),
        _ => {
            let names: Vec<&str> = KNOWN.iter().chain(&LATER).copied().collect();
            return Err(format!("unknown setting{}; known: {}", suggestion(key, &names), KNOWN.join(", ")));
        }
    }
    Ok(())
}
