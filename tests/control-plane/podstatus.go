package main

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	behaviourAnnotation      = "fake-kubelet.pintle.dev/behaviour"
	afterAnnotation          = "fake-kubelet.pintle.dev/after-ms"
	terminateAfterAnnotation = "fake-kubelet.pintle.dev/terminate-after-ms"

	// defaultAfter is how long a container works before it completes, fails or crashes.
	defaultAfter = 200 * time.Millisecond
	// quickRestarts happen every `after`, the later ones at twice the last
	// interval up to maxBackoff, so that a forgotten Pod does not keep the API busy.
	quickRestarts = 8
	maxBackoff    = 5 * time.Minute
)

// behaviour is what a Pod is to do.
type behaviour string

const (
	run            behaviour = "run"
	complete       behaviour = "complete"
	fail           behaviour = "fail"
	crashLoop      behaviour = "crash-loop"
	pending        behaviour = "pending"
	imagePullError behaviour = "image-pull-error"
)

// orders are the annotations of a Pod, read.
type orders struct {
	behaviour      behaviour
	after          time.Duration
	terminateAfter time.Duration
}

// ordersOf reads the annotations. A wrong one gives an error and its default.
func ordersOf(pod *corev1.Pod) (orders, error) {
	var problem error
	o := orders{behaviour: run}
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Job" {
		o.behaviour = complete
	}
	switch b := behaviour(pod.Annotations[behaviourAnnotation]); b {
	case "":
	case run, complete, fail, crashLoop, pending, imagePullError:
		o.behaviour = b
	default:
		problem = fmt.Errorf("annotation %s: unknown behaviour %q", behaviourAnnotation, b)
	}
	if o.behaviour != run {
		o.after = defaultAfter
	}
	millis := func(name string, d *time.Duration) {
		text, ok := pod.Annotations[name]
		if !ok {
			return
		}
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			problem = fmt.Errorf("annotation %s: %q is not a number of milliseconds", name, text)
			return
		}
		*d = time.Duration(n) * time.Millisecond
	}
	millis(afterAnnotation, &o.after)
	millis(terminateAfterAnnotation, &o.terminateAfter)
	return o, problem
}

// nextStatus tells what the status of a Pod is now and when it changes next
// (0: by itself never). It returns nil when there is nothing to say.
func nextStatus(pod *corev1.Pod, o orders, hostIP string, newIP func() string, seen, now time.Time) (*corev1.PodStatus, time.Duration) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil, 0
	}
	b := statusBuilder{pod: pod, status: pod.Status.DeepCopy(), now: metav1.NewTime(now)}
	b.begin(hostIP, newIP)
	age := now.Sub(seen)
	// A container that ends is started again where the policy says so.
	restarts := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways ||
		pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && o.behaviour != complete
	switch {
	case o.behaviour == pending:
		b.waiting("ContainerCreating", "")
		return b.status, 0
	case o.behaviour == imagePullError:
		b.waiting("ImagePullBackOff", "Back-off pulling image")
		return b.status, 0
	case o.behaviour == run:
		b.running(age >= o.after)
		return b.status, max(0, o.after-age)
	case o.behaviour == crashLoop, restarts:
		exit := int32(1)
		if o.behaviour == complete {
			exit = 0
		}
		count, next := restartsAfter(age, o.after)
		if count == 0 {
			b.running(false)
		} else {
			b.backingOff(count, exit)
		}
		return b.status, next
	case age < o.after:
		b.running(true)
		return b.status, o.after - age
	case o.behaviour == fail:
		b.ended(corev1.PodFailed, 1)
		return b.status, 0
	default:
		b.ended(corev1.PodSucceeded, 0)
		return b.status, 0
	}
}

// restartsAfter counts the restarts of a container that ends every `each`, and
// tells when the next is due.
func restartsAfter(age, each time.Duration) (int32, time.Duration) {
	each = max(each, time.Millisecond)
	due, interval := each, each
	for count := int32(0); ; count++ {
		if age < due {
			return count, due - age
		}
		if count >= quickRestarts {
			interval = min(2*interval, max(each, maxBackoff))
		}
		due += interval
	}
}

// statusBuilder writes one status. Times of what did not change are kept, so
// that an unchanged status compares equal.
type statusBuilder struct {
	pod    *corev1.Pod
	status *corev1.PodStatus
	now    metav1.Time
}

// begin is what a kubelet says as soon as it has the Pod.
func (b *statusBuilder) begin(hostIP string, newIP func() string) {
	s := b.status
	s.Phase = corev1.PodPending
	s.Reason, s.Message = "", ""
	s.ObservedGeneration = b.pod.Generation
	if s.StartTime == nil {
		s.StartTime = &b.now
	}
	s.HostIP = hostIP
	s.HostIPs = []corev1.HostIP{{IP: hostIP}}
	if s.PodIP == "" {
		s.PodIP = hostIP
		if !b.pod.Spec.HostNetwork {
			s.PodIP = newIP()
		}
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
	b.condition(corev1.PodScheduled, true, "")
	b.condition(corev1.PodReadyToStartContainers, true, "")
	b.condition(corev1.PodInitialized, true, "")
	s.InitContainerStatuses = b.initContainers()
}

func (b *statusBuilder) running(ready bool) {
	b.status.Phase = corev1.PodRunning
	b.containers(func(c *corev1.ContainerStatus) {
		b.start(c, ready)
	})
	b.ready(ready, "ContainersNotReady")
}

func (b *statusBuilder) waiting(reason, message string) {
	b.containers(func(c *corev1.ContainerStatus) {
		text := message
		if text != "" {
			text = fmt.Sprintf("%s %q", message, c.Image)
		}
		c.ImageID, c.ContainerID = "", ""
		c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: text}}
	})
	b.ready(false, "ContainersNotReady")
}

