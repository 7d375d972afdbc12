package inject_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// words counts a token for each word and each line feed, so that a test can say what
// fits.
func words(s string) int { return len(strings.Fields(s)) + strings.Count(s, "\n") }

func arrange(all ...inject.Injection) inject.Arranged {
	return inject.Arrange(all, inject.Options{Count: words})
}

func names(a *inject.Arranged) []string {
	var all []string
	for i := range a.Pieces {
		all = append(all, a.Pieces[i].Name)
	}
	return all
}

func at(name string, phase inject.Phase, cache inject.Cache, priority int) inject.Injection {
	return inject.Injection{Name: name, Phase: phase, Cache: cache, Priority: priority, Text: name}
}

// Cache class goes before priority, priority before the order of registration, and
// each phase has its own order.
func TestOrder(t *testing.T) {
	// I01, I05, M03, P39
	last := at("todo", inject.Runtime, inject.Dynamic, 100)
	last.Last = true
	a := arrange(
		last,
		at("runtime", inject.Runtime, inject.Dynamic, 0),
		at("unset", inject.System, 0, 100),
		at("session", inject.System, inject.Session, 100),
		at("low", inject.System, inject.Stable, 49),
		at("first", inject.System, inject.Stable, 50),
		at("second", inject.System, inject.Stable, 50),
		at("high", inject.System, inject.Stable, 51),
		at("memory", inject.UserContext, inject.Session, 0),
	)
	want := []string{"high", "first", "second", "low", "session", "unset", "memory", "runtime", "todo"}
	if diff := cmp.Diff(want, names(&a)); diff != "" {
		t.Error(diff)
	}
	if got, want := a.Text(inject.System), "high\n\nfirst\n\nsecond\n\nlow\n\nsession\n\nunset"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := a.Text(inject.Runtime); got != "runtime\n\ntodo" {
		t.Errorf("the runtime texts are %q", got)
	}
}

func TestBlankIsLeftOut(t *testing.T) {
	// P39
	blank := at("blank", inject.System, inject.Stable, 50)
	blank.Text, blank.Tag = " \n\t", "empty"
	a := arrange(blank, at("said", inject.System, inject.Stable, 50))
	if got := a.Text(inject.System); got != "said" || a.Pieces[0].Reason != inject.Blank || !a.Pieces[0].LeftOut() {
		t.Errorf("got %q, %+v", got, a.Pieces[0])
	}
}

// A text is cut at n-1 tokens of its cap, not at n and n+1.
func TestCap(t *testing.T) {
	// I18
	const body = "one two\nthree four\nfive six" // 6 words, 2 line feeds
	for _, test := range []struct {
		limit  int
		want   string
		after  int
		reason inject.Reason
	}{
		{9, body, 8, inject.AsGiven},
		{8, body, 8, inject.AsGiven},
		{7, "one two\nthree four", 5, inject.OverCap},
		{5, "one two\nthree four", 5, inject.OverCap},
		{4, "one two", 2, inject.OverCap},
		{2, "one two", 2, inject.OverCap},
		{1, "one…", 1, inject.OverCap},
	} {
		in := at("x", inject.System, inject.Stable, 50)
		in.Text, in.MaxTokens, in.Tag = body, test.limit, "box"
		a := arrange(in)
		p := &a.Pieces[0]
		if want := "<box>\n" + test.want + "\n</box>"; p.Shown != want || p.Before != 8 || p.After != test.after || p.Reason != test.reason {
			t.Errorf("cap %d: %q of %d and %d tokens, %v; want %q of 8 and %d, %v", test.limit, p.Shown, p.Before, p.After, p.Reason, want, test.after, test.reason)
		}
	}
}

