package mesh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limits and times of a Mesh.
const (
	// MaxIDBytes bounds the id of a bridge.
	MaxIDBytes = 64
	// MaxTopicBytes bounds the name of a topic of the mesh.
	MaxTopicBytes = 64
	// MaxPeers bounds the peers that a bridge knows at once.
	MaxPeers = 256
	// DefaultMaxMessageBytes bounds one message: far above the largest request that a
	// bridge takes from a client unless set otherwise.
	DefaultMaxMessageBytes = 64 << 20
	// DefaultQueueMessages and DefaultQueueBytes bound the published messages under one
	// topic that wait to be handled. What comes then is dropped, and counted.
	DefaultQueueMessages = 8192
	DefaultQueueBytes    = 64 << 20
	// DefaultMaxServing bounds the requests of peers that are served at once. Each has a
	// goroutine.
	DefaultMaxServing = 8192
	// DefaultMaxAsking bounds the requests to peers that wait for an answer.
	DefaultMaxAsking = 8192
	// DefaultBeat is how often a bridge says that it is there.
	DefaultBeat = 500 * time.Millisecond
	// DefaultSilence is how long nothing is heard of a peer that counts as gone: as long as
	// who works with its agents should wait. One that a busy machine keeps silent for longer
	// is there again with its next beat. It is less than the lease of a bridge, which is what
	// other work of the peer waits for.
	DefaultSilence = 2 * time.Second
	// takenWithin is how long a peer may take to confirm that it has got a request, in
	// addition to the time that a slow network takes for its bytes.
	takenWithin   = 5 * time.Second
	slowestSecond = 4 << 20
)

// Errors of requests.
var (
	// ErrNotSent: the peer is not there, or the request could not be sent. Nothing
	// happened there.
	ErrNotSent = errors.New("mesh: peer is not reachable")
	// ErrLost: the peer went away, or did not say that it has got the request. It may
	// have acted on it.
	ErrLost = errors.New("mesh: peer went away before it answered")
	// ErrBusy: too many requests wait, here or at the peer.
	ErrBusy = errors.New("mesh: too many requests wait")
	// ErrTooLarge: a message is over the limit.
	ErrTooLarge = errors.New("mesh: message is too large")
	// ErrClosed: the mesh is closed.
	ErrClosed = errors.New("mesh: closed")
)

// FailedError is what the handler of a peer returned.
type FailedError struct{ Text string }

func (e *FailedError) Error() string { return e.Text }

// Peer is a bridge in one of its lives.
type Peer struct {
	// ID names the bridge; at most MaxIDBytes.
	ID string
	// Epoch is higher in each later life of the bridge.
	Epoch uint64
}

// IsZero reports whether the peer is the zero Peer.
func (p Peer) IsZero() bool { return p == Peer{} }

// String is the peer as logs show it.
func (p Peer) String() string { return fmt.Sprintf("%s@%d", p.ID, p.Epoch) }

// ParsePeer reads what String wrote; the zero Peer for anything else.
func ParsePeer(s string) Peer {
	at := strings.LastIndexByte(s, '@')
	epoch, err := strconv.ParseUint(s[at+1:], 10, 64)
	if at < 0 || err != nil {
		return Peer{}
	}
	return Peer{s[:at], epoch}
}

// Compare orders peers by id, then epoch.
func (p Peer) Compare(q Peer) int {
	return cmp.Or(cmp.Compare(p.ID, q.ID), cmp.Compare(p.Epoch, q.Epoch))
}

// Transport moves frames between bridges. It may lose frames, and never changes the order of
// those to one peer, nor of those to all; one to all may pass one to a peer. All methods are safe for concurrent use.
type Transport interface {
	// Open begins to receive what is for self and for all. receive is called by one
	// goroutine at a time, keeps the frame, and does not block.
	Open(self Peer, receive func(frame []byte)) error
	// Send sends a frame of at most MaxFrameBytes to one peer, or to all others for the
	// zero Peer. It does not keep the frame. An error means that it was not sent; nil,
	// that it may arrive.
	Send(to Peer, frame []byte) error
	// Close ends it. No receive runs any more when it returns.
	Close() error
}

