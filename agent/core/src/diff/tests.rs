use pintle_model::Object;
use serde_json::{Value, json};

use super::*;

fn object(value: &Value) -> Object {
    Object::try_from(value.clone()).unwrap()
}

fn secret(password: &str, entries: &Value) -> Value {
    let mut all = vec![json!({"manager": "pintle", "operation": "Apply", "apiVersion": "v1",
        "fieldsV1": {"f:data": {"f:password": {}, "f:user": {}}}})];
    all.extend(entries.as_array().cloned().unwrap_or_default());
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "managedFields": all,
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}},
        "data": {"password": password, "user": "dQ=="}})
}

fn found(before: &Value, after: &Value) -> Vec<Difference> {
    let set = OwnedSet::from_answer(&object(after), "pintle").unwrap();
    differences(&object(before), &object(after), &[&set])
}

#[test]
fn a_change_is_attributed_to_the_newest_manager_that_claims_it() {
    let entry = |name: &str, time: &str| json!({"manager": name, "operation": "Update", "time": time, "fieldsV1": {"f:data": {"f:password": {}}}});
    let entries = json!([entry("old", "2026-01-01T00:00:00Z"), entry("new", "2026-02-01T00:00:00Z")]);
    let found = found(&secret("eA==", &entries), &secret("eQ==", &json!([])));
    assert_eq!(found.len(), 1);
    let manager = found[0].manager.as_ref().unwrap();
    assert_eq!((manager.name.as_str(), manager.operation.as_str()), ("new", "Update"));
    assert!(describe(&found[0]).contains("at or before 2026-02-01T00:00:00Z"), "{}", describe(&found[0]));
}

#[test]
fn what_nobody_claims_has_no_manager_and_an_entry_may_lack_its_time() {
    let nobody = found(&secret("eA==", &json!([])), &secret("eQ==", &json!([])));
    assert_eq!(nobody[0].manager, None);
    assert!(describe(&nobody[0]).contains("unknown manager"));
    let entries = json!([{"manager": "kubectl", "operation": "Update", "subresource": "scale",
        "fieldsV1": {"f:data": {"f:password": {}}}}]);
    let timeless = found(&secret("eA==", &entries), &secret("eQ==", &json!([])));
    assert!(describe(&timeless[0]).contains("Update of scale, time unknown"), "{}", describe(&timeless[0]));
}

#[test]
fn secret_values_are_compared_first_and_then_masked() {
    let key = b"key";
    let mut one = found(&secret("eA==", &json!([])), &secret("eQ==", &json!([])));
    mask(&mut one, key);
    let text = describe(&one[0]);
    assert!(!text.contains("eA==") && !text.contains("eQ=="), "{text}");
    assert_ne!(one[0].live, one[0].wanted);
    let shown = mask_object(&object(&secret("eA==", &json!([]))), key).to_value().to_string();
    assert!(
        !shown.contains("eA==") && !shown.contains("hunter2") && !shown.contains("managedFields"),
        "{shown}"
    );
    let again = mask_object(&object(&secret("eA==", &json!([]))), key);
    assert_eq!(
        again.at(&["data", "password"]).unwrap(),
        one[0].live.as_ref().unwrap(),
        "equal values, equal masks"
    );
}

#[test]
fn a_removed_field_is_attributed_to_the_writer_of_its_parent() {
    let entries = json!([{"manager": "editor", "operation": "Update", "time": "2026-01-01T00:00:00Z",
        "fieldsV1": {"f:data": {"f:other": {}}}}]);
    let mut before = secret("eA==", &entries);
    before["data"].as_object_mut().unwrap().remove("password");
    let found = found(&before, &secret("eA==", &json!([])));
    assert_eq!(found[0].live, None);
    assert_eq!(found[0].manager.as_ref().unwrap().name, "editor");
}
