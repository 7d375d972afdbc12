package children

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

const (
	tenant = "t"
	grace  = 2 * time.Second
)

var (
	errDead  = errors.New("the server was killed")
	errFault = errors.New("planned failure")
)

// world has the servers on one store, and who is attached to which. Its faults are those of
// stores, buses and servers.
type world struct {
	db *memkv.DB

	script  *script    // what becomes of the calls of the first server; nil for random faults
	telling sync.Mutex // held while servers hear of a stream, in the order in which it happens

	mu       sync.Mutex // guards the fields below
	rng      *rand.Rand
	faults   bool
	outage   bool
	servers  []*server
	made     int
	ended    map[string]bool    // servers that the others know to have ended
	attached map[string]*server // by child
	changed  chan struct{}
	results  map[string]map[string]bool // what was told to a parent, by child
}

// server is a Spawner with its own writer on the store.
type server struct {
	*Spawner
	w    *world
	name string
	dead bool // guarded by the world's mu
}

func newWorld(seed uint64) *world {
	return &world{
		db: memkv.New(nil), rng: rand.New(rand.NewPCG(seed, 0)), ended: map[string]bool{}, attached: map[string]*server{},
		changed: make(chan struct{}), results: map[string]map[string]bool{},
	}
}

func (w *world) n(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// pause is a random time.
func (w *world) pause(most time.Duration) time.Duration { return time.Duration(w.n(int(most))) }

// start starts a server. It tries again where the store does not answer.
func (w *world) start(ctx context.Context, opts Options) *server {
	w.mu.Lock()
	w.made++
	s := &server{w: w, name: fmt.Sprint("server-", w.made)}
	w.mu.Unlock()
	engine := kvtest.Faulty(w.db, kvtest.FailurePlan{Choose: s.choose})
	writer := kv.NewWriter(engine, nil)
	opts.Grace, opts.Holder, opts.Ended, opts.Changed, opts.Attached = grace, func() string { return s.name }, w.hasEnded, w.changes, w.isAttached
	opts.OnResult = func(child, parent kv.Scope) {
		for _, other := range w.living() {
			if other != s && w.n(10) > 0 {
				go other.Returned(child, parent)
			}
		}
	}
	s.Spawner = New(Deps{
		Store: NewStore(engine, nil), Writer: writer, Log: session.New(engine, writer, nil), Hand: stepRecorder{writer}, Blobs: s, Keep: s.keep,
		Folders: s, Forks: s, Notifier: notifier{s, w}, InUse: func(string, string) bool { return false },
		ToolName: func(_, n string) (string, bool) { return n, true }, HasProfile: func(string) bool { return true },
	}, &opts)
	for s.Start(ctx) != nil {
		time.Sleep(100 * time.Millisecond)
	}
	w.mu.Lock()
	w.servers = append(w.servers, s)
	w.mu.Unlock()
	w.change()
	return s
}

// change tells the servers that another one has come or ended.
func (w *world) change() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) changes() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

func (w *world) hasEnded(_ context.Context, holder string) (bool, error) {
	if w.fault(20) {
		return false, errFault
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended[holder], nil
}

func (w *world) isAttached(_, agent string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attached[agent] != nil
}

func (w *world) living() []*server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.servers)
}

// any is one of the servers that live; nil where none does.
func (w *world) any() *server {
	all := w.living()
	if len(all) == 0 {
		return nil
	}
	return all[w.n(len(all))]
}

// kill kills a server: nothing that it does from then on reaches anybody. The others hear
// of it when its lease is over.
func (w *world) kill(s *server, lease time.Duration) {
	w.mu.Lock()
	s.dead = true
	w.servers = slices.DeleteFunc(w.servers, func(other *server) bool { return other == s })
	w.mu.Unlock()
	_ = s.Close()
	time.Sleep(lease)
	w.telling.Lock()
	defer w.telling.Unlock()
	w.mu.Lock()
	w.ended[s.name] = true
	var lost []string
	for child, at := range w.attached {
		if at == s {
			lost = append(lost, child)
			delete(w.attached, child)
		}
	}
	w.mu.Unlock()
	for _, child := range lost {
		w.tell(child, false)
	}
	w.change()
}

// attach opens a stream of a child at a server; nil ends it.
func (w *world) attach(child string, at *server) {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.mu.Lock()
	if at != nil && at.dead {
		at = nil
	}
	w.attached[child] = at
	w.mu.Unlock()
	w.tell(child, at != nil)
}

func (w *world) tell(child string, attached bool) {
	for _, s := range w.living() {
		s.Attached(tenant, child, attached)
	}
}

// fault reports whether something goes wrong, once in so many times.
func (w *world) fault(every int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults && (w.outage || w.rng.IntN(every) == 0)
}

