package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// kubeletWorkers move Pods side by side. The API server needs a few hundred
// microseconds of CPU for each status, so more would only queue there.
const kubeletWorkers = 4

// kubelet plays the kubelets of all fake nodes: it keeps the nodes ready and
// moves the Pods bound to them through their states. Nothing is executed.
//
// Guarantees: a Pod is looked at when it changes or when its next step is due,
// and never polled.
type kubelet struct {
	config *rest.Config
	nodes  map[string]node

	client kubernetes.Interface
	pods   corelisters.PodLister
	queue  workqueue.TypedRateLimitingInterface[string]

	mu sync.Mutex
	// seen is when each running Pod was first seen here; the times of the API
	// are whole seconds and too coarse for steps of milliseconds.
	seen   map[types.UID]time.Time
	lastIP netip.Addr
}

func newKubelet(config *rest.Config, count int) *kubelet {
	k := &kubelet{
		config: rest.CopyConfig(config),
		nodes:  make(map[string]node, count),
		seen:   make(map[types.UID]time.Time),
		lastIP: firstPodIP,
	}
	k.config.ContentType = "application/vnd.kubernetes.protobuf"
	for i := range count {
		n := newNode(i)
		k.nodes[n.name] = n
	}
	return k
}

func (k *kubelet) run(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(k.config, "fake-kubelet"))
	if err != nil {
		return err
	}
	k.client = client
	for _, n := range k.nodes {
		if err := n.register(ctx, client); err != nil {
			return fmt.Errorf("node %s: %w", n.name, err)
		}
	}
	go k.keepNodes(ctx)

	k.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 5*time.Second))
	defer k.queue.ShutDown()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}))
	pods := factory.Core().V1().Pods()
	k.pods = pods.Lister()
	if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { k.enqueue(obj) },
		UpdateFunc: func(_, obj any) { k.enqueue(obj) },
		DeleteFunc: k.forget,
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	k.skipUsedIPs()

	var workers sync.WaitGroup
	for range kubeletWorkers {
		workers.Go(func() {
			for k.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	k.queue.ShutDown()
	workers.Wait()
	return nil
}

func (k *kubelet) enqueue(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	if _, ours := k.nodes[pod.Spec.NodeName]; ours {
		k.queue.Add(pod.Namespace + "/" + pod.Name)
	}
}

func (k *kubelet) forget(obj any) {
	if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tomb.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		k.mu.Lock()
		delete(k.seen, pod.UID)
		k.mu.Unlock()
	}
}

func (k *kubelet) next(ctx context.Context) bool {
	key, shutdown := k.queue.Get()
	if shutdown {
		return false
	}
	defer k.queue.Done(key)
	after, err := k.step(ctx, key)
	switch {
	case err != nil && ctx.Err() == nil:
		klog.V(1).Infof("fake kubelet: %s: %v", key, err)
		k.queue.AddRateLimited(key)
	default:
		k.queue.Forget(key)
		if after > 0 {
			k.queue.AddAfter(key, after)
		}
	}
	return true
}

// step does what is due for one Pod and tells when to look again (0: when it changes).
func (k *kubelet) step(ctx context.Context, key string) (time.Duration, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return 0, err
	}
	pod, err := k.pods.Pods(namespace).Get(name)
	if err != nil {
		return 0, ignoreGone(err)
	}
	orders, err := ordersOf(pod)
	if err != nil {
		klog.Warningf("fake kubelet: %s: %v", key, err)
	}
	if pod.DeletionTimestamp != nil {
		return k.terminate(ctx, pod, orders)
	}
	status, after := nextStatus(pod, orders, k.nodes[pod.Spec.NodeName].ip, k.podIP, k.firstSeen(pod), time.Now())
	if status == nil || equality.Semantic.DeepEqual(*status, pod.Status) {
		return after, nil
	}
	changed := pod.DeepCopy()
	changed.Status = *status
	// A conflict means that a newer Pod is on its way here; asking again is cheap.
	_, err = k.client.CoreV1().Pods(namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	return after, ignoreGone(err)
}

// terminate lets a deleted Pod go, at once or after terminate-after-ms.
func (k *kubelet) terminate(ctx context.Context, pod *corev1.Pod, orders orders) (time.Duration, error) {
	if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0 {
		return 0, nil // only finalizers hold it now
	}
	if wait := orders.terminateAfter; wait > 0 {
		// Looked at first when the deletion is seen; the timestamp in the object is when the grace ends.
		first := k.seenSince(pod.UID + "/deleted")
		if left := wait - time.Since(first); left > 0 {
			return left, nil
		}
	}
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64),
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if err == nil {
		k.mu.Lock()
		delete(k.seen, pod.UID+"/deleted")
		k.mu.Unlock()
	}
	return 0, ignoreGone(err)
}

// ignoreGone takes "no such Pod, or another of that name" for success: there
// is nothing left to do for the one that was meant.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

// firstSeen is when the Pod arrived on its node. For a Pod of an earlier run
// the API's own start time is the best there is.
func (k *kubelet) firstSeen(pod *corev1.Pod) time.Time {
	k.mu.Lock()
	_, known := k.seen[pod.UID]
	if !known && pod.Status.StartTime != nil {
		k.seen[pod.UID] = pod.Status.StartTime.Time
	}
	k.mu.Unlock()
	return k.seenSince(pod.UID)
}

func (k *kubelet) seenSince(id types.UID) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	first, known := k.seen[id]
	if !known {
		first = time.Now()
		k.seen[id] = first
	}
	return first
}

// firstPodIP and what follows is 10.244.0.0/16, the usual network of Pods.
var firstPodIP = netip.AddrFrom4([4]byte{10, 244, 0, 1})

func (k *kubelet) podIP() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lastIP = k.lastIP.Next()
	b := k.lastIP.As4()
	if b[1] != 244 { // 65,000 addresses later: from the start again
		k.lastIP = firstPodIP.Next()
	}
	return k.lastIP.String()
}

// skipUsedIPs goes on after the addresses of an earlier run.
func (k *kubelet) skipUsedIPs() {
	pods, err := k.pods.List(everything)
	if err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, pod := range pods {
		ip, err := netip.ParseAddr(pod.Status.PodIP)
		if err == nil && ip.Is4() && ip.As4()[1] == 244 && k.lastIP.Less(ip) {
			k.lastIP = ip
		}
	}
}
