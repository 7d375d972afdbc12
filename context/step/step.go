package step

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Outcome is how a step ended. The numbers are part of the stored format.
type Outcome uint8

// The outcomes.
const (
	// Succeeded: the tool did its work. The zero value.
	Succeeded Outcome = iota
	// Failed: the tool ran and failed.
	Failed
	// Unknown: the server stopped while the tool ran; it may or may not have
	// taken effect.
	Unknown
)

// String returns "succeeded", "failed" or "unknown".
func (o Outcome) String() string {
	switch o {
	case Succeeded:
		return "succeeded"
	case Failed:
		return "failed"
	}
	return "unknown"
}

// Step is the record of one tool call. A step that was recorded never changes;
// a step read from a log belongs to its reader.
type Step struct {
	// Number is the agent's own count of steps, from 1. ID gives its name.
	Number uint64
	// SessionID is the session the call was made in.
	SessionID string
	// ToolName is the tool's registered name, such as "fs:read_file".
	ToolName string
	// CalledAs is the tool's name as the model wrote it.
	CalledAs string
	// MinimalArgs are the arguments worth keeping: a canonical JSON object.
	MinimalArgs json.RawMessage
	// Args are all arguments as a canonical JSON object; nil when they are
	// longer than MaxArgsBytes or must not come back into a prompt.
	Args json.RawMessage
	// ArgsPath is the path of a blob with the text of all arguments, where Args
	// leaves them out because they are too long.
	ArgsPath string
	// Observation is one line about what came out, without any reference.
	Observation string
	// OutcomeRef is the hash of the blob with the full result, in hex; empty
	// when nothing was offloaded.
	OutcomeRef string
	// OutcomePath is the path of that blob, or empty.
	OutcomePath string
	// Time is when the step was recorded, in whole microseconds once stored.
	Time time.Time
	// Outcome is how the call ended.
	Outcome Outcome
	// Thought is what the model said before the call.
	Thought string
	// Error is the failure's own text, ErrorCode the class of failure in the
	// words of the tool registry; both empty after success.
	Error, ErrorCode string
	// Inline is the text a prompt shows while the step is unfolded: the result
	// itself, up to a limit.
	Inline string
	// Metadata are figures of the result, such as size, lines, type, sha256: a
	// canonical JSON object.
	Metadata json.RawMessage
	// TurnID holds the parallel calls of one model turn together; CallID is the
	// model's own id of the call. Both may be empty.
	TurnID, CallID string
	// Pinned keeps the step in every prompt as it is: it is never folded.
	Pinned bool
	// Given says in what form the result was given, and where its exact bytes are.
	Given Given
	// Evidence is what the part of the result that Inline leaves out says of
	// itself: figures, the lines that say what went wrong, and names; at most
	// MaxEvidenceBytes. Empty when Inline shows everything.
	Evidence string
}

// idPrefix begins every step id.
const (
	idPrefix    = "step_"
	leastDigits = 3 // of a number in an id
)

// ID returns the id of the step with number n: "step_001", "step_1000".
func ID(n uint64) string {
	id := append(make([]byte, 0, len(idPrefix)+20), idPrefix...)
	for least := uint64(100); least > 1 && n < least; least /= 10 {
		id = append(id, '0') // three digits at least
	}
	return string(strconv.AppendUint(id, n, 10))
}

// ParseID returns the number of a step id, and false for anything that ID
// would not write. There is no step 0.
func ParseID(id string) (uint64, bool) {
	digits, ok := strings.CutPrefix(id, idPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && IsPadded(digits)
}

// IsPadded reports whether the digits of a number are as ids have them: three at least.
func IsPadded(digits string) bool {
	return len(digits) == leastDigits || len(digits) > leastDigits && digits[0] != '0'
}

// ID returns the step's own id.
func (s Step) ID() string { return ID(s.Number) }

// Success reports whether the tool did its work.
func (s Step) Success() bool { return s.Outcome == Succeeded }

// Figure returns a figure of the result by its name in Metadata, such as "size";
// false when the step has none, or it is no whole number from 0 up.
func (s Step) Figure(name string) (int64, bool) { return wholeNumber(valuesOf(s).figures[name]) }

// Refused reports whether the call was refused, as RefusedBy says.
func (s Step) Refused() bool { return RefusedBy(s.ErrorCode) }

// The ErrorCodes of calls that were refused.
const (
	CodeRefused          = "REFUSED"
	CodePermissionDenied = "PERMISSION_DENIED"
	CodeInvalidArguments = "INVALID_ARGUMENTS"
	CodeProviderAway     = "PROVIDER_AWAY"
)

// RefusedBy reports whether an ErrorCode says that a call was refused: the tool was not
// run at all, or met something that it may not touch.
func RefusedBy(code string) bool {
	switch code {
	case CodeRefused, CodePermissionDenied, CodeInvalidArguments, CodeProviderAway:
		return true
	}
	return false
}

// NeedsOffload reports whether the full result lies in a blob.
func (s Step) NeedsOffload() bool { return s.OutcomeRef != "" }

// ReferenceStyle is how an observation says where the full result lies.
type ReferenceStyle uint8

// The reference styles.
const (
	// ReferenceHint adds the path to the first line and, last, a line that says
	// how to read it. The default.
	ReferenceHint ReferenceStyle = iota + 1
	// ReferenceShort adds only the path.
	ReferenceShort
	// ReferenceLong puts a sentence with the path and the hint in place of the
	// observation.
	ReferenceLong
)

const (
	savedTo  = ". Saved to "
	readHint = "\nUse " + ToolReadFile + readEnd
	readEnd  = " to retrieve if needed."
)

// ToObservation returns the text for a model: the observation and, if the
// result was offloaded, where to find it. Without a reference it is the bare
// observation in every style.
func (s Step) ToObservation(style ReferenceStyle) string {
	return s.ToObservationBy(style, ToolReadFile)
}

// ToObservationBy is ToObservation for a model that knows fs:read_file by another name.
func (s Step) ToObservationBy(style ReferenceStyle, reader string) string {
	if !s.NeedsOffload() {
		return s.Observation
	}
	switch style {
	case ReferenceLong:
		return completedWord(s.ToolName) + " completed. Results saved to " + s.OutcomePath + "\nUse " + reader + readEnd
	case ReferenceShort:
		return withPath(s.shortObservation(), s.OutcomePath)
	}
	return withPath(s.Observation, s.OutcomePath) + "\nUse " + reader + readEnd
}

// withPath adds the path to the first line; only a failure has more lines.
func withPath(observation, path string) string {
	first, rest, more := strings.Cut(observation, "\n")
	text := first + savedTo + path
	if more {
		text += "\n" + rest
	}
	return text
}

// shortObservation leaves out what a prompt shows right next to it: the query
// of a web search stands in the line of the call.
func (s Step) shortObservation() string {
	if s.ToolName == ToolSearchWeb && s.Success() {
		if count, known := s.Figure("count"); known {
			return fmt.Sprintf("Found %d results", count)
		}
	}
	return s.Observation
}

// completedWord is the first word of the long reference.
func completedWord(tool string) string {
	switch tool {
	case "fs:search", ToolSearchWeb:
		return "Search"
	case ToolReadFile:
		return "Read"
	case ToolListDir:
		return "List"
	case ToolNavigate:
		return "Visit"
	case ToolShell:
		return "Command"
	}
	return "Call"
}