// choose is what becomes of a call of the store.
func (s *server) choose(commit bool) (bool, error) {
	w := s.w
	if at := s.scripted(); at != nil && at.store != nil {
		return at.store(commit)
	}
	w.mu.Lock()
	faults := w.faults
	w.mu.Unlock()
	if faults && w.n(4) == 0 {
		time.Sleep(w.pause(40 * time.Millisecond))
	}
	w.mu.Lock()
	dead := s.dead
	w.mu.Unlock()
	switch {
	case dead:
		return commit && w.n(2) == 0, errDead // it was on its way
	case !w.fault(25):
		return false, nil
	case commit && w.n(2) == 0:
		return w.n(2) == 0, kv.ErrUnknownOutcome
	}
	return false, errFault
}

// scripted is the script of a server that has one.
func (s *server) scripted() *script {
	if s.name != "server-1" {
		return nil
	}
	return s.w.script
}

// bus is what becomes of an event.
func (s *server) bus() error {
	if at := s.scripted(); at != nil && at.bus != nil {
		return at.bus()
	}
	s.w.mu.Lock()
	dead := s.dead
	s.w.mu.Unlock()
	if dead || s.w.fault(10) {
		return errFault
	}
	return nil
}

// notifier notifies by the bus of a server.
type notifier struct {
	s *server
	w *world
}

func (t notifier) Spawned(context.Context, *Child) error { return t.s.bus() }

func (t notifier) Returned(_ context.Context, c *Child) error {
	if err := t.s.bus(); err != nil {
		return err
	}
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if t.w.results[c.ID] == nil {
		t.w.results[c.ID] = map[string]bool{}
	}
	t.w.results[c.ID][fmt.Sprint(c.Result.Step, c.Result.Text, c.Result.Error)] = true
	return nil
}

func (s *server) Lookup(_ context.Context, _ kv.Scope, name string) (blob.Entry, error) {
	return blob.Entry{Ref: name}, nil
}

func (s *server) keep(_ context.Context, tx *kv.Tx, owner kv.Scope, e blob.Entry) error {
	tx.Put(kv.Blobs, owner.Key('k', []byte(e.Ref)), []byte{})
	return nil
}

func (*server) Make(kv.Scope) error { return nil }
func (*server) Remove(kv.Scope)     {}

func (*server) ForkPoint(context.Context, kv.Scope, string, string) ([]byte, error) { return nil, nil }

// stepRecorder records steps as the hand does: each in one commit with what joins it.
type stepRecorder struct{ *kv.Writer }

const (
	tagCount = '#'
	tagStep  = '='
)

func (r stepRecorder) Record(ctx context.Context, rec hand.Recorded) (hand.Answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	ref := kv.Ref{Keyspace: kv.Log, Scope: rec.Scope}
	err := r.Do(ctx, kv.Request{Refs: append([]kv.Ref{ref}, rec.Join.Refs...), Blind: rec.Join.Blind, Stage: func(ctx context.Context, tx *kv.Tx) error {
		last, err := tx.Get(ctx, kv.Log, rec.Scope.Key(tagCount))
		if err != nil {
			return err
		}
		number := uint64(1)
		if last[0] != nil {
			number += binary.BigEndian.Uint64(last[0])
		}
		count := binary.BigEndian.AppendUint64(nil, number)
		tx.Put(kv.Log, rec.Scope.Key(tagCount), count)
		tx.Put(kv.Log, rec.Scope.Key(tagStep, count), []byte(rec.Name+" "+string(rec.Args)+" "+string(rec.Output.Data)+rec.ErrorMessage))
		return rec.Join.Stage(ctx, tx, number)
	}})
	return hand.Answer{Recorded: err == nil}, err
}

// steps are how many steps of a tool name a child, in the log of its parent.
func (w *world) steps(tb testing.TB, parent kv.Scope, tool, child string) (texts []string) {
	tb.Helper()
	for p, err := range w.db.Scan(tb.Context(), kv.Log, kv.Prefix(parent.Key(tagStep))) {
		if err != nil {
			tb.Fatal(err)
		}
		if text := string(p.Value); strings.HasPrefix(text, tool+" ") && strings.Contains(text, fmt.Sprintf(`"child_id":%q`, child)) {
			texts = append(texts, text)
		}
	}
	return texts
}

// leftovers are what a server keeps of children that have all returned, and the store of
// their lives.
func (w *world) leftovers(tb testing.TB) (left []string) {
	tb.Helper()
	for _, s := range w.living() {
		s.mu.Lock()
		for name, n := range map[string]int{
			"live": len(s.live), "parents": len(s.parents), "tenants": len(s.tenants), "making": len(s.making), "waits": len(s.changed), "questions": len(s.unsure),
		} {
			if n > 0 {
				left = append(left, fmt.Sprintf("%s: %d %s: %v", s.name, n, name, slices.Collect(maps.Keys(s.live))))
			}
		}
		s.mu.Unlock()
	}
	for p, err := range w.db.Scan(tb.Context(), kv.System, kv.Range{}) {
		if err != nil {
			tb.Fatal(err)
		}
		scope, rest, err := kv.SplitKey(p.Key)
		if err != nil {
			tb.Fatal(err)
		}
		if rest[0] == tagAttached || scope.Kind == kv.OwnerSystem && rest[0] == tagLive {
			left = append(left, fmt.Sprintf("key %v %q", scope, rest))
		}
	}
	return left
}
