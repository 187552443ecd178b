package main

import "os"

// auditPolicy keeps what a test wants to know (who asked for what, and what the
// answer was) and leaves out what the control plane itself asks for. Bodies are
// left out: the log would grow by the size of every object.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
- level: None
  users:
  - system:apiserver
  - system:kube-controller-manager
  - system:kube-scheduler
  - ` + kubeletUser + `
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
`

// auditFlags writes the policy and returns the flags of the API server that use
// it. The mode is blocking: an event is in the file before its answer
// ends, so a test that has read its answer finds it there.
func auditFlags(policyPath, logPath string) ([]string, error) {
	if err := os.WriteFile(policyPath, []byte(auditPolicy), 0o644); err != nil {
		return nil, err
	}
	return []string{
		"--audit-policy-file=" + policyPath,
		"--audit-log-path=" + logPath,
		"--audit-log-mode=blocking",
		"--audit-log-format=json",
		// In MB: a rotation would take lines away from under a reader.
		"--audit-log-maxsize=100000",
	}, nil
}
