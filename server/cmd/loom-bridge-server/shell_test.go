package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	runtimemetrics "runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// shellWorld is a server that runs programs in one tier.
type shellWorld struct {
	tb testing.TB
	*process
	tier string
}

// eachTier starts a server for each tier and runs a test on those that work here. The
// store lies outside of the workspace, where tier L can be used.
func eachTier(t *testing.T, test func(t *testing.T, w *shellWorld), args ...string) {
	t.Helper()
	for _, tier := range []string{"namespaces", "landlock"} {
		t.Run(tier, func(t *testing.T) {
			p := MustRunIn(t, noEnvironment, append([]string{
				"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "store"), "--workspace", t.TempDir(), "--sandbox-tier", tier,
			}, args...)...)
			w := &shellWorld{t, p, tier}
			if s := w.status().GetSandbox(); s.GetTier() != tier {
				lacks(t, tier, s.GetProblems())
			}
			test(t, w)
		})
	}
}

func (w *shellWorld) status() *loombridgev1.GetStatusResponse {
	w.tb.Helper()
	got, err := loombridgev1.NewAdminServiceClient(w.conn).GetStatus(w.tb.Context(), &loombridgev1.GetStatusRequest{})
	must(w.tb, err)
	return got
}

// printed is the result of a command.
type printed struct {
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	ExitCode *int   `json:"exit_code"`
	Limit    string `json:"limit"`
}

// call calls a tool of the native API.
func (w *shellWorld) call(ctx context.Context, name string, args map[string]any) *loombridgev1.ToolResponse {
	w.tb.Helper()
	text, err := json.Marshal(args)
	must(w.tb, err)
	got, err := w.bridge().Tool(convert.AskText(ctx), &loombridgev1.ToolRequest{
		AgentId: "a", Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(text)},
	})
	must(w.tb, err)
	return got
}

// run calls a tool of loom.v1, whose results are not summarized.
func (w *shellWorld) run(name string, args any) (printed, *loomv1pb.ToolError) {
	w.tb.Helper()
	text, err := json.Marshal(args)
	must(w.tb, err)
	got, err := loomv1pb.NewBridgeClient(w.conn).ForwardToolCall(w.tb.Context(), &loomv1pb.ToolCall{Id: "1", Name: name, Arguments: string(text)})
	must(w.tb, err)
	var out printed
	if got.GetError() == nil {
		must(w.tb, json.Unmarshal([]byte(got.GetOutput()), &out))
	}
	return out, got.GetError()
}

type object = map[string]any

func (w *shellWorld) put(name, content string) {
	w.tb.Helper()
	path := filepath.Join(w.Workspace, name)
	must(w.tb, os.MkdirAll(filepath.Dir(path), 0o755))
	must(w.tb, os.WriteFile(path, []byte(content), 0o644))
}

