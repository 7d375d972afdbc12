package sets_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

// The made-up talks with an assistant are what they say.
func TestAssistant(t *testing.T) {
	size := sets.SmallAssistant
	set := sets.Assistant(size)
	if diff := cmp.Diff(set, sets.Assistant(size)); diff != "" {
		t.Errorf("the same size gave other talks:\n%s", diff)
	}
	classes := make(map[string]int)
	for _, talk := range set.Talks {
		checkTalk(t, set, talk)
		if n := len(talk.Turns); n != size.Sessions*size.Messages {
			t.Errorf("%d messages", n)
		}
		for _, turn := range talk.Turns {
			if n := len(strings.Fields(turn.Text)); turn.Author == "assistant" && (n < 300 || n > 600) || turn.Author == "user" && n > 40 {
				t.Errorf("%s of the %s has %d words", turn.ID, turn.Author, n)
			}
		}
		for _, q := range talk.Questions {
			classes[q.Class]++
			if (q.Class == sets.UpdateClass) != (len(q.Stale) > 0) {
				t.Errorf("%q is of class %s, stale %q", q.Text, q.Class, q.Stale)
			}
		}
	}
	for _, class := range sets.AssistantClasses {
		if classes[class] == 0 {
			t.Errorf("nothing is asked of class %s", class)
		}
	}
}

// Every collection has its questions, and each asks only for what exists by then.
func TestSets(t *testing.T) {
	read := []struct {
		questions int
		from      func(string) (*sets.Set, error)
		folder    string
	}{{441, sets.Quality, "../../../.."}}
	if data := os.Getenv("LOOM_EVAL_DATA"); data != "" {
		for i, from := range []func(string) (*sets.Set, error){sets.Locomo, sets.LocomoSessions, sets.Realmem, sets.Vaswani} {
			read = append(read, struct {
				questions int
				from      func(string) (*sets.Set, error)
				folder    string
			}{[]int{997, 997, 682, 93}[i], from, data})
		}
	}
	for _, r := range read {
		set, err := r.from(r.folder)
		if err != nil {
			t.Fatal(err)
		}
		if n := set.Questions(); n != r.questions {
			t.Errorf("%s has %d questions, want %d", set.Name, n, r.questions)
		}
		for _, talk := range set.Talks {
			checkTalk(t, set, talk)
		}
	}
}

func checkTalk(t *testing.T, set *sets.Set, talk *sets.Talk) {
	t.Helper()
	place := make(map[string]int) // of turns, or of the first of a session
	for i, turn := range talk.Turns {
		for _, told := range set.Told(turn) {
			if _, known := place[told.ID]; known && !set.BySession {
				t.Errorf("%s: %s stands twice", talk.ID, told.ID)
			} else if !known {
				place[told.ID] = i
			}
			if !strings.Contains(turn.Text, told.Text) {
				t.Errorf("%s: %s does not hold %q", talk.ID, turn.ID, told.Text)
			}
		}
	}
	after := 0
	for _, q := range talk.Questions {
		if q.After < after || q.After > len(talk.Turns) || len(q.Evidence) == 0 {
			t.Fatalf("%s: %q is asked after %d turns for %q", talk.ID, q.Text, q.After, q.Evidence)
		}
		after = q.After
		for _, id := range q.Evidence {
			if at, known := place[id]; !known || at >= q.After {
				t.Errorf("%s: %q asks for %s, which is not there yet", talk.ID, q.Text, id)
			}
		}
	}
}
