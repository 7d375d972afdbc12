package hand_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// mustRecord reports a call that has to be recorded.
func (w *world) mustRecord(r hand.Recorded) hand.Answer {
	w.tb.Helper()
	a, err := w.Record(w.tb.Context(), r)
	if err != nil || !a.Recorded || a.Step == nil {
		w.tb.Fatalf("%s: %v %+v", r.Name, err, a)
	}
	return a
}

func jsonText(v any) string { return string(text.CanonicalJSON(v)) }

// N03: of a tool that the caller ran, reducing, offloading, appending and the
// observation are one call.
func TestRecordReducesOffloadsAndAppends(t *testing.T) {
	w := MustWorld(t, nil, nil)
	out := strings.Repeat("compiled a file\n", 100)
	a := w.mustRecord(reported("system:shell", map[string]any{"command": "make all"}, jsonText(map[string]any{"stdout": out, "stderr": "warn\n", "exit_code": 0})))
	if a.Blob == nil || a.Step.OutcomeRef != a.Blob.Ref || w.content(a.Step.ID()) != out+"warn\n" {
		t.Errorf("blob %+v", a.Blob)
	}
	if a.Blob.Category != "shell" || a.Blob.Path != blob.Path("shell", 1, "log") {
		t.Errorf("%s for %s", a.Blob.Path, a.Blob.Category)
	}
	want := "make all: exit 0, 101 lines output. Saved to " + a.Blob.Path + "\nUse fs:read_file to retrieve if needed."
	if a.Observation != want || len(w.steps("default")) != 1 {
		t.Errorf("%q", a.Observation)
	}
	if a.Output != nil {
		t.Error("the caller's own output comes back")
	}
}

// D02: under every name that a step's result may go by, its id with an ending
// leads to it.
func TestStepIDsAreAliases(t *testing.T) {
	w := MustWorld(t, nil, nil)
	output := jsonText(map[string]any{"v": strings.Repeat("x", 992)}) // 1000 bytes
	a := w.mustRecord(reported("my.tool", nil, output))
	for _, name := range []string{a.Blob.Path, "workspace/outputs/step_001.json", "outputs/step_001.json", "step_001.json", "step_001"} {
		if got := w.content(name); got != output {
			t.Errorf("%s: %d bytes, want %d", name, len(got), len(output))
		}
	}
	short := jsonText(map[string]any{"v": strings.Repeat("x", 991)})
	if a := w.mustRecord(reported("my.tool", nil, short)); a.Blob != nil || a.Step.NeedsOffload() {
		t.Errorf("999 bytes are offloaded: %+v", a.Blob)
	}
}

// D09: whatever was offloaded, its answer and its step say how to read it, flush
// left; compact lines and the short style do not.
func TestTheHintStandsWhereverSomethingWasOffloaded(t *testing.T) {
	const hint = "\nUse fs:read_file to retrieve if needed."
	for style, want := range map[step.ReferenceStyle]bool{step.ReferenceHint: true, step.ReferenceLong: true, step.ReferenceShort: false} {
		w := MustWorld(t, map[string]string{"long.txt": strings.Repeat("a line\n", 500)}, &hand.Options{Style: style})
		answers := []hand.Answer{w.must(request("fs:read_file", map[string]any{"path": "long.txt"}))}
		for _, r := range mixedSteps() {
			answers = append(answers, w.mustRecord(r))
		}
		for _, a := range answers {
			hinted := want && a.Step.NeedsOffload()
			if strings.HasSuffix(a.Observation, hint) != hinted || strings.HasSuffix(a.Step.ToObservation(style), hint) != hinted {
				t.Errorf("style %d: %q", style, a.Observation)
			}
			if strings.Contains(step.DesignTemplates().Compact(*a.Step).Summary, "fs:read_file to retrieve") {
				t.Errorf("the hint stands in a compact line: %q", step.DesignTemplates().Compact(*a.Step).Summary)
			}
		}
	}
}

// A16: a command whose exit code is not zero has failed, also for whoever asks
// again.
func TestFailedCommandsAreFailures(t *testing.T) {
	w := MustWorld(t, nil, nil)
	r := reported("system:shell", map[string]any{"command": "cat x"}, `{"stdout":"","stderr":"cat: x: No such file","exit_code":1}`)
	r.RequestID = "once"
	for range 2 {
		a := w.mustRecord(r)
		if a.Success || a.ErrorCode != tools.Failed || a.ErrorMessage != "cat: x: No such file" || a.Step.Success() {
			t.Errorf("%+v", a)
		}
		if a.Observation != "cat x: exit 1, 1 lines output\ncat: x: No such file" {
			t.Errorf("%q", a.Observation)
		}
	}
}