// What loom.v1 says of system:shell, and what our own tools add.
//
// E05, K14
func TestConformance31Shell(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		w.put("a.txt", "one\ntwo\n")
		w.put("sub/b.txt", "b\n")
		must(t, os.WriteFile(filepath.Join(w.Workspace, "bytes"), []byte("a\xffb\n"), 0o644))
		for name, tt := range map[string]struct {
			tool   string
			args   any
			stdout string
			exit   int
			failed string // the whole error
		}{
			"a program":              {tool: "system:shell", args: object{"command": "echo", "args": []string{"hello world", "$HOME *"}}, stdout: "hello world $HOME *\n"},
			"exit codes are results": {tool: "system:shell", args: object{"command": "grep", "args": []string{"-q", "three", "a.txt"}}, exit: 1},
			"no string is empty":     {tool: "system:shell", args: object{"command": "echo", "args": []any{7, "x", true}}, stdout: " x \n"},
			"bytes are text":         {tool: "system:shell", args: object{"command": "cat", "args": []string{"bytes"}}, stdout: "a\uFFFDb\n"},
			"a line in one":          {tool: "system:shell", args: object{"command": "head -1 a.txt"}, stdout: "one\n"},
			"cwd":                    {tool: "system:shell", args: object{"command": "cat", "args": []string{"b.txt"}, "cwd": "sub"}, stdout: "b\n"},
			"stdin":                  {tool: "system:shell", args: object{"command": "tr", "args": []string{"a-z", "A-Z"}, "stdin": "up"}, stdout: "UP"},
			"by its other name":      {tool: "system_shell", args: object{"command": "pwd"}, stdout: w.Workspace + "\n"},
			"jq":                     {tool: "system:shell", args: object{"command": "jq", "args": []string{"-r", ".a"}, "stdin": `{"a":"b"}`}, stdout: "b\n"},
			"tee":                    {tool: "system:shell", args: object{"command": "tee", "args": []string{"t.txt"}, "stdin": "kept"}, stdout: "kept"},

			"pipes":         {tool: "shell:run", args: object{"command": "cat a.txt | grep t | wc -l"}, stdout: "1\n"},
			"and, or":       {tool: "shell:run", args: object{"command": "cat gone 2>/dev/null || echo none && echo more"}, stdout: "none\nmore\n"},
			"quotes":        {tool: "shell:run", args: object{"command": `echo "a  b" 'c $d' | cat`}, stdout: "a  b c $d\n"},
			"loops":         {tool: "shell:run", args: object{"command": "for f in a.txt sub/*.txt; do wc -l $f; done"}, stdout: "2 a.txt\n1 sub/b.txt\n"},
			"redirections":  {tool: "shell:run", args: object{"command": "echo x > made && cat made"}, stdout: "x\n"},
			"substitutions": {tool: "shell:run", args: object{"command": "echo $(cat sub/b.txt)"}, stdout: "b\n"},
			"cwd of a line": {tool: "shell:run", args: object{"command": "ls", "cwd": "sub"}, stdout: "b.txt\n"},

			"not allowed":          {tool: "system:shell", args: object{"command": "rm", "args": []string{"a.txt"}}, failed: "Permission denied: Command 'rm' is not allowed"},
			"not a name":           {tool: "system:shell", args: object{"command": "/bin/cat", "args": []string{"a.txt"}}, failed: "Permission denied: Command '/bin/cat' is not allowed"},
			"not allowed in one":   {tool: "system:shell", args: object{"command": "rm a.txt"}, failed: "Permission denied: Command 'rm a.txt' is not allowed"},
			"not allowed in a":     {tool: "shell:run", args: object{"command": "cat a.txt | sh"}, failed: "Permission denied: Command 'sh' is not allowed"},
			"not allowed behind":   {tool: "shell:run", args: object{"command": "ls; rm a.txt"}, failed: "Permission denied: Command 'rm' is not allowed"},
			"not allowed within":   {tool: "shell:run", args: object{"command": "echo $(rm a.txt) `rm a.txt`"}, failed: "Permission denied: Command 'rm' is not allowed"},
			"not written out":      {tool: "shell:run", args: object{"command": "x=rm; $x a.txt"}, failed: "Permission denied: Command '$x' is not allowed"},
			"functions":            {tool: "shell:run", args: object{"command": "ls() { echo; }; ls"}, failed: "Permission denied: Command 'ls()' is not allowed"},
			"no line":              {tool: "shell:run", args: object{"command": "echo 'x"}, failed: "Invalid arguments: command: is no command line: reached EOF without closing quote `'`"},
			"nothing":              {tool: "shell:run", args: object{"command": "# no"}, failed: "Invalid arguments: command: holds no command"},
			"outside":              {tool: "system:shell", args: object{"command": "ls", "cwd": "../.."}, failed: "Permission denied: Path traversal detected"},
			"no folder":            {tool: "system:shell", args: object{"command": "ls", "cwd": "gone"}, failed: "Tool not found: File not found: gone"},
			"a file for a folder":  {tool: "system:shell", args: object{"command": "ls", "cwd": "a.txt"}, failed: "Execution failed: not a folder: a.txt"},
			"not there":            {tool: "system:shell", args: object{"command": "htop"}, failed: "Execution failed: there is no program htop in the sandbox"},
			"missing":              {tool: "system:shell", args: object{}, failed: "Invalid arguments: command: is required"},
			"too long a wait":      {tool: "shell:run", args: object{"command": "ls", "timeout": 6000}, failed: "Invalid arguments: timeout: must be at most 600 seconds"},
			"NUL in the arguments": {tool: "system:shell", args: object{"command": "echo", "args": []string{"a\x00b"}}, failed: "Invalid arguments: args: must not hold NUL"},
		} {
			t.Run(name, func(t *testing.T) {
				if c, ok := tt.args.(object)["command"].(string); ok && c == "htop" {
					if _, err := exec.LookPath(c); err == nil {
						t.Skip("this machine has the program that should be missing")
					}
				}
				out, failure := w.run(tt.tool, tt.args)
				if failure.GetMessage() != tt.failed {
					t.Fatalf("failed with %q, want %q", failure.GetMessage(), tt.failed)
				}
				if tt.failed == "" && (out.Stdout != tt.stdout || out.ExitCode == nil || *out.ExitCode != tt.exit) {
					t.Errorf("got %+v, want %q and exit %d", out, tt.stdout, tt.exit)
				}
			})
		}
		if got, err := os.ReadFile(filepath.Join(w.Workspace, "a.txt")); err != nil || string(got) != "one\ntwo\n" {
			t.Errorf("a command that is not allowed ran: %q, %v", got, err)
		}
		if out, failure := w.run("system:shell", object{"command": "python3", "args": []string{"-c", "import os; os.kill(os.getpid(), 9)"}}); failure != nil || out.ExitCode != nil {
			t.Errorf("a signal gave %+v, %v", out, failure)
		}
	})
}

