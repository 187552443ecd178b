package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func podWith(restart corev1.RestartPolicy, owner string, annotations map[string]string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Annotations: annotations},
		Spec: corev1.PodSpec{
			RestartPolicy: restart,
			Containers:    []corev1.Container{{Name: "c", Image: "i"}},
		},
	}
	if owner != "" {
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "o", Controller: &yes}}
	}
	return pod
}

func TestAPodMovesAsItsAnnotationsSay(t *testing.T) {
	const always, never, onFailure = corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	for _, c := range []struct {
		name      string
		restart   corev1.RestartPolicy
		owner     string
		behaviour string
		afterMS   string
		age       time.Duration
		phase     corev1.PodPhase
		ready     bool
		next      time.Duration
	}{
		{"runs at once", always, "ReplicaSet", "", "", 0, corev1.PodRunning, true, 0},
		{"not ready before its time", always, "", "run", "500", 100 * time.Millisecond, corev1.PodRunning, false, 400 * time.Millisecond},
		{"ready after its time", always, "", "run", "500", 500 * time.Millisecond, corev1.PodRunning, true, 0},
		{"a Job works for 200 ms", never, "Job", "", "", 50 * time.Millisecond, corev1.PodRunning, true, 150 * time.Millisecond},
		{"a Job completes", never, "Job", "", "", 200 * time.Millisecond, corev1.PodSucceeded, false, 0},
		{"a Job completes with OnFailure", onFailure, "Job", "", "", time.Second, corev1.PodSucceeded, false, 0},
		{"a Job that is told to run goes on", never, "Job", "run", "", time.Hour, corev1.PodRunning, true, 0},
		{"a failure without restart", never, "Job", "fail", "", time.Second, corev1.PodFailed, false, 0},
		{"a failure with restart backs off", onFailure, "Job", "fail", "", 300 * time.Millisecond, corev1.PodRunning, false, 100 * time.Millisecond},
		{"crash-loop", always, "", "crash-loop", "1000", 1500 * time.Millisecond, corev1.PodRunning, false, 500 * time.Millisecond},
		{"pending", always, "", "pending", "", time.Hour, corev1.PodPending, false, 0},
		{"image-pull-error", always, "", "image-pull-error", "", time.Hour, corev1.PodPending, false, 0},
		{"an unknown behaviour is the default", always, "", "dance", "", 0, corev1.PodRunning, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			annotations := map[string]string{behaviourAnnotation: c.behaviour}
			if c.afterMS != "" {
				annotations[afterAnnotation] = c.afterMS
			}
			pod := podWith(c.restart, c.owner, annotations)
			o, _ := ordersOf(pod)
			seen := time.Unix(1_800_000_000, 0)
			status, next := nextStatus(pod, o, "10.0.0.1", func() string { return "10.244.0.2" }, seen, seen.Add(c.age))
			b := statusBuilder{pod: pod, status: status}
			if status.Phase != c.phase || b.isTrue(corev1.PodReady) != c.ready || next != c.next {
				t.Errorf("phase %s ready %t next %s, want %s %t %s",
					status.Phase, b.isTrue(corev1.PodReady), next, c.phase, c.ready, c.next)
			}
		})
	}
}

func TestAnUnchangedStatusComparesEqual(t *testing.T) {
	pod := podWith(corev1.RestartPolicyAlways, "", nil)
	seen := time.Unix(1_800_000_000, 0)
	ip := func() string { return "10.244.0.2" }
	first, _ := nextStatus(pod, orders{behaviour: run}, "10.0.0.1", ip, seen, seen)
	pod.Status = *first
	second, _ := nextStatus(pod, orders{behaviour: run}, "10.0.0.1", ip, seen, seen.Add(time.Hour))
	if !first.StartTime.Equal(second.StartTime) || second.Conditions[0].LastTransitionTime != first.Conditions[0].LastTransitionTime {
		t.Error("a time changed although nothing else did")
	}
}

func TestRestartsSlowDown(t *testing.T) {
	each := 200 * time.Millisecond
	for _, c := range []struct {
		age   time.Duration
		count int32
	}{
		{0, 0},
		{each, 1},
		{8 * each, 8},
		{9*each + each/2, 9},
		{time.Hour, 29},
	} {
		if count, next := restartsAfter(c.age, each); count != c.count || next <= 0 || next > maxBackoff {
			t.Errorf("after %s: %d restarts, next in %s, want %d", c.age, count, next, c.count)
		}
	}
}
