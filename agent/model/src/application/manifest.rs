//! An Application back in Argo CD's shape, for `app get -o yaml` and exports.

use serde_json::{Map, Value, json};

use super::validate::{API_VERSION, IN_CLUSTER_NAME, IN_CLUSTER_SERVER};
use super::{Application, Directory};
use crate::duration;
use crate::names::RESOURCES_FINALIZER;

impl Application {
    /// The manifest that validates to this application again (but for its notes): defaults are left out, names
    /// and values are otherwise as written.
    pub fn manifest(&self) -> Value {
        let mut metadata = json!({"name": &*self.key.name, "namespace": &*self.key.namespace});
        put(&mut metadata, "labels", json!(self.labels));
        put(&mut metadata, "annotations", json!(self.annotations));
        if self.finalizer_cascade {
            put(&mut metadata, "finalizers", json!([RESOURCES_FINALIZER]));
        }
        let mut spec = json!({"project": self.project, "source": self.source_value()});
        let mut destination = if self.destination.cluster == IN_CLUSTER_NAME {
            json!({"server": IN_CLUSTER_SERVER})
        } else {
            json!({"name": self.destination.cluster})
        };
        put(&mut destination, "namespace", json!(self.destination.namespace));
        put(&mut spec, "destination", destination);
        put(&mut spec, "syncPolicy", self.sync_policy_value());
        let rules: Vec<Value> = self
            .ignore_differences
            .iter()
            .map(|rule| {
                let mut value = json!({"kind": rule.kind});
                put(&mut value, "group", json!(rule.group));
                put(&mut value, "name", json!(rule.name));
                put(&mut value, "namespace", json!(rule.namespace));
                put(&mut value, "jsonPointers", json!(rule.json_pointers));
                value
            })
            .collect();
        put(&mut spec, "ignoreDifferences", json!(rules));
        let info: Vec<Value> =
            self.info.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        put(&mut spec, "info", json!(info));
        if self.history_limit != crate::limits::HISTORY_DEFAULT {
            put(&mut spec, "revisionHistoryLimit", json!(self.history_limit));
        }
        json!({"apiVersion": API_VERSION, "kind": "Application", "metadata": metadata, "spec": spec})
    }

    fn source_value(&self) -> Value {
        let mut value = json!({
            "repoURL": self.source.repo_url,
            "targetRevision": self.source.target_revision,
            "path": self.source.path,
        });
        let Directory { recurse, include, exclude, extension_filter } = &self.source.directory;
        let mut directory = json!({});
        put(&mut directory, "recurse", json!(recurse));
        put(&mut directory, "include", json!(include));
        put(&mut directory, "exclude", json!(exclude));
        put(&mut directory, "disableExtensionFilter", json!(!extension_filter));
        put(&mut value, "directory", directory);
        put(&mut value, "name", json!(self.source.name));
        value
    }

    fn sync_policy_value(&self) -> Value {
        let mut policy = json!({});
        if let (Some(automated), Value::Object(policy)) = (&self.automated, &mut policy) {
            let mut value = json!({});
            put(&mut value, "prune", json!(automated.prune));
            put(&mut value, "selfHeal", json!(automated.self_heal));
            put(&mut value, "allowEmpty", json!(automated.allow_empty));
            // Not by `put`: `automated: {}` means something.
            policy.insert("automated".to_owned(), value);
        }
        put(&mut policy, "syncOptions", json!(self.sync_options.to_texts()));
        if let Some(retry) = &self.retry {
            let mut value = json!({"backoff": {
                "duration": duration::format(retry.backoff_duration),
                "factor": retry.backoff_factor,
                "maxDuration": duration::format(retry.backoff_max_duration),
            }});
            put(&mut value, "refresh", json!(retry.refresh));
            put(&mut value, "limit", retry.limit.map_or(Value::Null, |limit| json!(limit)));
            put(&mut policy, "retry", value);
        }
        if let (Some(metadata), Value::Object(policy)) = (&self.namespace_metadata, &mut policy) {
            policy.insert("managedNamespaceMetadata".to_owned(), json!(metadata));
        }
        policy
    }
}

/// Sets a field unless its value says nothing: null, false, or an empty text, list or mapping.
fn put(target: &mut Value, name: &str, value: Value) {
    let empty = match &value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(_) => false,
    };
    if !empty {
        let map: Option<&mut Map<String, Value>> = target.as_object_mut();
        if let Some(map) = map {
            map.insert(name.to_owned(), value);
        }
    }
}
