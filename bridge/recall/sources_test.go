package recall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/recall"
	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// folder is the workspace of all agents.
type folder struct{ root *os.Root }

func (f folder) RootIn(context.Context, kv.Scope) (*os.Root, error) {
	if f.root == nil {
		return nil, errors.New("no workspace")
	}
	return f.root, nil
}

func (w *world) notes(dir string) *recall.Notes {
	w.tb.Helper()
	root, err := os.OpenRoot(dir)
	w.must(err)
	w.tb.Cleanup(func() { root.Close() })
	files, err := native.NewReader("")
	w.must(err)
	return &recall.Notes{Store: w.store, Terms: terms, Agents: recall.NewAgentsFiles(folder{root}, files)}
}

// AGENTS.md stands first, as it is on disk by now or as the caller gave it; then the notes
// of agent and user, the most important and of those the newest first. What is over the
// cap leaves from the end.
//
// F19
func TestNotes(t *testing.T) {
	w := MustWorld(t)
	dir := t.TempDir()
	source := w.notes(dir)
	if got := w.text(source, w.ask("")); got != "" {
		t.Errorf("without any: %q", got)
	}
	write := func(s string) {
		t.Helper()
		w.must(os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte(s), 0o600))
	}
	write("Use tabs.\n")
	for i, importance := range []float64{.5, .9, .5} {
		w.now = w.now.Add(time.Second)
		w.save([]kv.Scope{alice, eva, alice}[i], record.Record{ID: fmt.Sprint("n", i), Kind: "note", Text: fmt.Sprint("note ", i), Importance: importance})
	}
	w.save(kv.AgentScope("default", "bob"), record.Record{Kind: "note", Text: "CANARY"})
	a := w.ask("")
	if got := w.text(source, a); got != "Use tabs.\n\n==\n- note 1\n- note 2\n- note 0" {
		t.Errorf("got %q", got)
	}
	write("Use spaces.\n")
	if got := w.text(source, a); !strings.HasPrefix(got, "Use spaces.\n") {
		t.Errorf("after a change: %q", got)
	}
	a.Settings.AgentsMD = "Use nothing."
	if got := w.text(source, a); !strings.HasPrefix(got, "Use nothing.\n==") {
		t.Errorf("with a text of the caller's: %q", got)
	}
	a.Settings.Limits.Sections = map[string]int{"notes": 2 + 3}
	if got := w.gather(source, a); texts(got) != "notes:agents_md: Use nothing.|notes: - note 1" || len(got.LeftOut["notes"]) != 2 {
		t.Errorf("with a cap: %q, left out %v", texts(got), got.LeftOut)
	}
}

// texts are the injections of an answer on one line.
func texts(g gather.Gathered) string {
	all := make([]string, len(g.Injections))
	for i, in := range g.Injections {
		all[i] = in.Name + ": " + in.Text
	}
	return strings.Join(all, "|")
}

// An AGENTS.md that leads out of the workspace is not read, and one that can't be read is
// said; at most 64 KiB of it are.
//
// F19
func TestHostileAgents(t *testing.T) {
	w := MustWorld(t)
	outside := filepath.Join(t.TempDir(), "secret")
	w.must(os.WriteFile(outside, []byte("CANARY"), 0o600))
	for name, make := range map[string]func(path string) error{
		"link out": func(path string) error { return os.Symlink(outside, path) },
		"folder":   func(path string) error { return os.Mkdir(path, 0o700) },
		"NUL":      func(path string) error { return os.WriteFile(path, []byte("CANARY\x00"), 0o600) },
	} {
		dir := t.TempDir()
		w.must(make(filepath.Join(dir, "AGENTS.md")))
		got, err := gather.New([]gather.Source{w.notes(dir)}, nil).Gather(t.Context(), w.ask(""))
		w.must(err)
		if texts(got) != "" || len(got.Failures) != 1 || got.Failures[0].Source != "notes:agents_md" || strings.Contains(got.Failures[0].Reason, dir) {
			t.Errorf("%s: %q, %v", name, texts(got), got.Failures)
		}
	}
	for _, size := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1} {
		dir := t.TempDir()
		w.must(os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte(strings.Repeat("a", size)), 0o600))
		if got := w.text(w.notes(dir), w.ask("")); len(got) != min(size, 64<<10) {
			t.Errorf("of %d bytes %d", size, len(got))
		}
	}
}

