package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// hiding is a call with a part that somebody would rather not show.
type hiding struct {
	tool string
	args object
	json string // the text of the arguments, where it is no plain object
	// before lies in the workspace when the call comes; after is put there while it waits.
	before, after map[string]string
	link          [2]string // a link of before, and where it leads while the call waits
	// refused says that the call may not run at all, whoever agrees.
	refused bool
}

// hidings are kinds of calls. Whatever they hide makes the file that is called like the mark.
var hidings = map[string]func(r *rand.Rand, mark string) hiding{
	"behind spaces": func(r *rand.Rand, mark string) hiding {
		return hiding{tool: "shell:run", args: object{"command": "echo fine" + strings.Repeat(" ", 200+r.IntN(40_000)) + "; touch " + mark}}
	},
	"behind lines": func(r *rand.Rand, mark string) hiding {
		return hiding{tool: "shell:run", args: object{"command": "echo fine" + strings.Repeat("\n", 50+r.IntN(3000)) + "touch " + mark}}
	},
	"one of many arguments": func(r *rand.Rand, mark string) hiding {
		list := []string{"-c", "touch " + mark}
		for range 100 + r.IntN(100) {
			list = append(list, strings.Repeat("x", r.IntN(60)))
		}
		return hiding{tool: "system:shell", args: object{"command": "sh", "args": list}}
	},
	"an argument with a space": func(_ *rand.Rand, mark string) hiding {
		return hiding{tool: "system:shell", args: object{"command": "touch", "args": []string{"a b", `"`, "' '", mark}}}
	},
	"standard input": func(r *rand.Rand, mark string) hiding {
		return hiding{tool: "system:shell", args: object{"command": "sh", "stdin": strings.Repeat("# note\n", r.IntN(2000)) + "touch " + mark + "\n"}}
	},
	"nested arguments": func(r *rand.Rand, mark string) hiding {
		var value any = mark
		for range 1 + r.IntN(20) {
			value = []any{object{"inner": value}}
		}
		script := "import json,os,sys\nv = json.load(sys.stdin)['v']\nwhile not isinstance(v, str): v = v[0]['inner']\nopen(v, 'w')\n"
		return hiding{tool: "python:run_script", args: object{"path": "s.py", "args": object{"v": value}}, before: map[string]string{"s.py": script}}
	},
	"a script": func(r *rand.Rand, mark string) hiding {
		return hiding{tool: "python:run_script", args: object{"path": "s.py"}, before: map[string]string{"s.py": strings.Repeat("#\n", r.IntN(5000)) + "open('" + mark + "', 'w')\n"}}
	},
	"a script that changes": func(_ *rand.Rand, mark string) hiding {
		return hiding{
			tool: "python:run_script", args: object{"path": "s.py"}, refused: true,
			before: map[string]string{"s.py": "print('fine')\n"}, after: map[string]string{"s.py": "open('" + mark + "', 'w')\n"},
		}
	},
	"a file that a command starts": func(r *rand.Rand, mark string) hiding {
		lines := []string{"sh d/x.sh", "sh < d/x.sh", ". ./d/x.sh", "cd d && sh x.sh", "env A=1 sh ./d/../d/x.sh", "cat d/x.sh | sh"}
		return hiding{tool: "shell:run", args: object{"command": lines[r.IntN(len(lines))]}, before: map[string]string{"d/x.sh": "touch " + mark + "; touch ../" + mark}}
	},
	"a started file that changes": func(r *rand.Rand, mark string) hiding {
		lines := []string{"sh d/x.sh", "sh < d/x.sh", ". ./d/x.sh", "cd d && sh x.sh", "sh -- 'd/x.sh'"}
		return hiding{
			tool: "shell:run", args: object{"command": lines[r.IntN(len(lines))]}, refused: true,
			before: map[string]string{"d/x.sh": "echo fine"}, after: map[string]string{"d/x.sh": "touch " + mark + "; touch ../" + mark},
		}
	},
	"a started file that comes": func(_ *rand.Rand, mark string) hiding {
		return hiding{tool: "system:shell", args: object{"command": "sh", "args": []string{"late.sh"}}, refused: true, after: map[string]string{"late.sh": "touch " + mark}}
	},
	"the content of a file": func(r *rand.Rand, mark string) hiding {
		return hiding{tool: "fs:write_file", args: object{"path": mark, "content": strings.Repeat("x", r.IntN(30_000)) + mark}}
	},
	"a link that is turned": func(_ *rand.Rand, mark string) hiding {
		return hiding{
			tool: "fs:write_file", args: object{"path": "link/" + mark, "content": "x"}, refused: true,
			before: map[string]string{"one/x": "", "two/x": ""}, link: [2]string{"one", "two"},
		}
	},
	"letters without a shape": func(r *rand.Rand, mark string) hiding {
		odd := []string{"\u202e", "\u200b", "\u2066", "\r", "\x1b[2K\x1b[1A", "\u00ad", "\u3164", "\U000e0041", "\u2028", "\x7f", "\u0085", "\ufe0f"}
		return hiding{tool: "shell:run", args: object{"command": "touch " + mark + " # " + odd[r.IntN(len(odd))] + " fine"}}
	},
	"what looks like a secret": func(r *rand.Rand, mark string) hiding {
		lines := []object{
			{"command": "password=" + mark + "; touch $password"},
			{"command": "sh", "args": []string{"-c", "touch $1", "--token", mark}},
			{"command": "sh -s", "stdin": "-----BEGIN PRIVATE KEY-----\ntouch " + mark + "\n-----END PRIVATE KEY-----\n"},
			{"command": "x=ghp_0123456789012345678901234567" + mark + "; touch " + mark},
			{"command": "echo https://user:" + mark + "@example.com; touch " + mark},
			{"command": "touch", "args": []string{"--", mark, "Authorization: Bearer " + mark}},
		}
		return hiding{tool: "system:shell", args: lines[r.IntN(len(lines))]}
	},
	"another name": func(r *rand.Rand, mark string) hiding {
		return []hiding{
			{tool: "shell_run", args: object{"command": "touch " + mark}},
			{tool: "system_shell", args: object{"command": "touch", "args": []string{mark}}},
			{tool: "write_file", args: object{"path": mark, "content": "x"}},
			{tool: "python_run_script", args: object{"script": "s.py"}, before: map[string]string{"s.py": "open('" + mark + "', 'w')"}},
			{tool: "shell:run", json: `{"command":"echo fine","command":"touch ` + mark + `"}`},
			{tool: "shell:run", json: `{"command":"\u0074ouch ` + mark + `"}`},
		}[r.IntN(6)]
	},
	"another encoding": func(r *rand.Rand, mark string) hiding {
		return []hiding{
			{tool: "python:run_script", args: object{"path": "s.py"}, refused: true, before: map[string]string{"s.py": "# coding: utf-7\n# +AAo-open('" + mark + "', 'w')\n"}},
			{tool: "python:run_script", args: object{"path": "s.py"}, refused: true, before: map[string]string{"s.py": "\n#!x -*- coding=rot13 -*-\nbcra('" + mark + "', 'j')\n"}},
			{tool: "shell:run", args: object{"command": "sh x.sh"}, before: map[string]string{"x.sh": "echo fine\x00\ntouch " + mark + "\n\xff\xfe"}},
			{tool: "fs:write_file", args: object{"path": mark, "content": "open('" + mark + "')", "encoding": "utf-16"}},
		}[r.IntN(4)]
	},
	"too much": func(r *rand.Rand, mark string) hiding {
		return []hiding{
			{tool: "shell:run", args: object{"command": "touch " + mark, "stdin": strings.Repeat("x", 300<<10)}, refused: true},
			{tool: "python:run_script", args: object{"path": "s.py"}, before: map[string]string{"s.py": strings.Repeat("#", 300<<10) + "\nopen('" + mark + "', 'w')"}, refused: true},
			{tool: "shell:run", args: object{"command": "sh x.sh"}, before: map[string]string{"x.sh": strings.Repeat("#", 300<<10) + "\ntouch " + mark}, refused: true},
			{tool: "fs:write_file", args: object{"path": mark, "content": strings.Repeat("y", 300<<10)}, refused: true},
		}[r.IntN(4)]
	},
}

