//! Migration: fields that an earlier tool applied become ours at adoption, so that what git removes really goes.
//!
//! Server-side apply removes only what our own entry owns. An object that `kubectl apply`, Helm or another GitOps
//! tool made keeps every field of theirs for ever, also those that git dropped, unless their entries are folded
//! into ours first.

use pintle_model::Object;
use serde_json::{Map, Value, json};

/// Managers whose fields were wanted by a manifest, as ours are: by name, with operation Update or Apply.
const APPLIED_BY: &[(&str, &str)] = &[
    ("kubectl-client-side-apply", "Update"),
    ("kubectl-last-applied", "Apply"),
    ("before-first-apply", "Update"),
    ("before-first-apply", "Apply"),
    ("kubectl", "Apply"),
    ("helm", "Update"),
    ("helm", "Apply"),
    ("Helm", "Update"),
    ("argocd-application-controller", "Update"),
    ("argocd-application-controller", "Apply"),
    ("argocd-controller", "Apply"),
    ("kustomize-controller", "Apply"),
    ("helm-controller", "Update"),
    ("fleetagent", "Update"),
];

/// The JSON patch that folds the entries of earlier tools into ours, guarded by the resourceVersion; `None` when there
/// is nothing to fold.
///
/// kubectl's note of what it applied last goes too: it may quote secret values, and no tool reads it any more.
pub fn migration_patch(live: &Object, manager: &str, last_applied: &str) -> Option<Vec<Value>> {
    let entries = live.at(&["metadata", "managedFields"])?.as_array()?;
    let is_old = |entry: &Value| {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        entry["subresource"].is_null()
            && entry["fieldsType"] == "FieldsV1"
            && APPLIED_BY.contains(&(text("manager"), text("operation")))
    };
    let first = entries.iter().find(|entry| is_old(entry))?;
    // Fields of another version cannot be told in one entry with these.
    let version = first["apiVersion"].clone();
    let folds = |entry: &Value| is_old(entry) && entry["apiVersion"] == version;
    let ours = |entry: &Value| {
        entry["manager"] == manager
            && entry["operation"] == "Apply"
            && entry["subresource"].is_null()
            && entry["apiVersion"] == version
    };
    let mut fields = Map::new();
    for entry in entries.iter().filter(|entry| folds(entry) || ours(entry)) {
        if let Some(more) = entry["fieldsV1"].as_object() {
            unite(&mut fields, more);
        }
    }
    let mut kept: Vec<Value> =
        entries.iter().filter(|entry| !folds(entry) && !ours(entry)).cloned().collect();
    kept.push(json!({
        "manager": manager, "operation": "Apply", "apiVersion": version,
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    }));
    let mut patch = vec![
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version()}),
        json!({"op": "replace", "path": "/metadata/managedFields", "value": kept}),
    ];
    if live.annotation(last_applied).is_some() {
        let pointer = last_applied.replace('~', "~0").replace('/', "~1");
        patch.push(json!({"op": "remove", "path": format!("/metadata/annotations/{pointer}")}));
    }
    Some(patch)
}

/// The union of two sets in the notation of managedFields.
fn unite(into: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        match (into.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(value)) => unite(inner, value),
            (Some(_), _) => {}
            (None, value) => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}
