package step_test

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

func TestParseAction(t *testing.T) {
	for s, want := range map[string]string{
		"I look.\n```bash\nls -la\n```":                                           `bash {"command":"ls -la"}`,
		"First\n```\none\n```\nthen\n```\nedit 4:4\n  x\nend\n```\n":              `bash {"command":"edit 4:4\n  x\nend"}`,
		"```python\nprint(1)\n```":                                                `python {"input":"print(1)"}`,
		"```json\n{\"tool\": \"fs:read_file\", \"args\": {\"path\": \"a\"}}\n```": `fs:read_file {"path":"a"}`,
		"Thought: so\nAction: {\"tool\": \"t\", \"args\": {\"n\": 1}}":            `t {"n":1}`,
		"Thought: so\nAction: search\nAction Input: date formats\nObservation: x": `search {"input":"date formats"}`,
		"Action: search\nAction Input: {\"query\": \"q\"}":                        `search {"query":"q"}`,
		"Action: Search[date formats]":                                            `Search {"input":"date formats"}`,
		"Action: look(around)":                                                    `look {"input":"around"}`,
		"Action: look":                                                            `look {}`,
		"Action: one\nAction: two":                                                `two {}`,
		"<command>\ncat a.py\n</command>":                                         `bash {"command":"cat a.py"}`,
		"<tool_call>{\"name\": \"t\", \"arguments\": {\"a\": true}}</tool_call>":  `t {"a":true}`,
		"<function=bash>ls</function>":                                            `bash {"input":"ls"}`,
		"<invoke name=\"grep\">{\"for\": \"x\"}</invoke>":                         `grep {"for":"x"}`,
		"<function=edit>\n<parameter=path>a.py</parameter>\n<parameter=old_str>\n  x\n  y\n</parameter>\n</function>":    `edit {"old_str":"  x\n  y","path":"a.py"}`,
		"<function_calls>\n<invoke name=\"edit\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</function_calls>": `edit {"path":"a"}`,
		"<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>":                 `bash {"command":"ls"}`,
		"<function=finish>\n</function>":               `finish {}`,
		"<execute_ipython>\nx = 1\n</execute_ipython>": `ipython {"input":"x = 1"}`,
		"<execute_bash>ls</execute_bash>":              `bash {"command":"ls"}`,
		`{"name": "t", "arguments": {"a": "b"}}`:       `t {"a":"b"}`,
		`{"name": "Bob"}`:                              "",
		"What now?":                                    "",
		"":                                             "",
		"```bash\n```":                                 "",
		"```bash\nnever closed":                        "",
		"Action:":                                      "",
		"</command> comes before":                      "",
		"{\"tool\": \"t\"} is no action":               "",
	} {
		got := ""
		if a, ok := step.ParseAction(s); ok {
			got = a.Name + " " + string(text.CanonicalJSON(a.Args))
		}
		if got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

// An action's text is what the model wrote of it, and nothing that it said before.
func TestActionText(t *testing.T) {
	for s, want := range map[string]string{
		"I look.\n```bash\nls -la\n```":                "ls -la",
		"Action: search\nAction Input: date formats\n": "search\nAction Input: date formats",
		"Action: Search[date formats]\nI wait.":        "Search[date formats]",
		"So:\n<command>\ncat a.py\n</command>":         "cat a.py",
		"So:\n<function=edit>\n<parameter=path>a.py</parameter>\n<parameter=new>\nx\ny\n</parameter>\n</function> done": "<function=edit><parameter=path>a.py</parameter><parameter=new>x\ny</parameter></function>",
		`{"name": "t", "arguments": {"a": "b"}}`: `{"name": "t", "arguments": {"a": "b"}}`,
	} {
		if a, _ := step.ParseAction(s); a.Text != want {
			t.Errorf("%q: %q, want %q", s, a.Text, want)
		}
	}
}

// Whatever a model says, an action has a name, and reading it never panics.
func FuzzParseAction(f *testing.F) {
	for _, text := range []string{"```bash\nls\n```", "Action: a\nAction Input: b", "<tool>{}</tool>", "<command", "Action: {", "```\n```\n```"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if a, ok := step.ParseAction(text); ok && (a.Name == "" || a.Args == nil) {
			t.Errorf("%q: %+v", text, a)
		}
	})
}

// Names without a colon mean the tools with rules, a rule's own name itself.
//
// A02
func TestToolNames(t *testing.T) {
	own, err := step.BuiltinRules().With([]byte("[tools.\"my:tool\"]\nargs = [\"a\"]\n[tools.\"list_dir\"]\nargs = [\"a\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"read_file": "fs:read_file", "write_file": "fs:write_file", "fs_list_dir": "fs:list_dir", "web_search": "web:search",
		"system_shell": "system:shell", "my_tool": "my:tool", "list_dir": "list_dir", "fs:read_file": "fs:read_file", "search": "search", "*": "*", "": "",
	} {
		if got := own.ToolName(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
