package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// readyPoll is how often a condition of the start is asked for.
const readyPoll = 25 * time.Millisecond

// cluster is the parts of one control plane in the order they are stopped.
type cluster struct {
	opts runOptions

	mu          sync.Mutex
	etcd        *embed.Etcd
	stopClients context.CancelFunc // controllers, scheduler, kubelet
	stopAPI     context.CancelFunc
	clients     sync.WaitGroup
	api         sync.WaitGroup
}

func newCluster(opts runOptions) *cluster {
	return &cluster{opts: opts, stopClients: func() {}, stopAPI: func() {}}
}

// run starts everything, says that it is ready, and returns only when a part
// has failed.
func (c *cluster) run(ctx context.Context) error {
	started := time.Now()
	dir := c.opts.dir
	p, err := loadOrCreatePKI(filepath.Join(dir, "pki"))
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	etcd, err := startEtcd(dir)
	if err != nil {
		return err
	}
	clientCtx, stopClients := context.WithCancel(ctx)
	apiCtx, stopAPI := context.WithCancel(ctx)
	c.mu.Lock()
	c.etcd, c.stopClients, c.stopAPI = etcd, stopClients, stopAPI
	c.mu.Unlock()

	listener, port, err := listenForAPI(c.opts.apiPort, readPort(dir))
	if err != nil {
		return fmt.Errorf("port of the API server: %w", err)
	}
	if err := writePort(dir, port); err != nil {
		return err
	}
	if err := c.writeKubeconfigs(p, "https://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	extra := c.opts.apiServerFlags
	if c.opts.audit {
		audit, err := auditFlags(filepath.Join(dir, "audit-policy.yaml"), filepath.Join(dir, "audit.log"))
		if err != nil {
			return err
		}
		extra = append(audit, extra...)
	}
	runAPI, err := newAPIServer(apiCtx, listener, p, dir, extra)
	if err != nil {
		return err
	}

	failed := make(chan error, 8)
	start := func(ctx context.Context, wg *sync.WaitGroup, name string, f func(context.Context) error) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			err := f(ctx)
			if ctx.Err() == nil {
				if err == nil {
					err = errors.New("it returned")
				}
				failed <- fmt.Errorf("%s has ended: %w", name, err)
			}
		}()
	}
	start(apiCtx, &c.api, "kube-apiserver", runAPI)

	readyCtx, cancel := context.WithTimeout(clientCtx, time.Duration(c.opts.readyTimeoutSecs)*time.Second)
	defer cancel()
	ready := make(chan error, 1)
	go func() {
		ready <- c.startClients(readyCtx, clientCtx, p, start)
	}()
	for {
		select {
		case err := <-failed:
			return err
		case err := <-ready:
			if err != nil {
				return err
			}
			klog.Infof("ready after %s", time.Since(started).Round(time.Millisecond))
			if c.opts.printReady {
				fmt.Printf("ready %s\n", c.kubeconfig())
			}
			ready = nil
		}
	}
}

// startFunc runs one part in the background.
type startFunc func(ctx context.Context, wg *sync.WaitGroup, name string, f func(context.Context) error)

// startClients starts what talks to the API server as soon as it answers, and
// returns when the cluster is ready for use.
func (c *cluster) startClients(readyCtx, runCtx context.Context, p *pki, start startFunc) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.componentKubeconfig("kubelet"))
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "control-plane"))
	if err != nil {
		return err
	}
	// Not earlier: the controller manager asks for /healthz once a second, so a
	// first "not yet" would cost more than it gains.
	if err := waitFor(readyCtx, "the API server to answer", func(ctx context.Context) error {
		return probe(ctx, client, "/readyz")
	}); err != nil {
		return err
	}
	klog.Info("control-plane: API server is ready")
	start(runCtx, &c.clients, "kube-controller-manager", func(ctx context.Context) error {
		return runControllerManager(ctx, p, c.componentKubeconfig("kube-controller-manager"), c.opts.controllerFlags)
	})
	start(runCtx, &c.clients, "kube-scheduler", func(ctx context.Context) error {
		return runScheduler(ctx, c.componentKubeconfig("kube-scheduler"))
	})
	start(runCtx, &c.clients, "the namespace controller", func(ctx context.Context) error {
		return runNamespaceController(ctx, c.componentKubeconfig("kube-controller-manager"))
	})
	if c.opts.kubelet {
		kubelet := newKubelet(config, c.opts.nodes)
		start(runCtx, &c.clients, "the fake kubelet", kubelet.run)
	}
	if err := waitFor(readyCtx, "ServiceAccount default in namespace default", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	}); err != nil {
		return err
	}
	klog.Info("control-plane: controller manager is ready")
	if !c.opts.kubelet {
		return nil
	}
	return waitFor(readyCtx, "the nodes to be ready", func(ctx context.Context) error {
		return nodesReady(ctx, client, c.opts.nodes)
	})
}

func probe(ctx context.Context, client kubernetes.Interface, path string) error {
	body, err := client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w: %.300s", path, err, body)
	}
	return nil
}

// nodesReady wants nodes that Pods can be placed on: Ready and without the
// taint that every new node starts with.
func nodesReady(ctx context.Context, client kubernetes.Interface, want int) error {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: fakeNodeLabel + "=true"})
	if err != nil {
		return err
	}
	ready := 0
	for i := range list.Items {
		node := &list.Items[i]
		if len(node.Spec.Taints) > 0 {
			continue
		}
		for _, cond := range node.Status.Conditions {
			if cond.Type == corev1.NodeReady && cond.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	if ready < want {
		return fmt.Errorf("%d of %d nodes are ready", ready, want)
	}
	return nil
}

// waitFor asks until check succeeds and gives its last error when time is up.
func waitFor(ctx context.Context, what string, check func(context.Context) error) error {
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, err)
		case <-time.After(readyPoll):
		}
	}
}

// stop ends the parts from the outside in, for at most the given time: who
// writes first, then the API server, then etcd. What has not ended by then is
// left to the end of the process: etcd's files are whole after a kill, too.
func (c *cluster) stop(budget time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	deadline := time.Now().Add(budget)
	c.stopClients()
	waitUntil(&c.clients, time.Now().Add(budget/4))
	c.stopAPI()
	waitUntil(&c.api, time.Now().Add(budget/2))
	if c.etcd == nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(c.etcd.Close)
	waitUntil(&wg, deadline)
}

func waitUntil(wg *sync.WaitGroup, deadline time.Time) {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Until(deadline)):
	}
}

func (c *cluster) kubeconfig() string { return filepath.Join(c.opts.dir, "kubeconfig") }

func (c *cluster) componentKubeconfig(client string) string {
	return filepath.Join(c.opts.dir, "pki", client+".kubeconfig")
}

func (c *cluster) writeKubeconfigs(p *pki, server string) error {
	for client := range clients {
		path := c.componentKubeconfig(client)
		if client == "admin" {
			path = c.kubeconfig()
		}
		if err := p.writeKubeconfig(path, client, server); err != nil {
			return err
		}
	}
	return nil
}

// readPort returns the port that this directory's API server had last, or 0.
func readPort(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "api-port"))
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || port < 1 || port > 65535 {
		return 0
	}
	return port
}

func writePort(dir string, port int) error {
	return os.WriteFile(filepath.Join(dir, "api-port"), []byte(strconv.Itoa(port)+"\n"), 0o644)
}
