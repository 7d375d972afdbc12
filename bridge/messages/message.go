package messages

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Limits of a message.
const (
	// MaxContentBytes bounds what it says.
	MaxContentBytes = 8192
	// ConciseChars is the length from which a sender is asked to be brief, in code points.
	ConciseChars = 1000
	// MaxMetadataBytes bounds the metadata as canonical JSON.
	MaxMetadataBytes = 4096
	// maxMetadataDepth bounds how deep they nest, so that every client can read them.
	maxMetadataDepth = 16
	// MaxTaskIDBytes bounds the ids of the task and of its parent.
	MaxTaskIDBytes = kv.MaxRequestIDBytes
	// MaxSessionBytes bounds the session.
	MaxSessionBytes = session.MaxSessionIDBytes
	// MaxTTL bounds the time to live: ten years.
	MaxTTL = 10 * 365 * 24 * time.Hour
	// DefaultPriority is that of a message that names none.
	DefaultPriority = 0.5
)

// Errors of messages.
var (
	// ErrInvalid: a message or a query breaks a rule.
	ErrInvalid = errors.New("messages: invalid input")
	// ErrExists: the task id is that of another message of the target.
	ErrExists = errors.New("messages: the task_id is that of another message")
	// ErrFull: the target has as many messages as it may have, or as many of the sender.
	ErrFull = errors.New("messages: box is full")
)

// Role is the role that a message has in prompts.
type Role string

// The roles. The empty one is the assistant's, with a mark that it is a message.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is what one agent says to another. One that a Box handed out belongs to the
// receiver.
type Message struct {
	// TaskID names it within its target. Empty when sending: one is made.
	TaskID string
	// Source says it to Target. Both are required.
	Source, Target string
	// Node is a second name under which the target is found. Empty: there is none.
	Node string
	// Content is what it says. Required, at most MaxContentBytes.
	Content string
	// Role is the role that it has in prompts; empty is that of a marked message.
	Role Role
	// Priority is from 0 to 1.
	Priority float64
	// TTL is how long it lives from Time on, 0 for ever.
	TTL time.Duration
	// ParentTaskID is the task that it belongs to, or empty.
	ParentTaskID string
	// Metadata is a JSON object, or empty.
	Metadata json.RawMessage
	// SessionID is the session that it belongs to; empty is none.
	SessionID string
	// Time is when the server took it, to the microsecond. Set by the Box.
	Time time.Time
}

// Expired reports whether its time to live is over: older than that, so not yet when it is
// just as old.
func (m *Message) Expired(now time.Time) bool { return m.TTL > 0 && now.Sub(m.Time) > m.TTL }

// Verbose reports whether it says more than a message should.
func (m *Message) Verbose() bool { return utf8.RuneCountInString(m.Content) > ConciseChars }

// Check returns an *invalid.Error for the first field that breaks a rule, named as in the
// API.
func (m *Message) Check() error {
	for _, f := range []struct {
		name, value string
		limit       int
		required    bool
	}{
		{"source_agent_id", m.Source, kv.MaxOwnerBytes, true},
		{"target_agent_id", m.Target, kv.MaxOwnerBytes, true},
		{"target_node_id", m.Node, kv.MaxOwnerBytes, false},
		{"content", m.Content, MaxContentBytes, true},
		{"task_id", m.TaskID, MaxTaskIDBytes, false},
		{"parent_task_id", m.ParentTaskID, MaxTaskIDBytes, false},
		{"session_id", m.SessionID, MaxSessionBytes, false},
	} {
		switch {
		case f.required && strings.TrimSpace(f.value) == "":
			return refuse(f.name, "is empty or blank")
		case len(f.value) > f.limit:
			return invalid.Field(ErrInvalid, f.name, "has %d bytes, more than %d", len(f.value), f.limit)
		case !utf8.ValidString(f.value) || strings.ContainsRune(f.value, 0):
			return refuse(f.name, "holds NUL or is not UTF-8")
		}
	}
	switch {
	case math.IsNaN(m.Priority) || m.Priority < 0 || m.Priority > 1:
		return invalid.Field(ErrInvalid, "priority", "is %v, and must be from 0 to 1", m.Priority)
	case m.TTL < 0 || m.TTL > MaxTTL:
		return invalid.Field(ErrInvalid, "ttl", "is %s, and must be from 0 to %s", m.TTL, MaxTTL)
	case m.Role != "" && m.Role != RoleSystem && m.Role != RoleUser && m.Role != RoleAssistant:
		return refuse("context_role", "is not system, user or assistant")
	}
	return m.checkMetadata()
}

// checkMetadata checks the metadata and writes it canonically.
func (m *Message) checkMetadata() error {
	if len(m.Metadata) == 0 {
		return nil
	}
	value, err := text.DecodeJSON(m.Metadata)
	if err != nil {
		return refuse("metadata", "is not JSON: "+err.Error())
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return refuse("metadata", "is not a JSON object")
	}
	if len(fields) == 0 {
		m.Metadata = nil
		return nil
	}
	if text.ShapeOf(m.Metadata).Depth > maxMetadataDepth {
		return invalid.Field(ErrInvalid, "metadata", "is nested deeper than %d", maxMetadataDepth)
	}
	if m.Metadata = text.CanonicalJSON(value); len(m.Metadata) > MaxMetadataBytes {
		return invalid.Field(ErrInvalid, "metadata", "has %d bytes as canonical JSON, more than %d", len(m.Metadata), MaxMetadataBytes)
	}
	return nil
}

func refuse(field, problem string) error { return invalid.Field(ErrInvalid, field, "%s", problem) }

// digest stands for all that the sender said, and so not for the time.
func (m *Message) digest() [sha256.Size]byte {
	said := *m
	said.Time = time.Time{}
	return sha256.Sum256(said.encode())
}
