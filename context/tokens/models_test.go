package tokens_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/tokens"
)

func MustModels(tb testing.TB, table string) *tokens.Models {
	tb.Helper()
	m, err := tokens.BuiltinModels()
	if err != nil {
		tb.Fatal(err)
	}
	if m, err = m.With([]byte(table)); err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestFindModel(t *testing.T) {
	m := MustModels(t, "")
	for _, tt := range []struct {
		name     string
		family   string
		counter  string
		encoding tokens.Encoding
		exact    bool
		ratio    float64
	}{
		{"", "gpt-4o", "openai", tokens.O200K, true, 1},
		{"gpt-4o", "gpt-4o", "openai", tokens.O200K, true, 1},
		{"gpt-4o-2024-08-06", "gpt-4o", "openai", tokens.O200K, true, 1},
		{"gpt-4o-mini-2024-07-18", "gpt-4o-mini", "openai", tokens.O200K, true, 1},
		{"openai/gpt-4.1-nano", "gpt-4.1-nano", "openai", tokens.O200K, true, 1},
		{"ft:gpt-4o:acme::1", "gpt-4o", "openai", tokens.O200K, true, 1},
		{"o1", "o1", "openai", tokens.O200K, true, 1},
		{"o3-mini", "o3-mini", "openai", tokens.O200K, true, 1},
		{"GPT-5", "gpt-5", "openai", tokens.O200K, true, 1},
		{"gpt-5.1-codex", "gpt-5.1", "openai", tokens.O200K, true, 1},
		{"gpt-5.9", "gpt-5.*", "openai", tokens.O200K, true, 1},
		{"gpt-4", "gpt-4", "openai", tokens.CL100K, true, 1},
		{"gpt-4-32k", "gpt-4-32k", "openai", tokens.CL100K, true, 1},
		{"gpt-3.5-turbo", "gpt-3.5", "openai", tokens.CL100K, true, 1},
		{"text-davinci-003", "text-davinci", "openai", tokens.P50K, true, 1},
		{"gpt2", "gpt2", "openai", tokens.R50K, true, 1},
		{"gpt-4.7", "*", "estimate", tokens.O200KApart, false, 1.2},
		{"o10", "*", "estimate", tokens.O200KApart, false, 1.2},
		{"of-nobody", "*", "estimate", tokens.O200KApart, false, 1.2},
		{"claude-3-5-sonnet@20240620", "claude-3-5-sonnet", "anthropic", tokens.O200K, false, 1.1},
		{"us.anthropic.claude-3-haiku-20240307-v1:0", "claude-3-haiku", "anthropic", tokens.O200K, false, 1.1},
		{"claude-opus-4-1-20250805", "claude-opus-4", "anthropic", tokens.O200K, false, 1.1},
		{"claude-opus-4-7", "claude-opus-4-7", "anthropic", tokens.O200K, false, 1.43},
		{"claude-sonnet-5", "claude", "anthropic", tokens.O200K, false, 1.43},
		{"anthropic/claude", "claude", "anthropic", tokens.O200K, false, 1.43},
		{"gemini-2.5-pro", "gemini", "estimate", tokens.O200KApart, false, 1.2},
		{"Qwen/Qwen3-32B", "qwen*", "openai", tokens.CL100KDigits, false, 1},
		{"deepseek-chat", "deepseek", "openai", tokens.O200K, false, 1.145},
		{"llama-3.1-70b", "llama-3.*", "openai", tokens.CL100K, false, 1},
	} {
		got := m.Find(tt.name)
		if got.Family != tt.family || got.Counter != tt.counter || got.Encoding != tt.encoding || got.Exact != tt.exact || got.Ratio != tt.ratio {
			t.Errorf("%q: got %+v, want %+v", tt.name, got, tt)
		}
	}
}

// A longer name takes what it does not say from the shorter one.
func TestModelFigures(t *testing.T) {
	m := MustModels(t, "")
	for _, tt := range []struct {
		name            string
		window, reserve int
		price           tokens.Price
	}{
		{"gpt-4o-mini", 128_000, 16_384, tokens.Price{Input: 0.15, Output: 0.6, CacheRead: 0.5, CacheWrite: 1}},
		{"gpt-4", 8192, 2048, tokens.Price{Input: 30, Output: 60, CacheRead: 1, CacheWrite: 1}},
		{"claude-sonnet-4-5", 200_000, 64_000, tokens.Price{Input: 3, Output: 15, CacheRead: 0.1, CacheWrite: 1.25}},
		{"claude-sonnet-4-6", 1_000_000, 64_000, tokens.Price{Input: 3, Output: 15, CacheRead: 0.1, CacheWrite: 1.25}},
		{"of-nobody", 0, 0, tokens.Price{}},
	} {
		got := m.Find(tt.name)
		if got.Window != tt.window || got.Reserve != tt.reserve || got.Price != tt.price {
			t.Errorf("%q: got %+v, want %+v", tt.name, got, tt)
		}
	}
}

// Caches keep nothing under a minimum, which differs by model.
func TestCacheMinimum(t *testing.T) {
	m := MustModels(t, "")
	for name, want := range map[string]int{
		"claude-sonnet-4-5": 1024, "claude-opus-4-5": 4096, "claude-opus-4-1": 1024, "claude-haiku-4-5": 4096,
		"claude-3-5-haiku-20241022": 2048, "claude-of-tomorrow": 1024, "gpt-4o": 1024, "of-nobody": 1024,
	} {
		if got := m.Find(name).CacheMinimum; got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
	own := MustModels(t, "[models.\"claude-opus-4-5\"]\ncache_minimum = 512\n")
	if got := own.Find("claude-opus-4-5").CacheMinimum; got != 512 {
		t.Errorf("a table of the user's: got %d, want 512", got)
	}
}

func TestUserTable(t *testing.T) {
	m := MustModels(t, `
[models."gpt-4o"]
window = 64000
price = { input = 1, output = 2, cache_read = 0.2, cache_write = 1 }

[models."House-Model"]
counter = "openai"
encoding = "cl100k_base"
ratio = 1.25
window = 32768
reserve = 1000
`)
	if got := m.Find("gpt-4o"); got.Window != 64_000 || got.Reserve != 16_384 || got.Price.Input != 1 || !got.Exact {
		t.Errorf("gpt-4o: %+v", got)
	}
	if got := m.Find("gpt-4o-mini"); got.Window != 64_000 || got.Price.Input != 0.15 {
		t.Errorf("a longer name of the built-in table does not win: %+v", got)
	}
	if got := m.Find("acme/house-model-v2"); got.Window != 32_768 || got.Reserve != 1000 || got.Ratio != 1.25 {
		t.Errorf("house-model: %+v", got)
	}
	c := MustCounter(t, &tokens.Options{Models: m})
	if got, want := MustCount(t, c, "house-model", "one two three"), (tokens.Count{Tokens: 4, Counter: "cl100k_base"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := c.Model("house-model").Window; got != 32_768 {
		t.Errorf("window %d", got)
	}
}

func TestUserTableIsChecked(t *testing.T) {
	m := MustModels(t, "")
	for _, line := range []string{
		`counter = "magic"`,
		`encoding = "x"`,
		`ratio = 0`,
		`ratio = nan`,
		`ratio = 11`,
		`window = -1`,
		`reserve = 2000000000`,
		`tool_prompt = -1`,
		`function_tokens = -1`,
		`windows = 1`,
		`window = "1"`,
		`price = { input = -1 }`,
		`price = { output = inf }`,
		`image = { rule = "guess" }`,
		`image = { rule = "tiles" }`,
		`image = { rule = "patches", ratio = 1 }`,
		`image = { rule = "area", pixels = 750 }`,
	} {
		if _, err := m.With([]byte("[models.x]\n" + line)); err == nil || !strings.HasPrefix(err.Error(), "tokens: models") {
			t.Errorf("%s: got %v", line, err)
		}
	}
	if got := m.Find("gpt-4o"); got.Family != "gpt-4o" {
		t.Errorf("a refused table changed the models: %+v", got)
	}
}

// Names come from requests: ever new ones are found, and not all kept.
func TestManyNames(t *testing.T) {
	m := MustModels(t, "")
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 2000 {
				if got := m.Find(fmt.Sprintf("gpt-4o-%d-%d", worker, i)); got.Family != "gpt-4o" {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
	group.Wait()
	if got := m.Find("gpt-4o-" + strings.Repeat("x", 1000)); got.Family != "gpt-4o" {
		t.Errorf("a long name: %+v", got)
	}
}