// The list of programs is loom.v1's, jq and tee.
//
// E05
func TestSixtyCommands(t *testing.T) {
	t.Parallel()
	names := native.Commands()
	slices.Sort(names)
	if len(slices.Compact(names)) != 60 {
		t.Errorf("%d names: %v", len(names), names)
	}
}

// A command that runs out of time is killed with all that it started, and one whose
// caller goes away, too.
func TestConformance74ShellTimeout(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		mark := fmt.Sprint(32_000_000 + os.Getpid())
		script := object{"command": "python3", "args": []string{"-c", `
import subprocess, signal, time, os
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for i in range(3): subprocess.Popen(["sleep", "` + mark + `"], start_new_session=True)
open("ready", "w").close()
time.sleep(1000)`}}
		script["timeout"] = 1.5
		if _, failure := w.run("system:shell", script); failure.GetCode() != "TIMEOUT" || failure.GetMessage() != "Timeout" {
			t.Errorf("timeout gave %v", failure)
		}
		noneLeft(t, mark)
		_ = os.Remove(filepath.Join(w.Workspace, "ready")) // on a busy machine it did not come so far
		delete(script, "timeout")
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			for range 6000 {
				if _, err := os.Stat(filepath.Join(w.Workspace, "ready")); err == nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		text, err := json.Marshal(script)
		must(t, err)
		if _, err := w.bridge().Tool(ctx, &loombridgev1.ToolRequest{
			AgentId: "a", Name: "system:shell", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(text)},
		}); !errors.Is(ctx.Err(), context.Canceled) || err == nil {
			t.Errorf("the caller got %v", err)
		}
		noneLeft(t, mark)
	})
}

// What a program printed before its time was over stands in the failure, and in the next
// prompt: it says how far the program came.
func TestTimeoutSaysWhatWasPrinted(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		w.put("slow.py", "import sys, time\ndef f():\n    print('building', flush=True)\n    print('cannot link', file=sys.stderr, flush=True)\n    time.sleep(1000)\n")
		for name, args := range map[string]object{
			"shell:run":         {"command": "echo building; echo cannot link >&2; sleep 1000"},
			"system:shell":      {"command": "python3", "args": []string{"-c", "import slow; slow.f()"}},
			"python:run_script": {"path": "slow.py", "function": "f"},
		} {
			const want = "Timeout\nstdout until then:\nbuilding\nstderr until then:\ncannot link"
			for timeout := 1.; ; timeout *= 2 { // a busy machine may not have come so far
				args["timeout"] = timeout
				text, err := json.Marshal(args)
				must(t, err)
				answer, err := w.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{
					AgentId: "a", Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(text)},
				})
				must(t, err)
				if got := answer.GetErrorMessage(); got == want {
					break
				} else if timeout > 60 {
					t.Fatalf("%s: %q", name, got)
				}
			}
			prompt, err := loombridgev1.NewPromptServiceClient(w.conn).Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a"})
			must(t, err)
			if !strings.Contains(prompt.String(), "cannot link") {
				t.Errorf("%s: the prompt does not say what was printed: %v", name, prompt)
			}
		}
	})
}

