package main

import (
	"flag"
	"log"
	"os"
	"strconv"

	"k8s.io/klog/v2"
)

const logFileName = "control-plane.log"

// logToFile sends what all components log to one file and keeps stderr for the
// one line of a fatal error.
func logToFile(path string, verbosity int) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	fs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(fs)
	for name, value := range map[string]string{
		"logtostderr":     "false",
		"alsologtostderr": "false",
		"stderrthreshold": "4", // above FATAL: nothing
		"one_output":      "true",
		"v":               strconv.Itoa(verbosity),
	} {
		if err := fs.Set(name, value); err != nil {
			return err
		}
	}
	klog.SetOutput(f)
	log.SetOutput(f)
	klog.OsExit = func(code int) {
		_, _ = os.Stderr.WriteString("control-plane: a component ended with a fatal error, see " + path + "\n")
		os.Exit(code)
	}
	return nil
}
