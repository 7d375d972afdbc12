package step_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// shell is a call of system:shell that printed something.
func shell(command any, stdout, stderr string, exit int) step.Call {
	return step.Call{
		Tool: "system:shell",
		Args: map[string]any{"command": command},
		Result: step.Result{Output: map[string]any{
			"stdout": stdout, "stderr": stderr, "exit_code": json.Number(plain(exit)),
		}},
	}
}

func plain(v any) string { return string(text.CanonicalJSON(v)) }

// A15: the command on one line, its first words, exit code and lines.
func TestReduceShell(t *testing.T) {
	twenty := strings.Repeat("a commit\n", 20)
	tests := []struct {
		name string
		args map[string]any
		out  string
		err  string
		want string
		kept string
	}{
		{"command and arguments", map[string]any{"command": "git", "args": []any{"log", "--oneline"}}, twenty, "", "git log: exit 0, 20 lines output", "git log --oneline"},
		{"one string as it is", map[string]any{"command": "git  log --oneline"}, twenty, "", "git log: exit 0, 20 lines output", "git  log --oneline"},
		{"a list", map[string]any{"command": []any{"go", "test", "./..."}}, "ok\n", "", "go test: exit 0, 1 lines output", "go test ./..."},
		{"an option is no second word", map[string]any{"command": "ls -la src"}, "", "", "ls: exit 0, 0 lines output", "ls -la src"},
		{"one word", map[string]any{"command": "make"}, "done", "", "make: exit 0, 1 lines output", "make"},
		{"both outputs count", map[string]any{"command": "make all"}, "a\nb\n", "warning\n", "make all: exit 0, 3 lines output", "make all"},
		{"nothing known", map[string]any{}, "", "", "system:shell: exit 0, 0 lines output", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			call := shell(nil, tt.out, tt.err, 0)
			call.Args = tt.args
			got := reduce(nil, call)
			if got.Observation != tt.want || got.Outcome != step.Succeeded {
				t.Errorf("got %q, %s, want %q", got.Observation, got.Outcome, tt.want)
			}
			want := "{}"
			if tt.kept != "" {
				want = plain(map[string]any{"command": tt.kept})
			}
			if string(got.MinimalArgs) != want {
				t.Errorf("minimal arguments %s, want %s", got.MinimalArgs, want)
			}
		})
	}
}

// A15, D04: from 501 characters on the output goes into a log: stdout, then
// stderr.
func TestShellOffloads(t *testing.T) {
	for _, n := range []int{499, 500, 501} {
		out, err := strings.Repeat("é", n-1), "!"
		got := reduce(nil, shell("cat a b", out, err, 0))
		if got.Offload != (n == 501) {
			t.Fatalf("%d characters: offload %t", n, got.Offload)
		}
		if !got.Offload {
			continue
		}
		if got.OffloadKind != "shell" || got.OffloadExt != "log" || string(got.OffloadBytes) != out+err {
			t.Errorf("offload %s.%s: %q", got.OffloadKind, got.OffloadExt, got.OffloadBytes)
		}
		if figure(t, got.Metadata, "stdout_bytes") != 1000.0 || figure(t, got.Metadata, "stderr_bytes") != 1.0 {
			t.Errorf("metadata %s", got.Metadata)
		}
		hidden := reduce(&step.Options{HideOffloaded: true}, shell("cat a b", out, err, 0))
		if hidden.Inline != "" || hidden.Observation != got.Observation {
			t.Errorf("hidden: %q and %q", hidden.Observation, hidden.Inline)
		}
	}
	short := reduce(&step.Options{HideOffloaded: true}, shell("cat a", "text\n", "", 0))
	if short.Inline != "exit 0\ntext\n" {
		t.Errorf("short output is hidden: %q", short.Inline)
	}
}

// A16: what a failed command said stays below the observation, its end if
// it is long.
func TestReduceFailedShell(t *testing.T) {
	long := strings.Repeat("é", 600)
	tests := []struct {
		name           string
		stdout, stderr string
		want           string
	}{
		{"stderr", "out\n", "err: no such file\n", "cat x: exit 2, 2 lines output\nerr: no such file\n"},
		{"stdout if stderr is blank", "it failed", " \n", "cat x: exit 2, 2 lines output\nit failed"},
		{"nothing", "", "", "cat x: exit 2, 0 lines output"},
		{"500 characters", "", long[:1000], "cat x: exit 2, 1 lines output\n" + long[:1000]},
		{"501 characters", "", "x" + long[:1000], "cat x: exit 2, 1 lines output\n…" + long[:1000]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := reduce(nil, shell("cat x", tt.stdout, tt.stderr, 2))
			if got.Observation != tt.want {
				t.Errorf("got  %q\nwant %q", got.Observation, tt.want)
			}
			if got.Outcome != step.Failed || figure(t, got.Metadata, "exit_code") != 2.0 {
				t.Errorf("%s, %s", got.Outcome, got.Metadata)
			}
			if offload := len(tt.stderr) > 1000; got.Offload != offload {
				t.Errorf("offload %t", got.Offload)
			}
		})
	}
}

