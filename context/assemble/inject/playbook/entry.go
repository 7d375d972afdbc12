package playbook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// ErrInvalid: an entry breaks a rule. Such errors are *invalid.Error.
var ErrInvalid = errors.New("playbook: invalid input")

// Limits of an entry.
const (
	// MaxNameChars and MaxDescriptionChars count characters.
	MaxNameChars        = 40
	MaxDescriptionChars = 200
	// MaxTaskTypes and MaxTools bound lists, MaxWordBytes a word of them, MaxPurposeChars
	// what a call is for.
	MaxTaskTypes    = 32
	MaxTools        = 64
	MaxWordBytes    = 128
	MaxPurposeChars = 200
	// MinComplexity and MaxComplexity bound a complexity.
	MinComplexity = 0
	MaxComplexity = 10
	// MaxBytes bounds the JSON of an entry.
	MaxBytes = 64 << 10
)

// Status is how far an entry is on its way to be used.
type Status string

// The statuses.
const (
	Draft      Status = "draft"
	Pending    Status = "pending"
	Approved   Status = "approved"
	Rejected   Status = "rejected"
	Deprecated Status = "deprecated"
)

// Kind is the kind of the memory records that hold entries.
const Kind = "playbook"

// Source is where an entry came from.
type Source string

// The sources.
const (
	Auto   Source = "auto"
	Manual Source = "manual"
	Import Source = "import"
)