// noneLeft fails when a process with a mark stays for longer than killing takes.
func noneLeft(t *testing.T, mark string) {
	t.Helper()
	var left []byte
	for range 3000 {
		left, _ = exec.Command("pgrep", "-f", "sleep "+mark).Output() // fails when there is none
		if len(left) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("processes stay: %s", left)
}

// The native API: the call is a step, its output is offloaded whole, and `cat` of the
// path gives it back, as fs:read_file does. The file is there for the command alone.
//
// D05, J01
func TestCatOfABlob(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		made := w.call(t.Context(), "shell:run", object{"command": "python3 -c 'print(\"line of output\\n\" * 20000)'"})
		place := made.GetOutputBlob().GetPath()
		if !made.GetSuccess() || place == "" {
			t.Fatalf("nothing was offloaded: %v", made)
		}
		for _, name := range []string{place, strings.TrimPrefix(place, "workspace/")} {
			out := w.call(t.Context(), "system:shell", object{"command": "wc", "args": []string{"-l", name}})
			if want := "20001 " + name + "\n"; !strings.Contains(out.GetOutputJson(), strings.TrimSpace(want)) {
				t.Errorf("wc of %s gave %v", name, out)
			}
			out = w.call(t.Context(), "shell:run", object{"command": "tee " + name + " < /dev/null; tail -2 " + name + " | head -1"})
			if !strings.Contains(out.GetOutputJson(), "line of output") && os.Geteuid() != 0 {
				t.Errorf("it is not read-only: %v", out)
			}
		}
		entries, err := os.ReadDir(w.Workspace)
		must(t, err)
		if len(entries) != 0 {
			t.Errorf("the workspace has %v", entries)
		}
		// A file of the workspace is never replaced.
		w.put(place, "mine")
		if out, failure := w.run("system:shell", object{"command": "cat", "args": []string{place}}); failure != nil || out.Stdout != "mine" {
			t.Errorf("got %+v, %v", out, failure)
		}
	})
}

// Large output is streamed into a blob: it comes back byte for byte, and never lies in
// memory as a whole.
func TestLargeOutput(t *testing.T) {
	eachTier(t, func(t *testing.T, w *shellWorld) {
		mebibytes := w.mebibytes()
		script := fmt.Sprintf(`
import sys
for i in range(%d): sys.stdout.write(("%%07d\n" %% i) * (1 << 17))`, mebibytes)
		sum := sha256.New()
		for i := range mebibytes {
			_, _ = sum.Write(bytes.Repeat(fmt.Appendf(nil, "%07d\n", i), 1<<17)) // never fails
		}
		w.call(t.Context(), "system:shell", object{"command": "echo"}) // what the first call takes stays
		grown := heapGrowth(t)
		made := w.call(t.Context(), "system:shell", object{"command": "python3", "args": []string{"-c", script}})
		if most := grown(); most > 32<<20 {
			t.Errorf("the heap grew by %d bytes for %d MiB of output", most, mebibytes)
		}
		blob := made.GetOutputBlob()
		if blob.GetSize() != int64(mebibytes)<<20 || blob.GetRef() != hex.EncodeToString(sum.Sum(nil)) {
			t.Errorf("got %v, want %d MiB with the hash %x", blob, mebibytes, sum.Sum(nil))
		}
		stream, err := contexts.New(w.conn).ReadBlob(t.Context(), &loombridgev1.ReadBlobRequest{AgentId: "a", Name: blob.GetPath()})
		must(t, err)
		got := sha256.New()
		for {
			part, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			_, _ = got.Write(part.GetData()) // never fails
		}
		if !bytes.Equal(got.Sum(nil), sum.Sum(nil)) {
			t.Error("other bytes come back")
		}
	})
}

