use pintle_model::{Digest, Object, Origin};
use serde_json::json;

use super::*;
use crate::adopt;
use crate::engine::effect::Expect;
use crate::engine::record::{Adopted, ApplyWay, ObjectOptions};
use crate::hook::{Hook, When};
use pintle_model::application::PropagationPolicy;

struct Case {
    desired: Vec<DesiredEntry>,
    inventory: Vec<(ObjectKey, InventoryRecord, Sighting)>,
    found: BTreeMap<ObjectKey, Arc<Object>>,
    relations: BTreeMap<ObjectKey, Relation>,
    barrier: Option<String>,
    incomplete: BTreeSet<Arc<str>>,
    options: Options,
    hooks: Vec<HookEntry>,
    hooks_done: BTreeSet<HookDone>,
}

fn map(name: &str) -> ObjectKey {
    ObjectKey::new("", "ConfigMap", "shop", name)
}

fn entry(key: ObjectKey, wave: i32) -> DesiredEntry {
    DesiredEntry {
        manifest: Digest::of(key.path().as_bytes()),
        key,
        api_version: "v1".into(),
        wave,
        options: ObjectOptions::default(),
        way: ApplyWay::Apply,
        no_migration: false,
        ignore: false,
        adopt: false,
        lenient: false,
        ignore_health: false,
        ignored: Vec::new(),
        only_create: false,
        fail_on_shared: false,
        origin: Origin { file: "a.yaml".into(), line: 1 },
    }
}

fn record(key: &ObjectKey) -> InventoryRecord {
    InventoryRecord {
        uid: Some("uid".into()),
        manifest: Some(Digest::of(key.path().as_bytes())),
        set: None,
        projection: None,
        adopted: Adopted::No,
        options: ObjectOptions::default(),
        hook: None,
        wave: 0,
        deleting: false,
    }
}

impl Case {
    /// `stays` is wanted and there; `goes` is there and no longer wanted.
    fn new() -> Self {
        let present = Sighting::Present(Verdict::Same);
        let inventory = ["stays", "goes"].map(|name| (map(name), record(&map(name)), present.clone()));
        Self {
            desired: vec![entry(map("stays"), 0)],
            inventory: inventory.to_vec(),
            found: BTreeMap::new(),
            relations: BTreeMap::new(),
            barrier: None,
            incomplete: BTreeSet::new(),
            options: Options { prune: true, ..Options::default() },
            hooks: Vec::new(),
            hooks_done: BTreeSet::new(),
        }
    }

    fn plan(&self) -> Plan {
        make(&Input {
            app: &AppKey::new("argocd", "shop"),
            agent: adopt::Agent { id: "me", namespace: "pintle-system" },
            part_of: "set",
            operation: 7,
            hooks: &self.hooks,
            hooks_done: &self.hooks_done,
            revision: "abcdef1".into(),
            desired: &self.desired,
            known: &|key| {
                let (_, record, sighting) = self.inventory.iter().find(|(known, _, _)| known == key)?;
                Some(Known { record, sighting: sighting.clone() })
            },
            inventory: &|| self.inventory.iter().map(|(key, _, _)| key.clone()).collect(),
            found: &self.found,
            relation: &|key| self.relations.get(key).cloned().unwrap_or(Relation::None),
            barrier: self.barrier.clone(),
            incomplete: &self.incomplete,
            options: &self.options,
        })
    }

    fn pruned(&self) -> Vec<String> {
        self.plan().prunes().flat_map(|stage| &stage.steps).map(|step| step.key.name.to_string()).collect()
    }
}

#[test]
fn what_left_git_is_pruned_with_its_uid_and_nothing_else() {
    let plan = Case::new().plan();
    assert_eq!(plan.len(), 1);
    assert_eq!(plan.prunes().next().unwrap().steps[0].uid.as_deref(), Some("uid"));
}

