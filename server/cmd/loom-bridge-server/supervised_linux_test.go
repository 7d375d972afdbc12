package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// procStat are the fields of a process behind its name, of which the first is its state; nil where
// there is none.
func procStat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// below are all processes that a process started, and those that these did.
func below(pid int) (all []int) {
	parents := make(map[int][]int)
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if child, err := strconv.Atoi(entry.Name()); err == nil {
			if stat := procStat(child); len(stat) > 1 {
				parent, _ := strconv.Atoi(stat[1])
				parents[parent] = append(parents[parent], child)
			}
		}
	}
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		all = append(all, parents[next[0]]...)
		next = append(next, parents[next[0]]...)
	}
	return all
}

// Of programs that ended nothing is left, not even a zombie; a server that is killed takes all
// with it that still run.
func TestNothingOutlivesItsSupervisor(t *testing.T) {
	t.Parallel()
	process, address := mustStart(t, mustBuild(t), "--addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--workspace", t.TempDir(), "--log-level", "off", "--shell-allow", "sleep,echo")
	conn := mustDial(t, address)
	defer conn.Close()
	run := func(command string) (*loombridgev1.ToolResponse, error) {
		return loombridgev1.NewBridgeServiceClient(conn).Tool(t.Context(), &loombridgev1.ToolRequest{
			AgentId: "a", Name: "system:shell", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"command":%q}`, command)},
		})
	}
	pid := process.Process.Pid
	for range 5 {
		got, err := run("echo done")
		if must(t, err); !got.GetSuccess() {
			t.Fatal(got)
		}
	}
	eventually(t, waitTime, func() error {
		for _, child := range below(pid) {
			if stat := procStat(child); len(stat) > 0 && stat[0] == "Z" {
				return fmt.Errorf("%d is a zombie of %v", child, stat[1])
			}
		}
		return nil
	})
	go func() { _, _ = run("sleep 1000") }()
	var running []int
	eventually(t, waitTime, func() error {
		running = below(pid)
		if !slices.ContainsFunc(running, func(child int) bool {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			return strings.HasPrefix(string(name), "sleep\x00")
		}) {
			return fmt.Errorf("nothing sleeps among %v", running)
		}
		return nil
	})
	const began = 19 // in procStat: when it was started
	starts := make(map[int]string)
	for _, child := range running {
		if stat := procStat(child); len(stat) > began {
			starts[child] = stat[began]
		}
	}
	must(t, process.Process.Kill())
	_ = process.Wait()
	eventually(t, waitTime, func() error {
		for child, start := range starts {
			if stat := procStat(child); len(stat) > began && stat[began] == start && stat[0] != "Z" {
				return fmt.Errorf("%d goes on as %s", child, stat[0])
			}
		}
		return nil
	})
}
