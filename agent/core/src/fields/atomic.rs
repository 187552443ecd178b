//! Which empty containers are atomic.
//!
//! `managedFields` write an empty container that we sent as a leaf, whether it is atomic (`selector: {}`, owned as
//! a whole) or granular (`resources: {}`, which others may fill). The answer cannot tell them apart, so the atomic
//! ones of the built-in types are listed here, from the markers `+structType=atomic`, `+mapType=atomic` and
//! `+listType=map|set` of the Kubernetes API types. Elsewhere (custom resources) maps are granular and lists atomic,
//! which are the defaults of a CRD schema.

/// Maps and structs that are owned as a whole.
pub(super) fn is_atomic_map(kind: &str, name: &str) -> bool {
    match name {
        // meta/v1 LabelSelector, wherever it stands; Service's and ReplicationController's plain maps.
        "selector" | "podSelector" | "namespaceSelector" | "labelSelector" | "objectSelector"
        | "jobSelector" | "clusterSelectors" => true,
        // core/v1 PodSpec, NodeSelector, NodeSelectorTerm, TopologySelectorTerm.
        "nodeSelector"
        | "nodeSelectorTerms"
        | "requiredDuringSchedulingIgnoredDuringExecution"
        | "scopeSelector" => true,
        // References: LocalObjectReference, ObjectReference, TypedLocalObjectReference, SecretReference, selectors
        // of keys, fields and resources.
        "configMapKeyRef"
        | "secretKeyRef"
        | "fieldRef"
        | "resourceFieldRef"
        | "secretRef"
        | "claimRef"
        | "targetRef"
        | "dataSource"
        | "involvedObject"
        | "related"
        | "controllerPublishSecretRef"
        | "nodePublishSecretRef"
        | "nodeStageSecretRef"
        | "roleRef"
        | "resource" => true,
        "parameters" => matches!(kind, "StorageClass" | "VolumeSnapshotClass" | "IngressClass"),
        _ => false,
    }
}

/// Lists whose items are owned one by one.
pub(super) fn is_granular_list(kind: &str, name: &str) -> bool {
    match name {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumeMounts"
        | "volumeDevices"
        | "volumes"
        | "imagePullSecrets"
        | "hostAliases"
        | "topologySpreadConstraints"
        | "conditions"
        | "finalizers"
        | "ownerReferences"
        | "readinessGates"
        | "schedulingGates"
        | "resourceClaims"
        | "resizePolicy"
        | "claims"
        | "podIPs"
        | "matchConditions"
        | "variables" => true,
        "ports" => !matches!(kind, "NetworkPolicy" | "Endpoints" | "EndpointSlice"),
        "webhooks" => matches!(kind, "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration"),
        "secrets" => kind == "ServiceAccount",
        _ => false,
    }
}