// Skills come from records, those of the settings before them.
func TestSkills(t *testing.T) {
	w := MustWorld(t)
	w.save(alice, record.Record{Kind: "skill", Key: "review", Text: "Read twice.", Metadata: json.RawMessage(`{"description":"How to\nreview","tools":["fs:read_file"]}`)})
	w.save(alice, record.Record{Kind: "skill", Text: "Other.", Metadata: json.RawMessage(`{"name":"declared"}`)})
	w.save(alice, record.Record{Kind: "skill", Text: "nameless"})
	w.save(eva, record.Record{Kind: "skill", Key: "users", Text: "CANARY of the user's, which other agents write"})
	w.save(alice, record.Record{Kind: "skill", Key: "tools", Text: "CANARY", Origin: record.OriginTool})
	w.save(alice, record.Record{Kind: "skill", Key: "pages", Text: "CANARY", Origin: record.OriginWeb})
	w.save(kv.AgentScope("default", "bob"), record.Record{Kind: "skill", Key: "bobs", Text: "CANARY"})
	a := w.ask("")
	a.Settings.Skills = []settings.Skill{{Name: "declared", Text: "Mine."}}
	got := w.gather(&recall.Skills{Store: w.store}, a).Skills
	if len(got) != 1 || got[0].Name != "review" || got[0].Text != "Read twice." || got[0].Description != "How to review" || len(got[0].Tools) != 1 {
		t.Errorf("got %+v", got)
	}
}

// playbookOf is a record of a playbook.
func playbookOf(id, description, status string, types ...string) record.Record {
	metadata, _ := json.Marshal(map[string]any{
		"name": id, "description": description, "status": status, "trigger": map[string]any{"task_types": types}, "custom": 7,
		"tool_sequence":   []any{map[string]any{"tool": "fs:read_file"}, map[string]any{"tool": "fs:write_file"}},
		"quality_metrics": map[string]any{"success_rate": .8, "avg_turns": 6},
	})
	return record.Record{ID: id, Kind: "playbook", Text: description, Metadata: metadata}
}

// The approved playbook that fits best is shown, and each time that it enters a session's
// prompts is counted, in the background; a dry run counts nothing, and that it was counted
// does not change what is shown.
//
// I14, P45, M18
func TestPlaybooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := MustWorld(t)
		w.now = time.Now()
		w.save(alice, playbookOf("fix", "Fix a failing unit test", "approved"))
		w.save(alice, playbookOf("draft", "Fix a failing unit test quickly", "draft"))
		w.save(alice, playbookOf("other", "Fix a failing unit test of Rust", "approved", "rust"))
		w.save(kv.AgentScope("default", "bob"), playbookOf("bobs", "Fix a failing unit test CANARY", "approved"))
		source := recall.NewPlaybooks(w.store, nil)
		defer source.Close()
		g := gather.New([]gather.Source{source}, nil)
		used := func() float64 {
			t.Helper()
			synctest.Wait()
			r, err := w.store.Get(t.Context(), alice, "fix")
			w.must(err)
			var m map[string]any
			w.must(json.Unmarshal(r.Metadata, &m))
			if n, _ := m["usage_count"].(float64); n == 0 {
				return 0
			}
			if at, err := time.Parse(time.RFC3339, fmt.Sprint(m["last_used_at"])); err != nil || !at.Equal(w.now.Truncate(time.Microsecond)) || m["custom"] != 7.0 {
				t.Errorf("metadata %s: %v", r.Metadata, err)
			}
			return m["usage_count"].(float64)
		}
		for i, want := range []float64{0, 1, 1} {
			a := w.ask("The unit test is failing, please fix it")
			a.TaskType, a.DryRun = "go", i == 0
			got, err := g.Gather(t.Context(), a)
			w.must(err)
			if len(got.Injections) != 1 || !strings.HasPrefix(got.Injections[0].Text, "Fix a failing unit test\nTools: fs:read_file → fs:write_file\nAverage 6 steps, success 80%") {
				t.Fatalf("prompt %d: %q", i, texts(got))
			}
			if in := got.Injections[0]; in.Tag != "playbook_hint" || !strings.HasPrefix(in.Attributes, `confidence="0.`) && in.Attributes != `confidence="1.00"` || in.MaxTokens != 300 {
				t.Errorf("prompt %d: %+v", i, in)
			}
			if !a.DryRun {
				got.Rendered()
			}
			if n := used(); n != want {
				t.Errorf("prompt %d: used %v times, want %v", i, n, want)
			}
		}
		a := w.ask("The unit test is failing, please fix it")
		a.SessionID = "another"
		got, err := g.Gather(t.Context(), a)
		w.must(err)
		got.Rendered()
		if n := used(); n != 2 {
			t.Errorf("used %v times", n)
		}
		r, err := w.store.Get(t.Context(), alice, "fix")
		w.must(err)
		_, err = w.store.Update(t.Context(), alice, memory.Update{
			ID: "fix", Fields: memory.MetadataField, Values: record.Record{Metadata: []byte(strings.Replace(string(r.Metadata), "approved", "deprecated", 1))},
		}, "")
		w.must(err)
		if got, err := g.Gather(t.Context(), a); err != nil || len(got.Injections) != 0 && strings.Contains(texts(got), "unit test\n") {
			t.Errorf("after it was deprecated: %q, %v", texts(got), err)
		}
	})
}

