package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// MaxPartsBytes bounds the stored values of a session that is exported or imported, all
	// of which are in memory meanwhile.
	MaxPartsBytes = 64 << 20
	// MaxRestBytes bounds the data of an imported session other than its entries.
	MaxRestBytes = 8 << 20
	// MaxStepGap bounds how far the numbers of imported steps may lie beyond the agent's
	// own, since each number in between takes a key.
	MaxStepGap = 100_000
)

var (
	// ErrPart: a stored value can't be one of a session, or does not fit the others.
	ErrPart = errors.New("session: can't be imported")
	// ErrExists: the agent has the session with another content, or a step or a task of it
	// in another session. Nothing was written.
	ErrExists = errors.New("session: exists with other content")
	// ErrTooLong: a session takes more than MaxPartsBytes, or MaxRestBytes.
	ErrTooLong = errors.New("session: too long to be moved")
)

// StoredPart is a stored value of a session.
type StoredPart struct {
	// Kind says what it is, such as entry or task.
	Kind string
	// Number distinguishes parts of the same kind: the position of an entry, the number in
	// a journal, of a task, of a sprint; else zero.
	Number uint64
	// Value is the stored value (memory/FORMAT.md).
	Value []byte
}

// kindOfPart is a kind and where it stands.
type kindOfPart struct {
	name     string
	tag      byte
	numbered bool
	// counts says that it only counts what was there, so that it stays of a session that
	// was deleted.
	counts bool
}

// Kinds whose values are looked into.
const (
	partEntry    = "entry"
	partJournal  = "journal"
	partSettings = "settings"
	partWorking  = "working"
	partSnapshot = "snapshot"
	partTask     = "task"
)

// partKinds are the exported kinds, in order.
var partKinds = []kindOfPart{
	{name: "head", tag: tagHead, counts: true},
	{name: partEntry, tag: tagEntry, numbered: true},
	{name: "folds", tag: tagFolds, counts: true},
	{name: partJournal, tag: tagJournal, numbered: true},
	{name: partSettings, tag: tagConfig},
	{name: partWorking, tag: tagWorking},
	{name: "sprints", tag: tagSprint, counts: true},
	{name: partSnapshot, tag: tagSnapshot, numbered: true},
	{name: "tally", tag: tagTally, counts: true},
	{name: partTask, tag: tagTask, numbered: true},
}

func (k kindOfPart) prefix(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(k.tag), session)
}

func (p StoredPart) key(scope kv.Scope, session string) ([]byte, error) {
	for _, k := range partKinds {
		switch {
		case k.name != p.Kind:
		case k.numbered != (p.Number > 0):
			return nil, fmt.Errorf("%w: %s with number %d", ErrPart, p.Kind, p.Number)
		case k.numbered:
			return binary.BigEndian.AppendUint64(k.prefix(scope, session), p.Number), nil
		default:
			return k.prefix(scope, session), nil
		}
	}
	return nil, fmt.Errorf("%w: there is no part %q", ErrPart, p.Kind)
}

// Parts returns all of a session that an import needs, sorted by kind and number: entries,
// folds with their journal, settings, working state, renewals and tasks. None is a session
// that is not there. Answers of requests, the provider's count and recorded prompts are
// left out. A session of more than MaxPartsBytes is an ErrTooLong.
func (l *Log) Parts(ctx context.Context, scope kv.Scope, session string) ([]StoredPart, error) {
	session, err := scoped(scope, session)
	if err != nil {
		return nil, err
	}
	all, err := parts(ctx, l.engine, scope, session)
	if !isThere(all) {
		return nil, err
	}
	return all, err
}

