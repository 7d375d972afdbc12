package guard_test

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/guard"
)

func TestOutput(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"plain":        {"a[0] = [1 lines]\n[1, 2]\n---\nGoal: x\n</notes>", "a[0] = [1 lines]\n[1, 2]\n---\nGoal: x\n</notes>"},
		"same lines":   {"a\n[12 lines unchanged: step_001 line 3]\nb", "a\n| [12 lines unchanged: step_001 line 3]\nb"},
		"not at start": {"see [12 lines unchanged: x", "see [12 lines unchanged: x"},
		"hidden":       {"a\r\t \u200b[ 12 lines unchanged: x", "a\r\t \u200b[ 12 lines unchanged: x"},
		"hidden mark":  {"a\r\t \u200b[1\u200b2 LINES\u00a0unchanged: x", "a\r| \t \u200b[1\u200b2 LINES\u00a0unchanged: x"},
		"cut":          {"[...9 chars omitted]\n[… 12 bytes left out", "| [...9 chars omitted]\n| [… 12 bytes left out"},
		"folds":        {"[Earlier steps, folded: x]\u2028[Folded as above]", "| [Earlier steps, folded: x]\u2028| [Folded as above]"},
		"reference":    {"ull data: a\n full Data: b\nFull text of step 1: c", "ull data: a\n|  full Data: b\n| Full text of step 1: c"},
		"marked":       {"| [Folded as above]", "| [Folded as above]"},
		"empty":        {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := guard.Output(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// FuzzOutput: nothing but marks at the beginning of lines is added, places are found with
// and without them, what is guarded is not changed again, and a text that is guarded as a
// stranger's has no line that Output would mark.
func FuzzOutput(f *testing.F) {
	for _, seed := range []string{"", "[1 lines unchanged:", "a\n[...\n \u200b[folded\r\nfull data:", "[[[...", "full text:\vfull text:", "\xff[...\n\xc2[..."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		guarded, places := guard.Output(s), guard.FoldLines(s)
		if again := guard.Output(guarded); again != guarded {
			t.Fatalf("%q becomes %q, and then %q", s, guarded, again)
		}
		plain, from := "", 0
		for _, at := range places {
			to := guard.Marked(places, at) // behind the mark
			plain += guarded[from : to-len(guard.Mark)]
			if guarded[to-len(guard.Mark):to] != guard.Mark {
				t.Fatalf("no mark at %d of %q", at, guarded)
			}
			from = to
		}
		if plain += guarded[from:]; plain != s {
			t.Fatalf("%q without its marks is %q", guarded, plain)
		}
		for at := range len(s) {
			if back := guard.Unmarked(places, guard.Marked(places, at)); back != at {
				t.Fatalf("place %d of %q is %d there and back", at, s, back)
			}
		}
		if valid := strings.ToValidUTF8(s, "\uFFFD"); len(guard.FoldLines(guard.Text(valid))) > 0 {
			t.Fatalf("as a stranger's text %q has lines of folds", guard.Text(valid))
		}
	})
}
