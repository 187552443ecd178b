//! An API server in memory that is stricter than a real one: it refuses what a real one would let pass by luck,
//! and it remembers every write and delete so that the invariants can judge them.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_core::adopt::{self, Decision};
use pintle_core::engine::effect::{Apply, Expect};
use pintle_core::engine::event::Applied;
use pintle_core::engine::record::Adopted;
use pintle_model::{Digest, Object, ObjectKey, Problem, Reason, names};
use serde_json::{Map, Value, json};

/// The server.
#[derive(Debug, Default)]
pub struct FakeCluster {
    pub objects: BTreeMap<ObjectKey, Object>,
    /// UIDs of objects that people made.
    pub foreign: std::collections::BTreeSet<String>,
    pub version: u64,
    pub next_uid: u64,
    pub writes: u64,
    pub deleted: u64,
    /// Objects that must be told to the watches: (key, is it a deletion or a lost label).
    pub changes: Vec<(ObjectKey, Change)>,
}

/// What a watch with our label as its selector sees.
#[derive(Debug, Clone)]
pub enum Change {
    Seen(Object),
    Left(Object),
}

/// Who asks.
pub struct Asker<'a> {
    pub part_of: &'a str,
    pub tracking_id: &'a str,
    pub agent_id: &'a str,
}

impl FakeCluster {
    /// Server-side apply with force, as the pipeline sends it.
    pub fn apply(&mut self, apply: &Apply, payload: &Object, asker: &Asker<'_>) -> Result<Applied, Problem> {
        let live = self.objects.get(&apply.key).cloned();
        let (expect_uid, adopted) = match &apply.expect {
            Expect::Uid(uid) => match &live {
                Some(object) if object.uid() == &**uid => (Some(uid.to_string()), None),
                _ => {
                    return Err(Problem::new(
                        Reason::Conflict,
                        format!("{} is not the object we knew", apply.key),
                    ));
                }
            },
            Expect::Absent => {
                (None, live.as_ref().filter(|live| adopt::has_foreign_fields(live)).map(|_| Adopted::Changed))
            }
            Expect::Look => {
                let decision = adopt::decide(
                    live.as_ref(),
                    asker.part_of,
                    asker.tracking_id,
                    &adopt::Agent { id: asker.agent_id, namespace: "pintle-system" },
                    apply.take_over,
                );
                match decision {
                    Decision::Create => (None, None),
                    Decision::Update(uid) => {
                        let mark = live.as_ref().map_or(Adopted::No, adopt::adopted_mark);
                        (Some(uid), (mark != Adopted::No).then_some(mark))
                    }
                    Decision::Adopt(uid) => (Some(uid), Some(Adopted::Changed)),
                    Decision::Refuse(mark) => {
                        return Err(Problem::new(Reason::OwnedByAnother, adopt::refusal(&apply.key, &mark)));
                    }
                }
            }
        };
        let created = live.is_none();
        let mut payload = payload.clone();
        if adopted.is_some() || apply.adopted != Adopted::No {
            payload.set_annotation(names::ADOPTED_ANNOTATION, "changed");
        }
        let payload = &payload;
        let mut next = live.clone().unwrap_or_else(|| {
            let mut fresh = payload.clone();
            self.next_uid += 1;
            fresh.metadata_mut().insert("uid".into(), json!(format!("uid-{}", self.next_uid)));
            fresh
        });
        if let Some(uid) = expect_uid {
            assert_eq!(next.uid(), uid, "an apply reached another object than it meant");
        }
        remove_left_fields(&mut next, payload);
        merge(next.fields_mut(), payload.fields());
        let fields = fields_of(payload);
        let mut others = other_entries(&next, names::FIELD_MANAGER);
        for entry in &mut others {
            subtract(&mut entry["fieldsV1"], &fields);
        }
        others.push(
            json!({"manager": names::FIELD_MANAGER, "operation": "Apply", "apiVersion": payload.api_version(),
            "fieldsType": "FieldsV1", "fieldsV1": fields}),
        );
        next.metadata_mut().insert("managedFields".into(), Value::Array(others));
        self.store(&apply.key, next.clone(), live.as_ref());
        let answer = self.objects.get(&apply.key).cloned().expect("just stored");
        Ok(Applied {
            manifest: apply.manifest,
            ignored: Vec::new(),
            answer: Arc::new(answer),
            created,
            adopted,
            released: Vec::new(),
        })
    }

    /// A person changes a field, with or without (webhook, replace) taking ownership.
    pub fn edit(&mut self, key: &ObjectKey, path: &[&str], value: Value, takes_ownership: bool, time: &str) {
        let Some(live) = self.objects.get(key).cloned() else { return };
        let mut next = live.clone();
        let mut patch = value;
        for part in path.iter().rev() {
            patch = json!({ *part: patch });
        }
        if let Value::Object(patch) = &patch {
            merge(next.fields_mut(), patch);
        }
        if takes_ownership {
            let mut fields = json!({});
            let mut slot = &mut fields;
            for part in path {
                slot[format!("f:{part}")] = json!({});
                slot = &mut slot[format!("f:{part}")];
            }
            let mut entries = other_entries(&next, "person");
            for entry in &mut entries {
                subtract(&mut entry["fieldsV1"], &fields);
            }
            entries
                .push(json!({"manager": "person", "operation": "Update", "apiVersion": next.api_version(),
                "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields}));
            next.metadata_mut().insert("managedFields".into(), Value::Array(entries));
        }
        self.store(key, next, Some(&live));
    }

    /// A person removes our label.
    pub fn unlabel(&mut self, key: &ObjectKey) {
        let Some(live) = self.objects.get(key).cloned() else { return };
        let mut next = live.clone();
        if let Some(Value::Object(labels)) = next.metadata_mut().get_mut("labels") {
            labels.remove(names::AGENT_LABEL);
        }
        self.store(key, next, Some(&live));
    }

    /// A person creates an object.
    pub fn create_foreign(&mut self, key: &ObjectKey, mut object: Object) {
        if self.objects.contains_key(key) {
            return;
        }
        self.next_uid += 1;
        let uid = format!("uid-{}", self.next_uid);
        object.metadata_mut().insert("uid".into(), json!(uid));
        let entry = json!([{"manager": "person", "operation": "Update", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}, "f:person": {}}}}]);
        object.metadata_mut().insert("managedFields".into(), entry);
        self.foreign.insert(uid);
        self.store(key, object, None);
    }

