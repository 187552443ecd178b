package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controlleroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// controllersOff need hardware, a cloud, real volumes or signing keys that are
// not there; each one less saves its caches and watches. The namespace
// controller is replaced by runNamespaceController.
var controllersOff = []string{
	"certificatesigningrequest-approving-controller",
	"certificatesigningrequest-cleaner-controller",
	"certificatesigningrequest-signing-controller",
	"device-taint-eviction-controller",
	"ephemeral-volume-controller",
	"legacy-serviceaccount-token-cleaner-controller",
	"namespace-controller",
	"node-ipam-controller",
	"persistentvolume-attach-detach-controller",
	"persistentvolume-expander-controller",
	"podcertificaterequest-cleaner-controller",
	"resourceclaim-controller",
	"resourcepoolstatusrequest-controller",
	"selinux-warning-controller",
	"storage-version-migrator-controller",
	"storageversion-garbage-collector-controller",
	"ttl-controller",
	"volumeattributesclass-protection-controller",
}

// runControllerManager runs kube-controller-manager until ctx ends.
func runControllerManager(ctx context.Context, p *pki, kubeconfig string, extra []string) error {
	s, err := controlleroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	all := controllermanager.KnownControllers()
	off := controllermanager.ControllersDisabledByDefault()
	aliases := controllermanager.ControllerAliases()
	named := s.Flags(all, off, aliases)
	s.ParsedFlags = &named
	fs := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	for _, f := range named.FlagSets {
		fs.AddFlagSet(f)
	}
	flags := []string{
		"--kubeconfig=" + kubeconfig,
		"--root-ca-file=" + p.path("ca.crt"),
		"--service-account-private-key-file=" + p.path("service-account.key"),
		"--controllers=*,-" + strings.Join(controllersOff, ",-"),
		"--leader-elect=false",
		// No port of its own: nobody asks for its health or metrics.
		"--secure-port=0",
		"--profiling=false",
		// The defaults of 20 and 30 requests a second would be what a test
		// with many objects measures.
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		// The fake kubelet renews its Lease once a minute, and a machine that
		// slept should not find its Pods evicted.
		"--node-monitor-grace-period=10m",
	}
	if err := fs.Parse(append(flags, extra...)); err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	config, err := s.Config(ctx, all, off, aliases)
	if err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	if err := controllermanager.Run(ctx, config.Complete()); err != nil && ctx.Err() == nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	return nil
}

// runScheduler runs kube-scheduler until ctx ends.
func runScheduler(ctx context.Context, kubeconfig string) error {
	opts := scheduleroptions.NewOptions()
	fs := pflag.NewFlagSet("kube-scheduler", pflag.ContinueOnError)
	for _, f := range opts.Flags.FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse([]string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
	}); err != nil {
		return fmt.Errorf("kube-scheduler: %w", err)
	}
	config, sched, err := scheduler.Setup(ctx, opts)
	if err != nil {
		return fmt.Errorf("kube-scheduler: %w", err)
	}
	if err := scheduler.Run(ctx, config, sched); err != nil && ctx.Err() == nil {
		return fmt.Errorf("kube-scheduler: %w", err)
	}
	return nil
}
