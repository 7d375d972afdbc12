package stream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
)

const (
	// maxSentTopics is how many topics a stream remembers its place in; one more
	// and the silent half is forgotten. A gap has room for more.
	maxSentTopics = agents.MaxGapTopics / 2
	// maxReplayedIDs bounds the ids that a replay remembers, to recognize repetitions.
	maxReplayedIDs = 8192
	// commitLag is how much older than its commit the time of an event may be: a
	// stream that has taken all there is can't say of younger ones that it had
	// them.
	commitLag = 10 * time.Second
	// floorStep is how far the floor rises before that is marked.
	floorStep = time.Second
	// gapTime bounds storing what a stream was sent once it has ended.
	gapTime = 2 * time.Second
)

// ProgressOptions are what a Progress works with. All fields are required.
type ProgressOptions struct {
	Tenant, Agent string
	Directory     *agents.Directory
	Link          *agents.Link
	// Now is the bus's clock.
	Now func() time.Time
	// Replay is the age of the oldest event that is sent again.
	Replay time.Duration
	Logger *slog.Logger
}

// Progress marks what a stream was sent, so that the agent's next one can be sent the
// rest. Of a topic that it has no position in it only knows the floor: what is not
// younger was sent, or was before the stream.
//
// It belongs to the goroutine that sends, once that runs. Nil marks nothing: replay is
// off.
type Progress struct {
	ProgressOptions
	ended bool // guarded by the caller of end

	floor, marked time.Time // marked is the floor that the directory knows
	topics        map[string]sentTopic
	sent          uint64  // how many events with a sequence
	replay        *replay // nil when there is nothing to replay, or no more
}

// sentTopic is how far a stream was sent a topic.
type sentTopic struct {
	sequence uint64
	time     time.Time // of the event, or not before it; zero if the floor is not
	last     uint64    // how many events had been sent on all topics when this one was
}

// replay is what an agent's last stream was not sent.
type replay struct {
	oldest time.Time // what is not younger is too old to be replayed
	before agents.Gap
	sent   map[string]bool // by pattern and id, on the new stream
	// settled yields when the stream has been open for long enough; nil once
	// that was seen.
	settled <-chan time.Time
}

// settle notes that the stream has been open for long enough.
func (r *replay) settle() {
	over := make(chan time.Time)
	close(over)
	r.settled = over
}

// NewProgress begins to mark what a stream is sent, behind the gap of the agent's last
// stream if that has left one.
func NewProgress(ctx context.Context, o ProgressOptions) *Progress {
	now := o.Now()
	p := &Progress{ProgressOptions: o, floor: now, topics: make(map[string]sentTopic)}
	gap, found, err := o.Directory.TakeGap(ctx, o.Tenant, o.Agent)
	if err != nil {
		o.Logger.WarnContext(ctx, "gap not taken as it should: it may be lost, or replayed twice", "agent", o.Agent, "found", found, "error", err)
	}
	if found {
		p.replay = &replay{oldest: now.Add(-o.Replay), before: gap, sent: make(map[string]bool)}
		p.floor = gap.Since
		for topic, sequence := range gap.Delivered {
			p.topics[topic] = sentTopic{sequence: sequence, time: gap.Ended}
		}
	}
	return p
}

// Since is from when on stored events of a topic or pattern are wanted; zero means
// that none are: there is no gap, or the last stream did not have the topic.
func (p *Progress) Since(topic string) time.Time {
	if p == nil || p.replay == nil {
		return time.Time{}
	}
	before := p.replay.before
	if _, had := before.Delivered[topic]; !had && len(before.Delivered) < maxSentTopics {
		return time.Time{}
	}
	if before.Since.After(p.replay.oldest) {
		return before.Since
	}
	return p.replay.oldest
}

// Begin marks where the stream begins, by topic and pattern: where the last one
// was, or else where the topic ends now. A replay begins when the stream has been
// open for some time: an agent may open another one at once.
func (p *Progress) Begin(topics []string, positions []events.Position, settle time.Duration) {
	if p == nil {
		return
	}
	starts := make(map[string]uint64, len(topics))
	for _, topic := range topics[:min(len(topics), maxSentTopics)] {
		starts[topic] = 0
	}
	for _, p := range positions {
		if _, listed := starts[p.Topic]; listed && p.After != nil {
			starts[p.Topic] = *p.After
		}
	}
	mark := agents.Gap{Since: p.floor}
	if p.replay != nil {
		maps.Copy(starts, p.replay.before.Delivered)
		mark.RecentIDs = p.replay.before.RecentIDs
		p.replay.settled = time.After(settle)
	}
	for topic, sequence := range starts {
		if _, known := p.topics[topic]; !known {
			p.topics[topic] = sentTopic{sequence: sequence, time: p.floor}
		}
	}
	mark.Delivered = starts
	p.marked = p.floor
	p.Directory.MarkGap(p.Link, mark)
}

