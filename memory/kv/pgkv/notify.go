package pgkv

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// notifyPause collects moves into one notification.
	notifyPause = 2 * time.Millisecond
	// maxPayload is what a notification may hold; the server takes 8000 bytes.
	maxPayload = 7000
	// maxPending bounds the refs that are kept for a receiver that is slow.
	maxPending = 256
	// listenAgain is the time before a lost connection is made anew.
	listenAgain = 200 * time.Millisecond
	// lookAgain is how often receivers are woken to look by themselves, in case a
	// notification got lost.
	lookAgain = 3 * time.Second
	// anyMoved stands for refs in a payload: more have moved than it holds.
	anyMoved = "*"
)

func newOrigin() string { return strconv.FormatUint(rand.Uint64(), 36) }

// notifier notifies other processes of the refs that this one has moved, and the receivers of
// this one of refs that others have moved.
type notifier struct {
	db      *DB
	config  *pgx.ConnConfig
	channel string
	notify  func(ctx context.Context, payload string) error // notifies the others
	stop    context.CancelFunc
	done    sync.WaitGroup
	wake    chan struct{} // holds one token while something is to be sent

	mu        sync.Mutex
	moved     map[kv.Ref]struct{}    // guarded by mu; not sent yet
	receivers map[*receiver]struct{} // guarded by mu
	listening bool                   // guarded by mu; somebody has asked for it
	start     chan struct{}          // closed when listening begins
}

// receiver is one call of Moved.
type receiver struct {
	wake chan struct{} // holds one token while something is pending

	mu      sync.Mutex
	pending map[kv.Ref]struct{} // guarded by mu
	any     bool                // guarded by mu; instead of what is pending
}

func newNotifier(db *DB, config *pgx.ConnConfig) *notifier {
	ctx, stop := context.WithCancel(context.Background())
	h := &notifier{
		db: db, config: config, channel: "loom_" + strconv.FormatUint(uint64(db.lockNumber("moved")), 36), stop: stop, //nolint:gosec // all bits
		wake: make(chan struct{}, 1), moved: make(map[kv.Ref]struct{}), receivers: make(map[*receiver]struct{}), start: make(chan struct{}),
	}
	h.notify = func(ctx context.Context, payload string) error {
		_, err := db.calls.Exec(ctx, `SELECT pg_notify($1, $2)`, h.channel, payload)
		return err
	}
	h.done.Go(func() { h.sending(ctx) })
	h.done.Go(func() { h.listenLoop(ctx) })
	h.done.Go(func() { h.reminding(ctx) })
	return h
}

func (h *notifier) close() {
	h.stop()
	h.done.Wait()
}

// announce notifies other processes that the sequences of exact guards were raised.
func (h *notifier) announce(guards []kv.Guard) {
	h.mu.Lock()
	for _, g := range guards {
		if !g.Any && len(h.moved) <= maxPending {
			h.moved[g.Ref] = struct{}{}
		}
	}
	h.mu.Unlock()
	h.send()
}

// send lets sending look at what has moved.
func (h *notifier) send() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// sending says what has moved, several refs at once, on a connection of the pool. What
// can't be sent now is sent later, with what comes next.
func (h *notifier) sending(ctx context.Context) {
	for {
		select {
		case <-h.wake:
		case <-ctx.Done():
			return
		}
		if !kv.Sleep(ctx, notifyPause) {
			return
		}
		h.mu.Lock()
		moved := h.moved
		h.moved = make(map[kv.Ref]struct{})
		h.mu.Unlock()
		payload := payloadOf(h.db.origin, moved)
		if payload == "" {
			continue
		}
		if err := h.notify(ctx, payload); err != nil && ctx.Err() == nil {
			h.db.options.Logger.Warn("other servers were not notified of changes; notifying them again", "error", err)
			h.mu.Lock()
			for ref := range moved {
				if len(h.moved) <= maxPending { // with one more, anyMoved is sent
					h.moved[ref] = struct{}{}
				}
			}
			h.mu.Unlock()
			if !kv.Sleep(ctx, listenAgain) {
				return
			}
			h.send()
		}
	}
}