// A playbook that stands beyond the kept one is counted when it enters, not with each
// prompt that it stays in.
func TestPlaybookThatStaysIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := MustWorld(t)
		w.now = time.Now()
		w.save(alice, playbookOf("fix", "Fix a failing unit test", "approved"))
		w.save(alice, playbookOf("ship", "Publish a release of the package", "approved"))
		source := recall.NewPlaybooks(w.store, nil)
		defer source.Close()
		g := gather.New([]gather.Source{source}, nil)
		const fix, ship = "The unit test is failing, please fix it", "Publish the release of the package"
		for i, tt := range []struct {
			newest    string
			fix, ship float64
		}{{fix, 1, 0}, {ship, 1, 1}, {ship, 1, 1}, {ship, 1, 1}, {fix, 1, 1}, {ship, 1, 2}} {
			got, err := g.Gather(t.Context(), w.ask(tt.newest))
			w.must(err)
			got.Rendered()
			synctest.Wait()
			for id, want := range map[string]float64{"fix": tt.fix, "ship": tt.ship} {
				r, err := w.store.Get(t.Context(), alice, id)
				w.must(err)
				var m map[string]any
				w.must(json.Unmarshal(r.Metadata, &m))
				if n, _ := m["usage_count"].(float64); n != want {
					t.Errorf("prompt %d: %s used %v times, want %v", i, id, n, want)
				}
			}
		}
	})
}

func (w *world) tiers() *tiers.Tiers { return tiers.New(w.log, w.store, w.writer, nil) }

func (w *world) task(of *tiers.Tiers, n int, importance float64) {
	w.tb.Helper()
	_, err := of.Add(w.tb.Context(), alice, session.Task{
		ID: fmt.Sprint("t", n), Action: "execute", SessionID: "s", Importance: importance, CreateTime: noon.Add(time.Duration(n) * time.Second),
		Parameters: fmt.Appendf(nil, `{"content":"task %d"}`, n),
	})
	w.must(err)
}

// messages are those of an answer on one line.
func messages(g gather.Gathered) string {
	var all []string
	for _, in := range g.Injections {
		for _, m := range in.Messages {
			all = append(all, m.Role.String()+" "+m.Content)
		}
	}
	return strings.Join(all, "|")
}

// The last ten tasks of the session stand there, oldest first, but those that a step
// stands for, with L2 up to ten important ones before them.
//
// F09, F16, F17, K53
func TestTasks(t *testing.T) {
	w := MustWorld(t)
	of := w.tiers()
	source := &recall.Tasks{Tiers: of, Terms: terms}
	for n := range 12 {
		w.task(of, n, .1)
	}
	_, err := of.Add(t.Context(), alice, session.Task{Action: "execute", SessionID: "other", Parameters: []byte(`{"content":"CANARY"}`)})
	w.must(err)
	_, err = of.Add(t.Context(), kv.AgentScope("default", "bob"), session.Task{Action: "execute", SessionID: "s", Parameters: []byte(`{"content":"CANARY"}`)})
	w.must(err)
	a := w.ask("")
	var want []string
	for n := 2; n < 12; n++ {
		want = append(want, fmt.Sprint("user task ", n))
	}
	if got := messages(w.gather(source, a)); got != strings.Join(want, "|") {
		t.Errorf("got %s", got)
	}
	_, err = of.Add(t.Context(), alice, session.Task{ID: "with a step", SessionID: "s", CreateTime: noon.Add(time.Hour), Action: "execute", Parameters: []byte(`{"content":"twice"}`), Step: 3})
	w.must(err)
	if got := messages(w.gather(source, a)); got != strings.Join(want[1:], "|") {
		t.Errorf("with a step that stands for a task: %s", got)
	}
	for _, n := range []int{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23} {
		w.task(of, n, .5+float64(n)/100)
	}
	for n := 24; n < 40; n++ {
		w.task(of, n, .1)
	}
	if got := messages(w.gather(source, a)); strings.Contains(got, "task 29|") || !strings.HasPrefix(got, "user task 30|") {
		t.Errorf("L1 alone: %s", got)
	}
	a.Settings.Sources.Layers = []string{"L1", "L2"}
	got := strings.Split(messages(w.gather(source, a)), "|")
	if len(got) != 20 || got[0] != "user task 14" || got[9] != "user task 23" || got[10] != "user task 30" || got[19] != "user task 39" {
		t.Errorf("L1 and L2: %q", got)
	}
}