// What is whole or last is never cut; over its cap it is a warning.
func TestWholeIsNeverCut(t *testing.T) {
	// I18, I20
	whole, last := at("system_text", inject.System, inject.Stable, 0), at("end", inject.Runtime, inject.Dynamic, 0)
	whole.Text, whole.Whole, whole.MaxTokens = strings.Repeat("word ", 9000), true, 8999
	last.Text, last.Last = strings.Repeat("word ", 9000), true
	other := at("other", inject.Runtime, inject.Dynamic, 100)
	a := arrange(whole, last, other)
	for _, p := range a.Pieces {
		kept := p.Name != "other"
		if kept != (p.After == p.Before) {
			t.Errorf("%s: %d of %d tokens are shown", p.Name, p.After, p.Before)
		}
	}
	if a.Pieces[0].Reason != inject.KeptOverCap || a.Tokens <= a.Limit {
		t.Errorf("%v, %d of %d tokens", a.Pieces[0].Reason, a.Tokens, a.Limit)
	}
}

// Over the total the lowest priority goes first, and of equal ones what was given last.
func TestTotal(t *testing.T) {
	// I20, K39
	low, high, late := at("low", inject.System, inject.Stable, 1), at("high", inject.Runtime, inject.Dynamic, 2), at("late", inject.System, inject.Stable, 2)
	low.Text, high.Text, late.Text = "a\nb\nc", "d\ne\nf", "g\nh\ni" // 5 tokens each, 2 between
	for _, test := range []struct{ total, low, high, late int }{
		{20, 5, 5, 5},
		{19, 5, 5, 5},
		{18, 3, 5, 5},
		{17, 3, 5, 5},
		{16, 1, 5, 5},
		{15, 1, 5, 5},
		{14, 0, 5, 5},
		{12, 0, 5, 5},
		{11, 0, 5, 3},
		{8, 0, 5, 1},
		{7, 0, 5, 0},
		{5, 0, 5, 0},
		{4, 0, 3, 0},
		{1, 0, 1, 0},
	} {
		a := inject.Arrange([]inject.Injection{low, high, late}, inject.Options{Count: words, Total: test.total})
		got := make(map[string]int)
		for i := range a.Pieces {
			got[a.Pieces[i].Name] = a.Pieces[i].After
		}
		if got["low"] != test.low || got["high"] != test.high || got["late"] != test.late || a.Tokens > test.total {
			t.Errorf("total %d: %v of %d tokens", test.total, got, a.Tokens)
		}
	}
}

// Messages count against cap and total, and leave exchange by exchange.
func TestMessages(t *testing.T) {
	// I20, I22
	exchange := func(n int) []session.Message {
		return []session.Message{{Role: session.User, Content: fmt.Sprint("ask ", n)}, {Role: session.Assistant, Content: fmt.Sprint("say ", n)}}
	}
	all := append(append(exchange(1), exchange(2)...), exchange(3)...)
	shots := inject.Injection{Name: "shots", Phase: inject.System, Messages: all, MaxTokens: 11}
	a := inject.Arrange([]inject.Injection{shots}, inject.Options{Count: words, Total: 8})
	if diff := cmp.Diff(all[:4], a.Messages(inject.System)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{3}, a.Pieces[0].Left); diff != "" {
		t.Error(diff)
	}
}

