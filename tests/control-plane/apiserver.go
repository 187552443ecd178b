package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// listenForAPI binds the API server's port here and hands the listener over, so
// that no other process can take the port in between. wanted 0 means: the
// previous port if it is free, else any.
func listenForAPI(wanted, previous int) (net.Listener, int, error) {
	ports := []int{wanted}
	if wanted == 0 && previous != 0 {
		ports = []int{previous, 0}
	}
	var firstErr error
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return l, l.Addr().(*net.TCPAddr).Port, nil
		}
		if firstErr == nil {
			firstErr = err
		}
	}
	return nil, 0, firstErr
}

// newAPIServer builds kube-apiserver from its flags, as its own command does,
// and returns the function that runs it until ctx ends.
func newAPIServer(ctx context.Context, listener net.Listener, p *pki, dir string, extra []string) (func(context.Context) error, error) {
	s := options.NewServerRunOptions()
	fs := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, f := range s.Flags().FlagSets {
		fs.AddFlagSet(f)
	}
	flags := []string{
		"--etcd-servers=unix://" + etcdSocket,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		// The endpoint of Service kubernetes may not be a loopback address:
		// the reconciler would log an error every 10 s.
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + p.path("apiserver.crt"),
		"--tls-private-key-file=" + p.path("apiserver.key"),
		"--client-ca-file=" + p.path("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + p.path("service-account.pub"),
		"--service-account-signing-key-file=" + p.path("service-account.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--event-ttl=1h",
		"--profiling=false",
	}
	if err := fs.Parse(append(flags, extra...)); err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	s.SecureServing.Listener = listener
	s.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	s.SecureServing.ServerCert.CertDirectory = filepath.Join(dir, "pki")
	// The gates are one set for the whole process: fixed here, before the
	// controllers read them.
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	completed, err := s.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return nil, fmt.Errorf("kube-apiserver: %w", utilerrors.NewAggregate(errs))
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	completedConfig, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	server, err := app.CreateServerChain(completedConfig)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	return prepared.Run, nil
}