// A command that did not even start has no exit code; its error is what it said.
func TestShellThatDidNotRun(t *testing.T) {
	call := step.Call{
		Tool: "system:shell", Args: map[string]any{"command": "nosuch"},
		Result: step.Result{Failed: true, ErrorText: "nosuch: not found"},
	}
	got := reduce(nil, call)
	if want := "nosuch: exit -1, 1 lines output\nnosuch: not found"; got.Observation != want || got.Error != "nosuch: not found" {
		t.Errorf("got %q, error %q", got.Observation, got.Error)
	}
	// The observation says it all, so that a prompt has it once.
	if got.Inline != "" {
		t.Errorf("it is shown again: %q", got.Inline)
	}
	call.Result.ErrorText = strings.Repeat("long reason ", 100)
	if got := reduce(nil, call); !got.Offload || string(got.OffloadBytes) != call.Result.ErrorText {
		t.Errorf("offload %t, %q", got.Offload, got.OffloadBytes)
	}
}

// Under the default policy the unfolded form is all there is, as text that
// reads well, whatever tool it came from.
func TestOutputsReadWell(t *testing.T) {
	tests := []struct {
		name string
		tool string
		out  map[string]any
		want string
	}{
		{"a shell", "system:shell", map[string]any{"stdout": "one\ntwo\n", "stderr": "", "exit_code": 0}, "exit 0\none\ntwo\n"},
		{"another tool", "bash", map[string]any{"output": "one\n\ttwo\n", "returncode": 1}, "exit 1\none\n\ttwo\n"},
		{"both outputs", "run", map[string]any{"stdout": "out", "stderr": "err\n", "exit_code": 3}, "exit 3\nout\n[stderr]\nerr\n"},
		{"only errors", "run", map[string]any{"stdout": "", "stderr": "err\n", "exit_code": 3}, "exit 3\nerr\n"},
		{"no output", "run", map[string]any{"stdout": "", "stderr": "", "exit_code": 0}, "exit 0"},
		{"no code", "run", map[string]any{"stdout": "out\n", "stderr": ""}, "out\n"},
		{"more", "run", map[string]any{"stdout": "out\n", "exit_code": 0, "seconds": 1.5}, "exit 0 {\"seconds\": 1.5}\nout\n"},
		{"a text", "run", map[string]any{"result": "one\ntwo"}, "one\ntwo"},
		{"no program's output", "run", map[string]any{"output": "one\n", "n": 1}, `{"n": 1, "output": "one\n"}`},
		{"too much else", "run", map[string]any{"stdout": "a\n", "exit_code": 0, "log": strings.Repeat("x", 600)}, `{"exit_code": 0, "log": "` + strings.Repeat("x", 600) + `", "stdout": "a\n"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := reduce(nil, step.Call{Tool: tt.tool, Result: step.Result{Output: tt.out}})
			if got.Inline != tt.want {
				t.Errorf("got  %q\nwant %q", got.Inline, tt.want)
			}
		})
	}
}

// Exit and Output are the two halves of the unfolded form of a command.
func TestExitAndOutput(t *testing.T) {
	got := reduce(nil, shell("false", "out\n", "", 1))
	s := step.Step{Inline: got.Inline, Metadata: got.Metadata}
	if code, ok := s.Exit(); code != 1 || !ok || s.Output() != "out\n" {
		t.Errorf("exit %d %t, output %q", code, ok, s.Output())
	}
	silent := reduce(nil, shell("true", "", "", 0))
	if s := (step.Step{Inline: silent.Inline, Metadata: silent.Metadata}); s.Output() != "" {
		t.Errorf("output %q", s.Output())
	}
	read := reduce(nil, readCall("a", "exit 1\ntext"))
	s = step.Step{Inline: read.Inline, Metadata: read.Metadata}
	if _, ok := s.Exit(); ok || s.Output() != "exit 1\ntext" {
		t.Errorf("a file has an exit code, or lost its first line: %q", s.Output())
	}
}

// What a program printed is offloaded as the JSON that its caller gave, and shown
// as text.
func TestOutputOfOtherToolsIsOffloadedAsItWasGiven(t *testing.T) {
	out := strings.Repeat("a line of output\n", 100)
	given := fmt.Sprintf(`{ "returncode":0, "output": %q, "cwd": "\/src" }`, out)
	got := reduce(nil, step.Call{Tool: "bash", Result: mustParse(t, given)})
	if !got.Offload || got.OffloadKind != "tool" || got.OffloadExt != "json" || string(got.OffloadBytes) != given {
		t.Errorf("offload %t as %s.%s, %d bytes", got.Offload, got.OffloadKind, got.OffloadExt, len(got.OffloadBytes))
	}
	if !strings.HasPrefix(got.Inline, "exit 0 {\"cwd\": \"/src\"}\na line of output\n") {
		t.Errorf("inline %.80q", got.Inline)
	}
	if other, _ := figure(t, got.Metadata, "other").(map[string]any); other["cwd"] != "/src" {
		t.Errorf("what else there was is lost: %s", got.Metadata)
	}
}

// A16: of a tool that has no rule, too, the end of a failure stands in its line.
func TestFailuresOfOtherToolsShowTheirEnd(t *testing.T) {
	for _, tt := range []struct {
		lines  int
		stderr string
		want   string
	}{
		{3, "", "bash → exit 2 a line a line a line the end"},
		{30, "", "bash → exit 2 " + strings.Repeat("a line ", 30) + "the end"},
		{300, "", "bash → exit 2 …" + strings.Repeat("a line ", 100)[700-493:] + "the end"},
		{300, "it broke\n", " the end [stderr] it broke"},
	} {
		output := strings.Repeat("a line\n", tt.lines) + "the end\n"
		got := reduce(nil, step.Call{Tool: "bash", Result: mustParse(t, fmt.Sprintf(`{"returncode":2,"stdout":%q,"stderr":%q}`, output, tt.stderr))})
		if !strings.HasSuffix(got.Observation, tt.want) || !strings.HasPrefix(got.Observation, "bash → exit 2 ") {
			t.Errorf("%d lines: %q, want %q", tt.lines, got.Observation, tt.want)
		}
	}
}

// A result that came with a failure is kept beside it.
func TestFailuresKeepTheirOutput(t *testing.T) {
	out := strings.Repeat("collected\n", 200) + "E   ValueError: boom\n"
	got := reduce(nil, step.Call{Tool: "bash", Result: step.Result{
		Failed: true, ErrorText: "the command failed", Output: map[string]any{"output": out, "returncode": 1},
	}})
	if got.Observation != "bash failed: the command failed" || got.Outcome != step.Failed {
		t.Errorf("%q, %s", got.Observation, got.Outcome)
	}
	want := jsonText(map[string]any{"output": out, "returncode": 1})
	if !got.Offload || string(got.OffloadBytes) != want || !strings.Contains(got.Inline, "ValueError: boom") {
		t.Errorf("offload %t, inline %q", got.Offload, got.Inline)
	}
	if figure(t, got.Metadata, "exit_code") != 1.0 {
		t.Errorf("metadata %s", got.Metadata)
	}
	silent := reduce(nil, step.Call{Tool: "bash", Result: step.Result{Failed: true, Output: map[string]any{"output": out, "returncode": 1}}})
	if silent.Observation != "bash failed: E ValueError: boom" {
		t.Errorf("%q", silent.Observation)
	}
	both := reduce(nil, step.Call{Tool: "bash", Result: step.Result{
		Failed: true, ErrorText: strings.Repeat("x", step.MaxErrorBytes+1), Output: map[string]any{"output": out, "returncode": 1},
	}})
	if want := strings.Repeat("x", step.MaxErrorBytes+1) + "\n" + out; string(both.OffloadBytes) != want {
		t.Errorf("%d bytes to offload, want %d", len(both.OffloadBytes), len(want))
	}
}

// The exit code is found wherever it stands in the metadata, and nowhere else.
func TestExitOfMetadata(t *testing.T) {
	t.Parallel()
	for metadata, want := range map[string]int{
		`{"exit_code":3}`:                        3,
		`{"a":"b, }","exit_code":-9,"c":[1,2]}`:  -9,
		`{"exit_code":3,"more":{"exit_code":4}}`: 3,
		`{ "exit_code": 5 }`:                     5,
		`{"exit_code":1e1}`:                      10,
		`{"exit_code":1,"exit_code":2}`:          2,
		`{"more":{"exit_code":4}}`:               -1,
		`{"said":"\"exit_code\":7,"}`:            -1,
		`{"exit_code":"7"}`:                      -1,
		`{"exit_code":1.5}`:                      -1,
		`{"exit_code":7`:                         -1,
		``:                                       -1,
	} {
		code, ok := step.Step{Metadata: []byte(metadata)}.Exit()
		if ok != (want != -1) || ok && code != want {
			t.Errorf("%s: %d, %t", metadata, code, ok)
		}
	}
}
