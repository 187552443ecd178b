use pintle_model::Object;
use serde_json::{Value, json};

use super::*;

const MANAGER: &str = "pintle";

/// A Deployment as the server answers our apply, with our entry.
fn answer() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "7", "generation": 1,
            "labels": {"app": "web"},
            "managedFields": [{"manager": "pintle", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:app": {}}},
                    "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {"f:containers": {
                        "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}, "f:resources": {},
                            "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                            "f:args": {}}}}}}}}]},
        "spec": {"replicas": 2, "selector": {}, "strategy": {"type": "RollingUpdate"},
            "template": {"spec": {"containers": [
                {"name": "side", "image": "side:1"},
                {"name": "web", "image": "web:1", "resources": {}, "args": ["a", "b"],
                 "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}}},
        "status": {"replicas": 2},
    })
}

fn object(value: Value) -> Object {
    Object::try_from(value).unwrap()
}

fn set() -> OwnedSet {
    OwnedSet::from_answer(&object(answer()), MANAGER).unwrap()
}

/// The verdict after a change of the answer.
fn after(change: impl Fn(&mut Value)) -> Verdict {
    let kept = projection_digest(&object(answer()), &set());
    let mut value = answer();
    change(&mut value);
    verdict(&object(value), &set(), kept, MANAGER)
}

const WEB: &str = "/spec/template/spec/containers/1";

#[test]
fn every_change_of_an_owned_value_is_drift() {
    let changes: [(&str, Value); 5] = [
        ("/spec/replicas", json!(3)),
        ("/metadata/labels/app", json!("other")),
        ("/spec/template/spec/containers/1/image", json!("web:2")),
        ("/spec/template/spec/containers/1/args", json!(["b", "a"])),
        ("/spec/template/spec/containers/1/ports/0/containerPort", json!(81)),
    ];
    for (pointer, value) in changes {
        let verdict = after(|object| *object.pointer_mut(pointer).unwrap() = value.clone());
        assert_eq!(verdict, Verdict::Drifted, "{pointer}");
    }
}

#[test]
fn foreign_fields_defaults_and_bookkeeping_are_no_drift() {
    let verdict = after(|object| {
        object["spec"]["strategy"] = json!({"type": "Recreate"});
        object["spec"]["paused"] = json!(true);
        object["status"] = json!({"replicas": 9});
        object["metadata"]["annotations"] = json!({"other": "x"});
        object["metadata"]["resourceVersion"] = json!("8");
        object["metadata"]["generation"] = json!(9);
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("side:2");
    });
    assert_eq!(verdict, Verdict::Same);
}

#[test]
fn an_empty_container_that_others_may_fill_counts_by_presence_and_an_atomic_one_whole() {
    assert_eq!(
        after(|object| object.pointer_mut(WEB).unwrap()["resources"] = json!({"limits": {"cpu": "1"}})),
        Verdict::Same
    );
    assert_eq!(
        after(|object| drop(object.pointer_mut(WEB).unwrap().as_object_mut().unwrap().remove("resources"))),
        Verdict::Drifted
    );
    assert_eq!(
        after(|object| object["spec"]["selector"] = json!({"matchLabels": {"a": "b"}})),
        Verdict::Drifted
    );
}

#[test]
fn the_order_of_keyed_lists_does_not_matter() {
    let verdict =
        after(|object| object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().reverse());
    assert_eq!(verdict, Verdict::Same);
}

#[test]
fn a_removed_field_or_item_of_ours_is_drift() {
    assert_eq!(
        after(|object| drop(object["spec"].as_object_mut().unwrap().remove("replicas"))),
        Verdict::Drifted
    );
    assert_eq!(
        after(|object| drop(object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().pop())),
        Verdict::Drifted
    );
}

#[test]
fn managed_fields_are_never_the_proof() {
    // A replace leaves our entry as it was.
    assert_eq!(after(|object| object["spec"]["replicas"] = json!(5)), Verdict::Drifted);
}

#[test]
fn right_values_that_another_manager_took_are_to_be_owned_again() {
    let verdict = after(|object| {
        let fields = &mut object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
        fields.as_object_mut().unwrap().remove("f:replicas");
    });
    assert_eq!(verdict, Verdict::Reown);
}

#[test]
fn an_ignored_field_is_left_out_also_below_an_atomic_list() {
    let whole = object(answer());
    let pointers = ["/spec/replicas".to_owned(), format!("{WEB}/args/1")];
    let set = set().without(&pointers, &whole);
    let kept = projection_digest(&whole, &set);
    let mut value = answer();
    value["spec"]["replicas"] = json!(9);
    value.pointer_mut(WEB).unwrap()["args"][1] = json!("z");
    assert_eq!(projection_digest(&object(value.clone()), &set), kept);
    value.pointer_mut(WEB).unwrap()["args"][0] = json!("z");
    assert_ne!(projection_digest(&object(value), &set), kept);
}

#[test]
fn a_release_removes_the_path_and_parents_that_become_empty_guarded_by_the_version() {
    let patch = release_patch(&object(answer()), &["/metadata/labels/app".to_owned()], MANAGER).unwrap();
    assert_eq!(patch[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"}));
    let fields = &patch[1]["value"];
    assert!(fields.get("f:metadata").is_none() && fields.get("f:spec").is_some(), "{fields}");
    assert_eq!(release_patch(&object(answer()), &["/spec/paused".to_owned()], MANAGER), None);
    assert_eq!(release_patch(&object(answer()), &["/spec/replicas".to_owned()], "other"), None);
}

#[test]
fn below_an_atomic_list_nothing_can_be_released() {
    let pointers = [format!("{WEB}/args/0"), "/spec/replicas".to_owned()];
    assert_eq!(unreleasable(&object(answer()), &pointers, MANAGER), [pointers[0].clone()]);
}

#[test]
fn pointers_are_removed_from_the_highest_position_down_and_unescaped() {
    let mut payload =
        object(json!({"apiVersion": "v1", "kind": "X", "a": [0, 1, 2], "m": {"x/y": 1, "t~": 2, "z": 3}}));
    let pointers = ["/a/0", "/a/2", "/m/x~1y", "/m/t~0", "/no/such", "/kind"].map(str::to_owned);
    remove_pointers(&mut payload, &pointers);
    assert_eq!(payload.to_value(), json!({"apiVersion": "v1", "kind": "X", "a": [1], "m": {"z": 3}}));
}

#[test]
fn the_live_value_is_laid_over_where_nothing_can_be_left_out() {
    let mut payload = object(json!({"apiVersion": "v1", "kind": "X", "l": [{"v": 1}]}));
    let live = object(json!({"apiVersion": "v1", "kind": "X", "l": [{"v": 7, "w": 8}]}));
    overlay_live(&mut payload, &live, &["/l/0/v".to_owned(), "/l/0/w".to_owned()]);
    assert_eq!(payload.to_value()["l"], json!([{"v": 7, "w": 8}]));
}

#[test]
fn paths_read_well_and_become_pointers() {
    let whole = answer();
    let texts: Vec<String> = set().paths().iter().map(ToString::to_string).collect();
    assert!(texts.contains(&".spec.template.spec.containers[name=web].image".to_owned()), "{texts:?}");
    let path = set().paths().into_iter().find(|path| path.to_string().ends_with("[name=web].image")).unwrap();
    assert_eq!(path.to_json_pointer(&whole).unwrap(), format!("{WEB}/image"));
    assert_eq!(Segment::Field("a.b/c".into()).to_string(), "[\"a.b/c\"]");
}

#[test]
fn a_set_of_another_manager_or_of_a_subresource_is_not_ours() {
    let mut value = answer();
    value["metadata"]["managedFields"][0]["subresource"] = json!("status");
    assert_eq!(OwnedSet::from_answer(&object(value), MANAGER), None);
    assert_eq!(OwnedSet::from_answer(&object(answer()), "kubectl"), None);
}

proptest::proptest! {
    #[test]
    fn projection_depends_on_owned_values_only(replicas in 0_i64..9, foreign in 0_i64..9) {
        let mut value = answer();
        value["spec"]["replicas"] = json!(replicas);
        value["spec"]["minReadySeconds"] = json!(foreign);
        let same = projection_digest(&object(value), &set()) == projection_digest(&object(answer()), &set());
        proptest::prop_assert_eq!(same, replicas == 2);
    }
}

#[test]
fn fields_of_earlier_tools_are_folded_into_ours_and_those_of_people_are_not() {
    let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields});
    let live = Object::try_from(json!({"apiVersion": "v1", "kind": "ConfigMap",
    "metadata": {"name": "m", "resourceVersion": "7",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        "managedFields": [
            entry("kubectl-client-side-apply", "Update", json!({"f:data": {"f:a": {}, "f:old": {}}})),
            entry("kubectl-edit", "Update", json!({"f:data": {"f:hand": {}}})),
            entry("helm", "Update", json!({"f:data": {"f:b": {}}})),
        ]}}))
    .unwrap();
    let name = "kubectl.kubernetes.io/last-applied-configuration";
    let patch = migration_patch(&live, "pintle", name).unwrap();
    assert_eq!(patch[0]["value"], "7", "guarded by the version that was looked at");
    let entries = patch[1]["value"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["manager"], "kubectl-edit");
    assert_eq!(entries[1]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:old": {}, "f:b": {}}}));
    assert_eq!(entries[1]["operation"], "Apply");
    assert_eq!(patch[2]["path"], "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration");
    let plain = Object::try_from(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m",
        "managedFields": [entry("kubectl-edit", "Update", json!({"f:data": {}}))]}}));
    assert!(migration_patch(&plain.unwrap(), "pintle", name).is_none());
}
