package throttle_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/throttle"
)

// clock is a time that stands still unless it is moved.
type clock struct{ time.Time }

func (c *clock) now() time.Time       { return c.Time }
func (c *clock) pass(d time.Duration) { c.Time = c.Add(d) }

func rules(texts ...string) []throttle.Rule {
	out := make([]throttle.Rule, len(texts))
	for i, text := range texts {
		r, err := throttle.ParseRule(text)
		if err != nil {
			panic(err) // a fault of the test
		}
		out[i] = r
	}
	return out
}

func newLimits(texts ...string) (*throttle.Limits, *clock) {
	c := &clock{time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	return throttle.New(rules(texts...), c.now), c
}

func TestParseRule(t *testing.T) {
	for text, want := range map[string]string{
		"web:* 30/m":                   "web:* 30/m",
		"* 1000/s  per tenant":         "* 1000/s per tenant",
		"shell:run 4 at once":          "shell:run 4 at once",
		"a:b 1/h per server":           "a:b 1/h per server",
		"a:b 2 at once per agent":      "a:b 2 at once",
		"a:b":                          "",
		"a:b 3":                        "",
		"a:b 0/s":                      "",
		"a:b -1/s":                     "",
		"a:b 1000001/s":                "",
		"a:b 1/d":                      "",
		"a:b 1/":                       "",
		"a*b 1/s":                      "",
		"a:b 1/s per":                  "",
		"a:b 1/s per person":           "",
		"a:b 1/s at once":              "",
		"a:b 1/s per tenant per agent": "",
	} {
		got, err := throttle.ParseRule(text)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// A rate is refused when it is used up, and says when to come again; then there is exactly
// one call more.
func TestRate(t *testing.T) {
	l, c := newLimits("web:* 3/m", "x 2/s")
	for i := range 3 {
		if _, err := l.Begin("t", "a", "web:fetch"); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	for range 3 {
		_, err := l.Begin("t", "a", "web:search")
		limited, ok := errors.AsType[*throttle.LimitedError](err)
		if !ok || !errors.Is(err, throttle.ErrLimited) || limited.Retry < 19*time.Second || limited.Retry > 21*time.Second {
			t.Fatalf("a fourth call: %v", err)
		}
		for _, other := range [][3]string{{"t", "b", "web:fetch"}, {"u", "a", "web:fetch"}, {"t", "a", "fs:read_file"}} {
			if _, err := l.Begin(other[0], other[1], other[2]); err != nil {
				t.Errorf("%v: %v", other, err)
			}
		}
		c.pass(limited.Retry - 2*time.Millisecond)
		if _, err := l.Begin("t", "a", "web:fetch"); err == nil {
			t.Error("too early and not refused")
		}
		c.pass(2 * time.Millisecond)
		if _, err := l.Begin("t", "a", "web:fetch"); err != nil {
			t.Error(err)
		}
	}
}

// A call that one rule refuses counts for none.
func TestRefusedCountsForNone(t *testing.T) {
	l, _ := newLimits("* 10/s", "* 4 at once", "shell:run 1 at once per server")
	first, err := l.Begin("t", "a", "shell:run")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := l.Begin("t", "a", "shell:run"); err == nil {
			t.Fatal("a second one ran")
		}
	}
	if used := l.Used(); used[1].Running != 1 || used[2].Running != 1 || used[2].Refused != 20 || used[0].Refused != 0 {
		t.Errorf("used: %+v", used)
	}
	first.End()
	first.End()
	for i := range 3 {
		if _, err := l.Begin("t", "a", fmt.Sprint("other", i)); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if used := l.Used(); used[1].Running != 3 || used[2].Running != 0 {
		t.Errorf("used at the end: %+v", used)
	}
}

// Beside an agent that calls without end, the others get their part, and it what they leave.
func TestFairRate(t *testing.T) {
	for name, greedyTenant := range map[string]string{"agents of a tenant": "t", "tenants": "other"} {
		t.Run(name, func(t *testing.T) {
			rule := "* 100/s per tenant"
			if greedyTenant != "t" {
				rule = "* 100/s per server"
			}
			l, c := newLimits(rule)
			try := func(tenant, agent string) bool {
				_, err := l.Begin(tenant, agent, "x")
				return err == nil
			}
			for range 1000 { // drains what it can
				try(greedyTenant, "greedy")
			}
			got := map[string]int{}
			for i := range 10_000 { // ten seconds
				for range 3 {
					if try(greedyTenant, "greedy") {
						got["greedy"]++
					}
				}
				if i%25 == 0 { // 40 a second: within its half
					if try("t", "modest") {
						got["modest"]++
					} else if i > 100 { // until then there is nothing in the bucket
						t.Fatalf("the modest agent is refused after %d ms", i)
					}
				}
				c.pass(time.Millisecond)
			}
			if all := got["greedy"] + got["modest"]; all < 900 || all > 1060 {
				t.Errorf("both got %d calls in ten seconds of 100 a second: %v", all, got)
			}
		})
	}
}

// Of places at once the last is kept for an agent that has none.
func TestFairAtOnce(t *testing.T) {
	l, _ := newLimits("* 4 at once per tenant")
	for range 10 {
		_, _ = l.Begin("t", "greedy", "x")
	}
	if _, err := l.Begin("t", "modest", "x"); err != nil {
		t.Error(err)
	}
	if used := l.Used()[0]; used.Running != 4 {
		t.Errorf("%d run", used.Running)
	}
	if _, err := l.Begin("u", "greedy", "x"); err != nil {
		t.Errorf("another tenant: %v", err)
	}
}

// What callers name takes no more room than a bound.
func TestManyAgents(t *testing.T) {
	l, c := newLimits("* 1000000/s per tenant", "* 5/s")
	for i := range 20_000 {
		if _, err := l.Begin("t", fmt.Sprint("agent", i), "x"); err != nil {
			t.Fatalf("agent %d: %v", i, err)
		}
		c.pass(time.Millisecond)
	}
}

func BenchmarkBegin(b *testing.B) {
	l := throttle.New(rules("web:* 30/m", "* 1000000/s per tenant", "* 64 at once"), nil)
	for b.Loop() {
		call, _ := l.Begin("t", "a", "fs:read_file")
		call.End()
	}
}
