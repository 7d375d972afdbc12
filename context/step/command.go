package step

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Where results have what a program printed and its exit code.
const (
	keyStdout = "stdout"
	keyStderr = "stderr"
	keyOutput = "output"
)

const (
	// unknownExit is the exit code of a command that failed and has none: it did
	// not run to its end.
	unknownExit = -1
	// maxRestBytes bounds the other values in a program's output. A result with more is not
	// treated as one.
	maxRestBytes = 512
	// stderrMark parts what a program said to its user from its output.
	stderrMark = "[stderr]"
)

// printed is what a program printed.
type printed struct {
	stdout body
	stderr string
	// isBody says that stdout is the result's body.
	isBody bool
	exit   *int64
	// onlyComplaint says that exit is no figure of the result: its text leaves it out.
	onlyComplaint bool
	// rest is everything else in the result.
	rest map[string]any
	// saidBytes is how much of stderr stands in the result.
	saidBytes int
	// keys are the keys of non-empty stdout and stderr in the result.
	keys   []string
	result *Result
}

// outputOf reads a result that is what a program printed: texts under the usual
// names, an exit code or both sorts of output, and little else.
func outputOf(result *Result) (printed, bool) {
	p := readPrinted(result)
	_, out := result.Output[keyStdout].(string)
	_, err := result.Output[keyStderr].(string)
	_, either := result.Output[keyOutput].(string)
	isText := p.isBody || out || err || either
	both := (out || result.BodyKey == keyStdout) && err
	if !isText || p.exit == nil && !both || p.stdout.binary {
		return printed{}, false
	}
	return p, p.short()
}

// hasExit reports whether a result says how a command ended.
func hasExit(result *Result) bool { return readPrinted(result).exit != nil }

// short reports whether the result holds little other than the printed output.
func (p *printed) short() bool {
	return len(p.rest) == 0 || len(text.SpacedJSON(p.rest)) <= maxRestBytes
}

// readPrinted takes what there is.
func readPrinted(result *Result) printed {
	p := printed{rest: maps.Clone(result.Output), result: result}
	whole, isText := result.Value.(string)
	switch {
	case result.BodyKey == keyStdout || result.BodyKey == keyOutput:
		p.stdout, p.isBody = fileBody(result), true
		delete(p.rest, result.BodyKey)
	case isText:
		p.stdout, p.keys = unhashed(whole), []string{text.WholeText}
	default:
		s := p.take(keyStdout)
		if s == "" {
			s = p.take(keyOutput)
		}
		p.stdout = unhashed(s)
	}
	p.stderr = p.take(keyStderr)
	p.saidBytes = len(p.stderr)
	for _, key := range []string{"exit_code", "returncode", "return_code", "exit_status", "exitCode", "code"} {
		if code, ok := integer(p.rest[key]); ok {
			p.exit = &code
			delete(p.rest, key)
			break
		}
	}
	return p
}

// take takes a text out of what is left.
func (p *printed) take(key string) string {
	text, ok := p.rest[key].(string)
	if ok {
		delete(p.rest, key)
	}
	if text != "" {
		p.keys = append(p.keys, key)
	}
	return text
}

// read fills in everything but what an observation says.
func (p *printed) read(rd *finding) {
	whole := int64(len(p.stdout.text)) == p.stdout.size
	log := p.stdout.text
	if whole {
		log += p.stderr
	}
	rd.printed = true
	rd.size = size{bytes: p.stdout.size + int64(len(p.stderr)), text: log}
	rd.text = &heldText{ext: "log"}
	if !p.isBody || whole && p.stderr != "" {
		rd.text.bytes = text.Bytes(log)
		rd.text.holes = p.holes()
	}
	rd.shown = p.shown(whole)
	rd.binaryLog(p)
	lineCount := text.CountLines(p.stderr)
	if p.stdout.lines != nil {
		lineCount += *p.stdout.lines
	}
	for name, figure := range map[string]int64{
		"lines": lineCount, "size": rd.size.bytes,
		"stdout_bytes": p.stdout.size, "stderr_bytes": int64(len(p.stderr)),
	} {
		rd.figure(name, figure)
	}
	if p.exit != nil {
		rd.figure("exit_code", *p.exit)
	}
	if len(p.rest) > 0 && p.short() {
		rd.figure(figureOther, p.rest)
	}
}

// holes are where the log stands in the JSON result.
func (p *printed) holes() []hole {
	var sizes []int
	for _, key := range p.keys {
		size := len(p.stdout.text)
		if key == keyStderr {
			size = p.saidBytes
		}
		sizes = append(sizes, size)
	}
	return p.result.holes(p.keys, sizes)
}

// binaryLog says of a log that is no text how long it is.
func (rd *finding) binaryLog(p *printed) {
	if !p.stdout.binary {
		return
	}
	rd.shown = shownText(p.headline()).above(fmt.Sprintf("[%d bytes, no text]", rd.size.bytes))
	rd.printed = false
}

// figureOther has what else there was in a result whose text went into a blob.
const figureOther = "other"

