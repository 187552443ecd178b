package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

const (
	fakeNodeLabel  = "fake-kubelet.pintle.dev/node"
	leaseNamespace = corev1.NamespaceNodeLease
	// leaseRenewal is far below the controller manager's
	// --node-monitor-grace-period of 10 min and costs one request a minute.
	leaseRenewal         = time.Minute
	leaseDurationSeconds = int32(600)
)

var everything = labels.Everything()

// node is one fake node.
type node struct {
	name string
	ip   string
}

func newNode(index int) node {
	return node{name: fmt.Sprintf("node-%d", index), ip: fmt.Sprintf("10.0.0.%d", index+1)}
}

// register creates the node or takes over the one of an earlier run, and makes
// it ready.
func (n node) register(ctx context.Context, client kubernetes.Interface) error {
	if err := n.renewLease(ctx, client); err != nil {
		return err
	}
	nodes := client.CoreV1().Nodes()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: n.name,
		Labels: map[string]string{
			fakeNodeLabel:              "true",
			corev1.LabelHostname:       n.name,
			corev1.LabelOSStable:       "linux",
			corev1.LabelArchStable:     "amd64",
			"beta.kubernetes.io/os":    "linux",
			"beta.kubernetes.io/arch":  "amd64",
			"node.kubernetes.io/fake":  "",
			corev1.LabelTopologyZone:   "edge",
			corev1.LabelTopologyRegion: "edge",
		},
	}}
	created, err := nodes.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		created, err = nodes.Get(ctx, n.name, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	n.fillStatus(&created.Status)
	ready, err := nodes.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	// Admission taints every new node as not ready; the node lifecycle
	// controller would take that away a moment later.
	ready.Spec.Taints = nil
	_, err = nodes.Update(ctx, ready, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil // the controller was faster
	}
	return err
}

func (n node) fillStatus(status *corev1.NodeStatus) {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("100"),
		corev1.ResourceMemory:           resource.MustParse("100Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             resource.MustParse("10000"),
	}
	status.Capacity, status.Allocatable = capacity, capacity
	status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: n.ip},
		{Type: corev1.NodeHostName, Address: n.name},
	}
	status.NodeInfo = corev1.NodeSystemInfo{
		Architecture: "amd64", OperatingSystem: "linux", OSImage: "fake", KernelVersion: "fake",
		ContainerRuntimeVersion: "fake://1", KubeletVersion: version.Get().GitVersion,
		MachineID: n.name, SystemUUID: n.name, BootID: n.name,
	}
	now := metav1.Now()
	status.Conditions = nil
	for _, c := range []struct {
		kind   corev1.NodeConditionType
		status corev1.ConditionStatus
		reason string
	}{
		{corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"},
		{corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"},
		{corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"},
		{corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"},
	} {
		status.Conditions = append(status.Conditions, corev1.NodeCondition{
			Type: c.kind, Status: c.status, Reason: c.reason, Message: "the fake kubelet says so",
			LastHeartbeatTime: now, LastTransitionTime: now,
		})
	}
}

// keepNodes renews the Leases, by which the node lifecycle controller knows
// that the nodes live.
func (k *kubelet) keepNodes(ctx context.Context) {
	ticker := time.NewTicker(leaseRenewal)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, n := range k.nodes {
			if err := n.renewLease(ctx, k.client); err != nil && ctx.Err() == nil {
				klog.Warningf("fake kubelet: lease of %s: %v", n.name, err)
			}
		}
	}
}

func (n node) renewLease(ctx context.Context, client kubernetes.Interface) error {
	leases := client.CoordinationV1().Leases(leaseNamespace)
	now := metav1.NowMicro()
	duration := leaseDurationSeconds
	lease, err := leases.Get(ctx, n.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: n.name, Namespace: leaseNamespace},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &n.name, LeaseDurationSeconds: &duration, RenewTime: &now,
			},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
