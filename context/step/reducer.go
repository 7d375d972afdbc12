package step

import (
	"encoding/json"
	"strings"
)

// Tools with rules of their own.
const (
	ToolReadFile  = "fs:read_file"
	ToolWriteFile = "fs:write_file"
	ToolListDir   = "fs:list_dir"
)

// Thresholds of offloading and limits of what a step holds.
const (
	// DefaultReadBytes: file content longer than this is offloaded.
	DefaultReadBytes = 1024
	// DefaultListItems: a listing of more entries than this is offloaded.
	DefaultListItems = 10
	// DefaultResultBytes: any other result of at least this size is offloaded.
	DefaultResultBytes = 1000
	// DefaultInlineBytes bounds Inline. A prompt shows at most 3000 tokens of a
	// result; this is room for about that many, and keeps the log small.
	DefaultInlineBytes = 16 << 10
	// MaxArgsBytes bounds Step.Args: longer ones are left out, as they would
	// fill the log with what the minimal arguments say in short.
	MaxArgsBytes = 16 << 10
	// MaxPathBytes bounds a path in minimal arguments and observations; no file
	// system takes a longer one.
	MaxPathBytes = 4096
	// MaxErrorBytes bounds the failure text a step keeps.
	MaxErrorBytes = 4096
	// HeldBodyBytes is how much of a body's start, and of a longer one's end, a
	// Result should hold. More is not looked at.
	HeldBodyBytes = 64 << 10
)

// ObservationStyle is how much an observation says.
type ObservationStyle uint8

// The observation styles.
const (
	// ObservationFull names what was worked on. The default.
	ObservationFull ObservationStyle = iota
	// ObservationDesign is shorter: it leaves out what the arguments say.
	ObservationDesign
)

// Options adjusts a Reducer. Nil and zero fields mean the defaults.
type Options struct {
	// Style is how much observations say. Default ObservationFull.
	Style ObservationStyle
	// ReadBytes: file content longer than this is offloaded. Default
	// DefaultReadBytes.
	ReadBytes int64
	// ListItems: listings of more entries are offloaded. Default
	// DefaultListItems.
	ListItems int
	// ResultBytes: other results from this size on are offloaded. Default
	// DefaultResultBytes.
	ResultBytes int64
	// InlineBytes bounds Inline. Default DefaultInlineBytes.
	InlineBytes int
	// HideOffloaded leaves Inline empty when the result was offloaded, so that
	// a prompt shows the observation alone from the start. Default false.
	HideOffloaded bool
}

// Call is one tool call with its result.
type Call struct {
	// Tool is the tool's registered name.
	Tool string
	// Args are the arguments as encoding/json decodes them; json.Number keeps
	// large integers exact.
	Args map[string]any
	// Result is what came out.
	Result Result
	// WrittenSHA256 is the hash, in hex, of what the agent itself last wrote to
	// the path the call names; empty if it wrote nothing there.
	WrittenSHA256 string
}

// Result is what a tool gave. Missing and mistyped fields count as empty.
type Result struct {
	// Output is the JSON result without the body.
	Output map[string]any
	// Failed says that the tool failed; ErrorText says why.
	Failed    bool
	ErrorText string
	// BodyKey is the key of Output that the body belongs to, such as "content";
	// empty when there is no body. What Output holds under it is not looked at.
	BodyKey string
	// BodySize is the body's length in bytes, BodyLines its lines; zero lines
	// of a longer body mean not counted.
	BodySize, BodyLines int64
	// BodySHA256 is the body's hash in hex, or empty.
	BodySHA256 string
	// BodyText is the whole body, or the first HeldBodyBytes of a longer one;
	// BodyTail is then its end.
	BodyText, BodyTail string
	// BodyBinary says that the body is no text.
	BodyBinary bool
}

