package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// scripted is the result of a script.
type scripted struct {
	Result json.RawMessage `json:"result"`
	Stdout string          `json:"stdout"`
	Stderr string          `json:"stderr"`
	Note   string          `json:"note"`
	Cached bool            `json:"cached"`
}

// script runs one through the native API.
func (w *shellWorld) script(args object) (scripted, *loombridgev1.ToolResponse) {
	w.tb.Helper()
	got := w.call(w.tb.Context(), "python:run_script", args)
	var out scripted
	if got.GetSuccess() {
		must(w.tb, json.Unmarshal([]byte(got.GetOutputJson()), &out))
	}
	return out, got
}

// epochOfFiles is long before any run.
var epochOfFiles = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const report = `
import sys, dataclasses, datetime, pathlib
from helper import double

@dataclasses.dataclass
class Point:
    x: int
    day: datetime.date

def add(a, b=1, *, c=0):
    print("adding", a, b)
    print("careful", file=sys.stderr)
    return {"sum": a + b + c, "twice": double(a)}

def read(path):
    return pathlib.Path(path).read_text()

def write(path):
    pathlib.Path(path).write_text("x")

def values():
    return [Point(1, datetime.date(2026, 1, 2)), {3, 1}, (None, True), 10**30, pathlib.Path("a")]

async def wait():
    return "waited"

def generate():
    yield from range(3)

def stop(code):
    sys.exit(code)

def fail():
    raise ValueError("no rows in " + "data")

def odd():
    return object()

def endless():
    while True: pass

def flood(n):
    for _ in range(n): print("x" * 1023)
    return n

def die():
    import os
    os.abort()

if __name__ == "__main__":
    if len(sys.argv) > 1:
        print("argv", sys.argv[1:])
    else:
        import json
        print(json.dumps({"got": json.load(sys.stdin)}))
`

func (w *shellWorld) putScripts() {
	w.put("scripts/report.py", report)
	w.put("scripts/helper.py", "def double(n): return 2 * n\n")
	w.put("scripts/latin.py", "# -*- coding: latin-1 -*-\ndef f(): return 'caf\xe9'\n")
	w.put("scripts/broken.py", "def f(:\n")
	w.put("json.py", "raise SystemExit('not this one')\n")
	w.put("notes.txt", "one")
}

