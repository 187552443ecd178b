//! Whole screens.

use jiff::Timestamp;
use pintle_api as api;

use super::*;
use crate::sample::{self, at};

const PLAIN: Paint = Paint(false);

fn now() -> Timestamp {
    at("2026-03-04T05:09:07Z")
}

#[test]
fn app_list_has_argo_cds_columns() {
    let text = list(&api::ApplicationList { items: vec![sample::application()] }, PLAIN, true);
    assert_eq!(
        text,
        r"NAME         CLUSTER                         NAMESPACE  PROJECT  STATUS     HEALTH   SYNCPOLICY  CONDITIONS  REPO                           PATH  TARGET
argocd/shop  https://kubernetes.default.svc  shop       default  OutOfSync  Healthy  Auto-Prune  Pinned      https://git.example/fleet.git  shop  main
"
    );
}

#[test]
fn app_get_has_argo_cds_fields_and_the_result_of_each_object() {
    let text = application(&sample::application(), now(), PLAIN, true, false);
    assert_eq!(
        text,
        r"Name:               argocd/shop
Project:            default
Server:             https://kubernetes.default.svc
Namespace:          shop
Source:
- Repo:             https://git.example/fleet.git
  Target:           main
  Path:             shop
Sync Policy:        Automated (Prune, SelfHeal)
Sync Status:        OutOfSync from main (53e28ff)
Health Status:      Healthy
Observed:           2m ago

Operation:          Sync
Sync Revision:      53e28ff20cc530b9ada2173fbbd64d48338583ba
Phase:              Succeeded
Start:              2026-03-04 05:06:00 +0000 UTC
Finished:           2026-03-04 05:06:03 +0000 UTC
Duration:           3s
Message:            successfully synced (all tasks run)

CONDITION  MESSAGE                                       LAST TRANSITION
Pinned     pinned to history entry 3; git wants 0a1b2c3  2026-03-04 05:06:07 +0000 UTC

GROUP  KIND        NAMESPACE  NAME          STATUS     HEALTH       HOOK  MESSAGE
       Service     shop       web           Synced     Healthy            service/web unchanged
apps   Deployment  shop       web           OutOfSync  Progressing        deployment.apps/web configured
       ConfigMap   shop       web-settings  Synced
       ConfigMap   shop       old           Pruned                        configmap/old pruned
"
    );
}

#[test]
fn history_tells_who_and_where_from() {
    let text = history(&sample::history(), PLAIN, true);
    assert_eq!(
        text,
        r"ID  DATE                           REVISION        INITIATED BY  SOURCE
2   2026-03-03 01:02:03 +0000 UTC  main (0a1b2c3)  automated     https://git.example/fleet.git
3   2026-03-04 05:06:03 +0000 UTC  main (53e28ff)  root          https://git.example/fleet.git
"
    );
}

#[test]
fn status_is_one_screen_with_the_age_of_the_last_fetch() {
    let text = status(&sample::status(), PLAIN, false);
    assert_eq!(
        text,
        r"Agent:    pintle 0.1.0, id a1b2c3, cluster shop-0042, up 3d
Cluster:  https://127.0.0.1:6443 v1.36.3, reachable for 3h
Store:    /var/lib/pintle, 3.3 MiB, generation 42
Clock:    trusted (synchronized)

REPOSITORY                     REF   REVISION  LAST FETCH  ERROR
https://git.example/fleet.git  main  53e28ff   2h ago      GitUnreachable: connect: connection refused

NAME         STATUS     HEALTH   REVISION  OPERATION  DRIFT  HOLD    MESSAGE
argocd/shop  OutOfSync  Healthy  53e28ff   Succeeded  1      Pinned  pinned to history entry 3
"
    );
}

#[test]
fn a_diff_tells_who_changed_what_and_when() {
    let text = diff(&sample::diff(), now(), PLAIN);
    assert_eq!(
        text,
        r"===== apps/Deployment shop/web =====
  spec.replicas: 5 in the cluster, 2 in git; last written by kubectl (Update) at or before 2026-03-04T05:00:00Z (9m ago)
--- live
+++ git
@@ -1,3 +1,3 @@
 kind: Deployment
 spec:
-  replicas: 5
+  replicas: 2

"
    );
}

#[test]
fn a_plan_tells_what_is_refused_and_how_to_go_on() {
    let text = plan(&sample::plan(), PLAIN);
    assert_eq!(
        text,
        r"ACTION  GROUP  KIND       NAMESPACE  NAME  WAVE  REASON
Create         ConfigMap  shop       new   0     not in the cluster
Prune          ConfigMap  shop       old   0     no longer in git

REFUSED       GROUP  KIND                   NAMESPACE  NAME  MESSAGE
PruneRefused         PersistentVolumeClaim  shop       data  protected kind

To go on, repeat the command with --confirm t0ken
"
    );
}

#[test]
fn colour_changes_nothing_but_escapes() {
    let coloured = status(&sample::status(), Paint(true), true);
    assert!(coloured.contains("\u{1b}[33mOutOfSync\u{1b}[0m"), "{coloured}");
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    assert_eq!(plain, status(&sample::status(), PLAIN, true));
}

#[test]
fn what_is_not_known_yet_is_said() {
    let mut fresh = sample::status();
    fresh.cluster = api::ClusterInfo::default();
    fresh.git[0].last_success = None;
    fresh.apps.clear();
    fresh.clock.trusted = false;
    let text = status(&fresh, PLAIN, false);
    assert!(text.contains("Cluster:  not yet reached\n"), "{text}");
    assert!(text.contains("  never  "), "{text}");
    assert!(text.contains("No applications.\n"), "{text}");
    assert!(text.contains("Clock:    not trusted (synchronized)\n"), "{text}");
}

#[test]
fn an_unreachable_cluster_tells_since_when_and_why() {
    let mut cut = sample::status();
    cut.cluster.reachable = false;
    cut.cluster.message = "connection refused".to_owned();
    let text = status(&cut, PLAIN, false);
    assert!(
        text.contains("https://127.0.0.1:6443 v1.36.3, not reachable for 3h: connection refused\n"),
        "{text}"
    );
}

#[test]
fn an_empty_plan_says_so() {
    let empty = api::Plan { steps: vec![], refusals: vec![], token: String::new(), ..sample::plan() };
    assert_eq!(plan(&empty, PLAIN), "Nothing to do.\n");
}

#[test]
fn a_finding_of_the_doctor_has_its_advice_below() {
    let check = api::Check {
        name: "git".into(),
        ok: api::Verdict::Fail,
        detail: "connection refused".into(),
        hint: "check the link".into(),
    };
    let text = doctor(&api::Doctor { checks: vec![check] }, PLAIN);
    assert_eq!(text, "FAIL  git  connection refused\n           -> check the link\n");
}
