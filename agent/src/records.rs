//! The engine's records in the store: reading them at start, writing them in one batch.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use pintle_core::engine::record::{
    AppRecord, DesiredEntry, HistoryRecord, InventoryRecord, OperationRecord, Pin, Records, RefRecord,
    RenderRecord, Write,
};
use pintle_core::fields::OwnedSet;
use pintle_model::application::Application;
use pintle_model::{AppKey, Digest, ObjectKey, Problem};
use serde::{Deserialize, Serialize};

use crate::store::{Batch, REBUILT, Store, Table};

/// Meta key of the UID of the cluster that the store belongs to.
pub const CLUSTER_UID: &str = "cluster-uid";
/// Meta key of the last operation id.
const LAST_OPERATION: &str = "last-operation";
/// Separates the parts of a key: it occurs neither in names nor in URLs.
const SEPARATOR: char = '\u{1f}';

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RefKeyed {
    url: String,
    target: String,
    record: RefRecord,
}

/// Everything that the engine starts from.
///
/// `spec_of` makes a valid Application of a stored one; one that this version refuses is left without a spec and
/// stays listed with its objects.
pub fn load(
    store: &Store,
    spec_of: impl Fn(&serde_json::Value) -> Option<Application>,
) -> Result<Records, Problem> {
    let fresh = !store.get::<bool>(Table::Meta, REBUILT)?.unwrap_or(false);
    let mut records = Records { fresh, ..Records::default() };
    for (key, record) in store.scan::<AppRecord>(Table::Apps, "")? {
        let Ok(key) = key.parse::<AppKey>() else { continue };
        if let Some(spec) = spec_of(&record.spec) {
            records.specs.insert(key.clone(), Arc::new(spec));
        }
        let renders = record.render.into_iter().chain(record.pin.as_ref().map(|pin| pin.render));
        for id in renders {
            if let Some(render) = render(store, id)? {
                records.renders.insert(id, render);
            }
        }
        if let Some(last) =
            store.get::<HistoryRecord>(Table::History, &history_key(&key, record.last_history))?
        {
            records.last.insert(key.clone(), last);
        }
        records.apps.insert(key, record);
    }
    for (key, record) in store.scan::<InventoryRecord>(Table::Inventory, "")? {
        let Some((app, object)) = key.split_once(SEPARATOR) else { continue };
        if let (Ok(app), Ok(object)) = (app.parse(), object.parse()) {
            records.inventory.entry(app).or_default().insert(object, record);
        }
    }
    drop_unused_sets(store, &records);
    for (key, set) in store.scan::<OwnedSet>(Table::Sets, "")? {
        if let Ok(digest) = key.parse() {
            records.sets.insert(digest, set);
        }
    }
    for (key, record) in store.scan::<OperationRecord>(Table::Operations, "")? {
        if let Ok(app) = key.parse() {
            records.operations.insert(app, record);
        }
    }
    for (_, keyed) in store.scan::<RefKeyed>(Table::Meta, "ref/")? {
        records.refs.insert((keyed.url, keyed.target), keyed.record);
    }
    records.last_operation = store.get(Table::Meta, LAST_OPERATION)?.unwrap_or(0);
    Ok(records)
}

/// Owned sets that no inventory names any more go, or they would pile up for years. Only here: while the engine runs it
/// remembers which sets it has written, and writes none twice.
fn drop_unused_sets(store: &Store, records: &Records) {
    let used: HashSet<String> = records
        .inventory
        .values()
        .flat_map(BTreeMap::values)
        .filter_map(|record| record.set)
        .map(|digest| digest.to_string())
        .collect();
    let dropped = store.keys(Table::Sets, "").and_then(|keys| {
        let mut batch = Batch::new();
        keys.iter().filter(|key| !used.contains(*key)).for_each(|key| batch.delete(Table::Sets, key));
        store.commit(batch)
    });
    // A full disk must not keep the agent from starting.
    if let Err(problem) = dropped {
        tracing::warn!("sets of fields that are no longer used stay in the store: {problem}");
    }
}

/// A stored render.
pub fn render(store: &Store, id: Digest) -> Result<Option<RenderRecord>, Problem> {
    store.get(Table::Renders, &id.to_string())
}

/// The history of an application, oldest first.
pub fn history(store: &Store, app: &AppKey) -> Result<Vec<HistoryRecord>, Problem> {
    let prefix = format!("{app}{SEPARATOR}");
    Ok(store.scan::<HistoryRecord>(Table::History, &prefix)?.into_iter().map(|(_, record)| record).collect())
}

/// One history entry.
pub fn history_entry(store: &Store, app: &AppKey, id: u64) -> Result<Option<HistoryRecord>, Problem> {
    store.get(Table::History, &history_key(app, id))
}