#[test]
fn every_guard_keeps_an_object() {
    type Change = fn(&mut Case);
    let guards: [(&str, Change); 10] = [
        ("no recorded UID", |case| case.inventory[1].1.uid = None),
        ("not seen yet", |case| case.inventory[1].2 = Sighting::Unseen),
        ("another object has the name", |case| case.inventory[1].2 = Sighting::Foreign),
        ("another application wants it", |case| {
            case.relations.insert(map("goes"), Relation::WantedBy(AppKey::new("argocd", "other")));
        }),
        ("the barrier is closed", |case| case.barrier = Some("not rendered".into())),
        ("the group is incomplete", |case| {
            case.incomplete.insert("".into());
        }),
        ("the render is empty", |case| case.desired.clear()),
        ("Prune=false", |case| case.inventory[1].1.options.keep = true),
        ("pruning is off", |case| case.options.prune = false),
        ("a delete is under way", |case| case.inventory[1].1.deleting = true),
    ];
    for (name, change) in guards {
        let mut case = Case::new();
        change(&mut case);
        assert_eq!(case.pruned(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn allow_empty_lifts_the_guard_on_an_empty_render_only() {
    let mut case = Case::new();
    case.desired.clear();
    case.options.allow_empty = true;
    assert_eq!(case.pruned().len(), 2);
    case.barrier = Some("not rendered".into());
    assert_eq!(case.pruned().len(), 0);
}

#[test]
fn too_many_deletions_need_the_token_of_exactly_this_plan() {
    let mut case = Case::new();
    for index in 0..20 {
        let key = map(&format!("more-{index}"));
        case.inventory.push((key.clone(), record(&key), Sighting::Present(Verdict::Same)));
    }
    let plan = case.plan();
    assert!(
        plan.prunes().next().is_none() && plan.refusals[0].message.contains("maxShare"),
        "{:?}",
        plan.refusals
    );
    case.options.confirm = Some("another".into());
    assert_eq!(case.pruned().len(), 0);
    case.options.confirm = plan.token;
    assert_eq!(case.pruned().len(), 21);
}

#[test]
fn namespaces_definitions_volumes_and_changed_adoptions_need_a_word_and_kubernetes_own_are_never_deleted() {
    for key in [
        ObjectKey::new("", "Namespace", "", "shop"),
        ObjectKey::new("apiextensions.k8s.io", "CustomResourceDefinition", "", "things.x.example"),
        ObjectKey::new("", "PersistentVolumeClaim", "shop", "data"),
    ] {
        let mut case = Case::new();
        case.inventory[1].0 = key.clone();
        let plan = case.plan();
        assert!(plan.prunes().next().is_none() && plan.token.is_some(), "{key}");
        case.options.confirm = plan.token;
        assert_eq!(case.pruned().len(), 1, "{key}");
    }
    let mut case = Case::new();
    case.inventory[1].1.adopted = Adopted::Changed;
    assert!(case.plan().token.is_some() && case.pruned().is_empty());
    case.inventory[1].1.adopted = Adopted::Equal;
    assert_eq!(case.pruned().len(), 1);
    let mut case = Case::new();
    case.inventory[1].0 = ObjectKey::new("", "Namespace", "", "kube-system");
    case.options.confirm = case.plan().token;
    assert!(case.pruned().is_empty());
}

#[test]
fn an_object_with_anothers_mark_is_refused_and_one_of_ours_regained() {
    let mut case = Case::new();
    case.desired.push(entry(map("new"), 0));
    let object = |metadata: serde_json::Value| {
        Arc::new(
            Object::try_from(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap(),
        )
    };
    case.found
        .insert(map("new"), object(json!({"uid": "7", "annotations": {"meta.helm.sh/release-name": "x"}})));
    assert_eq!(case.plan().refusals[0].reason, Reason::OwnedByAnother);
    case.options.adopt = true;
    assert_eq!(case.plan().stages[0].steps[0].action, Action::Adopt);
    case.options.adopt = false;
    let ours = json!({"uid": "7", "labels": {"applyset.kubernetes.io/part-of": "set"},
        "annotations": {"pintle.dev/tracking-id": map("new").tracking_id("argocd/shop")},
        "managedFields": [{"manager": "pintle", "operation": "Apply"}]});
    case.found.insert(map("new"), object(ours));
    let plan = case.plan();
    assert_eq!(plan.regained, [(map("new"), Arc::from("7"))]);
    assert_eq!(plan.stages[0].steps[0].apply.as_ref().unwrap().expect, Expect::Uid("7".into()));
}

#[test]
fn what_another_application_owns_and_wants_is_not_applied() {
    let mut case = Case::new();
    case.options.prune = false;
    case.desired.push(entry(map("shared"), 0));
    case.relations.insert(map("shared"), Relation::OwnedBy(AppKey::new("argocd", "other")));
    let plan = case.plan();
    assert_eq!(plan.shared.len(), 1);
    assert!(plan.is_empty() && plan.refusals.is_empty());
    case.desired[1].fail_on_shared = true;
    assert_eq!(case.plan().refusals[0].reason, Reason::SharedResourceWarning);
}

#[test]
fn what_only_has_to_be_there_is_made_when_absent_and_never_touched_when_somebody_else_made_it() {
    let namespace = ObjectKey::new("", "Namespace", "", "shop");
    let mut case = Case::new();
    case.options.prune = false;
    case.desired.push(DesiredEntry {
        only_create: true,
        fail_on_shared: true,
        ..entry(namespace.clone(), 0)
    });
    assert_eq!(case.plan().stages[0].steps[0].action, Action::Create);
    for metadata in
        [json!({"uid": "7"}), json!({"uid": "7", "annotations": {"meta.helm.sh/release-name": "x"}})]
    {
        let found = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        case.found.insert(namespace.clone(), Arc::new(Object::try_from(found).unwrap()));
        let plan = case.plan();
        assert!(plan.is_empty() && plan.refusals.is_empty(), "{plan:?}");
        assert_eq!(plan.left_alone, std::slice::from_ref(&namespace));
    }
    case.found.clear();
    case.relations.insert(namespace, Relation::OwnedBy(AppKey::new("argocd", "other")));
    let plan = case.plan();
    assert!(plan.shared.is_empty() && plan.refusals.is_empty() && plan.is_empty(), "{plan:?}");
}

#[test]
fn what_the_agent_itself_lives_on_is_never_deleted() {
    let rbac = "rbac.authorization.k8s.io";
    for key in [
        ObjectKey::new("", "Namespace", "", "pintle-system"),
        ObjectKey::new("", "ServiceAccount", "pintle-system", "pintle"),
        ObjectKey::new("", "ConfigMap", "pintle-system", "pintle"),
        ObjectKey::new("", "ConfigMap", "pintle-system", "pintle-app-argocd-shop-1234"),
        ObjectKey::new("coordination.k8s.io", "Lease", "pintle-system", "pintle"),
        ObjectKey::new(rbac, "ClusterRole", "", "pintle"),
        ObjectKey::new(rbac, "ClusterRoleBinding", "", "pintle-cluster-identity"),
        ObjectKey::new(rbac, "Role", "pintle-system", "pintle"),
    ] {
        let mut case = Case::new();
        case.inventory[1].0 = key.clone();
        case.options.confirm = case.plan().token;
        let plan = case.plan();
        assert!(plan.prunes().next().is_none(), "{key}");
        assert!(
            plan.refusals.iter().any(|r| r.message.contains("never deleted")),
            "{key}: {:?}",
            plan.refusals
        );
    }
    let mut case = Case::new();
    case.inventory[1].0 = ObjectKey::new(rbac, "Role", "shop", "pintle");
    assert_eq!(case.pruned().len(), 1, "a role of a tenant that happens to have the name");
}

#[test]
fn a_pruned_object_goes_with_the_propagation_of_its_last_apply() {
    let mut case = Case::new();
    assert_eq!(case.plan().prunes().next().unwrap().steps[0].propagation.as_str(), "Foreground");
    case.inventory[1].1.options.propagation = Some(PropagationPolicy::Orphan);
    assert_eq!(case.plan().prunes().next().unwrap().steps[0].propagation.as_str(), "Orphan");
}

#[test]
fn namespaces_and_definitions_go_before_what_needs_them_also_across_waves() {
    let mut case = Case::new();
    case.options.prune = false;
    case.desired = vec![
        entry(ObjectKey::new("", "Namespace", "", "shop"), 5),
        entry(map("early"), -1),
        entry(ObjectKey::new("x.example", "Thing", "shop", "t"), 1),
        entry(ObjectKey::new("apiextensions.k8s.io", "CustomResourceDefinition", "", "things.x.example"), 9),
        entry(ObjectKey::new("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "", "w"), 1),
    ];
    let plan = case.plan();
    let order: Vec<String> =
        plan.stages.iter().flat_map(|s| &s.steps).map(|s| s.key.kind.to_string()).collect();
    let wanted =
        ["Namespace", "ConfigMap", "CustomResourceDefinition", "Thing", "ValidatingWebhookConfiguration"];
    assert_eq!(order, wanted);
    let waits: Vec<(i32, bool, bool)> =
        plan.stages.iter().map(|s| (s.wave, s.wait_healthy, s.wait_established)).collect();
    let wanted =
        [(-1, false, false), (-1, true, false), (1, false, true), (1, false, false), (1, true, false)];
    assert_eq!(waits, wanted);
}

#[test]
fn a_retry_without_self_heal_leaves_what_somebody_changed() {
    let mut case = Case::new();
    case.inventory[0].2 = Sighting::Present(Verdict::Drifted);
    case.options.prune = false;
    assert!(case.plan().is_empty());
    case.options.revert = true;
    assert_eq!(case.plan().stages[0].steps[0].action, Action::Revert);
}

#[test]
fn a_selection_touches_nothing_else() {
    let mut case = Case::new();
    case.desired.push(entry(map("new"), 0));
    case.options.selection = BTreeSet::from([map("new")]);
    let keys: Vec<ObjectKey> = case.plan().steps().map(|step| step.key.clone()).collect();
    assert_eq!(keys, [map("new")]);
}

fn hook(phase: Phase, name: &str, wave: i32) -> HookEntry {
    HookEntry {
        entry: entry(ObjectKey::new("batch", "Job", "shop", name), wave),
        hook: Hook { phases: vec![(phase, When::Always)], removal: vec![Removal::BeforeHookCreation] },
        generated: false,
    }
}

fn order(plan: &Plan) -> Vec<String> {
    plan.stages
        .iter()
        .map(|stage| {
            let names: Vec<&str> = stage.steps.iter().map(|step| &*step.key.name).collect();
            let wait = if stage.wait_healthy || stage.wait_all { "!" } else { "" };
            format!("{:?} {} {}{wait}", stage.part, stage.wave, names.join(","))
        })
        .collect()
}

#[test]
fn phases_run_in_order_with_deletions_between_sync_and_post_sync() {
    let mut case = Case::new();
    case.desired.push(entry(map("new"), 0));
    case.hooks = vec![
        hook(Phase::PostSync, "after", 0),
        hook(Phase::PreSync, "second", 1),
        hook(Phase::PreSync, "first", -1),
        hook(Phase::SyncFail, "sorry", 0),
        hook(Phase::Sync, "beside", 0),
    ];
    let plan = case.plan();
    let wanted = [
        "PreSync -1 first!",
        "PreSync 1 second!",
        "Sync 0 new",
        "Sync 0 beside!",
        "Prune 0 goes",
        "PostSync 0 after!",
    ];
    assert_eq!(order(&plan), wanted);
    assert_eq!(plan.on_fail.len(), 1);
}

#[test]
fn a_selective_sync_runs_no_hooks() {
    let mut case = Case::new();
    case.desired.push(entry(map("new"), 0));
    case.hooks = vec![hook(Phase::PreSync, "first", 0)];
    case.options.selection = BTreeSet::from([map("new")]);
    assert_eq!(order(&case.plan()), ["Sync 0 new"]);
}

#[test]
fn a_hook_that_succeeded_for_this_render_is_not_run_again_unless_its_content_changed() {
    let mut case = Case::new();
    case.hooks = vec![hook(Phase::PreSync, "first", 0)];
    let step = case.plan().stages[0].steps[0].clone();
    let found = step.hook.unwrap();
    case.hooks_done.insert((found.phase, found.wanted, found.manifest));
    assert_eq!(order(&case.plan()), ["Prune 0 goes"]);
    case.hooks[0].entry.manifest = Digest::of(b"changed");
    assert_eq!(order(&case.plan()), ["PreSync 0 first!", "Prune 0 goes"]);
}

#[test]
fn a_hook_with_generate_name_has_a_name_of_its_own_in_every_operation() {
    let mut case = Case::new();
    case.hooks = vec![HookEntry { generated: true, ..hook(Phase::PreSync, "migrate-", 0) }];
    assert_eq!(order(&case.plan())[0], "PreSync 0 migrate-abcdef1-presync-7!");
    let long = "m".repeat(80);
    case.hooks = vec![HookEntry { generated: true, ..hook(Phase::PreSync, &long, 0) }];
    let plan = case.plan();
    assert_eq!(plan.stages[0].steps[0].key.name.len(), 63);
}

#[test]
fn a_namespace_and_a_definition_go_before_the_hooks_that_need_them() {
    let mut case = Case::new();
    case.desired = vec![entry(ObjectKey::new("", "Namespace", "", "shop"), 0), entry(map("stays"), 0)];
    case.hooks = vec![hook(Phase::PreSync, "first", -5)];
    assert_eq!(order(&case.plan())[..2], ["PreSync -5 shop", "PreSync -5 first!"]);
}

#[test]
fn prune_last_waits_until_everything_is_healthy() {
    let mut case = Case::new();
    case.options.prune_last = true;
    assert_eq!(order(&case.plan()), ["PruneLast 0 !", "PruneLast 0 goes"]);
    case.options.prune_last = false;
    case.inventory[1].1.options.prune_last = true;
    assert_eq!(order(&case.plan()), ["PruneLast 0 !", "PruneLast 0 goes"]);
}

#[test]
fn a_hashed_config_map_is_pruned_only_after_the_rollout_of_its_successor() {
    let mut case = Case::new();
    case.desired.push(entry(map("settings-5g2f8h4k6m"), 0));
    let old = map("settings-7c9d2b6f8t");
    case.inventory.push((old.clone(), record(&old), Sighting::Present(Verdict::Same)));
    let found = order(&case.plan());
    assert_eq!(found[1..], ["Prune 0 goes", "PruneLast 0 !", "PruneLast 0 settings-7c9d2b6f8t"]);
}

#[test]
fn prune_confirm_needs_a_persons_word() {
    let mut case = Case::new();
    case.inventory[1].1.options.confirm_prune = true;
    let plan = case.plan();
    assert!(plan.is_empty() && plan.token.is_some());
    case.options.approved = true;
    assert_eq!(case.pruned().len(), 1);
    case.options.approved = false;
    case.options.confirm = plan.token;
    assert_eq!(case.pruned().len(), 1);
}

#[test]
fn deletions_of_an_hour_are_limited_over_all_applications() {
    let mut case = Case::new();
    case.options.deletions_left = 0;
    let plan = case.plan();
    assert!(plan.is_empty() && plan.refusals[0].message.contains("maxPerHour"), "{:?}", plan.refusals);
}

#[test]
fn what_is_ignored_is_neither_applied_nor_deleted_and_if_not_present_never_changes_it() {
    let mut case = Case::new();
    case.desired.push(DesiredEntry { ignore: true, ..entry(map("goes"), 0) });
    case.desired.push(DesiredEntry { ignore: true, ..entry(map("absent"), 0) });
    assert!(case.plan().is_empty());
    let mut case = Case::new();
    case.options.prune = false;
    case.desired[0] =
        DesiredEntry { only_create: true, manifest: Digest::of(b"newer"), ..entry(map("stays"), 0) };
    assert!(case.plan().is_empty());
    case.inventory[0].2 = Sighting::Gone;
    assert_eq!(case.plan().stages[0].steps[0].action, Action::Create);
}