// What is over the cap leaves from the oldest; the newest is cut.
func TestTasksCap(t *testing.T) {
	w := MustWorld(t)
	of := w.tiers()
	source := &recall.Tasks{Tiers: of, Terms: terms}
	for n := range 3 {
		w.task(of, n, .1)
	}
	for limit, want := range map[int]string{
		6: "user task 0|user task 1|user task 2", 5: "user task 1|user task 2", 4: "user task 1|user task 2", 3: "user task 2", 2: "user task 2", 1: "user ta…",
	} {
		a := w.ask("")
		a.Settings.Limits.Sections = map[string]int{"tasks": limit}
		got := w.gather(source, a)
		if all := messages(got); all != want && limit > 1 || words(all) > limit+3 {
			t.Errorf("cap %d: %s", limit, all)
		}
	}
}

// Events of the agent and of its parent in the session stand among the tasks by time;
// those of others, of other sessions and of other actions don't, and one alone neither.
//
// F18, K55, P29
func TestEvents(t *testing.T) {
	w := MustWorld(t)
	of := w.tiers()
	bus := events.New(w.engine, w.writer, &events.Options{Now: func() time.Time { return w.now }})
	defer bus.Close()
	source := &recall.Tasks{Tiers: of, Terms: terms, Parent: func(context.Context, kv.Scope) string { return "boss" }}
	emit := func(topic, from, sessionID, payload string) {
		t.Helper()
		w.now = w.now.Add(time.Second)
		_, err := bus.Emit(t.Context(), "default", events.Event{Topic: topic, Source: from, SessionID: sessionID, Payload: []byte(payload)}, events.EmitOptions{})
		w.must(err)
	}
	a := w.ask("")
	a.Layout = settings.TaskContext
	emit("node.thinking", "alice", "s", `{"content":"I look first","task_id":"t1"}`)
	if got := messages(w.gather(source, a)); got != "" {
		t.Errorf("one alone: %s", got)
	}
	w.task(of, 3, .1)
	emit("node.thinking", "boss", "s", `{"content":"she is slow"}`)
	emit("node.thinking", "mallory", "s", `{"content":"CANARY"}`)
	emit("node.thinking", "alice", "other", `{"content":"CANARY"}`)
	emit("node.error", "alice", "s", `{"content":"CANARY"}`)
	emit("node.tool_call", "alice", "s", `{"tool_name":"fs:read_file","args":{"path":"a"}}`)
	emit("execute", "alice", "s", `{"content":"later","task_id":"t9"}`)
	want := "assistant I look first|assistant [From boss] she is slow|user task 3|assistant [Calling fs:read_file({\"path\": \"a\"})]"
	if got := messages(w.gather(source, w.at(a))); got != want {
		t.Errorf("got %s", got)
	}
	a.Settings.Sources = settings.Sources{EventActions: []string{"execute", "node.thinking"}, Exclude: []string{"tasks"}}
	a.Layout = settings.ThreePhase
	if got := messages(w.gather(source, w.at(a))); got != "assistant I look first|assistant [From boss] she is slow|user later" {
		t.Errorf("other actions, without tasks: %s", got)
	}
	a.Settings.Sources = settings.Sources{Exclude: []string{"events"}}
	a.Layout = settings.TaskContext
	if got := messages(w.gather(source, w.at(a))); got != "user task 3" {
		t.Errorf("without events: %s", got)
	}
	if !source.Excluded(&settings.Prompt{Sources: settings.Sources{Exclude: []string{"events", "tasks"}}}) {
		t.Error("it is asked though neither is wanted")
	}
}