// shown is the exit code, the output, and below it what came on stderr.
func (p *printed) shown(whole bool) shown {
	s := shown{head: p.headline(), text: p.stdout.text, tail: p.stdout.tail, size: p.stdout.size}
	s.isError = p.exit != nil && *p.exit != 0
	if strings.TrimSpace(p.stderr) == "" {
		return s
	}
	below := p.stderr
	if p.stdout.size > 0 {
		below = stderrMark + "\n" + below
		if end := p.stdout.text + p.stdout.tail; !strings.HasSuffix(end, "\n") {
			below = "\n" + below
		}
	}
	if whole {
		s.text += below
	} else {
		s.tail += below
	}
	s.size += int64(len(below))
	return s
}

// exitLine begins the unfolded form of what a program printed.
const exitLine = "exit "

// headline is the exit code and all other values of the result.
func (p *printed) headline() string {
	line := ""
	if p.exit != nil && !p.onlyComplaint {
		line = exitLine + plainText(*p.exit)
	}
	if len(p.rest) > 0 {
		line = strings.TrimSpace(line + " " + string(text.SpacedJSON(p.rest)))
	}
	return line
}

// command reads the result of a command, whatever it has.
func (r *Reducer) command(c Call) finding {
	p := readPrinted(&c.Result)
	if c.Result.Refused {
		return finding{words: map[string]string{"short": shortCommand(c)}}
	}
	if strings.TrimSpace(p.stderr) == "" || len(c.Result.ErrorText) > MaxErrorBytes {
		// A caller may know what was said to the user as the error alone.
		p.stderr += c.Result.ErrorText
	}
	if p.exit == nil {
		p.exit = new(int64)
		if c.Result.Failed {
			*p.exit, p.onlyComplaint = unknownExit, true
		}
	}
	rd := finding{words: map[string]string{"short": shortCommand(c)}}
	p.read(&rd)
	if !p.short() {
		rd.text = nil
		rd.showJSON(resultValue(&c.Result))
	}
	if c.Result.Failed || *p.exit != 0 {
		rd.complaint = new(p.complaint())
		// The observation says it, so that nothing is left to be shown.
		rd.onlyComplaint = p.onlyComplaint && p.stdout.size == 0 && len(p.rest) == 0
	}
	return rd
}

// complaint is what a failed command said: to its user, or else at all.
func (p *printed) complaint() string {
	switch {
	case strings.TrimSpace(p.stderr) != "":
		return p.stderr
	case p.stdout.tail != "":
		return p.stdout.tail
	case strings.TrimSpace(p.stdout.text) != "":
		return p.stdout.text
	}
	return ""
}

// shortCommand is the first word of a command, and the second unless it is an
// option.
func shortCommand(c Call) string {
	fields := strings.Fields(text.Head(commandOf(c), MaxPathBytes))
	switch {
	case len(fields) == 0:
		return c.Tool
	case len(fields) == 1 || strings.HasPrefix(fields[1], "-"):
		return fields[0]
	}
	return fields[0] + " " + fields[1]
}

// complain is the rule for commands that failed: what they said stays below the
// observation.
func (r *Reducer) complain(c Call, rule *rule, rd *finding, out *Reduced) {
	said, cut := text.TailChars(*rd.complaint, complaintChars)
	out.Outcome = Failed
	out.Observation = r.observe(c, rule, *rd)
	out.Error = text.Head(c.Result.ErrorText, MaxErrorBytes)
	if strings.TrimSpace(out.Error) == "" {
		out.Error = text.Head(strings.TrimSpace(said), MaxErrorBytes)
	}
	switch {
	case said == "":
	case cut:
		out.Observation += "\n…" + said
	default:
		out.Observation += "\n" + said
	}
	if rd.onlyComplaint && !cut {
		rd.shown = shown{}
	}
}

// Exit returns the exit code of a step that has one.
func (s Step) Exit() (int, bool) {
	if !bytes.Contains(s.Metadata, []byte(`"exit_code"`)) {
		return 0, false // most have none, and every prompt asks
	}
	if code, ok := flatExit(s.Metadata); ok {
		return code, true
	}
	decoded, err := text.DecodeJSON(s.Metadata)
	if err != nil {
		return 0, false
	}
	figures, _ := decoded.(map[string]any)
	code, ok := integer(figures["exit_code"])
	return int(code), ok
}

// flatExit finds the exit code in metadata as it is stored, without decoding all: an object
// without white space that holds no other. In a text the quotes around the name would be
// escaped.
func flatExit(metadata []byte) (int, bool) {
	name := []byte(`"exit_code":`)
	_, value, _ := bytes.Cut(metadata, name)
	end := bytes.IndexAny(value, ",}")
	if end < 0 || bytes.Contains(value, name) || bytes.LastIndexByte(metadata, '{') != 0 {
		return 0, false
	}
	code, err := strconv.ParseInt(string(value[:end]), 10, 64)
	return int(code), err == nil && value[0] != '+'
}

// Output returns Inline without the line that says the exit code, which Exit
// has.
func (s Step) Output() string {
	first, rest, more := strings.Cut(s.Inline, "\n")
	code, ok := strings.CutPrefix(first, exitLine)
	if !ok {
		return s.Inline
	}
	if exit, known := s.Exit(); !known || code != strconv.Itoa(exit) {
		return s.Inline
	}
	if !more {
		return ""
	}
	return rest
}

// integer reads a whole number in any form it may come in.
func integer(v any) (int64, bool) {
	switch v.(type) {
	case json.Number, float64, int, int64, uint64:
	default:
		return 0, false
	}
	var n int64
	err := json.Unmarshal(text.CanonicalJSON(v), &n)
	return n, err == nil
}