// Fail is Begin for a stream that can't be opened: the gap waits on for the next one.
func (p *Progress) Fail(ctx context.Context) {
	if p != nil && p.replay != nil {
		p.Begin(nil, nil, 0)
	}
	p.end(ctx, true)
}

// holds reports whether a delivery is the first of a replay, and the stream is too
// young for one.
func (p *Progress) holds(d *events.Delivery) bool {
	return p != nil && p.replay != nil && p.replay.settled != nil && d.Past && p.wants(d)
}

// wants reports whether an event is to be sent. All are, except of those replayed
// what the last stream or this one was sent, what has no waiter any more, and
// what a newer stream sends in the place of this one: that one is given all that
// was stored when it took the gap.
func (p *Progress) wants(d *events.Delivery) bool {
	if p == nil || p.replay == nil || d.Event.Sequence == 0 {
		return true
	}
	r, e, id := p.replay, d.Event, shortID(d.Event.ID)
	taken := p.Link.GapTakenAt()
	switch {
	case e.Sequence <= r.before.Delivered[e.Topic]:
		return false
	case !taken.IsZero() && (d.Past || !e.Time.After(taken)):
		return false
	case !d.Past:
		return true
	}
	return !topics.IsMailbox(e.Topic) && !slices.Contains(r.before.RecentIDs, id) && !r.sent[sentKey(d.Pattern.String(), id)]
}

// note remembers an event that was sent.
func (p *Progress) note(d *events.Delivery) {
	if p == nil {
		return
	}
	e, id := d.Event, shortID(d.Event.ID)
	if p.replay != nil && len(p.replay.sent) < maxReplayedIDs {
		p.replay.sent[sentKey(d.Pattern.String(), id)] = true
	}
	if e.Sequence == 0 {
		p.Directory.MarkSent(p.Link, "", 0, id)
		return
	}
	p.Directory.MarkSent(p.Link, e.Topic, e.Sequence, id)
	p.sent++
	p.topics[e.Topic] = sentTopic{max(p.topics[e.Topic].sequence, e.Sequence), e.Time, p.sent}
	if len(p.topics) > maxSentTopics {
		p.forget()
	}
}

// forget drops the half of the topics that was silent longest. From then on the log counts
// their events as sent.
func (p *Progress) forget() {
	topics := slices.SortedFunc(maps.Keys(p.topics), func(a, b string) int {
		return cmp.Compare(p.topics[a].last, p.topics[b].last)
	})
	for _, topic := range topics[:len(topics)/2] {
		p.raise(p.topics[topic].time)
		delete(p.topics, topic)
	}
	p.markFloor()
}

// now is the time, for caughtUp.
func (p *Progress) now() time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.Now()
}

// caughtUp says that all there was to send at a time had been sent.
func (p *Progress) caughtUp(at time.Time) {
	if p == nil {
		return
	}
	p.replay = nil
	p.raise(at.Add(-commitLag))
	if p.floor.Sub(p.marked) >= floorStep {
		p.markFloor()
	}
}

func (p *Progress) raise(to time.Time) {
	if to.After(p.floor) {
		p.floor = to
	}
}

func (p *Progress) markFloor() {
	p.marked = p.floor
	p.Directory.MarkSince(p.Link, p.floor)
}

// end ends the record of what the stream was sent: it is kept for the agent's next
// one, or dropped because the agent means to leave. Only the first end counts.
func (p *Progress) end(ctx context.Context, abnormal bool) {
	if p == nil || p.ended {
		return
	}
	p.ended = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gapTime)
	defer cancel()
	if err := p.Directory.EndGap(ctx, p.Link, abnormal); err != nil {
		p.Logger.WarnContext(ctx, "gap not kept: the agent's next stream misses what came since this one ended", "agent", p.Agent, "error", err)
	}
}

func sentKey(pattern, id string) string { return pattern + "\x00" + id }

// shortID stands for an event id of any length.
func shortID(id string) string {
	if len(id) <= store.MaxIDBytes {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}
