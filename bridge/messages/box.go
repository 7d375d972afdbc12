package messages

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// DefaultMaxMessages bounds the messages of a target.
	DefaultMaxMessages = 2000
	// DefaultMaxFromSender bounds the messages of one sender in a box, so that no sender
	// fills it alone.
	DefaultMaxFromSender = 500
	// maxCleared bounds the expired messages that a Send removes.
	maxCleared = 64
)

// Options adjusts a Box. Nil and zero fields mean the defaults.
type Options struct {
	// MaxMessages and MaxFromSender bound the messages of a target, and its messages from
	// one sender. Defaults DefaultMaxMessages and DefaultMaxFromSender.
	MaxMessages, MaxFromSender int
	// Quota is asked before anything is stored. Default: there is room.
	Quota *share.Quota
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Box has the messages of all targets. All methods are safe for concurrent use.
type Box struct {
	engine kv.Reader
	writer *kv.Writer
	opts   Options
}

// New returns the box over an engine and its writer. Both stay the caller's.
func New(engine kv.Reader, writer *kv.Writer, opts *Options) *Box {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.MaxMessages <= 0 {
		o.MaxMessages = DefaultMaxMessages
	}
	if o.MaxFromSender <= 0 {
		o.MaxFromSender = DefaultMaxFromSender
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Box{engine: engine, writer: writer, opts: o}
}

// Send keeps a message and returns it as it is kept. The same message under the same task
// id is kept once, and returned as it was at first, also when it was deleted meanwhile;
// another message under that id is ErrExists. ErrInvalid and ErrFull change nothing.
func (b *Box) Send(ctx context.Context, tenant string, m Message) (Message, error) {
	if err := m.Check(); err != nil {
		return Message{}, err
	}
	if err := b.opts.Quota.Check(tenant); err != nil {
		return Message{}, fmt.Errorf("messages: send to %q: %w", m.Target, err)
	}
	if m.TaskID == "" {
		m.TaskID = "task-" + strings.ToLower(rand.Text()) + ":event:node.message"
	}
	m.Time = b.opts.Now().UTC().Truncate(time.Microsecond)
	var sent Message
	boxes := boxesOf(tenant, &m)
	err := b.writer.Do(ctx, kv.Request{Refs: boxes, Stage: func(ctx context.Context, tx *kv.Tx) error {
		sent = m
		for _, box := range boxes {
			if err := b.stage(ctx, tx, box, &sent); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return Message{}, fmt.Errorf("messages: send: %w", err)
	}
	return sent, nil
}

// boxesOf are the boxes in which a message stands.
func boxesOf(tenant string, m *Message) []kv.Ref {
	boxes := []kv.Ref{refOf(tenant, m.Target)}
	if m.Node != "" && m.Node != m.Target {
		boxes = append(boxes, refOf(tenant, m.Node))
	}
	return boxes
}

func refOf(tenant, target string) kv.Ref {
	return kv.Ref{Keyspace: kv.System, Scope: kv.AgentScope(tenant, target)}
}

// stage puts a message into a box. One that the box got before takes its time from there.
func (b *Box) stage(ctx context.Context, tx *kv.Tx, box kv.Ref, m *Message) error {
	digest := m.digest()
	first, known, err := kv.LookupOnce(ctx, tx, box, m.TaskID, digest)
	switch {
	case errors.Is(err, kv.ErrRequestReused):
		return exists(m)
	case err != nil:
		return err
	case known && len(first) == timeBytes:
		m.Time = time.UnixMicro(int64(binary.BigEndian.Uint64(first) ^ 1<<63)).UTC()
		return nil
	}
	standing, err := tx.Get(ctx, kv.System, box.Scope.Key(tagTask, []byte(m.TaskID)))
	if err != nil {
		return err
	}
	if standing[0] != nil {
		return b.again(ctx, tx, box, standing[0], m)
	}
	c, err := b.clear(ctx, tx, box)
	if err != nil {
		return err
	}
	if c[m.Source]++; c.total() > b.opts.MaxMessages || c[m.Source] > b.opts.MaxFromSender {
		return fmt.Errorf("%w: %q has %d messages, %d of them from %q; delete some (DeleteMessages), or send them with a ttl",
			ErrFull, m.Target, c.total()-1, c[m.Source]-1, m.Source)
	}
	rank := m.rank()
	tx.Put(kv.System, box.Scope.Key(tagMessage, rank, []byte(m.TaskID)), m.encode())
	tx.Put(kv.System, box.Scope.Key(tagTask, []byte(m.TaskID)), rank)
	if m.TTL > 0 {
		tx.Put(kv.System, expiryKey(box.Scope, m, rank), []byte{})
	}
	putCounts(tx, box.Scope, c)
	kv.StageOnce(tx, box, m.TaskID, digest, appendTime(nil, m.Time), b.opts.Now())
	return nil
}

// again compares a message with the one that has its id, whose answer is not kept any
// more.
func (b *Box) again(ctx context.Context, tx *kv.Tx, box kv.Ref, rank []byte, m *Message) error {
	values, err := tx.Get(ctx, kv.System, box.Scope.Key(tagMessage, rank, []byte(m.TaskID)))
	if err != nil {
		return err
	}
	first, err := decode(values[0])
	if err != nil {
		return err
	}
	if first.digest() != m.digest() {
		return exists(m)
	}
	m.Time = first.Time
	return nil
}

func exists(m *Message) error {
	return fmt.Errorf("%w: %q was sent to %q before and says something else", ErrExists, m.TaskID, m.Target)
}

// clear removes some of the expired messages of a box, and returns how many are left.
func (b *Box) clear(ctx context.Context, tx *kv.Tx, box kv.Ref) (counts, error) {
	c, err := b.countsOf(ctx, tx, box)
	if err != nil || len(c) == 0 {
		return c, err
	}
	until := box.Scope.Key(tagExpiry, appendTime(nil, b.opts.Now()))
	var over [][]byte
	for pair, err := range tx.Scan(ctx, kv.System, kv.Range{Start: box.Scope.Key(tagExpiry), End: until, Limit: maxCleared}) {
		if err != nil {
			return nil, err
		}
		_, rest, err := kv.SplitKey(pair.Key)
		if err != nil || len(rest) < 1+timeBytes+rankBytes {
			return nil, damaged("expiry", errNoKey)
		}
		over = append(over, rest[1+timeBytes:])
	}
	for _, place := range over {
		if err := b.remove(ctx, tx, box.Scope, c, place); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// remove removes the message at a place: its rank and its task id.
func (b *Box) remove(ctx context.Context, tx *kv.Tx, scope kv.Scope, c counts, place []byte) error {
	at := scope.Key(tagMessage, place)
	values, err := tx.Get(ctx, kv.System, at)
	if err != nil || values[0] == nil {
		return err
	}
	m, err := decode(values[0])
	if err != nil {
		return err
	}
	if c[m.Source]--; c[m.Source] <= 0 {
		delete(c, m.Source)
	}
	tx.Delete(kv.System, at)
	tx.Delete(kv.System, scope.Key(tagTask, []byte(m.TaskID)))
	if m.TTL > 0 {
		tx.Delete(kv.System, expiryKey(scope, &m, m.rank()))
	}
	return nil
}

func (b *Box) countsOf(ctx context.Context, tx *kv.Tx, box kv.Ref) (counts, error) {
	values, err := tx.Get(ctx, kv.System, box.Scope.Key(tagCounts))
	if err != nil {
		return nil, err
	}
	return decodeCounts(values[0])
}

func putCounts(tx *kv.Tx, scope kv.Scope, c counts) {
	if at := scope.Key(tagCounts); len(c) > 0 {
		tx.Put(kv.System, at, c.encode(slices.Sorted(maps.Keys(c))))
	} else {
		tx.Delete(kv.System, at)
	}
}

// Delete removes messages of a target from its box by their task ids, and returns how many
// it removed. A message that also names a node stays in the other box.
func (b *Box) Delete(ctx context.Context, tenant, target string, taskIDs []string) (int, error) {
	box := refOf(tenant, target)
	deleted := 0
	err := b.writer.Do(ctx, kv.Request{Refs: []kv.Ref{box}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		deleted = 0
		c, err := b.clear(ctx, tx, box)
		if err != nil {
			return err
		}
		for _, id := range taskIDs {
			ranks, err := tx.Get(ctx, kv.System, box.Scope.Key(tagTask, []byte(id)))
			if err != nil {
				return err
			}
			if ranks[0] == nil {
				continue
			}
			if err := b.remove(ctx, tx, box.Scope, c, slices.Concat(ranks[0], []byte(id))); err != nil {
				return err
			}
			deleted++
		}
		putCounts(tx, box.Scope, c)
		return nil
	}})
	if err != nil {
		return 0, fmt.Errorf("messages: delete: %w", err)
	}
	return deleted, nil
}

// List is that of a view of this moment.
func (b *Box) List(ctx context.Context, tenant, target string, q Query) ([]Message, error) {
	return b.At(b.engine).List(ctx, tenant, target, q)
}

// At returns a view of what a reader reads.
func (b *Box) At(from kv.Reader) BoxView { return BoxView{from, b.opts.Now} }

const timeBytes = 8

// appendTime appends a time as bytes that sort as times do.
func appendTime(dst []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(t.UnixMicro())^1<<63)
}

// expiryKey is found when the time to live of a message is over.
func expiryKey(scope kv.Scope, m *Message, rank []byte) []byte {
	return scope.Key(tagExpiry, appendTime(nil, m.Time.Add(m.TTL)), rank, []byte(m.TaskID))
}
