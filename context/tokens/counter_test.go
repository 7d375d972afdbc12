package tokens_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/tokens"
)

func TestTooLarge(t *testing.T) {
	c := MustCounter(t, nil)
	large := strings.Repeat("a", tokens.MaxTextBytes+1)
	for _, model := range []string{"gpt-4o", "of-nobody"} {
		if _, err := c.Count(model, large); !errors.Is(err, tokens.ErrTooLarge) {
			t.Errorf("%s: got %v, want ErrTooLarge", model, err)
		}
	}
	if _, err := tokens.New(&tokens.Options{MemoEntries: -1}); err == nil {
		t.Error("a negative memo was accepted")
	}
}

// A small memo forgets, and counts right all the same.
func TestConcurrentCountsWithSmallMemo(t *testing.T) {
	c := MustCounter(t, &tokens.Options{MemoEntries: 4})
	oracle := MustOracle(t, tokens.O200K)
	want := make(map[string]int)
	for i := range 40 {
		text := strings.Repeat(fmt.Sprintf("text number %d of_somebody; ", i), 10)
		want[text] = oracle(text)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for text, n := range want {
				if got, err := c.Count("gpt-4o", text); err != nil || got.Tokens != n {
					t.Errorf("got %+v, %v, want %d", got, err, n)
				}
			}
		})
	}
	group.Wait()
}

// Every count says what it is worth and what counted.
func TestCountNamesItsCounter(t *testing.T) {
	c := MustCounter(t, nil)
	const text = "hello world, 你好"
	o200k := MustOracle(t, tokens.O200K)(text)
	for _, tt := range []struct {
		model string
		want  tokens.Count
	}{
		{"", tokens.Count{Tokens: o200k, Counter: "o200k_base", Exact: true}},
		{"openai/gpt-4o", tokens.Count{Tokens: o200k, Counter: "o200k_base", Exact: true}},
		{"gpt-4", tokens.Count{Tokens: MustOracle(t, tokens.CL100K)(text), Counter: "cl100k_base", Exact: true}},
		{"claude-3-opus", tokens.Count{Tokens: (o200k*110 + 99) / 100, Counter: "anthropic"}},
		{"claude-sonnet-5", tokens.Count{Tokens: (o200k*143 + 99) / 100, Counter: "anthropic"}},
		{"llama-3", tokens.Count{Tokens: MustOracle(t, tokens.CL100K)(text), Counter: "cl100k_base"}},
		{"of-nobody", tokens.Count{Tokens: o200k * 120 / 100, Counter: "estimate"}},
	} {
		if got := MustCount(t, c, tt.model, text); got != tt.want {
			t.Errorf("%q: got %+v, want %+v", tt.model, got, tt.want)
		}
	}
}

func TestLoad(t *testing.T) {
	c := MustCounter(t, nil)
	for _, model := range []string{"", "gpt-4", "claude-sonnet-5", "of-nobody"} {
		if err := c.Load(model); err != nil {
			t.Errorf("%q: %v", model, err)
		}
	}
}

func TestPlus(t *testing.T) {
	exact := tokens.Count{Tokens: 1, Counter: "x", Exact: true}
	estimated := tokens.Count{Tokens: 2, Counter: "x"}
	if got, want := exact.Plus(exact), (tokens.Count{Tokens: 2, Counter: "x", Exact: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := exact.Plus(estimated), (tokens.Count{Tokens: 3, Counter: "x"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Counting allocates nothing: neither a text that is new, nor one that was
// counted before, nor one that is no UTF-8.
func TestCountAllocatesNothing(t *testing.T) {
	c := MustCounter(t, nil)
	fresh := make([]string, 0, 600)
	for i := range cap(fresh) {
		fresh = append(fresh, strings.Repeat(fmt.Sprintf("line %d: get_name(x) \xff ünï 漢字 zzqqxxyy\n", i), 40))
	}
	next := 0
	for name, count := range map[string]func(){
		"short": func() { MustCount(t, c, "gpt-4o", "getHTTPResponse zzqqxxyy") },
		"again": func() { MustCount(t, c, "gpt-4", fresh[0]) },
		"new":   func() { MustCount(t, c, "gpt-4o", fresh[next]); next++ },
	} {
		for range 100 { // the buffers grow
			count()
		}
		if n := testing.AllocsPerRun(400, count); n > 0 {
			t.Errorf("%s: %v allocations a count", name, n)
		}
	}
}