    /// A delete with its UID as precondition, by the agent.
    pub fn delete(&mut self, key: &ObjectKey, uid: &str) -> Result<bool, Problem> {
        match self.objects.get(key) {
            None => Ok(true),
            Some(object) if object.uid() == uid => {
                self.deleted += 1;
                self.remove(key);
                Ok(true)
            }
            Some(_) => Err(Problem::new(Reason::Conflict, format!("{key} has another UID"))),
        }
    }

    /// The object goes away.
    pub fn remove(&mut self, key: &ObjectKey) {
        if let Some(object) = self.objects.remove(key) {
            self.version += 1;
            self.writes += 1;
            if object.label(names::AGENT_LABEL).is_some() {
                self.changes.push((key.clone(), Change::Left(object)));
            }
        }
    }

    /// A Job ends.
    pub fn end_job(&mut self, key: &ObjectKey, uid: &str, ok: bool) {
        let Some(live) = self.objects.get(key).filter(|live| live.uid() == uid).cloned() else { return };
        let kind = if ok { "Complete" } else { "Failed" };
        let mut next = live.clone();
        let status = json!({"conditions": [{"type": kind, "status": "True", "reason": "Sim"}]});
        next.fields_mut().insert("status".into(), status);
        self.store(key, next, Some(&live));
    }

    fn store(&mut self, key: &ObjectKey, mut next: Object, live: Option<&Object>) {
        if let Some(live) = live {
            let version = live.resource_version().to_owned();
            next.metadata_mut().insert("resourceVersion".into(), json!(version));
            if next == *live {
                return;
            }
        }
        self.version += 1;
        self.writes += 1;
        next.metadata_mut().insert("resourceVersion".into(), json!(self.version.to_string()));
        let labelled = next.label(names::AGENT_LABEL).is_some();
        let was = live.is_some_and(|live| live.label(names::AGENT_LABEL).is_some());
        if labelled {
            self.changes.push((key.clone(), Change::Seen(next.clone())));
        } else if was {
            self.changes.push((key.clone(), Change::Left(next.clone())));
        }
        self.objects.insert(key.clone(), next);
    }
}

/// `f:` sets of a payload; lists are atomic here.
fn fields_of(payload: &Object) -> Value {
    fn walk(map: &Map<String, Value>, top: bool) -> Value {
        let mut fields = Map::new();
        for (name, value) in map {
            if top && matches!(name.as_str(), "apiVersion" | "kind") {
                continue;
            }
            let child = match value {
                Value::Object(inner) if !inner.is_empty() => walk(inner, false),
                _ => json!({}),
            };
            fields.insert(format!("f:{name}"), child);
        }
        Value::Object(fields)
    }
    let mut fields = walk(payload.fields(), true);
    if let Some(metadata) = fields.get_mut("f:metadata").and_then(Value::as_object_mut) {
        for name in ["f:name", "f:namespace", "f:uid", "f:resourceVersion", "f:managedFields"] {
            metadata.remove(name);
        }
    }
    fields
}

/// Fields that our last apply set and this one does not are removed, as server-side apply does.
fn remove_left_fields(live: &mut Object, payload: &Object) {
    let ours = other_entries_of(live, names::FIELD_MANAGER);
    let Some(fields) = ours else { return };
    let wanted = fields_of(payload);
    fn walk(map: &mut Map<String, Value>, fields: &Value, wanted: &Value) {
        let Some(fields) = fields.as_object() else { return };
        for (name, child) in fields {
            let Some(plain) = name.strip_prefix("f:") else { continue };
            match wanted.get(name) {
                None => {
                    map.remove(plain);
                }
                Some(wanted) => {
                    if let Some(Value::Object(inner)) = map.get_mut(plain) {
                        walk(inner, child, wanted);
                    }
                }
            }
        }
    }
    walk(live.fields_mut(), &fields, &wanted);
}

fn other_entries(object: &Object, manager: &str) -> Vec<Value> {
    let entries =
        object.at(&["metadata", "managedFields"]).and_then(Value::as_array).cloned().unwrap_or_default();
    entries.into_iter().filter(|entry| entry["manager"] != manager).collect()
}

fn other_entries_of(object: &Object, manager: &str) -> Option<Value> {
    let entries = object.at(&["metadata", "managedFields"])?.as_array()?;
    entries.iter().find(|entry| entry["manager"] == manager).map(|entry| entry["fieldsV1"].clone())
}

fn subtract(fields: &mut Value, taken: &Value) {
    let (Some(fields), Some(taken)) = (fields.as_object_mut(), taken.as_object()) else { return };
    for (name, below) in taken {
        let empty = below.as_object().is_none_or(Map::is_empty);
        if let Some(mine) = fields.get_mut(name) {
            subtract(mine, below);
            if empty || mine.as_object().is_some_and(Map::is_empty) {
                fields.remove(name);
            }
        }
    }
}

fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(value)) if !value.is_empty() => merge(inner, value),
            _ => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Digest of a payload, as the store addresses it.
pub fn digest(payload: &Object) -> Digest {
    Digest::of_json(&payload.to_value())
}