// Reduced is what follows from a call alone. The caller makes a Step of it.
type Reduced struct {
	// MinimalArgs, Args, Metadata, Observation, Error and Inline are the step's
	// fields of those names.
	MinimalArgs, Args, Metadata json.RawMessage
	Observation, Error, Inline  string
	// Outcome is Succeeded or Failed.
	Outcome Outcome
	// Offload says that the full result belongs into a blob that the step
	// refers to: OffloadBytes, or the body where they are nil.
	Offload bool
	// OffloadKind is the first part of the blob's name: read, list, search,
	// page, shell or tool. OffloadExt is its extension: json, txt, log or bin.
	OffloadKind, OffloadExt string
	// OffloadBytes is the text to offload, such as the result as canonical
	// JSON; nil when it is the body that has to be offloaded, and when nothing
	// has.
	OffloadBytes []byte
	// KeepArg names the text argument whose bytes must be kept in a blob of the
	// step that the step does not refer to, or is empty.
	KeepArg string
}

// Reducer turns calls into the parts of steps. It has no state: all methods
// are pure and safe for concurrent use.
type Reducer struct {
	opts  Options
	rules map[string]rule
}

// rule is how one tool's calls are reduced.
type rule struct {
	minimalArgs func(args map[string]any) map[string]any
	// success fills in everything that depends on the result of a call that
	// did not fail.
	success func(r *Reducer, c Call, out *Reduced)
	kind    string
	// hideArgs keeps the arguments out of the step: only the minimal ones stay.
	hideArgs bool
}

// NewReducer returns a reducer; nil opts mean the defaults.
func NewReducer(opts *Options) *Reducer {
	r := &Reducer{rules: builtinRules()}
	if opts != nil {
		r.opts = *opts
	}
	setDefault(&r.opts.ReadBytes, DefaultReadBytes)
	setDefault(&r.opts.ListItems, DefaultListItems)
	setDefault(&r.opts.ResultBytes, DefaultResultBytes)
	setDefault(&r.opts.InlineBytes, DefaultInlineBytes)
	return r
}

func setDefault[N int | int64](field *N, value N) {
	if *field <= 0 {
		*field = value
	}
}

// builtinRules are keyed by the tool's name with _ for the colon.
func builtinRules() map[string]rule {
	return map[string]rule{
		"fs_read_file":  {minimalArgs: pathArgs, success: (*Reducer).readFile, kind: "read"},
		"fs_write_file": {minimalArgs: pathArgs, success: (*Reducer).writeFile, kind: "tool", hideArgs: true},
		"fs_list_dir":   {minimalArgs: pathArgs, success: (*Reducer).listDir, kind: "list"},
		"fs_search":     {minimalArgs: shortArgs, success: (*Reducer).anyTool, kind: "search"},
		"fs_delete":     {minimalArgs: pathArgs, success: (*Reducer).anyTool, kind: "tool"},
		"fs_stat":       {minimalArgs: pathArgs, success: (*Reducer).anyTool, kind: "tool"},
	}
}

func (r *Reducer) rule(tool string) rule {
	if found, ok := r.rules[strings.ReplaceAll(tool, ":", "_")]; ok {
		return found
	}
	return rule{minimalArgs: shortArgs, success: (*Reducer).anyTool, kind: "tool"}
}

// MinimalArgs returns the arguments worth keeping as a canonical JSON object,
// before the tool ran.
func (r *Reducer) MinimalArgs(tool string, args map[string]any) json.RawMessage {
	return CanonicalJSON(r.rule(tool).minimalArgs(args))
}

// Reduce never fails: a result that is not as expected is reduced to what can
// be said about it.
func (r *Reducer) Reduce(c Call) Reduced {
	rule := r.rule(c.Tool)
	out := Reduced{
		MinimalArgs: CanonicalJSON(rule.minimalArgs(c.Args)),
		Metadata:    json.RawMessage("{}"),
		OffloadKind: rule.kind,
	}
	if !rule.hideArgs {
		out.Args = fullArgs(c.Args)
	}
	if c.Result.Failed {
		r.failure(c, &out)
		return out
	}
	rule.success(r, c, &out)
	if out.Offload && r.opts.HideOffloaded {
		out.Inline = ""
	}
	return out
}