/// Puts the engine's writes into one batch.
pub fn batch(store: &Store, writes: &[Write]) -> Result<Batch, Problem> {
    let mut batch = Batch::new();
    let mut collect = false;
    for write in writes {
        match write {
            Write::App(key, Some(record)) => batch.put(Table::Apps, &key.to_string(), record)?,
            Write::App(key, None) => batch.delete(Table::Apps, &key.to_string()),
            Write::Inventory(app, key, Some(record)) => {
                batch.put(Table::Inventory, &inventory_key(app, key), record)?;
            }
            Write::Inventory(app, key, None) => batch.delete(Table::Inventory, &inventory_key(app, key)),
            Write::Set(digest, set) => batch.put(Table::Sets, &digest.to_string(), &**set)?,
            Write::Operation(app, Some(record)) => {
                batch.put(Table::Operations, &app.to_string(), record)?;
                batch.put(Table::Meta, LAST_OPERATION, &record.id)?;
            }
            Write::Operation(app, None) => batch.delete(Table::Operations, &app.to_string()),
            Write::History(app, record) => batch.put(Table::History, &history_key(app, record.id), record)?,
            Write::DropHistory(app, ids) => {
                for id in ids {
                    batch.delete(Table::History, &history_key(app, *id));
                }
            }
            Write::Ref(url, target, record) => {
                let key = format!("ref/{}", Digest::of_parts([url.as_bytes(), target.as_bytes()]).short(32));
                let keyed = RefKeyed { url: url.clone(), target: target.clone(), record: record.clone() };
                batch.put(Table::Meta, &key, &keyed)?;
            }
            Write::Rebuilt => batch.put(Table::Meta, REBUILT, &true)?,
            Write::Collect => collect = true,
        }
    }
    if collect {
        collect_renders(store, writes, &mut batch)?;
    }
    Ok(batch)
}

/// Drops renders that no application, pin or history entry names, counting what this batch is about to write.
fn collect_renders(store: &Store, writes: &[Write], batch: &mut Batch) -> Result<(), Problem> {
    let mut keep: HashSet<Digest> = HashSet::new();
    let mut apps: BTreeMap<String, AppRecord> = store.scan(Table::Apps, "")?.into_iter().collect();
    let mut entries: BTreeMap<String, HistoryRecord> = store.scan(Table::History, "")?.into_iter().collect();
    for write in writes {
        match write {
            Write::App(key, Some(record)) => drop(apps.insert(key.to_string(), record.clone())),
            Write::App(key, None) => drop(apps.remove(&key.to_string())),
            Write::History(app, record) => drop(entries.insert(history_key(app, record.id), record.clone())),
            Write::DropHistory(app, ids) => {
                for id in ids {
                    entries.remove(&history_key(app, *id));
                }
            }
            _ => {}
        }
    }
    keep.extend(
        apps.values().flat_map(|app| app.render.into_iter().chain(app.pin.as_ref().map(|pin| pin.render))),
    );
    keep.extend(entries.values().map(|entry| entry.render));
    for key in store.keys(Table::Renders, "")? {
        if key.parse::<Digest>().is_ok_and(|id| !keep.contains(&id)) {
            batch.delete(Table::Renders, &key);
        }
    }
    Ok(())
}

/// Manifests that some stored render or inventory entry names: all others may go.
pub fn manifests_in_use(store: &Store) -> Result<HashSet<Digest>, Problem> {
    let renders = store.scan::<RenderRecord>(Table::Renders, "")?;
    let mut keep: HashSet<Digest> = renders
        .iter()
        .flat_map(|(_, render)| {
            let hooks = render.hooks.iter().map(|hook| &hook.entry);
            render.objects.iter().chain(hooks).map(|entry: &DesiredEntry| entry.manifest)
        })
        .collect();
    let inventory = store.scan::<InventoryRecord>(Table::Inventory, "")?;
    keep.extend(inventory.iter().filter_map(|(_, record)| record.manifest));
    Ok(keep)
}

/// Writes a render and its payloads; nothing is written that is there already.
pub fn save_render(store: &Store, render: &RenderRecord, payloads: &[Vec<u8>]) -> Result<(), Problem> {
    let mut batch = Batch::new();
    for payload in payloads {
        batch.put_blob(payload);
    }
    batch.put(Table::Renders, &render.id.to_string(), render)?;
    store.commit(batch)?;
    Ok(())
}

/// Binds the store to another cluster: inventory and journal go, and are rebuilt from there. Returns the old UID.
pub fn rebind(store: &Store, uid: &str) -> Result<String, Problem> {
    let old: String = store.get(Table::Meta, CLUSTER_UID)?.unwrap_or_default();
    let mut batch = Batch::new();
    if old != uid {
        for table in [Table::Inventory, Table::Operations] {
            for key in store.keys(table, "")? {
                batch.delete(table, &key);
            }
        }
        batch.delete(Table::Meta, REBUILT);
        batch.delete(Table::Discovery, "discovery");
    }
    batch.put(Table::Meta, CLUSTER_UID, uid)?;
    store.commit(batch)?;
    Ok(old)
}

/// A pin as it stands on the ApplySet parent.
pub fn pin_text(pin: &Pin) -> String {
    serde_json::to_string(pin).unwrap_or_default()
}

fn inventory_key(app: &AppKey, key: &ObjectKey) -> String {
    format!("{app}{SEPARATOR}{}", key.path())
}

/// Ids in hex of fixed width, so that the store's order is the order of time.
fn history_key(app: &AppKey, id: u64) -> String {
    format!("{app}{SEPARATOR}{id:016x}")
}
