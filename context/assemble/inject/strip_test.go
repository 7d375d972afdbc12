package inject_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/session"
)

const goalBlock = "Current Goal: win\nProgress: 1/2 steps completed\nNext: go"

func TestStripMessage(t *testing.T) {
	// M10
	for _, test := range []struct{ before, want string }{
		{"b\n\n" + goalBlock, "b"},
		{"b\n\n" + goalBlock + "\n\nc\n\n" + goalBlock, "b\n\nc"},
		{"a\n\nCurrent Goal: old", "a"},
		{"a\n\nCurrent Goal: old\n", "a"},
		{"a\n\nCurrent Goal: old\n\nCurrent Goal: older", "a"},
		{goalBlock, ""},
		{"Current Goal: old", ""},
		// The user's own words.
		{"Current Goal: lose weight\nin a year", "Current Goal: lose weight\nin a year"},
		{"My Current Goal: x", "My Current Goal: x"},
		{"a\nCurrent Goal: x", "a\nCurrent Goal: x"},
		{"", ""},
	} {
		if got := inject.Strip(test.before); got != test.want {
			t.Errorf("of %q is left %q, want %q", test.before, got, test.want)
		}
		plain := &session.Message{Role: session.User, Content: test.before}
		if got := inject.StripMessage(plain); (got == nil) != (test.want == "" && test.before != "") || got != nil && got.Content != test.want {
			t.Errorf("of the message %q is left %+v", test.before, got)
		}
		if plain.Content != test.before {
			t.Errorf("the message of the caller was changed: %+v", plain)
		}
	}
	const image = `{"type":"image","source":{"z":1,"a":2}}`
	for before, want := range map[string]string{
		`[` + image + `,{"type":"text","text":"Current Goal: old"}]`:      `[` + image + `]`,
		`[` + image + `,{"type":"text","text":"a\n\nCurrent Goal: old"}]`: `[` + image + `,{"text":"a","type":"text"}]`,
		`[{"type":"text","text":"Current Goal: old"}]`:                    "",
		`[` + image + `, {"type":"text","text":"a"}]`:                     `[` + image + `, {"type":"text","text":"a"}]`,
	} {
		message := &session.Message{Role: session.User, BlocksJSON: json.RawMessage(before)}
		got := ""
		if short := inject.StripMessage(message); short != nil {
			got = string(short.BlocksJSON)
		}
		if got != want || string(message.BlocksJSON) != before {
			t.Errorf("of %s is left %s, want %s", before, got, want)
		}
	}
}

// Once more changes nothing, what a block was put behind comes back, and no line of a
// whole block is left.
func TestStripAnything(t *testing.T) {
	// M10
	pieces := []string{"a", "\n", "\n\n", goalBlock, "Current Goal: old", "Next: x", "Progress: 1/2 steps completed", " ", "é"}
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 0))
		var b strings.Builder
		for range r.IntN(7) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		short := inject.Strip(b.String())
		if again := inject.Strip(short); again != short {
			t.Fatalf("%q becomes %q, and then %q", b.String(), short, again)
		}
		if strings.Contains("\n"+short+"\n", "\n"+goalBlock+"\n") {
			t.Fatalf("%q keeps a block: %q", b.String(), short)
		}
		if short != "" {
			if diff := cmp.Diff(short, inject.Strip(short+"\n\n"+goalBlock)); diff != "" {
				t.Fatalf("seed %d: a block does not come off: %s", seed, diff)
			}
		}
	}
}