// PartSessions are the sessions that Parts returns something of, in order of their ids.
func (l *Log) PartSessions(ctx context.Context, scope kv.Scope) ([]string, error) {
	found := make(map[string]bool)
	for _, k := range partKinds {
		if k.counts {
			continue
		}
		for id, err := range l.sessions(ctx, scope.Key(k.tag), "") {
			if err != nil {
				return nil, err
			}
			found[id] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// isThere reports whether parts are more than what is left of a session that was deleted.
func isThere(all []StoredPart) bool {
	return slices.ContainsFunc(all, func(p StoredPart) bool {
		return slices.ContainsFunc(partKinds, func(k kindOfPart) bool { return k.name == p.Kind && !k.counts })
	})
}

func parts(ctx context.Context, from kv.Getter, scope kv.Scope, session string) (all []StoredPart, err error) {
	size := 0
	for _, k := range partKinds {
		prefix := k.prefix(scope, session)
		r := kv.Prefix(prefix)
		if !k.numbered {
			r.Limit = 1
		}
		for pair, err := range from.Scan(ctx, kv.Log, r) {
			if err != nil {
				return nil, fmt.Errorf("session: read %s: %w", k.name, err)
			}
			p := StoredPart{Kind: k.name, Value: bytes.Clone(pair.Value)}
			if rest := pair.Key[len(prefix):]; k.numbered && len(rest) == 8 {
				p.Number = binary.BigEndian.Uint64(rest)
			} else if k.numbered || len(rest) > 0 {
				return nil, fmt.Errorf("%w: a key of %s", ErrDamaged, k.name)
			}
			if size += len(pair.Value); size > MaxPartsBytes {
				return nil, fmt.Errorf("%w: %q has more than %d bytes", ErrTooLong, session, MaxPartsBytes)
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// PathsIn are the paths of the offloaded results that the steps of some parts lead to.
func PathsIn(all []StoredPart) (paths []string) {
	for _, p := range all {
		if p.Kind != partEntry {
			continue
		}
		if e, err := decodeEntry(p.Value); err == nil && e.Step != nil {
			for _, path := range []string{e.Step.OutcomePath, e.Step.ArgsPath, e.Step.Given.Path} {
				if path != "" {
					paths = append(paths, path)
				}
			}
		}
	}
	return paths
}

// CheckImport answers as Import would, and writes nothing.
func (l *Log) CheckImport(ctx context.Context, scope kv.Scope, session string, all []StoredPart) (there bool, err error) {
	m, err := newImporting(ctx, scope, session, all)
	if err != nil {
		return false, err
	}
	return m.fits(ctx, l.engine)
}

// PartsOfMessages returns messages that were said elsewhere as the parts of a session, for
// Import. Each message has the time of the same index. Messages that CheckMessages refuses are
// its error.
func PartsOfMessages(msgs []Message, times []time.Time) ([]StoredPart, error) {
	all := []StoredPart{{Kind: partKinds[0].name, Value: encodeHead(head{last: uint64(len(msgs))})}}
	for i, m := range msgs {
		if err := CheckMessages(msgs[i : i+1]); err != nil {
			return nil, err
		}
		all = append(all, StoredPart{Kind: partEntry, Number: uint64(i + 1), Value: appendEntry(nil, Entry{Time: times[i], Message: &m})})
	}
	return all, nil
}

// Import stores the parts of a session as Parts returned them, in one commit: whole or not at
// all. It reports whether the session was there already with the same parts. Errors, with nothing
// written: ErrPart, ErrTooLong, ErrExists.
func (l *Log) Import(ctx context.Context, scope kv.Scope, session string, all []StoredPart) (there bool, err error) {
	m, err := newImporting(ctx, scope, session, all)
	if err != nil {
		return false, err
	}
	err = l.writer.Do(ctx, kv.Request{Refs: []kv.Ref{l.Ref(scope)}, Large: true, Stage: func(ctx context.Context, tx *kv.Tx) (err error) {
		l.settle(ctx, scope)
		if there, err = m.fits(ctx, tx); err == nil && !there {
			m.stage(tx)
		}
		return err
	}})
	if err != nil {
		return false, fmt.Errorf("session: import: %w", err)
	}
	if !there {
		l.onBegin(scope)
	}
	return there, nil
}

// importing is a session that is imported.
type importing struct {
	scope   kv.Scope
	session string
	parts   []StoredPart
	keys    [][]byte          // of parts, in order
	values  map[string][]byte // by key: parts and places
	numbers []uint64          // of the steps of parts, zero for others
	places  map[uint64]uint64 // positions of steps by number
	last    uint64            // the highest number of a step
	before  uint64            // that of the agent, when fits was called last
	tasks   map[string]uint64 // numbers by id
}

// newImporting checks parts.
func newImporting(ctx context.Context, scope kv.Scope, session string, all []StoredPart) (*importing, error) {
	session, err := scoped(scope, session)
	if err != nil {
		return nil, err
	}
	m := &importing{scope: scope, session: session, parts: all}
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	rest := 0
	for _, p := range all {
		if p.Kind != partEntry {
			rest += len(p.Value)
		}
	}
	if rest > MaxRestBytes {
		return nil, fmt.Errorf("%w: it has %d bytes other than messages and steps, more than %d", ErrTooLong, rest, MaxRestBytes)
	}
	return m, nil
}

// check reads the parts as check does a store: what an importer wrote must not be damage.
func (m *importing) check(ctx context.Context) error {
	m.values, m.places, m.tasks = make(map[string][]byte), make(map[uint64]uint64), make(map[string]uint64)
	size := 0
	for _, p := range m.parts {
		key, err := p.key(m.scope, m.session)
		if err != nil {
			return err
		}
		if n := len(m.keys); n > 0 && partOrder(m.parts[n-1], p) >= 0 {
			return fmt.Errorf("%w: %s %d is twice there or out of order", ErrPart, p.Kind, p.Number)
		}
		if size += len(p.Value); size > MaxPartsBytes || len(p.Value) > kv.MaxValueBytes {
			return fmt.Errorf("%w: more than %d bytes", ErrTooLong, MaxPartsBytes)
		}
		m.keys, m.values[string(key)], m.numbers = append(m.keys, key), p.Value, append(m.numbers, 0)
		if err := m.index(p); err != nil {
			return fmt.Errorf("%w: %s %d: %s", ErrPart, p.Kind, p.Number, err.Error())
		}
	}
	if !isThere(m.parts) {
		return fmt.Errorf("%w: session %q has nothing in it", ErrPart, m.session)
	}
	for number, position := range m.places {
		m.values[string(stepKey(m.scope, number))] = encodePlace(m.session, position)
	}
	for id, number := range m.tasks {
		m.values[string(taskIDKey(m.scope, id))] = encodePlace(m.session, number)
	}
	var found error
	c := check{from: newValues(m.values), scope: m.scope, found: func(err error) {
		if found == nil {
			found = fmt.Errorf("%w: %s", ErrPart, err.Error())
		}
	}}
	for _, step := range []func(context.Context) error{c.entries, c.tasks, c.folds, c.rest} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return found
}

// partOrder compares where two parts stand.
func partOrder(a, b StoredPart) int {
	at := func(p StoredPart) int {
		return slices.IndexFunc(partKinds, func(k kindOfPart) bool { return k.name == p.Kind })
	}
	return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a.Number, b.Number))
}

// index notes the step or the task of a part, whose texts it checks.
func (m *importing) index(p StoredPart) error {
	switch p.Kind {
	case partEntry:
		e, err := decodeEntry(p.Value)
		if err == nil {
			err = checkTexts(reflect.ValueOf(e))
		}
		if errors.Is(err, errUnknownKind) { // such as what is left of one that was erased
			return nil
		}
		if err != nil || e.Step == nil {
			return err
		}
		if e.Step.SessionID != m.session || e.Step.Number == 0 || m.places[e.Step.Number] > 0 {
			return fmt.Errorf("step %d of session %q does not belong here", e.Step.Number, e.Step.SessionID)
		}
		m.places[e.Step.Number], m.last = p.Number, max(m.last, e.Step.Number)
		m.numbers[len(m.numbers)-1] = e.Step.Number
	case partTask:
		t, _, err := decodeTask(p.Value)
		if err != nil {
			return err
		}
		if t.ID == "" || len(taskIDKey(m.scope, t.ID)) > kv.MaxKeyBytes || m.tasks[t.ID] > 0 {
			return fmt.Errorf("task %q can't be one, or is twice there", t.ID)
		}
		m.tasks[t.ID] = p.Number
		return checkTexts(reflect.ValueOf(t))
	case partJournal:
		e, err := decodeJournalEntry(p.Value)
		if err != nil || e.kind != kindFold {
			return err
		}
		f, err := e.fold()
		f.Digest = "" // bytes, which package history reads as it made them
		return cmp.Or(err, checkTexts(reflect.ValueOf(f)))
	case partSettings:
		c, err := decodeConfig(p.Value)
		return cmp.Or(err, checkTexts(reflect.ValueOf(c)))
	case partWorking:
		w, err := decodeWorking(p.Value)
		return cmp.Or(err, checkTexts(reflect.ValueOf(w)))
	case partSnapshot:
		s, err := decodeSnapshot(p.Value)
		return cmp.Or(err, checkTexts(reflect.ValueOf(s)))
	}
	return nil
}

// checkTexts wants every text in a decoded value to be UTF-8, and JSON to be JSON, as what
// callers give is: others could be stored, and no answer could hold them.
func checkTexts(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return errors.New("a text is not UTF-8")
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return checkTexts(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			if err := checkTexts(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() && v.Len() > 0 && (!utf8.Valid(v.Bytes()) || !json.Valid(v.Bytes())) {
			return errors.New("a text is not JSON")
		}
		for i := 0; v.Type().Elem().Kind() != reflect.Uint8 && i < v.Len(); i++ {
			if err := checkTexts(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			if err := cmp.Or(checkTexts(key), checkTexts(value)); err != nil {
				return err
			}
		}
	}
	return nil
}

// fits reports whether the session is there. It is an ErrExists where it is there as something
// else, or where a step or a task of it is another session's.
func (m *importing) fits(ctx context.Context, from kv.Getter) (there bool, err error) {
	had, err := parts(ctx, from, m.scope, m.session)
	if err != nil {
		return false, err
	}
	same := func(a, b StoredPart) bool {
		return a.Kind == b.Kind && a.Number == b.Number && bytes.Equal(a.Value, b.Value)
	}
	if slices.EqualFunc(had, m.parts, same) {
		return true, nil
	}
	begun := m.begun(had)
	if len(had) > 0 && begun == 0 {
		return false, fmt.Errorf("%w: %q", ErrExists, m.session)
	}
	if m.before, err = counted(ctx, from, m.scope); err != nil {
		return false, err
	}
	if m.last > m.before+MaxStepGap+uint64(len(m.places)) {
		return false, fmt.Errorf("%w: step %d is more than %d behind the agent's last one", ErrPart, m.last, MaxStepGap)
	}
	for _, number := range m.numbers[begun:] {
		if number == 0 {
			continue
		}
		if err := free(ctx, from, stepKey(m.scope, number), "step %d", number); err != nil {
			return false, err
		}
	}
	for id := range m.tasks {
		if err := free(ctx, from, taskIDKey(m.scope, id), "task %q", id); err != nil {
			return false, err
		}
	}
	return false, nil
}

// begun is how many parts, up to an entry, are there of a session that a program imported in
// several commits and did not end: its head and its first entries, and nothing else. Zero is
// something else.
func (m *importing) begun(had []StoredPart) int {
	first := slices.IndexFunc(m.parts, func(p StoredPart) bool { return p.Kind == partEntry })
	if first < 0 || len(had) < 2 || had[0].Kind != m.parts[0].Kind || len(had)-1 > len(m.parts)-first {
		return 0
	}
	entries := m.parts[first : first+len(had)-1]
	h, err := decodeHead(m.parts[0].Value)
	h.last, h.ended = entries[len(entries)-1].Number, false
	if err != nil || !bytes.Equal(had[0].Value, encodeHead(h)) {
		return 0
	}
	for i, p := range entries {
		if p.Kind != partEntry || had[i+1].Kind != partEntry || had[i+1].Number != p.Number || !bytes.Equal(had[i+1].Value, p.Value) {
			return 0
		}
	}
	return first + len(entries)
}

// counted is the agent's last step number.
func counted(ctx context.Context, from kv.Getter, scope kv.Scope) (uint64, error) {
	found, err := from.Get(ctx, kv.Log, counterKey(scope))
	if err != nil {
		return 0, fmt.Errorf("session: read counter: %w", err)
	}
	return decodeCounter(found[0])
}

// free wants nothing at a key, or an empty place.
func free(ctx context.Context, from kv.Getter, key []byte, what string, args ...any) error {
	found, err := from.Get(ctx, kv.Log, key)
	if err == nil && len(found[0]) > 0 {
		err = fmt.Errorf("%w: the agent has "+what+" in another session", append([]any{ErrExists}, args...)...)
	}
	return err
}

// stage writes the session. Unused step numbers get an empty place, which a later import may
// fill.
func (m *importing) stage(tx *kv.Tx) {
	last, here := m.before, make(map[uint64]bool)
	for i := range m.parts {
		if number := m.numbers[i]; number > 0 {
			last, here[number] = max(last, number), true
			tx.Put(kv.Log, stepKey(m.scope, number), encodePlace(m.session, m.places[number]))
		}
		m.put(tx, i)
	}
	for number := m.before + 1; number <= last; number++ {
		if !here[number] {
			tx.Put(kv.Log, stepKey(m.scope, number), []byte{})
		}
	}
	if last > m.before {
		tx.Put(kv.Log, counterKey(m.scope), encodeCounter(last))
	}
	for id, number := range m.tasks {
		tx.Put(kv.Log, taskIDKey(m.scope, id), encodePlace(m.session, number))
	}
}

func (m *importing) put(tx *kv.Tx, part int) {
	tx.Put(kv.Log, m.keys[part], m.parts[part].Value)
	stageMentions(tx, m.scope, m.session, m.parts[part].Value)
}

// values reads what is in memory as a store is read.
type values struct {
	keys []string
	of   map[string][]byte
}

func newValues(of map[string][]byte) *values {
	v := &values{of: of, keys: make([]string, 0, len(of))}
	for key := range of {
		v.keys = append(v.keys, key)
	}
	slices.Sort(v.keys)
	return v
}

// Get is kv.Reader's.
func (v *values) Get(_ context.Context, _ kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	found := make([][]byte, len(keys))
	for i, key := range keys {
		found[i] = v.of[string(key)]
	}
	return found, nil
}

// Scan is kv.Reader's, upwards and without a limit.
func (v *values) Scan(_ context.Context, _ kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		at, _ := slices.BinarySearch(v.keys, string(r.Start))
		for _, key := range v.keys[at:] {
			if r.End != nil && key >= string(r.End) || !yield(kv.Pair{Key: []byte(key), Value: v.of[key]}, nil) {
				return
			}
		}
	}
}

// Sequence is kv.Reader's: nothing was committed.
func (*values) Sequence(_ context.Context, refs ...kv.Ref) ([]uint64, error) {
	return make([]uint64, len(refs)), nil
}