func TestStampsLeaveCachedTexts(t *testing.T) {
	// M02
	stable, known, now := at("stable", inject.System, inject.Stable, 50), at("known", inject.UserContext, inject.Session, 50), at("now", inject.Runtime, inject.Dynamic, 50)
	stable.Text = "Begun [2026-01-02T03:04:05Z] in Rome.\n2026-01-02 03:04:05.678+02:00: woke\nat 2026-01-02T03:04:05Z: stays, [2026-01-02] too"
	known.Text = "[2026-01-02T03:04:05Z]: again\n[2027-01-02T03:04:05-11:30] later"
	now.Text = "[2028-01-02T03:04:05Z] here"
	a := arrange(stable, known, now)
	if got, want := a.Text(inject.System), "Begun in Rome.\nwoke\nat 2026-01-02T03:04:05Z: stays, [2026-01-02] too"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := a.Text(inject.UserContext), "again\nlater"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want := "[2028-01-02T03:04:05Z] here\n\nTimestamps: 2026-01-02T03:04:05Z, 2026-01-02 03:04:05.678+02:00, 2027-01-02T03:04:05-11:30"
	if got := a.Text(inject.Runtime); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// With any injections: all together keep the total, each its cap, the order of
// registration decides nothing but ties, and the inputs stay as they were.
func TestArrangeAnything(t *testing.T) {
	// G01, I01, I18, I20, P39
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		all := make([]inject.Injection, r.IntN(8))
		for i := range all {
			all[i] = inject.Injection{
				Name: fmt.Sprint("n", i), Phase: inject.Phase(1 + r.IntN(3)), Cache: inject.Cache(r.IntN(4)), Priority: r.IntN(3) * 50,
				MaxTokens: r.IntN(3) * r.IntN(20), Tag: []string{"", "box", "hat"}[r.IntN(3)], Text: randomText(r),
			}
		}
		before := fmt.Sprintf("%+v", all)
		total := 1 + r.IntN(60)
		a := inject.Arrange(all, inject.Options{Count: words, Total: total})
		if fmt.Sprintf("%+v", all) != before || len(a.Pieces) != len(all) {
			t.Fatalf("seed %d: the injections were changed", seed)
		}
		text := ""
		for _, phase := range []inject.Phase{inject.System, inject.UserContext, inject.Runtime} {
			if part := a.Text(phase); part != "" {
				text += "\n\n" + part
			}
		}
		if n := words(strings.TrimPrefix(text, "\n\n")); n > total {
			t.Fatalf("seed %d: %d tokens, more than %d:\n%s", seed, n, total, text)
		}
		for _, p := range a.Pieces {
			if p.MaxTokens > 0 && p.After > p.MaxTokens {
				t.Fatalf("seed %d: %s has %d tokens, more than %d", seed, p.Name, p.After, p.MaxTokens)
			}
			if p.Tag != "" && strings.Count(p.Shown, "<"+p.Tag) > 1 {
				t.Fatalf("seed %d: %s opens its tag twice: %q", seed, p.Name, p.Shown)
			}
		}
		r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		for i := range all {
			all[i].Priority = i // no ties
		}
		one := inject.Arrange(all, inject.Options{Count: words, Total: total})
		r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		two := inject.Arrange(all, inject.Options{Count: words, Total: total})
		if diff := cmp.Diff(names(&one), names(&two)); diff != "" || one.Text(inject.System) != two.Text(inject.System) {
			t.Fatalf("seed %d: registration changed the order: %s", seed, diff)
		}
	}
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteString([]string{"word ", "\n", "</box>", "<hat>\n", "Goal: x\n", "é… ", "---\n", "   "}[r.IntN(8)])
	}
	return b.String()
}

// What takes more than its share where there is room gives that back before anything else is
// cut, whatever the priorities, and no more than that.
func TestLeast(t *testing.T) {
	// I20
	grown, low := at("grown", inject.System, inject.Stable, 2), at("low", inject.Runtime, inject.Dynamic, 1)
	grown.Text, grown.Least, low.Text = "a\nb\nc\nd\ne", 3, "f\ng\nh" // 9 and 5 tokens, 2 between
	for _, test := range []struct{ total, grown, low int }{{16, 9, 5}, {15, 7, 5}, {12, 5, 5}, {10, 3, 5}, {9, 3, 3}, {5, 3, 0}, {2, 1, 0}} {
		a := inject.Arrange([]inject.Injection{grown, low}, inject.Options{Count: words, Total: test.total})
		got := make(map[string]int)
		for i := range a.Pieces {
			got[a.Pieces[i].Name] = a.Pieces[i].After
		}
		if got["grown"] != test.grown || got["low"] != test.low || a.Tokens > test.total {
			t.Errorf("total %d: %v of %d tokens", test.total, got, a.Tokens)
		}
	}
}
