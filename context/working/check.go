package working

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// ErrInvalid: a change breaks a rule. Such errors are *invalid.Error.
var ErrInvalid = errors.New("working: invalid input")

// Limits.
const (
	// MaxGoalBytes bounds a goal.
	MaxGoalBytes = 256 << 10
	// MaxItems bounds the items of a plan, MaxItemBytes the text of one.
	MaxItems     = 64
	MaxItemBytes = 1 << 10
	// MaxSkills bounds the skills that one change names, and those that are active, or
	// not, after it; MaxSkillBytes the name of one.
	MaxSkills     = 64
	MaxSkillBytes = 128
)

// Check returns an *invalid.Error that names the first field that breaks a rule, or
// nil.
func (c *Change) Check() error {
	if c.Goal != nil {
		switch {
		case len(*c.Goal) > MaxGoalBytes:
			return bad("goal", "is longer than %d bytes", MaxGoalBytes)
		case !utf8.ValidString(*c.Goal):
			return bad("goal", "is not UTF-8")
		}
	}
	if c.Plan != nil {
		if err := c.Plan.check(); err != nil {
			return err
		}
	}
	if err := checkSkills("activate", c.Activate); err != nil {
		return err
	}
	return checkSkills("deactivate", c.Deactivate)
}

// Check returns an *invalid.Error if more became of it than may be kept.
func (w *Working) Check() error {
	for _, list := range [][]string{w.Active, w.Inactive} {
		if len(list) > MaxSkills {
			return bad("activate", "makes %d skills active or not, more than %d", len(list), MaxSkills)
		}
	}
	return nil
}

func (p Plan) check() error {
	if len(p) > MaxItems {
		return bad("plan.items", "are %d, more than %d", len(p), MaxItems)
	}
	for i, item := range p {
		switch field := fmt.Sprintf("plan.items[%d].text", i); {
		case strings.TrimSpace(item.Text) == "":
			return bad(field, "is required")
		case len(item.Text) > MaxItemBytes:
			return bad(field, "is longer than %d bytes", MaxItemBytes)
		case !utf8.ValidString(item.Text):
			return bad(field, "is not UTF-8")
		case strings.ContainsAny(item.Text, "\n\r"):
			return bad(field, "is more than one line")
		}
		if item.Status > Failed {
			return bad(fmt.Sprintf("plan.items[%d].status", i), "is unknown")
		}
	}
	return nil
}

func checkSkills(field string, names []string) error {
	if len(names) > MaxSkills {
		return bad(field, "are %d, more than %d", len(names), MaxSkills)
	}
	for i, name := range names {
		if name == "" || len(name) > MaxSkillBytes || !utf8.ValidString(name) {
			return bad(fmt.Sprintf("%s[%d]", field, i), "must be 1 to %d bytes of UTF-8", MaxSkillBytes)
		}
	}
	return nil
}

func bad(field, format string, args ...any) error {
	return invalid.Field(ErrInvalid, field, format, args...)
}
