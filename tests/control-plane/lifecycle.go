package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

const (
	// stopBudget is how long a graceful stop may take. The API server alone
	// would wait up to a minute for open requests.
	stopBudget = 1500 * time.Millisecond
	// hardStop ends the process whatever it is doing.
	hardStop = 5 * time.Second
	// parentPoll is how often the parent is looked at. PR_SET_PDEATHSIG is not
	// used: it fires when the *thread* that started us ends, and test runners
	// start processes from short-lived threads.
	parentPoll = 200 * time.Millisecond
)

// runUntilStopped runs a cluster until a signal, the end of the parent, the end
// of stdin or a fatal error, and returns the exit code.
func runUntilStopped(opts runOptions) int {
	parent, err := watchedParent(opts.parentPID)
	if err != nil {
		fatal(1, "%v", err)
	}
	temporary := opts.dir == ""
	if temporary {
		opts.dir, err = os.MkdirTemp("", "control-plane-")
	} else if opts.dir, err = filepath.Abs(opts.dir); err == nil {
		err = os.MkdirAll(opts.dir, 0o755)
	}
	if err != nil {
		fatal(1, "%v", err)
	}
	removeTemporary := func() {
		if temporary {
			removeDir(opts.dir)
		}
	}
	// etcd's socket is named relative to the working directory: a path in a
	// deep directory would pass the 107 bytes a socket's name may have.
	if err := os.Chdir(opts.dir); err != nil {
		removeTemporary()
		fatal(1, "%v", err)
	}
	unlock, err := lockDir(opts.dir)
	if err != nil {
		fatal(1, "%v", err)
	}
	defer unlock()
	if err := logToFile(filepath.Join(opts.dir, logFileName), opts.logVerbosityLevel); err != nil {
		removeTemporary()
		fatal(1, "%v", err)
	}

	stop := make(chan string, 4)
	go watchSignals(stop)
	go parent.watch(stop)
	if opts.untilStdinCloses {
		go watchStdin(stop)
	}

	c := newCluster(opts)
	failed := make(chan error, 1)
	go func() {
		if err := c.run(context.Background()); err != nil {
			failed <- err
		}
	}()

	code := 0
	select {
	case reason := <-stop:
		klog.Infof("stopping: %s", reason)
	case err := <-failed:
		klog.Errorf("stopping: %v", err)
		if temporary {
			fmt.Fprintf(os.Stderr, "control-plane: %v\n", err)
		} else {
			fmt.Fprintf(os.Stderr, "control-plane: %v (see %s)\n", err, filepath.Join(opts.dir, logFileName))
		}
		code = 1
	}

	time.AfterFunc(hardStop, func() {
		removeTemporary()
		os.Exit(1)
	})
	// What is thrown away needs no graceful end.
	if !temporary {
		c.stop(stopBudget)
	}
	klog.Flush()
	removeTemporary()
	return code
}

// removeDir removes a directory in which etcd and the log may still be writing.
func removeDir(dir string) {
	for range 20 {
		if os.RemoveAll(dir) == nil {
			return
		}
	}
}

// lockDir makes sure that one directory has one cluster: two would share etcd's
// files and break them.
func lockDir(dir string) (func(), error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	// A cluster that was just told to stop still needs a moment to let go.
	deadline := time.Now().Add(hardStop)
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if time.Now().After(deadline) {
			_ = f.Close()
			return nil, fmt.Errorf("%s is in use by another control-plane", dir)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func watchSignals(stop chan<- string) {
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	stop <- (<-ch).String()
	// A second signal does not wait for the graceful end.
	<-ch
	os.Exit(1)
}

func watchStdin(stop chan<- string) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop <- "stdin was closed"
}

// parentProcess is the process whose end ends us.
type parentProcess struct {
	pid       int // 0: none
	isParent  bool
	startTime string
}

func watchedParent(pid int) (parentProcess, error) {
	switch {
	case pid == 0:
		return parentProcess{}, nil
	case pid < 0:
		// Started by init (or as the first process of a container): nobody to watch.
		if ppid := os.Getppid(); ppid > 1 {
			return parentProcess{pid: ppid, isParent: true}, nil
		}
		return parentProcess{}, nil
	}
	start, alive := processStart(pid)
	if !alive {
		return parentProcess{}, fmt.Errorf("--parent-pid %d: no such process", pid)
	}
	return parentProcess{pid: pid, startTime: start}, nil
}

func (p parentProcess) watch(stop chan<- string) {
	if p.pid == 0 {
		return
	}
	for range time.Tick(parentPoll) {
		if p.isParent {
			if os.Getppid() == p.pid {
				continue
			}
		} else if start, alive := processStart(p.pid); alive && start == p.startTime {
			continue
		}
		stop <- fmt.Sprintf("process %d has ended", p.pid)
		return
	}
}

// processStart tells whether a process runs and, where /proc exists, when it
// started, so that a reused id or a zombie does not count as the process.
func processStart(pid int) (string, bool) {
	if err := syscall.Kill(pid, 0); err == syscall.ESRCH {
		return "", false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", true
	}
	// The fields after the name in parentheses: the 1st is the state, the 20th the start time.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", false
	}
	return fields[19], true
}
