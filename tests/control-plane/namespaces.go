package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

const (
	namespaceWorkers = 4
	// contentRetry is how soon a namespace is looked at again while something
	// is left in it, doubled each time up to contentRetryMax.
	contentRetry    = 50 * time.Millisecond
	contentRetryMax = time.Second
)

// runNamespaceController empties and finishes deleted namespaces with the code
// of Kubernetes. Only the waiting is ours: the controller of the controller
// manager waits 5 s before it looks, for the sake of several API servers, and
// up to half a Pod's grace period again, so that one deletion takes 10 s.
func runNamespaceController(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	config = rest.AddUserAgent(config, "namespace-controller")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	deleter := deletion.NewNamespacedResourcesDeleter(ctx, client.CoreV1().Namespaces(), objects, client.CoreV1(),
		client.Discovery().ServerPreferredNamespacedResources, corev1.FinalizerKubernetes)

	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](contentRetry, contentRetryMax))
	defer queue.ShutDown()
	enqueue := func(obj any) {
		if ns, ok := obj.(*corev1.Namespace); ok && ns.DeletionTimestamp != nil {
			queue.Add(ns.Name)
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	if _, err := factory.Core().V1().Namespaces().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())

	next := func() bool {
		name, shutdown := queue.Get()
		if shutdown {
			return false
		}
		defer queue.Done(name)
		err := deleter.Delete(ctx, name)
		if err == nil || ctx.Err() != nil {
			queue.Forget(name)
			return true
		}
		var remaining *deletion.ResourcesRemainingError
		if !errors.As(err, &remaining) {
			klog.Warningf("namespace %s: %v", name, fmt.Errorf("deleting: %w", err))
		}
		queue.AddRateLimited(name)
		return true
	}
	var workers sync.WaitGroup
	for range namespaceWorkers {
		workers.Go(func() {
			for next() {
			}
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	workers.Wait()
	return nil
}
