package audit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
)

// Defaults and limits of a log.
const (
	// SealEvery is how soon after its commit a record is sealed, at the latest.
	SealEvery = time.Second
	// RotateRecords and RotateEvery are how many records, and how much time with any, lie
	// between two heads in the logger.
	RotateRecords = 10_000
	RotateEvery   = time.Hour
	// DefaultRetention is how long records are kept: a quarter of a year.
	DefaultRetention = 90 * 24 * time.Hour
	// sweepEvery is the time between two deletions of old records, unless they are kept
	// for less.
	sweepEvery = time.Hour
	// closeTime bounds the sealing at the end.
	closeTime = 5 * time.Second
)

// ErrClosed: the log was closed.
var ErrClosed = errors.New("audit: closed")

// Options adjusts a Log. Nil and zero fields mean the defaults.
type Options struct {
	// Retention is how long records are kept; negative: for ever. Default
	// DefaultRetention.
	Retention time.Duration
	// Others reports whether other servers have the store now. Each server has epochs of its
	// own, whose links it alone writes. Default: this one has it for itself.
	Others func() bool
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger takes the heads, and logs what can't be sealed. Default silent.
	Logger *slog.Logger
}

// Log keeps the records of all tenants. All methods are safe for concurrent use.
type Log struct {
	engine    kv.Reader
	writer    *kv.Writer
	leases    *lease.Holder // of the deleting
	retention time.Duration
	now       func() time.Time
	others    func() bool // nil where this server has the store for itself
	logger    *slog.Logger

	stop    context.CancelFunc
	running sync.WaitGroup
	deleted atomic.Int64  // records that Sweep did
	wake    chan struct{} // holds one: something is worth sealing

	mu     sync.Mutex
	closed bool              // guarded by mu
	chains map[string]*chain // guarded by mu; by tenant, including chains being opened
}

// chain is one tenant's records and links of this epoch.
type chain struct {
	tenant string

	opening sync.Mutex // held while epoch is not known
	epoch   uint64     // guarded by opening; zero: not opened

	mu      sync.Mutex
	next    uint64          // guarded by mu; the next record's number
	pending map[uint64]bool // guarded by mu; numbers whose commits are under way
	ended   int             // guarded by mu; commits that ended since the last sealing

	sealing sync.Mutex // held while links are written; guards what follows
	last    link       // the newest link; zero when there is none
	sealed  uint64     // the last number of this epoch in a link
	logged  int        // records sealed since a head was logged
	since   time.Time  // of the first of them
}

// New returns a log in engine, which writes through writer. Both stay the caller's, to be
// closed after it. Nil options are the defaults.
func New(engine kv.Reader, writer *kv.Writer, opts *Options) *Log {
	l := &Log{
		engine: engine, writer: writer, leases: lease.NewHolder(engine, writer, nil), retention: DefaultRetention, now: time.Now, logger: slog.New(slog.DiscardHandler),
		wake: make(chan struct{}, 1), chains: map[string]*chain{},
	}
	if opts != nil {
		if opts.Retention != 0 {
			l.retention = opts.Retention
		}
		if opts.Now != nil {
			l.now = opts.Now
		}
		l.others = opts.Others
		if opts.Logger != nil {
			l.logger = opts.Logger
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.running.Go(func() { l.work(ctx) })
	return l
}

// Close seals what is not, and logs the heads. Closing twice is harmless.
func (l *Log) Close() error {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	l.stop()
	l.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var errs []error
	for _, c := range l.open() {
		errs = append(errs, l.seal(ctx, c))
		c.sealing.Lock()
		l.logHead(ctx, c, "closed")
		c.sealing.Unlock()
	}
	return errors.Join(append(errs, l.leases.Close())...)
}

// open are the chains of this epoch.
func (l *Log) open() []*chain {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*chain, 0, len(l.chains))
	for _, c := range l.chains {
		all = append(all, c)
	}
	return all
}

// chain is a tenant's, and begins its epoch if it is the first call.
func (l *Log) chain(ctx context.Context, tenant string) (*chain, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, ErrClosed
	}
	c := l.chains[tenant]
	if c == nil {
		c = &chain{tenant: tenant, next: 1, pending: map[uint64]bool{}}
		l.chains[tenant] = c
	}
	l.mu.Unlock()
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.epoch > 0 {
		return c, nil
	}
	if err := l.begin(ctx, c); err != nil {
		return nil, fmt.Errorf("audit: begin an epoch: %w", err)
	}
	return c, nil
}