// A function's result, or what a script prints, comes back as JSON; what goes wrong is an
// error that says so.
//
// D08, N05
func TestRunScript(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		w.putScripts()
		for name, tt := range map[string]struct {
			args   object
			want   string // the result
			stdout string
		}{
			"by name":            {args: object{"function": "add", "args": object{"a": 2, "c": 3}}, want: `{"sum":6,"twice":4}`, stdout: "adding 2 1\n"},
			"in order":           {args: object{"function": "add", "args": []int{2, 5}}, want: `{"sum":7,"twice":4}`, stdout: "adding 2 5\n"},
			"by its other name":  {args: object{"path": nil, "script": "scripts/report.py", "function": "wait"}, want: `"waited"`},
			"values":             {args: object{"function": "values"}, want: `[{"day":"2026-01-02","x":1},[1,3],[null,true],1000000000000000000000000000000,"a"]`},
			"a generator":        {args: object{"function": "generate"}, want: `[0,1,2]`},
			"nothing":            {args: object{"function": "stop", "args": []int{0}}, want: `null`},
			"reads":              {args: object{"function": "read", "args": []string{"notes.txt"}}, want: `"one"`},
			"as a whole":         {args: object{"args": []any{"a b", 2}}, want: `null`, stdout: "argv ['a b', '2']\n"},
			"as a whole, JSON":   {args: object{"args": object{"a": "é"}}, want: `{"got":{"a":"é"}}`},
			"another encoding":   {args: object{"path": "scripts/latin.py", "function": "f"}, want: `"café"`},
			"exact whole number": {args: object{"function": "add", "args": []json.Number{"9007199254740993", "0"}}, want: `{"sum":9007199254740993,"twice":18014398509481986}`, stdout: "adding 9007199254740993 0\n"},
		} {
			if w.tier == "landlock" && name != "by name" && name != "reads" {
				continue // they are about Python, and are the same in each tier
			}
			t.Run(name, func(t *testing.T) {
				if _, ok := tt.args["path"]; !ok {
					tt.args["path"] = "scripts/report.py"
				}
				out, got := w.script(tt.args)
				if string(out.Result) != tt.want || out.Stdout != tt.stdout {
					t.Errorf("got %s %q, want %s %q (%s)", out.Result, out.Stdout, tt.want, tt.stdout, got.GetErrorMessage())
				}
			})
		}
		out, _ := w.script(object{"path": "scripts/report.py", "function": "add", "args": object{"a": 0}})
		if out.Stderr != "careful\n" || out.Note != "" {
			t.Errorf("stderr is %q, note %q", out.Stderr, out.Note)
		}
		// Arguments for a script of which no function is called.
		w.put("scripts/quiet.py", "def total(a): return a\ndef _own(): pass\nclass Other: pass\n")
		for range 2 { // the second is from the cache
			const want = "The script ran as a whole and printed nothing. It defines total: give one as function to get what it returns."
			if out, _ := w.script(object{"path": "scripts/quiet.py", "args": object{"a": 1}}); out.Note != want || string(out.Result) != "null" {
				t.Errorf("result %s, note %q", out.Result, out.Note)
			}
		}
		const failed, missing = loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_FAILED, loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_NOT_FOUND
		for name, tt := range map[string]struct {
			args    object
			code    loombridgev1.ToolErrorCode
			message []string // parts
		}{
			"an exception":     {object{"function": "fail"}, failed, []string{"scripts/report.py: ValueError: no rows in data\n", "in fail\n    raise ValueError("}},
			"no function":      {object{"function": "gone"}, missing, []string{"there is no function gone; the script has add, die, endless"}},
			"other arguments":  {object{"function": "add", "args": object{"z": 1}}, loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_INVALID_ARGUMENTS, []string{"add(a, b=1, *, c=0): ", "argument"}},
			"no JSON":          {object{"function": "odd"}, failed, []string{"the result holds a object, which is not JSON"}},
			"a code":           {object{"function": "stop", "args": []int{3}}, failed, []string{"SystemExit: 3"}},
			"syntax":           {object{"path": "scripts/broken.py", "function": "f"}, failed, []string{"SyntaxError", "def f(:"}},
			"no script":        {object{"path": "scripts/gone.py"}, missing, []string{"File not found: scripts/gone.py"}},
			"outside":          {object{"path": "../gone.py"}, loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_PERMISSION_DENIED, []string{"Path traversal detected"}},
			"a file outside":   {object{"function": "read", "args": []string{"/etc/shadow"}}, failed, []string{"Error: [Errno "}},
			"too long a while": {object{"function": "endless", "timeout": 0.6}, loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_TIMEOUT, []string{"Timeout"}},
			"a signal":         {object{"function": "die"}, failed, []string{"ended without a result (signal 6)"}},
		} {
			if w.tier == "landlock" && !slices.Contains([]string{"an exception", "outside", "a file outside", "too long a while", "a signal"}, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				if _, ok := tt.args["path"]; !ok {
					tt.args["path"] = "scripts/report.py"
				}
				_, got := w.script(tt.args)
				for _, part := range tt.message {
					if got.GetErrorCode() != tt.code || !strings.Contains(got.GetErrorMessage(), part) {
						t.Errorf("got %v %q, want %v %q", got.GetErrorCode(), got.GetErrorMessage(), tt.code, part)
					}
				}
			})
		}
	})
}

