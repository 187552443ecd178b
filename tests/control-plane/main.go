// Command control-plane is a real Kubernetes control plane in one process, for
// integration tests and the demo: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and a fake kubelet.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"k8s.io/component-base/version"
)

const usage = `usage:
  control-plane run [flags]    start, print "ready KUBECONFIG", run until told to stop
  control-plane version        print the version of Kubernetes inside

flags of run:
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	switch os.Args[1] {
	case "run":
		opts, err := parseRunFlags(os.Args[2:])
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(0)
		}
		if err != nil {
			fatal(2, "%v", err)
		}
		os.Exit(runUntilStopped(opts))
	case "version", "--version":
		fmt.Println(version.Get().GitVersion)
	case "help", "-h", "--help":
		fmt.Print(usage)
		_, _ = parseRunFlags([]string{"--help"})
	default:
		fatal(2, "unknown command %q: use run or version", os.Args[1])
	}
}

// runOptions is what the flags of `run` say, checked.
type runOptions struct {
	dir               string // absolute; empty: a temporary directory, removed at the end
	audit             bool
	printReady        bool
	kubelet           bool
	nodes             int
	apiPort           int // 0: the port used in dir before if it is free, else any free one
	parentPID         int // -1: the process that started us; 0: nobody
	untilStdinCloses  bool
	apiServerFlags    repeated
	controllerFlags   repeated
	readyTimeoutSecs  int
	logVerbosityLevel int
}

// repeated is a flag that may be given more than once.
type repeated []string

func (r *repeated) String() string     { return strings.Join(*r, " ") }
func (r *repeated) Set(v string) error { *r = append(*r, v); return nil }

func parseRunFlags(args []string) (runOptions, error) {
	var o runOptions
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	fs.StringVar(&o.dir, "dir", "", "directory of all files; used again, it is the same cluster (default: a temporary one, removed at the end)")
	fs.BoolVar(&o.audit, "audit", false, "write DIR/audit.log, one JSON event a line")
	fs.BoolVar(&o.printReady, "print-ready", true, `print "ready KUBECONFIG" when everything answers`)
	fs.BoolVar(&o.kubelet, "kubelet", true, "run the fake kubelet")
	fs.IntVar(&o.nodes, "nodes", 1, "number of fake nodes")
	fs.IntVar(&o.apiPort, "api-port", 0, "port of the API server on 127.0.0.1 (0: the one this DIR had before, or a free one)")
	fs.IntVar(&o.parentPID, "parent-pid", -1, "end when this process ends (-1: the process that started this one; 0: none)")
	fs.BoolVar(&o.untilStdinCloses, "until-stdin-closes", false, "end when stdin is closed")
	fs.Var(&o.apiServerFlags, "apiserver-flag", "one more flag for kube-apiserver, such as --apiserver-flag=--etcd-compaction-interval=2s; may be repeated")
	fs.Var(&o.controllerFlags, "controller-manager-flag", "one more flag for kube-controller-manager; may be repeated")
	fs.IntVar(&o.readyTimeoutSecs, "ready-timeout-secs", 120, "give up when not ready by then")
	fs.IntVar(&o.logVerbosityLevel, "v", 0, "verbosity of DIR/control-plane.log, as in Kubernetes (0 to 10)")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if o.nodes < 1 || o.nodes > 250 {
		return o, fmt.Errorf("--nodes must be 1 to 250, got %d", o.nodes)
	}
	return o, nil
}

// fatal prints the one line that a failing run leaves on stderr.
func fatal(code int, format string, args ...any) {
	fmt.Fprintf(os.Stderr, "control-plane: "+format+"\n", args...)
	os.Exit(code)
}