// Options adjusts a Mesh. Nil and zero fields mean the defaults.
type Options struct {
	// Group names what the bridges share, such as a store: messages of other groups are
	// ignored.
	Group string
	// Secret is what only the bridges of the group know. Default: none, so that anybody who
	// reaches the transport can be a peer.
	Secret []byte
	// MaxMessageBytes bounds one message. Default DefaultMaxMessageBytes.
	MaxMessageBytes int
	// QueueMessages bounds the messages that wait under one topic, in addition to
	// DefaultQueueBytes. Default DefaultQueueMessages.
	QueueMessages int
	// MaxServing and MaxAsking bound the requests of peers, and those to peers. Defaults
	// DefaultMaxServing and DefaultMaxAsking.
	MaxServing, MaxAsking int
	// Beat is how often this bridge says that it is there, and Silence how long nothing
	// is heard of a peer that is gone. Defaults DefaultBeat and DefaultSilence.
	Beat, Silence time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger logs peers that come and go. Default silent.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var filled Options
	if o != nil {
		filled = *o
	}
	fill(&filled.MaxMessageBytes, DefaultMaxMessageBytes)
	fill(&filled.QueueMessages, DefaultQueueMessages)
	fill(&filled.MaxServing, DefaultMaxServing)
	fill(&filled.MaxAsking, DefaultMaxAsking)
	fill(&filled.Beat, DefaultBeat)
	fill(&filled.Silence, DefaultSilence)
	if filled.Now == nil {
		filled.Now = time.Now
	}
	if filled.Logger == nil {
		filled.Logger = slog.New(slog.DiscardHandler)
	}
	return filled
}

func fill[T ~int | ~int64](field *T, byDefault T) {
	if *field <= 0 {
		*field = byDefault
	}
}

// Stats counts what a mesh did.
type Stats struct {
	// Peers is the number of reachable peers.
	Peers int
	// Links is the number of the transport's connections to them.
	Links int
	// Serving are the requests of peers that run.
	Serving int
	// Sent and Received are messages, requests and answers; beats are not counted.
	Sent, Received uint64
	// Dropped are messages for which there was no room here, or no handler.
	Dropped uint64
	// Unsent are frames that the transport did not take.
	Unsent uint64
	// Refused are frames that are not believed: malformed, of another group or secret, of
	// a dead epoch, or seen before.
	Refused uint64
}

// Traffic is what came from a peer since it is there.
type Traffic struct {
	Peer Peer
	// Received are messages, requests and answers.
	Received uint64
}

// Linked is a Transport that says how many connections it has now.
type Linked interface{ Links() int }

// Mesh is one bridge's end. All methods are safe for concurrent use; methods that add
// handlers must be called before Open. The methods of a nil *Mesh find no peers.
type Mesh struct {
	self      Peer
	opts      Options
	transport Transport
	seal      *sealer
	live      atomic.Pointer[[]Peer] // reachable peers, by id

	published map[string]*inbox
	served    map[string]func(ctx context.Context, from Peer, payload []byte) ([]byte, error)
	onPeer    []func(p Peer, here bool)
	turns     *inbox // of the calls of onPeer

	large   sync.Mutex // held while a message of several frames is sent
	sending sync.Mutex // held while a frame gets its number and is sent

	receiving receiver // of the transport's goroutine
	asked     asked
	serving   serving
	counts    struct{ sent, received, dropped, unsent, refused atomic.Uint64 }

	ended   chan struct{}   // closed when Close has closed everything
	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	opened bool
	closed bool
	peers  map[string]*peerState // by id
	gone   map[string]uint64     // the last epoch of a bridge that has said goodbye
}

// peerState describes a peer.
type peerState struct {
	Peer
	heard    time.Time
	here     bool
	received uint64
}

// New returns the end of a bridge on a transport, which the mesh closes.
func New(self Peer, transport Transport, opts *Options) (*Mesh, error) {
	if self.ID == "" || len(self.ID) > MaxIDBytes {
		return nil, fmt.Errorf("mesh: the id of a bridge has 1 to %d bytes, not %d", MaxIDBytes, len(self.ID))
	}
	o := opts.withDefaults()
	seal, err := newSealer(o.Group, o.Secret)
	if err != nil {
		return nil, err
	}
	m := &Mesh{
		self: self, opts: o, transport: transport, seal: seal,
		published: make(map[string]*inbox),
		served:    make(map[string]func(context.Context, Peer, []byte) ([]byte, error)),
		peers:     make(map[string]*peerState), gone: make(map[string]uint64), ended: make(chan struct{}),
	}
	m.live.Store(&[]Peer{})
	m.turns = newInbox(2*MaxPeers, DefaultQueueBytes, func(p Peer, payload []byte) {
		for _, notify := range m.onPeer {
			notify(p, len(payload) > 0)
		}
	})
	m.asked.waiting = make(map[uint64]*question)
	m.serving.running = make(map[servedKey]context.CancelFunc)
	m.receiving.m = m
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m, nil
}