// The second of two equal runs is answered from the cache: not after the script, a module
// of it or a file that it read has changed, for other arguments or another tenant's
// workspace, and never where the script did more than read.
//
// D08
func TestScriptCache(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		w.putScripts()
		old := func() { // what was changed just now is not taken for old
			for _, name := range []string{"scripts/report.py", "scripts/helper.py", "notes.txt"} {
				must(t, os.Chtimes(filepath.Join(w.Workspace, name), epochOfFiles, epochOfFiles))
			}
		}
		old()
		want := func(args object, cached bool, result string) {
			t.Helper()
			args["path"] = "scripts/report.py"
			if out, got := w.script(args); out.Cached != cached || string(out.Result) != result {
				t.Errorf("%v: %s, cached %v (%s), want %s, %v", args, out.Result, out.Cached, got.GetErrorMessage(), result, cached)
			}
		}
		add := object{"function": "add", "args": object{"a": 2, "b": 2}}
		want(add, false, `{"sum":4,"twice":4}`)
		want(add, true, `{"sum":4,"twice":4}`)
		want(object{"function": "add", "args": object{"b": 2, "a": 2}}, true, `{"sum":4,"twice":4}`)
		want(object{"function": "add", "args": object{"a": 2, "b": 3}}, false, `{"sum":5,"twice":4}`)
		want(object{"function": "add", "args": object{"a": 2, "b": 2}, "cache": false}, false, `{"sum":4,"twice":4}`)
		w.put("scripts/report.py", strings.ReplaceAll(report, "a + b + c", "a + b + c + 100"))
		old()
		want(add, false, `{"sum":104,"twice":4}`)
		want(add, true, `{"sum":104,"twice":4}`)
		w.put("scripts/helper.py", "def double(n): return 3 * n\n")
		old()
		want(add, false, `{"sum":104,"twice":6}`)
		want(add, true, `{"sum":104,"twice":6}`)

		read := object{"function": "read", "args": []string{"notes.txt"}}
		want(read, false, `"one"`)
		want(read, true, `"one"`)
		w.put("notes.txt", "two")
		old()
		want(read, false, `"two"`)
		must(t, os.Remove(filepath.Join(w.Workspace, "notes.txt")))
		if _, got := w.script(read); got.GetSuccess() {
			t.Errorf("a file that has gone gave %v", got)
		}
		write := object{"function": "write", "args": []string{"made.txt"}}
		want(write, false, `null`)
		must(t, os.Remove(filepath.Join(w.Workspace, "made.txt")))
		want(write, false, `null`)
		if _, err := os.Stat(filepath.Join(w.Workspace, "made.txt")); err != nil {
			t.Error("the second run wrote nothing")
		}
	})
}

// What a script prints is a body of any length, and the server never holds it.
func TestScriptOutput(t *testing.T) {
	eachTier(t, func(t *testing.T, w *shellWorld) {
		w.putScripts()
		mebibytes := w.mebibytes()
		w.call(t.Context(), "python:run_script", object{"path": "scripts/report.py", "function": "flood", "args": []int{1000}})
		grown := heapGrowth(t)
		got := w.call(t.Context(), "python:run_script", object{"path": "scripts/report.py", "function": "flood", "args": []int{mebibytes << 10}})
		if most := grown(); most > 32<<20 {
			t.Errorf("the heap grew by %d bytes for %d MiB of output", most, mebibytes)
		}
		if !got.GetSuccess() || got.GetOutputBlob().GetSize() != int64(mebibytes)<<20 || !strings.Contains(got.GetOutputJson(), fmt.Sprintf(`"result":%d`, mebibytes<<10)) {
			t.Errorf("got %.300v", got)
		}
	})
}

// The line about a call that failed has the end of what it printed, where the error is.
func TestFailuresShowTheirEnd(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		got := w.call(t.Context(), "shell:run", object{"command": "seq 1 3000; echo FATAL the end; exit 2"}).GetObservation()
		if line, _, _ := strings.Cut(got, "\n"); !strings.HasPrefix(line, "shell:run → exit 2 …") || !strings.Contains(line, "2999 3000 FATAL the end. Saved to ") || len(line) > 700 {
			t.Errorf("got %q", got)
		}
	})
}

// Where python is called python3 alone, the answer of a call of python says so.
func TestPythonByItsOtherName(t *testing.T) {
	t.Parallel()
	eachTier(t, func(t *testing.T, w *shellWorld) {
		const note = "there is no program python here; python3 is there"
		line := saidOf(w.call(t.Context(), "shell:run", object{"command": "python -c 'print(6*7)'"}))
		program := saidOf(w.call(t.Context(), "system:shell", object{"command": "python", "args": []string{"-c", "print(6*7)"}}))
		if strings.Contains(line, "42") && strings.Contains(program, "42") {
			return // it is there by this name
		}
		for _, got := range []string{line, program} {
			if !strings.Contains(got, note) {
				t.Errorf("got %s, want %q", got, note)
			}
		}
	})
}
