package main

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

func TestHistoryDefaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args           []string
		policy, preset string
	}{
		{nil, session.PolicyLedger, ""},
		{[]string{"--history-policy=append_only"}, session.PolicyAppendOnly, ""},
		{[]string{"--history-preset=design"}, session.PolicyPreset, "design"},
		{[]string{"--history-policy=preset", "--history-preset=debug"}, session.PolicyPreset, "debug"},
	} {
		c, err := load(t, nil, test.args...)
		if got := c.history(); err != nil || got.Policy != test.policy || got.Preset != test.preset {
			t.Errorf("%v: %+v, %v", test.args, got, err)
		}
	}
}

func TestBadHistorySettings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ arg, want string }{
		{"--history-policy=sliding", `--history-policy (LOOM_BRIDGE_HISTORY_POLICY) "sliding": is not a policy; give ledger, append_only or preset`},
		{"--history-policy=preset", `--history-preset (LOOM_BRIDGE_HISTORY_PRESET) "": is required with the policy preset`},
		{"--history-preset=none", `--history-preset (LOOM_BRIDGE_HISTORY_PRESET) "none": is not a preset; give design, reduction, task_context, three_phase, partitioned, chat, research, code or debug`},
	} {
		if _, err := load(t, nil, test.arg); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q in it", test.arg, err, test.want)
		}
	}
	if _, err := load(t, nil, "--history-policy=ledger", "--history-preset=chat"); err == nil || !strings.Contains(err.Error(), "needs the policy preset") {
		t.Errorf("a preset of the ledger: %v", err)
	}
}

func TestLoadRules(t *testing.T) {
	t.Parallel()
	path := MustFile(t, "[tools.\"my:counter\"]\nargs = [\"of\"]\nobservation = \"Counted {of}\"\n")
	rules, err := loadRules(path, step.BuiltinRules())
	if err != nil {
		t.Fatal(err)
	}
	reduced := step.NewReducer(&step.Options{Rules: rules}).Reduce(step.Call{
		Tool: "my:counter", Args: map[string]any{"of": "sheep", "more": "x"},
		Result: step.Result{Output: map[string]any{"n": 3}},
	})
	if got := reduced; got.Observation != "Counted sheep" || string(got.MinimalArgs) != `{"of":"sheep"}` {
		t.Errorf("reduced to %+v", got)
	}
}

func TestBadRules(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"no file":             "/no/such/rules.toml",
		"no TOML":             MustFile(t, "tools = "),
		"unknown key":         MustFile(t, "[tools.\"x\"]\nobserve = \"y\"\n"),
		"unknown placeholder": MustFile(t, "[tools.\"x\"]\ncompact = \"Did {something}\"\n"),
	} {
		if _, err := loadRules(path, step.BuiltinRules()); err == nil || !strings.Contains(err.Error(), "--rules (LOOM_BRIDGE_RULES)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if rules, err := loadRules("", step.BuiltinRules()); err != nil || step.NewReducer(&step.Options{Rules: rules}) == nil {
		t.Errorf("without a file: %v", err)
	}
}