// What a caller reports beside a failure is kept.
func TestFailuresKeepTheirOutput(t *testing.T) {
	w := MustWorld(t, nil, nil)
	out := strings.Repeat("a line of the log\n", 100)
	for name, output := range map[string]string{
		"text": jsonText(out), "command": jsonText(map[string]any{"output": out, "returncode": 1}),
	} {
		r := reported("my.tool", nil, output)
		r.Failed, r.ErrorMessage = true, "it broke"
		a := w.mustRecord(r)
		if a.Success || a.Step.Error != "it broke" || a.Step.Observation != "my.tool failed: it broke" {
			t.Errorf("%s: %+v", name, a.Step)
		}
		if a.Blob == nil || w.content(a.Blob.Path) != output {
			t.Errorf("%s: the output is lost: %+v", name, a.Blob)
		}
	}
}

// Arguments too long for a step come back byte for byte from a blob that its id
// does not lead to, also when the report is repeated.
func TestLongArgumentsAreKept(t *testing.T) {
	w := MustWorld(t, nil, nil)
	args := fmt.Sprintf(`{ "z": 1.50, "a": %q }`, strings.Repeat("long ", 4000))
	r := hand.Recorded{Request: request("my.tool", nil), Output: asJSON(`{"done":true}`)}
	r.Args, r.RequestID = json.RawMessage(args), "once"
	for _, replayed := range []bool{false, true} {
		a := w.mustRecord(r)
		if a.Replayed != replayed || a.Step.Args != nil || a.Step.ArgsPath != blob.Path("args", 1, "json") {
			t.Fatalf("replayed %t: %+v", a.Replayed, a.Step)
		}
		if got := w.content(a.Step.ArgsPath); got != args {
			t.Errorf("%d bytes of arguments, want %d", len(got), len(args))
		}
		if a.Blob != nil {
			t.Errorf("the arguments pass for the result: %+v", a.Blob)
		}
	}
	if _, err := w.blobs.Lookup(t.Context(), agent, "step_001"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("the step's id leads to its arguments: %v", err)
	}
	r.RequestID = "with a result"
	r.Output = reportedText("my.tool", strings.Repeat("result ", 1000)).Output
	a := w.mustRecord(r)
	if got := w.content(a.Step.ID()); !strings.HasPrefix(got, "result ") {
		t.Errorf("the step's id leads to %.20q", got)
	}
	write := request("fs:write_file", map[string]any{"path": "a", "content": "text"})
	if a := w.must(write); a.Step.ArgsPath != "" || w.content(a.Step.ID()) != "text" {
		t.Errorf("a write: %+v", a.Step)
	}
}

// A pin is part of the request.
func TestPinnedSteps(t *testing.T) {
	w := MustWorld(t, map[string]string{"a": "text"}, nil)
	pinned := request("fs:read_file", map[string]any{"path": "a"})
	pinned.Pinned = true
	if a := w.must(pinned); !a.Step.Pinned {
		t.Error("a call's step is not pinned")
	}
	r := reported("my.tool", nil, `1`)
	r.RequestID = "once"
	if a := w.mustRecord(r); a.Step.Pinned {
		t.Error("a step is pinned")
	}
	r.Pinned = true
	if _, err := w.Record(t.Context(), r); !errors.Is(err, kv.ErrRequestReused) {
		t.Errorf("the same report with a pin: %v", err)
	}
	r.RequestID = "another"
	if a := w.mustRecord(r); !a.Step.Pinned {
		t.Error("a reported step is not pinned")
	}
}

// A21, Q08: everything that was offloaded comes back byte for byte, by path, step
// id and reference, through the store and through fs:read_file, in another
// process too.
func TestEverythingOffloadedComesBack(t *testing.T) {
	w := MustWorld(t, nil, nil)
	type kept struct{ path, id, ref, text string }
	var all []kept
	for _, r := range mixedSteps() {
		a := w.mustRecord(r)
		if a.Blob != nil {
			all = append(all, kept{a.Blob.Path, a.Step.ID(), a.Blob.Ref, offloaded(t, r)})
		}
	}
	if len(all) < 40 {
		t.Fatalf("only %d steps of the fixture are offloaded", len(all))
	}
	w.stop()
	w.start(nil)
	for _, k := range all {
		for _, name := range []string{k.path, k.id, k.ref} {
			if got := w.content(name); got != k.text {
				t.Fatalf("%s: %d bytes, want %d", name, len(got), len(k.text))
			}
		}
		a := w.must(request("fs:read_file", map[string]any{"path": k.path}))
		if got := field(t, a.Output, "content"); got != k.text {
			t.Fatalf("fs:read_file %s gives other bytes", k.path)
		}
	}
	t.Logf("%d blobs came back", len(all))
}

// offloaded is what of a report goes into a blob, worked out anew.
func offloaded(t *testing.T, r hand.Recorded) string {
	t.Helper()
	var output map[string]any
	decoder := json.NewDecoder(bytes.NewReader(r.Output.Data))
	decoder.UseNumber()
	if err := decoder.Decode(&output); err != nil {
		t.Fatal(err)
	}
	switch r.Name {
	case "fs:read_file":
		return output["content"].(string)
	case "system:shell":
		return output["stdout"].(string) + output["stderr"].(string)
	}
	return jsonText(output)
}