// begin seals what a killed server left, and begins an epoch.
func (l *Log) begin(ctx context.Context, c *chain) error {
	left, err := l.sealLeft(ctx, c)
	if err != nil {
		return err
	}
	ref, epoch := refOf(c.tenant), uint64(0)
	err = l.writer.Do(ctx, kv.Request{Refs: []kv.Ref{ref}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		values, err := tx.Get(ctx, kv.System, epochKey(c.tenant))
		if err != nil {
			return err
		}
		epoch, err = decodeEpoch(c.tenant, values[0])
		if err != nil {
			return err
		}
		epoch = max(epoch, c.last.epoch) + 1
		tx.Put(kv.System, epochKey(c.tenant), encodeEpoch(c.tenant, epoch))
		return nil
	}})
	if err != nil {
		return err
	}
	if left > 0 {
		l.logHead(ctx, c, "recovered")
	}
	c.epoch = epoch
	return nil
}

// encodeEpoch is the value of the epoch's key, with a digest, so that a change is found.
func encodeEpoch(tenant string, epoch uint64) []byte {
	number := binary.BigEndian.AppendUint64(nil, epoch)
	sum := digestOf(epochKey(tenant), number)
	return append(number, sum[:]...)
}

func decodeEpoch(tenant string, value []byte) (uint64, error) {
	if value == nil {
		return 0, nil
	}
	if len(value) < 8 {
		return 0, fmt.Errorf("%w: epoch", ErrDamaged)
	}
	epoch := binary.BigEndian.Uint64(value)
	if string(value) != string(encodeEpoch(tenant, epoch)) {
		return 0, fmt.Errorf("%w: epoch", ErrDamaged)
	}
	return epoch, nil
}

// Entry is a record that is about to be written. End must be called once.
type Entry struct {
	log    *Log
	chain  *chain
	number uint64
}

// Begin gives a record of the tenant's its number.
func (l *Log) Begin(ctx context.Context, tenant string) (Entry, error) {
	c, err := l.chain(ctx, tenant)
	if err != nil {
		return Entry{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := Entry{log: l, chain: c, number: c.next}
	c.next++
	c.pending[e.number] = true
	return e, nil
}

// Ref is what the request that stages the record must name in Blind.
func (e Entry) Ref() kv.Ref { return refOf(e.chain.tenant) }

// Stage writes the record. It may be called again, when a commit is repeated.
func (e Entry) Stage(tx *kv.Tx, r Record) {
	tx.Put(kv.System, keyOf(e.chain.tenant, tagRecord, recordPlace{e.chain.epoch, e.number}), encodeRecord(r))
}

// End says what came of the commit. After one whose outcome is not known, nothing more is
// sealed until the next start, which sees what is there.
func (e Entry) End(err error) {
	if errors.Is(err, kv.ErrUnknownOutcome) {
		return
	}
	c := e.chain
	c.mu.Lock()
	delete(c.pending, e.number)
	c.ended++
	full := c.ended >= maxLinked
	c.mu.Unlock()
	if full {
		select {
		case e.log.wake <- struct{}{}:
		default:
		}
	}
}

// Write writes a record in its own commit, which survives the death of the process
// but is not synced. It is for calls that have no step.
func (l *Log) Write(ctx context.Context, r Record) error {
	e, err := l.Begin(ctx, r.Tenant)
	if err != nil {
		return err
	}
	err = l.writer.Do(ctx, kv.Request{Blind: []kv.Ref{e.Ref()}, Lazy: true, Stage: func(_ context.Context, tx *kv.Tx) error {
		e.Stage(tx, r)
		return nil
	}})
	e.End(err)
	if err != nil {
		return fmt.Errorf("audit: write: %w", err)
	}
	return nil
}
