use serde_json::json;

use super::*;

fn object(annotations: Value) -> Object {
    Object::try_from(json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "j", "annotations": annotations}}))
    .unwrap()
}

fn hook(annotations: Value) -> Hook {
    match role(&object(annotations)).unwrap() {
        Role::Hook(hook) => hook,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_comma_list_of_phases_is_read_in_order_and_without_repetition() {
    let found = hook(json!({names::HOOK: "PostSync, PreSync,PreSync"}));
    assert_eq!(found.phases, [(Phase::PreSync, When::Always), (Phase::PostSync, When::Always)]);
    assert_eq!(found.removal, [Removal::BeforeHookCreation]);
    let found = hook(json!({names::HOOK: "Sync", names::HOOK_DELETE_POLICY: "HookSucceeded,HookFailed"}));
    assert_eq!(found.removal, [Removal::HookSucceeded, Removal::HookFailed]);
}

#[test]
fn skip_is_not_applied_whatever_stands_beside_it() {
    assert_eq!(role(&object(json!({names::HOOK: "PreSync,Skip"}))), Ok(Role::Skip));
}

#[test]
fn an_unknown_hook_or_delete_policy_is_named_with_the_valid_ones() {
    for (annotations, wanted) in [
        (json!({names::HOOK: "Presync"}), ["`Presync`", "valid: PreSync"]),
        (json!({names::HOOK: "Sync", names::HOOK_DELETE_POLICY: "Always"}), ["`Always`", "HookFailed"]),
        (json!({names::HELM_HOOK: "before-all"}), ["`before-all`", "pre-install"]),
        (
            json!({names::HELM_HOOK: "pre-install", names::HELM_HOOK_DELETE_POLICY: "x"}),
            ["`x`", "hook-succeeded"],
        ),
    ] {
        let error = role(&object(annotations)).unwrap_err();
        assert!(wanted.iter().all(|text| error.contains(text)), "{error}");
    }
}

#[test]
fn helm_hooks_map_to_phases_and_an_install_is_told_from_an_upgrade() {
    let install = hook(json!({names::HELM_HOOK: "pre-install"}));
    assert!(install.runs(Phase::PreSync, true) && !install.runs(Phase::PreSync, false));
    let upgrade = hook(json!({names::HELM_HOOK: "post-upgrade"}));
    assert!(!upgrade.runs(Phase::PostSync, true) && upgrade.runs(Phase::PostSync, false));
    let both = hook(json!({names::HELM_HOOK: "pre-install,pre-upgrade,pre-rollback"}));
    assert!(both.runs(Phase::PreSync, true) && both.runs(Phase::PreSync, false));
    assert_eq!(role(&object(json!({names::HELM_HOOK: "crd-install"}))), Ok(Role::Resource));
    assert_eq!(role(&object(json!({names::HELM_HOOK: "test"}))), Ok(Role::Skip));
}

#[test]
fn argo_cds_annotation_wins_over_helms() {
    let found = hook(json!({names::HOOK: "PostSync", names::HELM_HOOK: "pre-install"}));
    assert_eq!(found.phases, [(Phase::PostSync, When::Always)]);
}

#[test]
fn a_hook_weight_is_a_wave_unless_a_wave_is_given() {
    assert_eq!(wave(&object(json!({names::HELM_HOOK_WEIGHT: "-5"}))), Ok(-5));
    assert_eq!(wave(&object(json!({names::HELM_HOOK_WEIGHT: "-5", names::SYNC_WAVE: "3"}))), Ok(3));
    assert!(wave(&object(json!({names::SYNC_WAVE: "first"}))).unwrap_err().contains("whole number"));
}

#[test]
fn the_result_of_a_hook_is_what_was_seen_last() {
    let job = |status: Value, terminating: bool| {
        let mut value =
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "status": status});
        if terminating {
            value["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        outcome(&Object::try_from(value).unwrap())
    };
    let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    assert_eq!(job(complete.clone(), false), Outcome::Succeeded);
    assert_eq!(job(complete, true), Outcome::Succeeded, "removed by its TTL after it completed");
    let failed =
        json!({"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]});
    assert!(matches!(job(failed, false), Outcome::Failed(_)));
    assert!(matches!(job(json!({}), false), Outcome::Running(_)));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    assert_eq!(outcome(&Object::try_from(map).unwrap()), Outcome::Succeeded);
}