// mebibytes is how large an output is of which the heap must hold little: one tier shows it,
// since both read output in the same way.
func (w *shellWorld) mebibytes() int {
	if w.tier == "landlock" {
		return 1
	}
	return 100
}

// alone fails a test that measures this process, in which its server runs, and was made to
// run beside others: only tests that don't may set the environment.
func alone(tb testing.TB) {
	tb.Helper()
	tb.Setenv("MEASURED_ALONE", "1")
}

// heapGrowth watches what of the heap was alive at each collection until its result is
// called, which is how much that grew at most.
func heapGrowth(t *testing.T) (most func() int64) {
	t.Helper()
	alone(t)
	alive := func() int64 {
		sample := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
		runtimemetrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	before, peak := alive(), int64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				peak = max(peak, alive()-before)
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-stopped
		t.Logf("the heap grew by %.1f MiB", float64(peak)/(1<<20))
		return peak
	}
}

// The status, the log and doctor say how programs are confined.
func TestSandboxIsTold(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		s := w.status().GetSandbox()
		if s.GetSetting() != "auto" || len(s.GetLayers()) < 6 || len(s.GetGaps()) == 0 || !slices.Contains(s.GetLayers(), "seccomp") {
			t.Errorf("status: %v", s)
		}
		w.told(t, "tier "+w.tier+": ")
		w.doctor(t, false)
	})
}

// Doctor tries what works here: in namespaces everything but what the machine lacks.
func TestDoctorTriesJobsSoak(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		if w.tier != "namespaces" {
			t.Skip("in the other tier, TestEverydayJobsSoak does them")
		}
		said := w.doctor(t, true)
		work, lines := 0, strings.Count(said, "\n    ")
		if _, rest, ok := strings.Cut(said, "  everyday jobs: "); ok {
			_, _ = fmt.Sscanf(rest, "%d", &work) // 0 is told below
		}
		untried := strings.Count(said, "was not tried")
		if lines < 49 || work+untried < lines {
			t.Errorf("doctor: %d of %d jobs work: %s", work, lines, said)
		}
	})
}

// doctor asks for the tier of the server, and returns what is said.
func (w *shellWorld) doctor(t *testing.T, jobs bool) string {
	t.Helper()
	var out bytes.Buffer
	must(t, run(t.Context(), []string{"doctor", "--sandbox-tier", w.tier, fmt.Sprint("--jobs=", jobs)}, noEnvironment, &out, io.Discard))
	if !strings.Contains(out.String(), "tier "+w.tier+": works (used)\n  layers: ") {
		t.Errorf("doctor: %s", out.String())
	}
	return out.String()
}

// A store in the workspace, as by default, is hidden in tier N; in tier L no program
// runs beside it.
func TestStoreIsHiddenFromPrograms(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"namespaces", "landlock"} {
		t.Run(tier, func(t *testing.T) {
			dir := t.TempDir()
			w := &shellWorld{t, MustRun(t, dir, "--sandbox-tier", tier), tier}
			if s := w.status().GetSandbox(); s.GetTier() != tier {
				lacks(t, tier, s.GetProblems())
			}
			out, failure := w.run("shell:run", object{"command": "ls -A store; cat store/CURRENT; echo x > store/new; env mv store gone; ls -A store"})
			if tier == "landlock" {
				if !strings.Contains(failure.GetMessage(), "Permission denied: ") || !strings.Contains(failure.GetMessage(), "--data-dir") {
					t.Errorf("got %+v, %v", out, failure)
				}
				return
			}
			if failure != nil || out.Stdout != "" {
				t.Errorf("got %+v, %v", out, failure)
			}
			if left, err := os.ReadFile(filepath.Join(dir, "store", "CURRENT")); err != nil || len(left) == 0 {
				t.Errorf("the store was reached: %v", err)
			}
		})
	}
}

