package sets_test

import (
	"os"
	"testing"

	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

// Every collection has its questions, and each asks only for what exists by then.
func TestSets(t *testing.T) {
	read := []struct {
		questions int
		from      func(string) (*sets.Set, error)
		folder    string
	}{{441, sets.Quality, "../../../.."}}
	if data := os.Getenv("LOOM_EVAL_DATA"); data != "" {
		for questions, from := range map[int]func(string) (*sets.Set, error){997: sets.Locomo, 682: sets.Realmem, 93: sets.Vaswani} {
			read = append(read, struct {
				questions int
				from      func(string) (*sets.Set, error)
				folder    string
			}{questions, from, data})
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
		id := turn.ID
		if set.BySession {
			id = turn.Session
		}
		if _, known := place[id]; known && !set.BySession {
			t.Errorf("%s: %s stands twice", talk.ID, id)
		} else if !known {
			place[id] = i
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
