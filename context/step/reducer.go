package step

import (
	"cmp"
	"encoding/json"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Tools with their own rules.
const (
	ToolReadFile  = "fs:read_file"
	ToolWriteFile = "fs:write_file"
	ToolListDir   = "fs:list_dir"
	ToolSearchWeb = "web:search"
	ToolNavigate  = "browser:navigate"
	ToolShell     = "system:shell"
	ToolWeather   = "weather:get"
)

// Limits of what a step holds.
const (
	// DefaultInlineBytes bounds Inline. A prompt shows at most 3000 tokens of a
	// result; this is room for about that many, and keeps the log small.
	DefaultInlineBytes = 16 << 10
	// complaintChars: so much of what a failed command said stands in its
	// observation.
	complaintChars = 500
	// MaxArgsBytes bounds Step.Args: longer ones are left out of the log, where the minimal
	// arguments say the same in short. They are stored in a separate blob.
	MaxArgsBytes = 16 << 10
	// MaxPathBytes bounds a path, and any other text argument that stays, in
	// minimal arguments and observations; no file system takes a longer one.
	MaxPathBytes = 4096
	// MaxErrorBytes bounds the failure text a step keeps.
	MaxErrorBytes = 4096
	// MaxEvidenceBytes bounds Step.Evidence: a few lines of a prompt.
	MaxEvidenceBytes = 4 << 10
	// HeldBodyBytes is how much of a body's start, and of a longer one's end, a
	// Result should hold. More is not looked at.
	HeldBodyBytes = 64 << 10
)

// ObservationStyle is how much an observation says.
type ObservationStyle uint8

// The observation styles.
const (
	// ObservationFull names the object of the call, such as a file. The default.
	ObservationFull ObservationStyle = iota + 1
	// ObservationDesign is shorter: it leaves out what the arguments say.
	ObservationDesign
)

// Options adjusts a Reducer. Nil and zero fields mean the defaults.
type Options struct {
	// Style is how much observations say. Default ObservationFull.
	Style ObservationStyle
	// Rules say how the calls of each tool are kept. Default BuiltinRules.
	Rules Rules
	// InlineBytes bounds Inline, but for what saying that it is missing would take
	// more tokens. Default DefaultInlineBytes.
	InlineBytes int
	// Count counts the tokens of a text. Default: a token is four bytes.
	Count func(text string) int
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
	// Offload is called when OffloadBytes and Given of what becomes of the call are known:
	// storing long bytes can go on while the rest is found. Default nil.
	Offload func(*Reduced)
}

// Result is what a tool gave. Missing and mistyped fields count as empty.
type Result struct {
	// Form is the form in which it was given. Default FormUnknown: no reader needs its
	// exact bytes again.
	Form Form
	// MediaType is the format of bytes, where it is known.
	MediaType string
	// JSON is the exact text of a JSON result. Default: canonical JSON of Output or
	// Value.
	JSON []byte
	// Output is the JSON result without the body, where it is an object. It may be
	// there after a failure, too.
	Output map[string]any
	// Value is a JSON result that is no object. IsValue says that there is one.
	Value   any
	IsValue bool
	// Refused says that the call was refused; RefusedBy says by which rule.
	Refused bool
	// Failed says that the tool failed; ErrorText says why.
	Failed    bool
	ErrorText string
	// BodyKey is the key of Output that the body belongs to, such as "content";
	// empty when there is no body. What Output holds under it is not looked at.
	// The body of a command's output should have all of it, errors included,
	// under the key "output".
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
	// Unjudged says that the result may be anything: a message that does not say whether
	// the call failed. A missing exit code, status or count then does not mean 0.
	Unjudged bool

	// texts are where the texts of Output and Value stand in JSON; nil when that
	// is not known.
	texts map[string]text.Place
}

// Reduced is what follows from a call alone. The caller makes a Step of it.
type Reduced struct {
	// MinimalArgs, Args, Metadata, Observation, Error, Inline and Evidence are
	// the step's fields of those names.
	MinimalArgs, Args, Metadata          json.RawMessage
	Observation, Error, Inline, Evidence string
	// Outcome is Succeeded or Failed. A call that did not fail by itself has
	// failed if its rule says so, as of a command whose exit code is not zero.
	Outcome Outcome
	// Given says where the original result is. KeepGiven says that it must be kept in a
	// separate blob, whose path is missing in Given.
	Given     Given
	KeepGiven bool
	// Offload says that the full result belongs into a blob that the step
	// refers to: OffloadBytes, or the body where they are nil.
	Offload bool
	// OffloadKind is the first part of the blob's name: read, list, search,
	// page, shell or tool. OffloadExt is its extension: json, txt, log or bin.
	// OffloadCategory says how long it stays.
	OffloadKind, OffloadExt, OffloadCategory string
	// OffloadBytes is the text to offload, such as the JSON result; nil when it is
	// the body that has to be offloaded, and when nothing has.
	OffloadBytes []byte
	// KeepArg names the text argument whose bytes must be kept in a blob of the
	// step that the step does not refer to, or is empty.
	KeepArg string
	// KeepArgs says that Args leaves out arguments, so that their text must be
	// kept in a blob (see Step.ArgsPath).
	KeepArgs bool
	// Marked says that the observation, Inline and Evidence may have places for
	// names (see Named).
	Marked bool
}

// Reducer converts calls into the parts of steps. It has no state: all methods
// are pure and safe for concurrent use.
type Reducer struct{ opts Options }

// NewReducer returns a reducer; nil opts mean the defaults.
func NewReducer(opts *Options) *Reducer {
	r := &Reducer{}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Rules.byTool == nil {
		r.opts.Rules = BuiltinRules()
	}
	if r.opts.Count == nil {
		r.opts.Count = func(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }
	}
	r.opts.InlineBytes = cmp.Or(r.opts.InlineBytes, DefaultInlineBytes)
	return r
}

// In returns a reducer whose observations have a style; 0 is its own.
func (r *Reducer) In(style ObservationStyle) *Reducer {
	if style == 0 || style == r.opts.Style {
		return r
	}
	other := *r
	other.opts.Style = style
	return &other
}

// WithInline returns a reducer whose Inline has at most so many bytes.
func (r *Reducer) WithInline(bytes int) *Reducer {
	other := *r
	other.opts.InlineBytes = max(bytes, 1)
	return &other
}

// bytesPerToken is what a token of English has on average.
const bytesPerToken = 4

// MinimalArgs returns the arguments worth keeping as a canonical JSON object,
// before the tool ran.
func (r *Reducer) MinimalArgs(tool string, args map[string]any) json.RawMessage {
	return text.CanonicalJSON(r.opts.Rules.find(tool).minimalArgs(args))
}

// ToolName is Rules.ToolName.
func (r *Reducer) ToolName(name string) string { return r.opts.Rules.ToolName(name) }

// KeptArg is the argument of a tool whose text stays out of prompts, or empty.
func (r *Reducer) KeptArg(tool string) string { return r.opts.Rules.find(tool).keep }

// Reduce never fails: a result that is not as expected is reduced to what can
// be said about it.
func (r *Reducer) Reduce(c Call) Reduced {
	rule := r.opts.Rules.find(c.Tool)
	if c.Result.Unjudged && rule.shape.complete != nil && !rule.shape.complete(&c.Result) {
		rule = r.opts.Rules.find(otherTools)
	}
	out := Reduced{
		MinimalArgs: text.CanonicalJSON(rule.minimalArgs(c.Args)),
		OffloadKind: rule.kind, OffloadCategory: rule.category,
	}
	rule.keepArgs(c.Args, &out)
	rd := r.read(rule, c)
	switch {
	case rd.complaint != nil:
		r.complain(c, rule, &rd, &out)
	case c.Result.Failed:
		r.failure(c, &rd, &out)
		rule = r.opts.Rules.find(otherTools)
	default:
		out.Observation = r.observe(c, rule, rd)
	}
	out.Marked = rd.named || rd.shown.taken
	r.offloadResult(c, rule, &rd, &out)
	if out.Offload {
		r.keepGiven(c, &rd, &out)
		if c.Offload != nil && out.OffloadBytes != nil {
			c.Offload(&out)
		}
	}
	r.show(c, rule, &rd, &out)
	if !out.Offload {
		r.keepGiven(c, &rd, &out)
	}
	out.Metadata = rd.metadata()
	return out
}

// read reads the result as the rule says, and that of a failure as it comes.
func (r *Reducer) read(rule *rule, c Call) finding {
	if c.Result.Failed && !rule.shape.failures {
		return r.anything(c)
	}
	return rule.shape.read(r, c)
}

// show fills in what a prompt shows, and what stands for the rest.
func (r *Reducer) show(c Call, rule *rule, rd *finding, out *Reduced) {
	var found survey
	if rd.printed {
		found = recognize(commandOf(c), rd.shown)
		found.figures(rd)
	}
	if out.Offload && (rule.hide || r.opts.HideOffloaded) {
		return
	}
	cut := r.cut(rd.shown)
	out.Inline = cut.inline
	if !cut.all {
		out.Evidence = evidence(rd.shown, cut, found)
		rd.figure(figureLeftOut, cut.missing)
	}
}

// observe is the line of a call that did its work.
func (r *Reducer) observe(c Call, rule *rule, rd finding) string {
	line := r.line(rule, rd.empty)
	return text.OneLine(line.fill(func(name string) string { return rd.value(name, c) }))
}

// line is the template of a call that did its work.
func (r *Reducer) line(rule *rule, empty bool) template {
	switch {
	case empty && rule.empty != nil:
		return rule.empty
	case r.opts.Style == ObservationDesign && rule.design != nil:
		return rule.design
	}
	return rule.observation
}

// offloadResult decides what goes into a blob: what the rule says, whatever is too
// long to be shown, and what can't be kept otherwise.
func (r *Reducer) offloadResult(c Call, rule *rule, rd *finding, out *Reduced) {
	long := rd.unshown || rd.shown.bytes() > int64(r.opts.InlineBytes) || !r.holds(&c.Result)
	if rule.offload == offloadNever && !long || out.Offload || emptyResult(&c.Result) && rd.size.bytes == 0 {
		return
	}
	shortest := int64(len(out.Observation) + stubBytes)
	if rd.text == nil || rule.offload == offloadResult && rd.shown.whole() && !c.Result.onlyBody() {
		all := rd.jsonText(&c.Result)
		full := size{bytes: int64(len(all)), items: rd.size.items, text: cmp.Or(rd.size.text, text.OfBytes(all))}
		if long || rule.from.reached(full, shortest) {
			out.Offload, out.OffloadExt, out.OffloadBytes = true, "json", all
		}
		return
	}
	if long || rule.from.reached(rd.size, shortest) {
		out.Offload, out.OffloadExt, out.OffloadBytes = true, cmp.Or(rule.ext, rd.text.ext), rd.text.bytes
		rd.derived = rd.text.bytes != nil
	}
}

// stubBytes is about what an observation grows by when it says where the result
// lies. A result that is no longer is no smaller for being away.
const stubBytes = len(savedTo) + len("workspace/outputs/search_001.json") + len(readHint)