// Entry is a playbook.
type Entry struct {
	ID          string   `json:"id,omitempty"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Trigger     Trigger  `json:"trigger,omitzero"`
	Strategy    Strategy `json:"strategy,omitzero"`
	Sequence    []Call   `json:"tool_sequence,omitempty"`
	Quality     Quality  `json:"quality_metrics,omitzero"`
	// Status is Draft where none is given, Source Manual.
	Status          Status    `json:"status,omitempty"`
	Source          Source    `json:"source,omitempty"`
	SourceSessionID string    `json:"source_session_id,omitempty"`
	Reviewer        string    `json:"reviewer,omitempty"`
	CreateTime      time.Time `json:"created_at,omitzero"`
	UpdateTime      time.Time `json:"updated_at,omitzero"`
	UsageCount      int       `json:"usage_count,omitempty"`
	LastUseTime     time.Time `json:"last_used_at,omitzero"`

	// cut says that the description is shortened.
	cut bool
}

// Trigger says which tasks an entry is for.
type Trigger struct {
	// TaskTypes are kinds of tasks; none is any.
	TaskTypes []string `json:"task_types,omitempty"`
	// Complexity is from and to.
	Complexity *[2]float64 `json:"complexity_range,omitempty"`
}

// Strategy is how to go about it.
type Strategy struct {
	Execution string   `json:"execution_strategy,omitempty"`
	Tools     []string `json:"suggested_tools,omitempty"`
	MaxTurns  int      `json:"max_turns,omitempty"`
}

// Call is one of the calls that led to the goal.
type Call struct {
	Tool     string `json:"tool"`
	Purpose  string `json:"purpose,omitempty"`
	Critical bool   `json:"is_critical,omitempty"`
}

// Quality is how well it went.
type Quality struct {
	Reward      float64 `json:"avg_reward,omitempty"`
	SuccessRate float64 `json:"success_rate,omitempty"`
	Turns       float64 `json:"avg_turns,omitempty"`
}

// Parse reads an entry from its record, text and metadata. What breaks a rule is an
// *invalid.Error; members that it does not know are passed over. Without a description it has
// the text, without a name the beginning of the description, and what is too long is cut.
func Parse(said string, metadata []byte) (Entry, error) {
	var e Entry
	if len(metadata) > MaxBytes {
		return Entry{}, bad("metadata", "is longer than %d bytes", MaxBytes)
	}
	if err := json.Unmarshal(metadata, &e); err != nil {
		return Entry{}, bad("metadata", "is no playbook: %v", err)
	}
	described := text.OneLine(cmp.Or(e.Description, said))
	e.Description = head(described, MaxDescriptionChars)
	e.cut = e.Description != described
	e.Name = head(text.OneLine(cmp.Or(e.Name, e.Description)), MaxNameChars)
	e.Status = cmp.Or(e.Status, Draft)
	e.Source = cmp.Or(e.Source, Manual)
	return e, e.Check()
}

// Check returns an *invalid.Error that names the first field that breaks a rule, or nil.
func (e *Entry) Check() error {
	switch {
	case blank(e.Name) || !chars(e.Name, MaxNameChars):
		return bad("metadata.name", "must be 1 to %d characters", MaxNameChars)
	case blank(e.Description) || !chars(e.Description, MaxDescriptionChars):
		return bad("metadata.description", "must be 1 to %d characters", MaxDescriptionChars)
	case e.Strategy.MaxTurns < 0:
		return bad("metadata.strategy.max_turns", "is negative")
	case e.UsageCount < 0:
		return bad("metadata.usage_count", "is negative")
	case !e.Status.known():
		return bad("metadata.status", "is %q; give draft, pending, approved, rejected or deprecated", e.Status)
	case e.Source != Auto && e.Source != Manual && e.Source != Import:
		return bad("metadata.source", "is %q; give auto, manual or import", e.Source)
	}
	if err := e.checkLists(); err != nil {
		return err
	}
	return e.checkNumbers()
}

func (s Status) known() bool {
	return s == Draft || s == Pending || s == Approved || s == Rejected || s == Deprecated
}

func (e *Entry) checkLists() error {
	if err := words("metadata.trigger.task_types", e.Trigger.TaskTypes, MaxTaskTypes); err != nil {
		return err
	}
	if err := words("metadata.strategy.suggested_tools", e.Strategy.Tools, MaxTools); err != nil {
		return err
	}
	if len(e.Sequence) > MaxTools {
		return bad("metadata.tool_sequence", "has %d calls, more than %d", len(e.Sequence), MaxTools)
	}
	for i := range e.Sequence {
		if c := &e.Sequence[i]; c.Tool == "" || len(c.Tool) > MaxWordBytes || !chars(c.Purpose, MaxPurposeChars) {
			return bad(fmt.Sprintf("metadata.tool_sequence[%d]", i), "needs a tool of at most %d bytes, and a purpose of at most %d characters", MaxWordBytes, MaxPurposeChars)
		}
	}
	return nil
}

func (e *Entry) checkNumbers() error {
	if r := e.Trigger.Complexity; r != nil && !(MinComplexity <= r[0] && r[0] <= r[1] && r[1] <= MaxComplexity) {
		return bad("metadata.trigger.complexity_range", "must be two numbers from %d to %d, the smaller one first", MinComplexity, MaxComplexity)
	}
	switch q := &e.Quality; {
	case !(q.Reward >= -1 && q.Reward <= 1):
		return bad("metadata.quality_metrics.avg_reward", "must be from -1 to 1")
	case !(q.SuccessRate >= 0 && q.SuccessRate <= 1):
		return bad("metadata.quality_metrics.success_rate", "must be from 0 to 1")
	case !(q.Turns >= 0 && q.Turns <= 1e6):
		return bad("metadata.quality_metrics.avg_turns", "must be from 0 to 1000000")
	}
	return nil
}

func words(field string, list []string, most int) error {
	if len(list) > most {
		return bad(field, "are %d, more than %d", len(list), most)
	}
	for i, word := range list {
		if word == "" || len(word) > MaxWordBytes {
			return bad(fmt.Sprintf("%s[%d]", field, i), "must be 1 to %d bytes", MaxWordBytes)
		}
	}
	return nil
}

func chars(s string, most int) bool { return utf8.ValidString(s) && utf8.RuneCountInString(s) <= most }

func bad(field, format string, args ...any) error {
	return invalid.Field(ErrInvalid, field, format, args...)
}
