//! Every label, annotation, field manager and object name that Pintle reads or writes, in one leaf module.

/// The field manager of every server-side apply. Never changes: ownership in the cluster hangs on it.
pub const FIELD_MANAGER: &str = "pintle";

/// Label on every managed object; its value is the agent id. The watch selector.
pub const AGENT_LABEL: &str = "pintle.dev/agent";
/// ApplySet membership label (KEP-3659); its value is the ApplySet id of the application.
pub const PART_OF_LABEL: &str = "applyset.kubernetes.io/part-of";
/// Annotation with `app:group/Kind:namespace/name`, the app being `namespace/name` of the application.
pub const TRACKING_ANNOTATION: &str = "pintle.dev/tracking-id";
/// Annotation on an object that existed before our first apply.
pub const ADOPTED_ANNOTATION: &str = "pintle.dev/adopted";

/// Label on an ApplySet parent; its value is the ApplySet id (KEP-3659).
pub const APPLYSET_ID_LABEL: &str = "applyset.kubernetes.io/id";
/// Annotation on an ApplySet parent: tool and version (KEP-3659).
pub const APPLYSET_TOOLING: &str = "applyset.kubernetes.io/tooling";
/// Annotation on an ApplySet parent: comma-separated `Kind.group` (KEP-3659).
pub const APPLYSET_GROUP_KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
/// Annotation on an ApplySet parent: further namespaces of its members (KEP-3659).
pub const APPLYSET_NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";

/// Namespace of the agent's own objects, unless configured.
pub const DEFAULT_AGENT_NAMESPACE: &str = "pintle-system";
/// ConfigMap in the agent's namespace that claims the cluster for one agent id.
pub const CLAIM_CONFIGMAP: &str = "pintle";
/// Name of the agent's own objects: ServiceAccount, ClusterRole and so on of the installation, and the claim.
pub const OWN_NAME: &str = "pintle";
/// What names of further objects of the agent begin with: ApplySet parents, roles of one namespace.
pub const OWN_PREFIX: &str = "pintle-";
/// Default namespace of an Application that names none, as in Argo CD.
pub const DEFAULT_APP_NAMESPACE: &str = "argocd";

/// Argo CD's tracking annotation: the mark of another owner.
pub const ARGOCD_TRACKING_ANNOTATION: &str = "argocd.argoproj.io/tracking-id";
/// Argo CD's per-object sync options.
pub const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
/// Argo CD's per-object compare options.
pub const COMPARE_OPTIONS: &str = "argocd.argoproj.io/compare-options";
/// Argo CD's sync wave.
pub const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
/// Argo CD's hook annotation.
pub const HOOK: &str = "argocd.argoproj.io/hook";
/// Argo CD's annotation that says when a hook's object goes.
pub const HOOK_DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
/// Helm's annotation that says when a hook's object goes.
pub const HELM_HOOK_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
/// Helm's order of hooks.
pub const HELM_HOOK_WEIGHT: &str = "helm.sh/hook-weight";
/// Annotation on a hook's object: the operation that made it.
pub const OPERATION_ANNOTATION: &str = "pintle.dev/operation";
/// Helm's hook annotation.
pub const HELM_HOOK: &str = "helm.sh/hook";
/// Argo CD's annotation that leaves an object out of the application's health.
pub const IGNORE_HEALTHCHECK: &str = "argocd.argoproj.io/ignore-healthcheck";
/// Finalizer on an Application that asks for a cascade.
pub const RESOURCES_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// Mark of a Helm release.
pub const HELM_RELEASE_NAME: &str = "meta.helm.sh/release-name";
/// Mark of a Flux Kustomization.
pub const FLUX_KUSTOMIZE_NAME: &str = "kustomize.toolkit.fluxcd.io/name";
/// Mark of a Flux HelmRelease.
pub const FLUX_HELM_NAME: &str = "helm.toolkit.fluxcd.io/name";
/// kubectl's client-side apply annotation: may hold secret values, never shown.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Per-application or per-object setting: adopt an object with another owner's mark.
pub const ADOPT: &str = "pintle.dev/adopt";
/// Deadline of one wave.
pub const SYNC_TIMEOUT: &str = "pintle.dev/sync-timeout";
/// What is dry-run before a wave: `all`, `changed`, `none`.
pub const DRY_RUN: &str = "pintle.dev/dry-run";
/// Per-object setting: `IfNotPresent` makes the object when it is absent and never changes it, `Ignore` leaves it alone.
pub const APPLY: &str = "pintle.dev/apply";
/// Argo CD's annotation on an Application by which a person approves deletions that ask for a word.
pub const DELETION_APPROVED: &str = "argocd.argoproj.io/deletion-approved";
/// When a rollback ends by itself.
pub const ROLLBACK_UNTIL: &str = "pintle.dev/rollback-until";