// Self is this bridge.
func (m *Mesh) Self() Peer {
	if m == nil {
		return Peer{}
	}
	return m.self
}

// Handle has the messages published under a topic handled, one after another. The payload
// is the handler's.
func (m *Mesh) Handle(topic string, handle func(from Peer, payload []byte)) {
	if m != nil {
		m.published[topic] = newInbox(m.opts.QueueMessages, DefaultQueueBytes, handle)
	}
}

// Serve has the requests under a topic answered, each on its own goroutine. ctx ends with
// the request's deadline, with its caller and with the mesh.
func (m *Mesh) Serve(topic string, serve func(ctx context.Context, from Peer, payload []byte) ([]byte, error)) {
	if m != nil {
		m.served[topic] = serve
	}
}

// OnPeer registers a function for peers that come and go, one after another. It may call
// the mesh.
func (m *Mesh) OnPeer(notify func(p Peer, here bool)) {
	if m != nil {
		m.onPeer = append(m.onPeer, notify)
	}
}

// Open begins to hear and to be heard.
func (m *Mesh) Open() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	if m.opened || m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	m.opened = true
	m.mu.Unlock()
	m.running.Go(func() { m.turns.run(m.ctx) })
	for _, in := range m.published {
		m.running.Go(func() { in.run(m.ctx) })
	}
	if err := m.transport.Open(m.self, m.receiving.receive); err != nil {
		return errors.Join(fmt.Errorf("mesh: open: %w", err), m.Close())
	}
	m.running.Go(m.beat)
	return nil
}

// Close notifies the peers, ends what runs and closes the transport. Closing twice is
// harmless.
func (m *Mesh) Close() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	said := m.opened && !m.closed
	closed := m.closed
	m.closed = true
	m.mu.Unlock()
	if closed {
		<-m.ended
		return nil
	}
	defer close(m.ended)
	m.stop()
	m.serving.wait() // so that who waits gets an answer
	if said {
		for _, p := range m.Peers() { // not to all at once: it must not pass the last answers
			_ = m.send(p, &message{kind: kindGoodbye}) // its silence says it, too
		}
	}
	err := m.transport.Close()
	m.asked.end(func(*question) bool { return true }, ErrClosed)
	m.running.Wait()
	return err
}

// Alone reports whether there is no peer.
func (m *Mesh) Alone() bool { return m == nil || len(*m.live.Load()) == 0 }

// Peers returns the reachable peers, by id. Callers must not change them.
func (m *Mesh) Peers() []Peer {
	if m == nil {
		return nil
	}
	return *m.live.Load()
}

// Named is the peer of an id that is there, whatever its epoch; the zero Peer for none.
func (m *Mesh) Named(id string) Peer {
	for _, p := range m.Peers() {
		if p.ID == id {
			return p
		}
	}
	return Peer{}
}

// Here reports whether a peer is there.
func (m *Mesh) Here(p Peer) bool { return slices.Contains(m.Peers(), p) }

// Stats counts what the mesh did.
func (m *Mesh) Stats() Stats {
	if m == nil {
		return Stats{}
	}
	links := 0
	if linked, ok := m.transport.(Linked); ok {
		links = linked.Links()
	}
	return Stats{
		Peers: len(m.Peers()), Links: links, Serving: m.serving.count(), Sent: m.counts.sent.Load(), Received: m.counts.received.Load(),
		Dropped: m.counts.dropped.Load(), Unsent: m.counts.unsent.Load(), Refused: m.counts.refused.Load(),
	}
}

// Publish sends a message to all peers; with none it does nothing. An error means that
// no peer gets it; without one each may.
func (m *Mesh) Publish(topic string, payload []byte) error {
	if m.Alone() {
		return nil
	}
	return m.send(Peer{}, &message{kind: kindPublish, topic: topic, payload: payload})
}
