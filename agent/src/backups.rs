//! Backups: what an object was before it was pruned, replaced or made anew.

use jiff::Timestamp;
use pintle_model::{AppKey, Object, ObjectKey, Problem};
use serde::{Deserialize, Serialize};

use crate::store::{Batch, Store, Table};

/// Backups that are kept, of all applications together; the oldest go first.
const KEPT: usize = 200;

/// One object as it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Backup {
    /// Its number: time in milliseconds and a part of the UID, sorted by time.
    pub id: String,
    /// The application that deleted or changed it.
    pub app: AppKey,
    /// Object.
    pub key: ObjectKey,
    /// `pruned`, `replaced`, `made anew`.
    pub why: String,
    /// When.
    pub at: Timestamp,
    /// The live object, without what only the server sets.
    pub object: serde_json::Value,
}

impl Backup {
    /// Of a live object, now.
    pub fn new(app: &AppKey, live: &Object, why: &str) -> Self {
        let at = Timestamp::now();
        let uid: String = live.uid().chars().take(8).collect();
        let mut kept = live.clone();
        kept.fields_mut().remove("status");
        for name in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
            "deletionTimestamp",
        ] {
            kept.metadata_mut().remove(name);
        }
        Self {
            id: format!("{:013}-{uid}", at.as_millisecond()),
            app: app.clone(),
            key: live.key(),
            why: why.to_owned(),
            at,
            object: kept.to_value(),
        }
    }
}

/// Keeps a backup, durable before it returns; encrypted as everything in the store.
pub fn save(store: &Store, backup: &Backup) -> Result<(), Problem> {
    let mut batch = Batch::new();
    batch.put(Table::Backups, &backup.id, backup)?;
    let known = store.keys(Table::Backups, "")?;
    for id in known.iter().take((known.len() + 1).saturating_sub(KEPT)) {
        batch.delete(Table::Backups, id);
    }
    store.commit(batch).map(|_| ())
}

/// All backups, oldest first.
pub fn list(store: &Store) -> Result<Vec<Backup>, Problem> {
    Ok(store.scan::<Backup>(Table::Backups, "")?.into_iter().map(|(_, backup)| backup).collect())
}

/// One backup.
pub fn get(store: &Store, id: &str) -> Result<Option<Backup>, Problem> {
    store.get(Table::Backups, id)
}
