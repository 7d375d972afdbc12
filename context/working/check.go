package working

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Errors of changes.
var (
	// ErrInvalid: a change breaks a rule. Such errors are *invalid.Error.
	ErrInvalid = errors.New("working: invalid input")
	// ErrTooLarge: prompts would have to show more than MaxTokens.
	ErrTooLarge = errors.New("working: the working state is too large")
	// ErrTooManyEvents: MaxEvents wait for a decision.
	ErrTooManyEvents = fmt.Errorf("%w: %d events wait; acknowledge some", ErrTooLarge, MaxEvents)
)

// Limits.
const (
	// MaxGoalBytes bounds a goal.
	MaxGoalBytes = 256 << 10
	// MaxItems bounds the items of a plan, MaxItemBytes the text of one.
	MaxItems     = 64
	MaxItemBytes = 1 << 10
	// MaxSkills bounds the skills that one change names, and the active and inactive skills
	// after it; MaxSkillBytes bounds the name of one.
	MaxSkills     = 64
	MaxSkillBytes = 128
	// MaxTokens bounds what prompts show of it.
	MaxTokens = 4000
	// MaxProgressBytes bounds what the agent says of how far it is, MaxScratchpadBytes
	// its notes.
	MaxProgressBytes   = 4 << 10
	MaxScratchpadBytes = 32 << 10
	// MaxSignals bounds the signals of one change, and its acknowledgements, MaxEvents the
	// events that wait.
	MaxSignals = 64
	MaxEvents  = 512
	// MaxEventIDBytes bounds the id of an event, MaxTypeBytes its type, MaxSummaryBytes
	// what it says.
	MaxEventIDBytes = 128
	MaxTypeBytes    = 64
	MaxSummaryBytes = 512
	// MaxDecisions bounds the decisions that are kept.
	MaxDecisions = 64
	// MaxQuestions bounds the open questions, MaxQuestionBytes one of them.
	MaxQuestions     = 64
	MaxQuestionBytes = 1 << 10
	// MaxEvidence bounds the evidence that is kept, MaxFound what one change adds.
	MaxEvidence = 10
	MaxFound    = 32
	// MaxSourceBytes bounds source, title and citation of evidence, MaxContentBytes its
	// text.
	MaxSourceBytes  = 256
	MaxContentBytes = 16 << 10
	// MaxCitations bounds the citations that are kept.
	MaxCitations = 64
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
	if err := checkSkills("deactivate", c.Deactivate); err != nil {
		return err
	}
	return c.checkNotes()
}

// checkNotes checks everything but goal, plan and skills.
func (c *Change) checkNotes() error {
	var err error
	list := func(field string, n, most int) {
		if err == nil && n > most {
			err = bad(field, "are %d, more than %d", n, most)
		}
	}
	text := func(field, s string, most int, required, line bool) {
		switch {
		case err != nil:
		case required && strings.TrimSpace(s) == "":
			err = bad(field, "is required")
		case len(s) > most:
			err = bad(field, "is longer than %d bytes", most)
		case !utf8.ValidString(s):
			err = bad(field, "is not UTF-8")
		case line && strings.ContainsAny(s, "\n\r"):
			err = bad(field, "is more than one line")
		}
	}
	if c.Progress != nil {
		text("goal_progress", *c.Progress, MaxProgressBytes, false, false)
	}
	if c.Scratchpad != nil {
		text("scratchpad", *c.Scratchpad, MaxScratchpadBytes, false, false)
	}
	list("signals", len(c.Signals), MaxSignals)
	for i := range c.Signals {
		s, field := &c.Signals[i], fmt.Sprintf("signals[%d].", i)
		text(field+"event_id", s.ID, MaxEventIDBytes, true, true)
		text(field+"type", s.Type, MaxTypeBytes, false, true)
		text(field+"summary", s.Summary, MaxSummaryBytes, true, true)
		if err == nil && s.Urgency > Critical {
			err = bad(field+"urgency", "is unknown")
		}
		if err == nil && s.Delta != nil && !(*s.Delta >= 0 && *s.Delta <= 1) {
			err = bad(field+"delta_h", "must be from 0 to 1")
		}
	}
	list("acknowledge", len(c.Acknowledge), MaxSignals)
	for i, a := range c.Acknowledge {
		field := fmt.Sprintf("acknowledge[%d].", i)
		text(field+"event_id", a.ID, MaxEventIDBytes, true, true)
		if err == nil && (a.Verdict == 0 || a.Verdict > Terminate) {
			err = bad(field+"decision", "is required")
		}
	}
	for field, questions := range map[string][]string{"add_questions": c.Ask, "remove_questions": c.Answered} {
		list(field, len(questions), MaxQuestions)
		for i, q := range questions {
			text(fmt.Sprintf("%s[%d]", field, i), q, MaxQuestionBytes, true, true)
		}
	}
	list("add_evidence", len(c.Found), MaxFound)
	for i := range c.Found {
		e, field := &c.Found[i], fmt.Sprintf("add_evidence[%d].", i)
		text(field+"source", e.Source, MaxSourceBytes, true, true)
		text(field+"title", e.Title, MaxSourceBytes, false, true)
		text(field+"content", e.Content, MaxContentBytes, true, false)
		text(field+"citation", e.Citation, MaxSourceBytes, false, true)
		if err == nil && !(e.Score >= 0 && e.Score <= 1) {
			err = bad(field+"score", "must be from 0 to 1")
		}
	}
	return err
}

// Check returns an *invalid.Error if more became of it than may be kept, ErrTooManyEvents
// where events have to be acknowledged first.
func (w *Working) Check() error {
	switch {
	case len(w.Events) > MaxEvents:
		return ErrTooManyEvents
	case len(w.Questions) > MaxQuestions:
		return bad("add_questions", "makes %d questions, more than %d", len(w.Questions), MaxQuestions)
	}
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
