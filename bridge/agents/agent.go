package agents

import (
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Status is how reachable an agent is.
type Status uint8

// The statuses.
const (
	// Active: a stream is open and, where heartbeats were agreed, they come; or
	// none was opened yet, and the registration is Present.
	Active Status = iota
	// Idle: registered, and no stream was opened yet.
	Idle
	// Inactive: a stream is open, but heartbeats are missing on all of them.
	Inactive
	// Disconnected: the last stream has ended.
	Disconnected
)

var statusNames = [...]string{"active", "idle", "inactive", "disconnected"}

// String returns the status in lower case, as in `agent.status` events.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown"
}

// ProvidedTool describes a tool that an agent runs for others. Nothing in it is checked.
type ProvidedTool struct {
	// Name is what it is called by.
	Name string
	// Description says what it does, for a model.
	Description string
	// Schema is the JSON Schema of its arguments, as the agent wrote it.
	Schema string
	// Level is that of tools.Descriptor; 0 means the first level.
	Level int
	// RequiresApproval says that a person must agree to each call.
	RequiresApproval bool
	// Metadata are the agent's own pairs.
	Metadata map[string]string
	// Usable reports whether the schema is a JSON object, as prompts need it. The
	// directory sets it.
	Usable bool
}

// Registration is what an agent says about itself.
type Registration struct {
	// Topics are what it listens to, each once, in the order given.
	Topics []string
	// Tools are what it can do for others. Of two with one name the later counts.
	Tools []ProvidedTool
	// Metadata are the agent's own pairs.
	Metadata map[string]string
	// Capabilities are what others may look for. In an Agent the names of its
	// tools come first, each once.
	Capabilities []string
	// Kind is the agent's type, free text.
	Kind string
	// Parent is the agent that started this one; empty for none.
	Parent string
	// Depth is how many agents stand above it. Where it is 0 and the parent is
	// known, it becomes that of the parent and one.
	Depth int
	// Exclusive makes the names of the tools the agent's own, as models call them:
	// one that another agent or the server has is a *TakenError, and so is another
	// exclusive agent's with one of these, until the agent leaves for good. Default:
	// of several agents with a tool the first with a stream is called, and tools
	// beyond a limit are left out.
	Exclusive bool
	// Present counts the agent as Active before its first stream, which loom.v1
	// agents expect of registering. Default: it is Idle until then.
	Present bool
}

// Agent is one entry of the directory.
type Agent struct {
	// ID names it within its tenant.
	ID string
	// Status is how reachable it is.
	Status Status
	Registration
	// LastSeen is when it last registered, opened a stream, sent a heartbeat or
	// answered a call.
	LastSeen time.Time
	// Streams is how many streams are open.
	Streams int
	// Generation is that of the newest open stream; 0 without one.
	Generation uint64
}

// AgentTool is a tool with the agent that provides it.
type AgentTool struct {
	ProvidedTool
	// AgentID is who runs it.
	AgentID string
	// Connected reports whether that agent has an open stream.
	Connected bool
}

// check returns an error if the registration is invalid.
func (r Registration) check(id string, maxTools int) error {
	switch {
	case id == "":
		return invalid.Field(ErrInvalid, "agent_id", "cannot be empty")
	case r.Parent == id:
		return invalid.Field(ErrInvalid, "parent_id", "is the agent itself")
	case r.Depth < 0:
		return invalid.Field(ErrInvalid, "depth", "is negative")
	case len(r.Tools) > maxTools:
		return &share.LimitError{What: "tools of one agent", Limit: maxTools}
	}
	return nil
}

// Listens reports whether the registration has a topic or a pattern that matches it. Native
// agents and loom.v1 agents write patterns differently.
func (r Registration) Listens(topic string) bool {
	return slices.ContainsFunc(r.Topics, func(text string) bool {
		if !r.Exclusive {
			return pattern.Legacy(text).Match(topic)
		}
		pattern, err := pattern.Parse(text)
		return err == nil && pattern.Match(topic)
	})
}

// normalized returns a deep copy without duplicates, and with the tools' names among the
// capabilities.
func (r Registration) normalized() Registration {
	r.Topics = unique(r.Topics)
	r.Tools = lastOfName(r.Tools)
	r.Metadata = maps.Clone(r.Metadata)
	names := make([]string, 0, len(r.Tools)+len(r.Capabilities))
	for i := range r.Tools {
		r.Tools[i].Metadata = maps.Clone(r.Tools[i].Metadata)
		r.Tools[i].Usable = isObject(r.Tools[i].Schema)
		names = append(names, r.Tools[i].Name)
	}
	r.Capabilities = unique(append(names, r.Capabilities...))
	return r
}

// isObject reports whether a text is a JSON object, or nothing at all.
func isObject(s string) bool {
	if s == "" {
		return true
	}
	value, err := text.DecodeJSON([]byte(s))
	_, object := value.(map[string]any)
	return err == nil && object && utf8.ValidString(s)
}

func unique(texts []string) []string {
	seen := make(map[string]bool, len(texts))
	var out []string
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			out = append(out, text)
		}
	}
	return out
}

// lastOfName returns a copy with one tool of each name, the last, in the place
// of the first.
func lastOfName(tools []ProvidedTool) []ProvidedTool {
	places := make(map[string]int, len(tools))
	var out []ProvidedTool
	for _, tool := range tools {
		if place, ok := places[tool.Name]; ok {
			out[place] = tool
			continue
		}
		places[tool.Name] = len(out)
		out = append(out, tool)
	}
	return out
}

// itemBytes is roughly the memory of a text in addition to its bytes.
const itemBytes = 32

// size is roughly what the registration takes in memory.
func (r Registration) size() int {
	size := pairBytes(r.Metadata) + len(r.Kind) + len(r.Parent)
	for _, texts := range [][]string{r.Topics, r.Capabilities} {
		for _, text := range texts {
			size += len(text) + itemBytes
		}
	}
	for _, t := range r.Tools {
		size += len(t.Name) + len(t.Description) + len(t.Schema) + 4*itemBytes + pairBytes(t.Metadata)
	}
	return size
}

func pairBytes(pairs map[string]string) int {
	size := 0
	for key, value := range pairs {
		size += len(key) + len(value) + 2*itemBytes
	}
	return size
}
