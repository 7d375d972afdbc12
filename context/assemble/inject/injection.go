package inject

import "github.com/loom-bridge/loom-bridge/context/session"

// Phase is where in a prompt an injection stands.
type Phase uint8

// The phases; the zero Phase is none.
const (
	// System is the system message: who the model is and what it can do.
	System Phase = iota + 1
	// UserContext is what is known of the user and the task.
	UserContext
	// Runtime is what changes with every turn.
	Runtime
)

// Cache is how long a provider's cache may keep an injection. Within a phase, what
// lasts longer stands first.
type Cache uint8

// The cache classes; the zero Cache is Dynamic.
const (
	// Stable text changes with the session's settings only.
	Stable Cache = iota + 1
	// Session text changes with what is remembered.
	Session
	// Dynamic text may change with every prompt.
	Dynamic
)

// Priorities run from 0 to MaxPriority. A higher one stands first and is cut last.
const (
	DefaultPriority = 50
	MaxPriority     = 100
)

// The names of the built-in injections, as settings and receipts write them.
const (
	NameSystem     = "system"
	NameTools      = "tools"
	NameSkills     = "skills"
	NameFewShot    = "few_shot"
	NameUserMemory = "user_memory"
	NameKnowledge  = "knowledge"
	NamePlaybook   = "playbook"
	NamePlan       = "plan"
	NameErrors     = "errors"
	NameTodo       = "todo"
	// NameStamps is what Arrange itself adds: the time stamps that it took out of
	// cached texts.
	NameStamps = "timestamps"
)

// The default caps of the built-in injections, in tokens. Together they are 8900.
const (
	SystemTokens     = 2000
	ToolTokens       = 3000
	SkillTokens      = 1000
	FewShotTokens    = 500
	UserMemoryTokens = 500
	KnowledgeTokens  = 800
	PlaybookTokens   = 300
	PlanTokens       = 300
	ErrorTokens      = 300
	TodoTokens       = 200
)

// DefaultCap is the default cap of a built-in injection, and whether there is one of
// that name.
func DefaultCap(name string) (tokens int, builtIn bool) {
	switch name {
	case NameSystem:
		return SystemTokens, true
	case NameTools:
		return ToolTokens, true
	case NameSkills:
		return SkillTokens, true
	case NameFewShot:
		return FewShotTokens, true
	case NameUserMemory:
		return UserMemoryTokens, true
	case NameKnowledge:
		return KnowledgeTokens, true
	case NamePlaybook:
		return PlaybookTokens, true
	case NamePlan:
		return PlanTokens, true
	case NameErrors:
		return ErrorTokens, true
	case NameTodo:
		return TodoTokens, true
	}
	return 0, false
}

// Injection is one piece of a prompt with a budget of its own. It has a Text, or
// Parts, or Messages; one without any is left out.
type Injection struct {
	// Name is unique in a prompt.
	Name string
	// Phase is where it stands. Required.
	Phase Phase
	// Cache is how long it may be cached; zero is Dynamic.
	Cache Cache
	// Priority is 0 to MaxPriority. Equal ones stand in the order in which they were
	// given.
	Priority int
	// MaxTokens bounds its text, without its tag; 0 is no bound.
	MaxTokens int
	// Tag wraps the text as <tag>, text and </tag> on lines of their own; empty leaves it
	// bare. Attributes stand behind the name in the opening tag, as they are.
	Tag, Attributes string
	// Text is what it says; blank is left out.
	Text string
	// Parts stand in place of Text, joined by a blank line: what does not fit leaves
	// part by part, the last first.
	Parts []string
	// Messages stand in place of Text: messages of their own. Those of phase System
	// count against the caps, and what does not fit leaves exchange by exchange, the last
	// first; an exchange begins at a message of the user. Those of other phases are part
	// of the conversation, which has a budget of its own.
	Messages []session.Message
	// Whole is never cut: over its cap it is a warning.
	Whole bool
	// Last stands last of its phase, whatever its priority, and is never cut.
	Last bool
	// Framed says that its lines are the program's own and the parts of strangers in them
	// went through Guard. What is neither Framed nor Whole is guarded by Arrange.
	Framed bool
	// Source says where it came from, for the receipt.
	Source string
}

// kept tells whether it is never cut.
func (in *Injection) kept() bool { return in.Whole || in.Last }

// rank is where its cache class stands.
func (in *Injection) rank() Cache {
	if in.Cache == 0 {
		return Dynamic
	}
	return in.Cache
}

// counts tells whether it counts against the total: all but what is conversation.
func (in *Injection) counts() bool { return len(in.Messages) == 0 || in.Phase == System }