// everydayLines are what coding agents write first.
var everydayLines = []string{
	"cd . && ls", "test -d . && echo yes", "[ -d . ] && echo yes", "grep zzz nofile || true", "mkdir -p q && rmdir q", "printf 'a\\n'", "sleep 0",
	"touch f && cp f g && mv g h && rm f h", "tar cf t.tar --files-from /dev/null && rm t.tar", "bash -c 'echo x'", "echo a | xargs echo",
	"export A=1; echo $A", "f() { echo x; }; f", "x=echo; $x hi", "true && false || echo no", "if [ 1 = 1 ]; then :; fi", "set -e; exit 0", "chmod +x . ; ln -s a b; rm b",
	"sh -c 'exit 0'", "seq 3 | tac | tr -d '\\n'", "date +%Y; tty || :", "command -v ls",
}

// What a call may run is for its profile to say: confined, everything; agents of loom.v1 keep
// their list; unconfined only a list, and the refusal names the setting.
//
// E05, K14
func TestProgramsThatAreConfinedMayRun(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		for _, line := range everydayLines {
			for _, tool := range []string{"shell:run", "system:shell"} {
				if got := w.call(t.Context(), tool, object{"command": line}); !got.GetSuccess() {
					t.Errorf("%s %q: %s", tool, line, got.GetErrorMessage())
				}
			}
		}
		if _, failed := w.run("shell:run", object{"command": "mkdir q"}); failed.GetMessage() != "Permission denied: Command 'mkdir' is not allowed" {
			t.Errorf("by loom.v1: %v", failed)
		}
	})
	eachTier(t, func(t *testing.T, w *shellWorld) {
		if got := w.call(t.Context(), "shell:run", object{"command": "mkdir q"}); !strings.HasPrefix(got.GetErrorMessage(), "Permission denied: Command 'mkdir' is not allowed; the setting --shell-allow") {
			t.Errorf("not on the list: %v", got)
		}
		if got := w.call(t.Context(), "shell:run", object{"command": "ls"}); !got.GetSuccess() {
			t.Errorf("on the list: %v", got)
		}
	}, "--shell-allow", "ls")
	eachTier(t, func(t *testing.T, w *shellWorld) {
		if got := w.call(t.Context(), "shell:run", object{"command": "mkdir q && rmdir q"}); !got.GetSuccess() {
			t.Errorf("all are allowed: %v", got)
		}
		if _, failed := w.run("shell:run", object{"command": "mkdir q && rmdir q"}); failed != nil {
			t.Errorf("all are allowed, by loom.v1: %v", failed)
		}
	}, "--shell-allow", "*")
	for _, allow := range []string{"", "*"} {
		args := []string{"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "store"), "--workspace", t.TempDir(), "--sandbox", "off"}
		if allow != "" {
			args = append(args, "--shell-allow", allow)
		}
		w := &shellWorld{t, MustRunIn(t, noEnvironment, args...), ""}
		got := w.call(t.Context(), "shell:run", object{"command": "mkdir q && rmdir q"})
		if refused := !got.GetSuccess(); refused != (allow == "") || refused && !strings.Contains(got.GetErrorMessage(), "--shell-allow '*' allows all") {
			t.Errorf("nothing confines, --shell-allow %q: %v", allow, got)
		}
	}
}

// Doctor says what the setting lets through.
//
// K14
func TestDoctorTellsWhatMayRun(t *testing.T) {
	t.Parallel()
	for allow, want := range map[string]string{
		"": "programs that calls may run: all, since they are confined", "*": "programs that calls may run: all (--shell-allow)",
		"ls,git": "programs that calls may run: only ls, git (--shell-allow)",
	} {
		said, _ := loomCommand(t, "doctor", "--jobs=false", "--shell-allow", allow)
		if strings.Contains(said, "(used)") && !strings.Contains(said, want) {
			t.Errorf("--shell-allow %q: %s", allow, said)
		}
	}
}