func (b *statusBuilder) backingOff(restarts, exitCode int32) {
	b.status.Phase = corev1.PodRunning
	b.containers(func(c *corev1.ContainerStatus) {
		if c.RestartCount != restarts || c.LastTerminationState.Terminated == nil {
			c.LastTerminationState = corev1.ContainerState{Terminated: b.terminated(c, exitCode)}
		}
		c.RestartCount = restarts
		c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason:  "CrashLoopBackOff",
			Message: fmt.Sprintf("back-off restarting failed container=%s pod=%s", c.Name, b.pod.Name),
		}}
	})
	b.ready(false, "ContainersNotReady")
}

func (b *statusBuilder) ended(phase corev1.PodPhase, exitCode int32) {
	b.status.Phase = phase
	b.containers(func(c *corev1.ContainerStatus) {
		c.State = corev1.ContainerState{Terminated: b.terminated(c, exitCode)}
	})
	reason := "PodCompleted"
	if phase == corev1.PodFailed {
		reason = "PodFailed"
	}
	b.condition(corev1.PodReadyToStartContainers, false, "")
	b.condition(corev1.PodInitialized, true, reason)
	b.ready(false, reason)
}

func (b *statusBuilder) terminated(c *corev1.ContainerStatus, exitCode int32) *corev1.ContainerStateTerminated {
	started := *b.status.StartTime
	if c.State.Running != nil {
		started = c.State.Running.StartedAt
	}
	reason := "Completed"
	if exitCode != 0 {
		reason = "Error"
	}
	return &corev1.ContainerStateTerminated{
		ExitCode: exitCode, Reason: reason, StartedAt: started, FinishedAt: b.now, ContainerID: c.ContainerID,
	}
}

func (b *statusBuilder) start(c *corev1.ContainerStatus, ready bool) {
	c.Ready = ready
	started := true
	c.Started = &started
	if c.State.Running == nil {
		c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: b.now}}
	}
}

// containers writes one status for each container, from its last one.
func (b *statusBuilder) containers(set func(*corev1.ContainerStatus)) {
	last := b.status.ContainerStatuses
	b.status.ContainerStatuses = make([]corev1.ContainerStatus, 0, len(b.pod.Spec.Containers))
	for i := range b.pod.Spec.Containers {
		c := b.container(&b.pod.Spec.Containers[i], last)
		set(&c)
		b.status.ContainerStatuses = append(b.status.ContainerStatuses, c)
	}
}

// initContainers have all done their work; those that restart always (sidecars) run.
func (b *statusBuilder) initContainers() []corev1.ContainerStatus {
	var all []corev1.ContainerStatus
	for i := range b.pod.Spec.InitContainers {
		spec := &b.pod.Spec.InitContainers[i]
		c := b.container(spec, b.status.InitContainerStatuses)
		switch {
		case spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways:
			b.start(&c, true)
		default:
			if c.State.Terminated == nil {
				c.State = corev1.ContainerState{Terminated: b.terminated(&c, 0)}
			}
			c.Ready = true
		}
		all = append(all, c)
	}
	return all
}

func (b *statusBuilder) container(spec *corev1.Container, last []corev1.ContainerStatus) corev1.ContainerStatus {
	started := false
	c := corev1.ContainerStatus{
		Name: spec.Name, Image: spec.Image, Started: &started,
		ImageID:     fmt.Sprintf("%s@sha256:%x", spec.Image, sha256.Sum256([]byte(spec.Image))),
		ContainerID: fmt.Sprintf("fake://%s/%s", b.pod.UID, spec.Name),
	}
	for i := range last {
		if last[i].Name == spec.Name {
			c.State = last[i].State
			c.LastTerminationState = last[i].LastTerminationState
			c.RestartCount = last[i].RestartCount
		}
	}
	return c
}

// ready sets both conditions of readiness; a Pod with readiness gates also
// needs theirs.
func (b *statusBuilder) ready(ready bool, reason string) {
	if ready {
		reason = ""
	}
	b.condition(corev1.ContainersReady, ready, reason)
	for _, gate := range b.pod.Spec.ReadinessGates {
		if ready && !b.isTrue(gate.ConditionType) {
			ready, reason = false, "ReadinessGatesNotReady"
		}
	}
	b.condition(corev1.PodReady, ready, reason)
}

func (b *statusBuilder) isTrue(kind corev1.PodConditionType) bool {
	for i := range b.status.Conditions {
		if b.status.Conditions[i].Type == kind {
			return b.status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

func (b *statusBuilder) condition(kind corev1.PodConditionType, yes bool, reason string) {
	status := corev1.ConditionFalse
	if yes {
		status = corev1.ConditionTrue
	}
	for i := range b.status.Conditions {
		c := &b.status.Conditions[i]
		if c.Type != kind {
			continue
		}
		if c.Status != status {
			c.Status, c.LastTransitionTime = status, b.now
		}
		c.Reason, c.Message, c.ObservedGeneration = reason, "", b.pod.Generation
		return
	}
	b.status.Conditions = append(b.status.Conditions, corev1.PodCondition{
		Type: kind, Status: status, Reason: reason, LastTransitionTime: b.now, ObservedGeneration: b.pod.Generation,
	})
}