// at is a prompt by now.
func (w *world) at(a *gather.Ask) *gather.Ask {
	later := *a
	later.Now = w.now
	return &later
}

// The rank of an event sums up age, action, words and node.
//
// P29
func TestRank(t *testing.T) {
	for _, test := range []struct {
		topic string
		age   time.Duration
		words float64
		node  uint8
		want  float64
	}{
		{"node.thinking", 0, 1, uint8(recall.ParentNode), 1},
		{"node.thinking", time.Hour, 1, uint8(recall.ParentNode), .8},
		{"node.planning", 2 * time.Hour, .5, uint8(recall.OwnNode), .1 + .225 + .1 + .12},
		{"node.tool_call", 0, 0, uint8(recall.OtherNode), .4 + .2 + .075},
		{"node.error", 0, 0, uint8(recall.UnknownNode), .4 + .175 + .045},
		{"execute", 0, 0, uint8(recall.UnknownNode), .4 + .15 + .045},
		{"node.other", -time.Hour, 0, uint8(recall.UnknownNode), .4 + .125 + .045},
	} {
		e := &events.Event{Topic: test.topic, Time: noon.Add(-test.age)}
		if got := recall.Rank(e, noon, test.words, recall.NodeOf(test.node)); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// Rule files of other programs stand behind AGENTS.md, each once and by its name, with what they
// import; rules and skills that hold at times only are listed. Nothing leads out of the workspace.
//
// F19
func TestRuleFiles(t *testing.T) {
	w := MustWorld(t)
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret.md")
	w.must(os.WriteFile(outside, []byte("CANARY"), 0o600))
	for name, said := range map[string]string{
		"AGENTS.md":                     "Use tabs.\n@docs/style.md\n@import ../secret.md\n@.env\n```\n@docs/code.md\n```",
		"docs/style.md":                 "Short names.\n@import more.md",
		"docs/more.md":                  "No globals.\n@style.md",
		"docs/code.md":                  "CANARY",
		".env":                          "CANARY",
		"CLAUDE.md":                     "@AGENTS.md\nRun make check.",
		".claude/CLAUDE.md":             "Run make check.",
		".cursor/rules/a.mdc":           "---\nalwaysApply: true\n---\nTests first.",
		".cursor/rules/b.mdc":           "---\ndescription: For Go\nglobs: *.go\nalwaysApply: false\n---\nCANARY",
		"web/app/AGENTS.md":             "Use Preact.",
		"node_modules/x/AGENTS.md":      "CANARY",
		"a/b/c/d/AGENTS.md":             "CANARY",
		".claude/skills/pdf/SKILL.md":   "---\nname: pdf\ndescription: How to read PDF\n---\nCANARY",
		".agents/skills/note/SKILL.md":  "CANARY\x00",
		".agents/skills/other/SKILL.md": "Just text",
	} {
		name = filepath.Join(dir, name)
		w.must(os.MkdirAll(filepath.Dir(name), 0o700))
		w.must(os.WriteFile(name, []byte(said), 0o600))
	}
	w.must(os.MkdirAll(filepath.Join(dir, "linked"), 0o700))
	w.must(os.Symlink(outside, filepath.Join(dir, "linked", "AGENTS.md")))
	w.must(os.Symlink(outside, filepath.Join(dir, "docs", "out.md")))
	got := w.gather(w.notes(dir), w.ask(""))
	want := "Use tabs.\nShort names.\nNo globals.\n@import ../secret.md\n@.env\n```\n@docs/code.md\n```\n" +
		"# CLAUDE.md\nRun make check.\n\n# .cursor/rules/a.mdc\nTests first.\n\n# Rules to read when they apply\n- .cursor/rules/b.mdc: For Go: *.go\n\n" +
		"# web/app/AGENTS.md\nUse Preact.\n\n# Skills to read before such work\n- .agents/skills/other/SKILL.md: other\n\n" +
		"# Skills to read before such work\n- .claude/skills/pdf/SKILL.md: pdf: How to read PDF"
	if len(got.Injections) != 1 || got.Injections[0].Text != want {
		t.Errorf("got %q,\nwant %q", texts(got), want)
	}
	if in := got.Injections[0]; in.Instructs() || in.Tag != "agents_md" || !strings.Contains(in.Rest, "AGENTS.md, docs/more.md, docs/style.md, CLAUDE.md and 5 more") {
		t.Errorf("it stands as %+v", in)
	}
}
