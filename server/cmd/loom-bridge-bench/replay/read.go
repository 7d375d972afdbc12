package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrFormat: a file does not hold runs.
var ErrFormat = errors.New("replay: not a recorded run")

// LineError is an ErrFormat that says where.
type LineError struct {
	// Line is the line, from 1, of the value that is no run or of the byte that is
	// no JSON.
	Line int
	// Err says why.
	Err error
}

func (e *LineError) Error() string { return fmt.Sprintf("replay: line %d: %v", e.Line, e.Err) }

// Unwrap returns why.
func (e *LineError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrFormat) true.
func (e *LineError) Is(target error) bool { return target == ErrFormat }

// Read reads the runs of a file of JSON values, one a line or laid out over
// many. A value is one of
//
//   - an object with messages, as OpenAI or Anthropic write them: a run. Such
//     objects may lie in a request, and answers next to them: a request that goes
//     on where an earlier one ended belongs to the run of that one.
//   - a list of messages, or of objects with messages.
//   - a message: all messages of a file are one run, or one for each session that
//     they name.
//
// Bytes that are no such thing are a *LineError; errors of r are returned as
// they are. A message may have no text, any role, and blocks of any sort; what
// is not understood counts as the text that it is.
func Read(r io.Reader) ([]Run, error) {
	in := newValues(withoutMark(r))
	l := loader{ends: make(map[chain][]int), sessions: make(map[string]int)}
	for {
		value, line, err := in.next()
		if errors.Is(err, io.EOF) {
			return l.finish()
		}
		if err != nil && line == 0 {
			return nil, fmt.Errorf("replay: read: %w", err)
		}
		if err == nil {
			err = l.value(value, line)
		}
		if err != nil {
			return nil, &LineError{line, err}
		}
	}
}

// loader puts runs together.
type loader struct {
	loaded []loading
	// ends are the runs that a request may go on with, by what they hold so far.
	ends map[chain][]int
	// sessions are the runs of single messages, by the session that they name.
	sessions map[string]int
}

// loading is a run while it is read.
type loading struct {
	id       string
	messages []Message
	// last is the provider's id of the last message.
	last string
}

// chain is a hash of messages, in order.
type chain [sha256.Size]byte

func (l *loader) finish() ([]Run, error) {
	runs := make([]Run, len(l.loaded))
	for i := range l.loaded {
		runs[i] = newRun(l.loaded[i].id, l.loaded[i].messages)
	}
	return runs, nil
}

// value takes one value of a file.
func (l *loader) value(value json.RawMessage, line int) error {
	if value = bytes.TrimSpace(value); len(value) > 0 && value[0] == '[' {
		return l.list(value, line)
	}
	var object record
	if err := json.Unmarshal(value, &object); err != nil {
		return errors.New("neither an object nor a list")
	}
	return l.object(&object, line)
}

// list takes a list of messages, or of objects with messages.
func (l *loader) list(value json.RawMessage, line int) error {
	var items []record
	if err := json.Unmarshal(value, &items); err != nil || len(items) == 0 {
		return errors.New("a list without messages")
	}
	if slices.ContainsFunc(items, func(r record) bool { return r.conversation() != nil }) {
		for i := range items {
			if err := l.object(&items[i], line); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return nil
	}
	messages, err := messagesOf(value)
	if err != nil {
		return err
	}
	l.loaded = append(l.loaded, loading{id: name("", line), messages: messages})
	return nil
}

// object takes an object: a run, a request, or a message.
func (l *loader) object(r *record, line int) error {
	if c := r.conversation(); c != nil {
		messages, err := c.messages()
		if err != nil {
			return err
		}
		l.add(r, messages, line)
		return nil
	}
	if m := r.message(); m != nil {
		messages, err := m.convert()
		if err != nil {
			return err
		}
		l.append(r, string(m.ID), messages)
		return nil
	}
	if r.aside() {
		return nil
	}
	return fmt.Errorf("an object without messages, which is no message either; it has %s", strings.Join(r.keys(), ", "))
}

// add begins a run, or goes on with the one that ended where the request's
// messages begin.
func (l *loader) add(r *record, messages []Message, line int) {
	if r.ID != "" {
		// What has its own id is whole.
		l.loaded = append(l.loaded, loading{id: string(r.ID), messages: messages})
		return
	}
	at, end := l.begun(messages)
	if at < 0 {
		at = len(l.loaded)
		l.loaded = append(l.loaded, loading{id: name("", line)})
	}
	if last := len(messages) - 1; last < 0 || messages[last].Role != roleAssistant {
		for _, m := range r.answer() {
			messages = append(messages, m)
			end = end.with(m)
		}
	}
	l.loaded[at].messages = messages
	l.ends[end] = append(l.ends[end], at)
}

// begun takes the run that the messages go on with, the one that holds most of
// them; -1 for none. end is the hash of all messages.
func (l *loader) begun(messages []Message) (at int, end chain) {
	var from chain
	at = -1
	for i, m := range messages {
		end = end.with(m)
		if open := l.ends[end]; len(open) > 0 && i+1 < len(messages) {
			at, from = open[0], end
		}
	}
	if at >= 0 {
		l.ends[from] = l.ends[from][1:]
	}
	return at, end
}

// append adds single messages to the run of their session. Lines with one id of
// the provider's are parts of one message.
func (l *loader) append(r *record, id string, messages []Message) {
	session := string(r.SessionID)
	at, known := l.sessions[session]
	if !known {
		at = len(l.loaded)
		l.sessions[session] = at
		l.loaded = append(l.loaded, loading{id: name(session, 1)})
	}
	run := &l.loaded[at]
	same := id != "" && id == run.last
	run.last = id
	for _, m := range messages {
		if last := len(run.messages) - 1; same && m.Role == roleAssistant && run.messages[last].Role == roleAssistant {
			run.messages[last].join(m)
			continue
		}
		run.messages = append(run.messages, m)
	}
}

// name is the id of a run, by its line if it has none.
func name(id string, line int) string {
	if id == "" {
		return "line " + strconv.Itoa(line)
	}
	return id
}

// with is the chain with one more message.
func (c chain) with(m Message) chain {
	h := sha256.New()
	h.Write(c[:])
	for _, text := range []string{m.Role, m.Text, m.CallID} {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	for _, call := range m.Calls {
		fmt.Fprintf(h, "%q%q%q", call.ID, call.Name, call.Args)
	}
	return chain(h.Sum(nil))
}

// keys are the first keys of an object, for messages to people.
func (r *record) keys() []string {
	const most = 8
	keys := slices.Sorted(maps.Keys(r.fields))
	if len(keys) == 0 {
		return []string{"no keys"}
	}
	return keys[:min(len(keys), most)]
}