// shownOf is all that a person is shown of a call.
func shownOf(p *loombridgev1.PendingApproval) string {
	var text strings.Builder
	text.WriteString(p.GetArgumentsJson())
	for _, part := range p.GetParts() {
		text.WriteString("\n" + part.GetName() + "\n" + part.GetText())
	}
	return text.String()
}

// What a person sees is what runs: of many calls with a hidden part, whose person says yes to
// every one that is shown, none runs what was not shown.
func TestCallsRunWhatWasShownSoak(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "loom.toml")
	must(t, os.WriteFile(file, []byte("[[bind]]\napproval = \"always\"\n"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "work"), 0o755))
	p := MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "store"), "--workspace", filepath.Join(dir, "work"), "--config", file)
	if s := (&shellWorld{t, p, ""}).status().GetSandbox(); s.GetTier() == "" {
		lacks(t, "any tier", s.GetProblems())
	}
	pending := make(chan *loombridgev1.PendingApproval)
	watch := MustWatch(t, p)
	go func() {
		for {
			change, err := watch.Recv()
			if err != nil {
				return
			}
			if change.GetPending() != nil {
				pending <- change.GetPending()
			}
		}
	}()
	kinds := slices.Sorted(maps.Keys(hidings))
	counts := map[string]int{}
	calls := sized(4, 12) * len(kinds)
	for n := range calls {
		kind := kinds[n%len(kinds)]
		mark := fmt.Sprintf("mark%08x", rand.New(rand.NewPCG(uint64(n), 7)).Uint32())
		h := hidings[kind](rand.New(rand.NewPCG(uint64(n), 1)), mark)
		work := filepath.Join(dir, "work")
		old, err := os.ReadDir(work)
		must(t, err)
		for _, entry := range old {
			must(t, os.RemoveAll(filepath.Join(work, entry.Name())))
		}
		put(t, work, h.before)
		if h.link[0] != "" {
			must(t, os.Symlink(h.link[0], filepath.Join(work, "link")))
		}
		text := h.json
		if text == "" {
			raw, err := json.Marshal(h.args)
			must(t, err)
			text = string(raw)
		}
		answered := make(chan *loombridgev1.ToolResponse, 1)
		go func() {
			answer, err := p.bridge().Tool(context.WithoutCancel(t.Context()), &loombridgev1.ToolRequest{
				AgentId: "a", Name: h.tool, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: text},
			})
			if err != nil {
				answer = &loombridgev1.ToolResponse{ErrorMessage: err.Error()}
			}
			answered <- answer
		}()
		shown := ""
		var answer *loombridgev1.ToolResponse
		select {
		case waits := <-pending:
			shown = shownOf(waits)
			put(t, work, h.after)
			if h.link[0] != "" {
				must(t, os.Remove(filepath.Join(work, "link")))
				must(t, os.Symlink(h.link[1], filepath.Join(work, "link")))
			}
			must(t, p.answer(t, waits.GetId(), sayOnce))
			answer = <-answered
		case answer = <-answered:
		}
		ran := exists(work, mark) || exists(work, "one/"+mark) || exists(work, "two/"+mark)
		switch {
		case ran && !strings.Contains(shown, mark):
			counts["ran unseen"]++
			t.Errorf("%s: ran, and was not shown: %s", kind, shown)
		case ran && h.refused:
			t.Errorf("%s: ran, and something had changed", kind)
		case ran:
			counts["ran as shown"]++
		case !strings.HasPrefix(answer.GetErrorMessage(), "Permission denied"):
			t.Errorf("%s: did nothing: %v\n%.2000s", kind, answer, shown)
		case !h.refused:
			t.Errorf("%s: refused: %s", kind, answer.GetErrorMessage())
		case shown == "":
			counts["refused before it was shown"]++
		default:
			counts["refused since it had changed"]++
		}
		if strings.ContainsAny(shown, "\u202e\u200b\u2066\r\x1b\u00ad\u3164\U000e0041\u2028\x7f\u0085\ufe0f") {
			t.Errorf("%s: shown with letters that nobody sees: %q", kind, shown)
		}
	}
	t.Logf("of %d calls: %v", calls, counts)
}

func put(tb testing.TB, dir string, files map[string]string) {
	tb.Helper()
	must(tb, os.MkdirAll(dir, 0o755))
	for name, content := range files {
		must(tb, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(tb, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
}

func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}
