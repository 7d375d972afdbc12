package tokens_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// anyMessage is one of not very many messages, of all that counts.
func anyMessage(rng *rand.Rand) tokens.Message {
	text := func() string {
		return strings.Repeat([]string{"", "a", "word ", "漢字\n"}[rng.IntN(4)], rng.IntN(40))
	}
	m := tokens.Message{Role: []string{"user", "assistant", "tool"}[rng.IntN(3)], Content: text(), Name: text(), CallID: text()}
	for range rng.IntN(3) {
		m.Calls = append(m.Calls, tokens.Call{ID: text(), Name: text(), Arguments: text()})
	}
	if rng.IntN(4) == 0 {
		m.Blocks = json.RawMessage(fmt.Sprintf(`[{"type":"text","text":%q},{"type":"image"}]`, text()))
	}
	return m
}

// What is remembered is what is counted, whether it is forgotten at once, now and
// then or never, and whichever model asked before.
func TestRecentChangesNoCount(t *testing.T) {
	forgetful := MustCounter(t, &tokens.Options{MemoEntries: 1, RecentBytes: 1})
	small := MustCounter(t, &tokens.Options{RecentBytes: 4 << 10})
	usual := MustCounter(t, nil)
	rng := rand.New(rand.NewPCG(5, 5))
	for range 4000 {
		model := []string{"gpt-4o", "gpt-4", "claude-sonnet-5", "of-nobody"}[rng.IntN(4)]
		m := anyMessage(rng)
		want, err := forgetful.Message(model, m)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*tokens.Counter{small, usual} {
			if got, err := c.Message(model, m); err != nil || got != want {
				t.Fatalf("%s %+v: got %+v, %v, want %+v", model, m, got, err, want)
			}
			if got, want := MustCount(t, c, model, m.Content), MustCount(t, forgetful, model, m.Content); got != want {
				t.Fatalf("%s %q: got %+v, want %+v", model, m.Content, got, want)
			}
		}
	}
}

// What moves from one string of a message to the next is another message.
func TestRecentTellsMessagesApart(t *testing.T) {
	c := MustCounter(t, nil)
	for _, m := range []tokens.Message{
		{Role: "user", Content: "ab", Name: "c"},
		{Role: "user", Content: "a", Name: "bc"},
		{Role: "user", Content: "abc"},
		{Role: "user", CallID: "abc"},
		{Role: "user", Name: "abc"},
		{Role: "user", Blocks: json.RawMessage("abc")},
		{Role: "user", Calls: []tokens.Call{{ID: "abc"}}},
		{Role: "user", Calls: []tokens.Call{{ID: "ab"}, {ID: "c"}}},
		{Role: "user", Calls: []tokens.Call{{}}},
	} {
		got, err := c.Message("gpt-4o", m)
		want, wantErr := MustCounter(t, nil).Message("gpt-4o", m)
		if err != nil || wantErr != nil || got != want {
			t.Errorf("%+v: got %+v, %v, want %+v, %v", m, got, err, want, wantErr)
		}
	}
}

func TestNegativeRecentBytes(t *testing.T) {
	if _, err := tokens.New(&tokens.Options{RecentBytes: -1}); err == nil {
		t.Error("negative bytes were accepted")
	}
}
