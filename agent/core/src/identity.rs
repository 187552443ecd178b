//! Names that are derived, never stored: the ApplySet id, its parent's name, and the payload of an object.

use pintle_model::{AppKey, Digest, Object, ObjectKey, names};
use serde_json::Value;

/// The ApplySet id of an application: `applyset-<hash>-v1`, made as KEP-3659 says from the parent's name,
/// namespace, kind and group, so that other ApplySet tools compute the same.
pub fn applyset_id(agent_namespace: &str, app: &AppKey) -> String {
    let text = format!("{}.{agent_namespace}.ConfigMap.", parent_name(app));
    format!("applyset-{}-v1", base64_url(Digest::of(text.as_bytes()).as_bytes()))
}

/// Name of the ApplySet parent (a ConfigMap in the agent's namespace): readable, unique by its hash, and a valid
/// DNS label however long the application's name is.
pub fn parent_name(app: &AppKey) -> String {
    let readable: String = format!("{}-{}", app.namespace, app.name)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(40)
        .collect();
    let readable = readable.trim_matches('-');
    format!("pintle-app-{readable}-{}", Digest::of(app.to_string().as_bytes()).short(8))
}

/// The marks that every managed object carries.
#[derive(Debug, Clone)]
pub struct Marks<'a> {
    /// Application.
    pub app: &'a AppKey,
    /// Agent id (a valid label value).
    pub agent_id: &'a str,
    /// ApplySet id of the application.
    pub part_of: &'a str,
}

/// The payload of a server-side apply: git's manifest with our labels and tracking id, without what the server
/// sets (`status`, managedFields, UID and the like) and with `stringData` folded into `data`, since a key that
/// leaves `stringData` would otherwise stay in the live Secret for ever.
pub fn payload(mut object: Object, key: &ObjectKey, marks: &Marks<'_>) -> Object {
    object.fields_mut().remove("status");
    object.set_namespace(&key.namespace);
    let metadata = object.metadata_mut();
    for server_set in SERVER_SET {
        metadata.remove(*server_set);
    }
    for empty_allowed in ["labels", "annotations"] {
        if metadata.get(empty_allowed).is_some_and(Value::is_null) {
            metadata.remove(empty_allowed);
        }
    }
    object.set_label(names::AGENT_LABEL, marks.agent_id);
    object.set_label(names::PART_OF_LABEL, marks.part_of);
    object.set_annotation(names::TRACKING_ANNOTATION, &key.tracking_id(&marks.app.to_string()));
    if object.is_secret() {
        fold_string_data(&mut object);
    }
    object
}

const SERVER_SET: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

fn fold_string_data(secret: &mut Object) {
    let Some(Value::Object(strings)) = secret.fields_mut().remove("stringData") else { return };
    let fields = secret.fields_mut();
    let data = fields.entry("data").or_insert_with(|| Value::Object(serde_json::Map::new()));
    if !data.is_object() {
        *data = Value::Object(serde_json::Map::new());
    }
    for (name, value) in strings {
        // What is not a string stays as it is: the server refuses it and names the field.
        data[name] = match value {
            Value::String(text) => Value::String(base64(text.as_bytes())),
            other => other,
        };
    }
}

fn base64(bytes: &[u8]) -> String {
    encode(bytes, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", true)
}

fn base64_url(bytes: &[u8]) -> String {
    encode(bytes, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", false)
}

fn encode(bytes: &[u8], alphabet: &[u8; 64], pad: bool) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = u32::from(chunk[0]) << 16
            | u32::from(*chunk.get(1).unwrap_or(&0)) << 8
            | u32::from(*chunk.get(2).unwrap_or(&0));
        for index in 0..4 {
            if index <= chunk.len() {
                text.push(char::from(alphabet[(word >> (18 - 6 * index) & 63) as usize]));
            } else if pad {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prepared(value: Value) -> Object {
        let object = Object::try_from(value).unwrap();
        let key = object.key();
        payload(object, &key, &Marks { app: &AppKey::new("argocd", "shop"), agent_id: "me", part_of: "set" })
    }

    #[test]
    fn what_the_server_sets_is_never_sent() {
        let object = prepared(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 1},
            "metadata": {"name": "web", "namespace": "a", "uid": "1", "creationTimestamp": null, "resourceVersion": "5"}}),
        );
        assert!(object.at(&["status"]).is_none());
        for name in ["uid", "creationTimestamp", "resourceVersion"] {
            assert!(object.at(&["metadata", name]).is_none(), "{name}");
        }
        assert_eq!(object.annotation(names::TRACKING_ANNOTATION), Some("argocd/shop:apps/Deployment:a/web"));
    }

    #[test]
    fn string_data_is_folded_into_data() {
        let secret = prepared(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "data": {"kept": "eA=="}, "stringData": {"a": "hello", "b": "hi!!", "c": "x"}}));
        assert_eq!(
            secret.at(&["data"]).unwrap(),
            &json!({"kept": "eA==", "a": "aGVsbG8=", "b": "aGkhIQ==", "c": "eA=="})
        );
        assert!(secret.at(&["stringData"]).is_none());
    }

    #[test]
    fn names_are_valid_however_long_the_application_is_called() {
        let long = AppKey::new("argocd", &format!("{}-", "x".repeat(70)));
        let name = parent_name(&long);
        assert!(name.len() <= 63 && name.ends_with(|c: char| c.is_ascii_alphanumeric()), "{name}");
        let id = applyset_id("pintle-system", &long);
        assert!(id.len() <= 63, "{id}");
        assert_ne!(parent_name(&AppKey::new("a-b", "c")), parent_name(&AppKey::new("a", "b-c")));
    }
}