// payloadOf is the origin and the refs, or anyMoved in their place.
func payloadOf(origin string, moved map[kv.Ref]struct{}) string {
	if len(moved) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString(origin)
	for ref := range moved {
		fmt.Fprintf(&text, " %d.%s", ref.Keyspace, base64.RawURLEncoding.EncodeToString(ref.Scope.Key(0)))
		if text.Len() > maxPayload || len(moved) > maxPending {
			return origin + " " + anyMoved
		}
	}
	return text.String()
}

// movesOf reads a payload; none for one of this process.
func movesOf(origin, payload string) []kv.Move {
	from, list, _ := strings.Cut(payload, " ")
	if from == origin {
		return nil
	}
	var moves []kv.Move
	for field := range strings.FieldsSeq(list) {
		ref, err := refOf(field)
		if err != nil { // anyMoved, or what a later version writes
			return []kv.Move{{Any: true}}
		}
		moves = append(moves, kv.Move{Ref: ref})
	}
	return moves
}

func refOf(field string) (kv.Ref, error) {
	number, text, _ := strings.Cut(field, ".")
	ks, err := strconv.ParseUint(number, 10, 8)
	if err != nil {
		return kv.Ref{}, err
	}
	key, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return kv.Ref{}, err
	}
	scope, _, err := kv.SplitKey(key)
	return kv.Ref{Keyspace: kv.Keyspace(ks), Scope: scope}, err
}

// listenLoop listens from the first call of Moved on. After each connection that is made,
// anything may have moved.
func (h *notifier) listenLoop(ctx context.Context) {
	select {
	case <-h.start:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		err := h.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		h.db.options.Logger.Warn("lost the connection that listens to other servers; reconnecting", "error", err)
		kv.Sleep(ctx, listenAgain)
	}
}

// reminding lets receivers look by themselves now and then.
func (h *notifier) reminding(ctx context.Context) {
	select {
	case <-h.start:
	case <-ctx.Done():
		return
	}
	for kv.Sleep(ctx, lookAgain) {
		h.spread([]kv.Move{{Any: true}})
	}
}

func (h *notifier) listen(ctx context.Context) (err error) {
	conn, err := pgx.ConnectConfig(ctx, h.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, `LISTEN `+h.channel); err != nil {
		return err
	}
	h.spread([]kv.Move{{Any: true}})
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		h.spread(movesOf(h.db.origin, n.Payload))
	}
}

func (h *notifier) spread(moves []kv.Move) {
	if len(moves) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.receivers {
		r.add(moves)
	}
}

func (r *receiver) add(moves []kv.Move) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range moves {
		if r.any = r.any || m.Any; !r.any {
			r.pending[m.Ref] = struct{}{}
		}
	}
	if r.any = r.any || len(r.pending) > maxPending; r.any {
		clear(r.pending)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take returns what is pending.
func (r *receiver) take() (moves []kv.Move) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.any {
		r.any = false
		moves = append(moves, kv.Move{Any: true})
	}
	for ref := range r.pending {
		moves = append(moves, kv.Move{Ref: ref})
	}
	clear(r.pending)
	return moves
}

// Moved is kv.Notifier's. The first call begins to listen, which is why it yields at
// first that anything may have moved.
func (db *DB) Moved(ctx context.Context) iter.Seq[kv.Move] {
	h, r := db.notifier, &receiver{wake: make(chan struct{}, 1), pending: make(map[kv.Ref]struct{})}
	h.mu.Lock()
	h.receivers[r] = struct{}{}
	if first := !h.listening; first {
		h.listening = true
		close(h.start)
	} else {
		r.add([]kv.Move{{Any: true}})
	}
	h.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { h.leave(r) }) // also when it is not ranged over
	return func(yield func(kv.Move) bool) {
		defer stop()
		defer h.leave(r)
		for {
			select {
			case <-r.wake:
			case <-ctx.Done():
				return
			}
			for _, move := range r.take() {
				if !yield(move) {
					return
				}
			}
		}
	}
}

func (h *notifier) leave(r *receiver) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.receivers, r)
}
