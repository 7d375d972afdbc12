package throttle

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bounds of a rule.
const (
	// MaxRules bounds the rules of a server: each call is compared with all.
	MaxRules = 64
	// maxAmount bounds the number in a rule.
	maxAmount = 1_000_000
)

// Owner says whose calls a rule counts together.
type Owner string

// The owners.
const (
	PerAgent  Owner = "agent"
	PerTenant Owner = "tenant"
	PerServer Owner = "server"
)

// Rule is one bound.
type Rule struct {
	// Tool is the name of a tool, or the beginning of names and `*`.
	Tool string
	// Amount is how many calls.
	Amount int
	// Every is the time in which there may be so many; zero: at once.
	Every time.Duration
	// Per is whose calls count together.
	Per Owner
}

// ParseRule reads a rule: `web:* 30/m`, `* 20/s per tenant`, `shell:run 4 at once per
// server`. Without `per` it is for each agent.
func ParseRule(text string) (Rule, error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return Rule{}, errors.New("is not TOOL N/s, TOOL N/m, TOOL N/h or TOOL N at once, with per agent, per tenant or per server at the end")
	}
	r := Rule{Tool: words[0], Per: PerAgent}
	if i := strings.IndexByte(r.Tool, '*'); i >= 0 && i < len(r.Tool)-1 {
		return Rule{}, fmt.Errorf("%q: a * stands at the end", r.Tool)
	}
	amount, unit, isRate := strings.Cut(words[1], "/")
	number, err := strconv.Atoi(amount)
	if err != nil || number < 1 || number > maxAmount {
		return Rule{}, fmt.Errorf("%q is not a number from 1 to %d", amount, maxAmount)
	}
	r.Amount, words = number, words[2:]
	switch {
	case isRate:
		if r.Every = units()[unit]; r.Every == 0 {
			return Rule{}, fmt.Errorf("%q is not s, m or h", unit)
		}
	case len(words) >= 2 && words[0] == "at" && words[1] == "once":
		words = words[2:]
	default:
		return Rule{}, fmt.Errorf("%q must be followed by /s, /m, /h or `at once`", amount)
	}
	if len(words) == 0 {
		return r, nil
	}
	r.Per = Owner(strings.Join(words[1:], " "))
	if words[0] != "per" || r.Per != PerAgent && r.Per != PerTenant && r.Per != PerServer {
		return Rule{}, fmt.Errorf("%q is not per agent, per tenant or per server", strings.Join(words, " "))
	}
	return r, nil
}

func units() map[string]time.Duration {
	return map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}
}

// String is the rule as ParseRule reads it.
func (r Rule) String() string {
	text := fmt.Sprintf("%s %d", r.Tool, r.Amount)
	if r.Every == 0 {
		text += " at once"
	}
	for unit, every := range units() {
		if every == r.Every {
			text += "/" + unit
		}
	}
	if r.Per != PerAgent {
		text += " per " + string(r.Per)
	}
	return text
}

// matches reports whether the rule is about a tool.
func (r Rule) matches(tool string) bool {
	if prefix, ok := strings.CutSuffix(r.Tool, "*"); ok {
		return strings.HasPrefix(tool, prefix)
	}
	return r.Tool == tool
}
