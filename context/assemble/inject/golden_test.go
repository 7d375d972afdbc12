package inject_test

import (
	"encoding/json"
	"flag" //nolint:depguard // -update belongs to the test binary, no setting of the product
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject/playbook"
	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/working"
)

var update = flag.Bool("update", false, "rewrite the golden files from what is made")

// scene is the input of a golden file.
type scene struct {
	System    string
	Tools     []tokens.ToolDefinition
	Skills    []settings.Skill
	Active    []string
	FewShot   []settings.Example
	Memories  []string
	Knowledge []inject.Snippet
	Playbooks []playbook.Found
	TaskType  string
	// Style is the layout whose forms are used.
	Style      settings.Layout
	Injections []inject.Injection
	Goal, Query,
	Session, Turn string
	Plan     working.Plan
	Failures []inject.Failure
	Settings settings.Prompt
}

var today = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (s *scene) inputs() inject.Inputs {
	limit := s.Settings.Cap
	all := []inject.Injection{
		inject.SystemRole(s.System, limit(settings.System)),
		inject.Tools(s.Tools, limit(settings.ToolList)),
		inject.Skills(s.Skills, s.Active, s.Query, limit(settings.SkillTexts), inject.MaxActiveTokens, words),
		inject.FewShot(s.FewShot, s.Style == settings.ReAct, limit(settings.FewShots)),
		inject.UserMemory(limit(settings.UserMemory), s.Memories...),
	}
	if s.Style == settings.TaskContext {
		for i := range s.Knowledge {
			s.Knowledge[i].Writers = instruct.Program
		}
		all = append(all, inject.KnowledgeMessages(s.Knowledge, inject.DefaultKnowledge, limit(settings.Knowledge)))
	} else {
		all = append(all, inject.Knowledge(s.Knowledge, inject.DefaultKnowledge, limit(settings.Knowledge)))
	}
	if best, ok := playbook.Match(s.Playbooks, s.TaskType, today); ok {
		all = append(all, playbook.Hint(best, limit(settings.Playbook)))
	}
	return inject.Inputs{
		Injections: append(all, s.Injections...), Goal: s.Goal, Plan: s.Plan, Failures: s.Failures,
		Session: s.Session, Turn: s.Turn, Settings: s.Settings, Runtime: true, Count: words,
	}
}

// What a prompt has beside its history: prose, the inputs as JSON, the texts of the
// phases, and what became of each piece. A token is a word or a line feed.
func TestGolden(t *testing.T) {
	// I02, I03, I04, I07, I08, I09, I10, I11, I12, I13, I14, I15, I16, I17, I22, M10, M11, M17, P39, P45, P47, G23
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			prose, rest, _ := strings.Cut(string(text), "-- inputs --\n")
			inputs, _, _ := strings.Cut(rest, "-- system --\n")
			var s scene
			decoder := json.NewDecoder(strings.NewReader(inputs))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&s); err != nil {
				t.Fatal(err)
			}
			got := prose + "-- inputs --\n" + inputs + shown(inject.Prepare(s.inputs()), s.Query)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(text), got); diff != "" {
				t.Errorf("differs (-want +got); -update rewrites it:\n%s", diff)
			}
		})
	}
}

// shown is everything of a prompt but the history.
func shown(p inject.Prepared, query string) string {
	var b strings.Builder
	for _, part := range []struct {
		name  string
		phase inject.Phase
	}{{"system", inject.System}, {"user context", inject.UserContext}} {
		fmt.Fprintf(&b, "-- %s --\n%s\n", part.name, p.Text(part.phase))
		for _, m := range p.Messages(part.phase) {
			fmt.Fprintf(&b, "[%s]\n%s\n", m.Role, m.Content)
		}
	}
	fmt.Fprintf(&b, "-- end --\n%s\n-- pieces --\n", p.Forms.Join(inject.Strip(query), p.Text(inject.Runtime)))
	for i := range p.Pieces {
		piece := &p.Pieces[i]
		fmt.Fprintf(&b, "%s: %d of %d tokens", piece.Name, piece.After, piece.Before)
		if piece.Reason != inject.AsGiven {
			fmt.Fprintf(&b, ", %s", piece.Reason)
		}
		if len(piece.Left) > 0 {
			fmt.Fprintf(&b, ", without %v", piece.Left)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "together: %d of %d tokens\n", p.Tokens, p.Limit)
	return b.String()
}
