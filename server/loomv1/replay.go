package loomv1

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
)

const (
	// maxSentTopics is how many topics a stream remembers its place in; one more
	// and the silent half is forgotten. A gap has room for more.
	maxSentTopics = agents.MaxGapTopics / 2
	// maxReplayedIDs bounds the ids that a replay remembers, to tell repetitions.
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

// sentLog marks what a stream was sent, so that the agent's next one can be sent
// the rest. Of a topic that it has no place in it only knows the floor: what is
// not younger was sent, or was before the stream.
//
// It belongs to the goroutine that sends, once that runs. Nil marks nothing:
// replay is off.
type sentLog struct {
	directory *agents.Directory
	link      *agents.Link
	clock     func() time.Time

	floor, marked time.Time // marked is the floor that the directory knows
	topics        map[string]place
	turn          uint64
	replay        *replay // nil when there is nothing to replay, or no more
}

// place is how far a stream was sent a topic.
type place struct {
	sequence uint64
	time     time.Time // of the event, or not before it; zero if the floor is not
	turn     uint64    // rises with each event sent
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

// past is a time that has come.
func past() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}

// settle notes that the stream has been open for long enough.
func (r *replay) settle() { r.settled = past() }

// resume begins a stream's log, behind the gap of the agent's last stream if it
// has left one.
func (a *agentStream) resume(ctx context.Context) *sentLog {
	if a.Options.Replay < 0 {
		return nil
	}
	now := a.Events.Now()
	log := &sentLog{directory: a.Agents, link: a.link, clock: a.Events.Now, floor: now, topics: make(map[string]place)}
	gap, found, err := a.Agents.TakeGap(ctx, a.tenant, a.id)
	if err != nil {
		a.Options.Logger.WarnContext(ctx, "loom.v1 gap in danger", "agent", a.id, "lost", !found, "error", err)
	}
	if found {
		log.follow(gap, now.Add(-a.Options.Replay))
	}
	return log
}

// follow makes the log go on where an earlier stream of the agent was.
func (l *sentLog) follow(gap agents.Gap, oldest time.Time) {
	l.replay = &replay{oldest: oldest, before: gap, sent: make(map[string]bool)}
	l.floor = gap.Since
	for topic, sequence := range gap.Delivered {
		l.topics[topic] = place{sequence: sequence, time: gap.Ended}
	}
}

// since is from when on stored events of a topic or pattern are wanted; zero means
// that none are: there is no gap, or the last stream did not have the topic.
func (l *sentLog) since(topic string) time.Time {
	if l == nil || l.replay == nil {
		return time.Time{}
	}
	before := l.replay.before
	if _, had := before.Delivered[topic]; !had && len(before.Delivered) < maxSentTopics {
		return time.Time{}
	}
	if before.Since.After(l.replay.oldest) {
		return before.Since
	}
	return l.replay.oldest
}

// begin marks where the stream begins, by topic and pattern: where the last one
// was, or else where the topic ends now. A replay begins when the stream has been
// open for some time: an agent may open another one at once.
func (l *sentLog) begin(topics []string, positions []events.Position, settle time.Duration) {
	if l == nil {
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
	mark := agents.Gap{Since: l.floor}
	if l.replay != nil {
		maps.Copy(starts, l.replay.before.Delivered)
		mark.RecentIDs = l.replay.before.RecentIDs
		l.replay.settled = time.After(settle)
	}
	for topic, sequence := range starts {
		if _, known := l.topics[topic]; !known {
			l.topics[topic] = place{sequence: sequence, time: l.floor}
		}
	}
	mark.Delivered = starts
	l.marked = l.floor
	l.directory.MarkGap(l.link, mark)
}

// keepOn is begin for a stream that can't be opened: the gap waits on for the
// next one.
func (l *sentLog) keepOn() {
	if l != nil && l.replay != nil {
		l.begin(nil, nil, 0)
	}
}

// holds tells whether a delivery is the first of a replay, and the stream is too
// young for one.
func (l *sentLog) holds(d events.Delivery) bool {
	return l != nil && l.replay != nil && l.replay.settled != nil && d.Past && l.wants(d)
}

// wants tells whether an event is to be sent. All are, except of those replayed
// what the last stream or this one was sent, what nobody waits for any more, and
// what a newer stream sends in the place of this one: that one is given all that
// was stored when it took the gap.
func (l *sentLog) wants(d events.Delivery) bool {
	if l == nil || l.replay == nil || d.Event.Sequence == 0 {
		return true
	}
	r, e, id := l.replay, d.Event, shortID(d.Event.ID)
	taken := l.link.GapTakenAt()
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
func (l *sentLog) note(pattern string, e events.Event) {
	if l == nil {
		return
	}
	id := shortID(e.ID)
	if l.replay != nil && len(l.replay.sent) < maxReplayedIDs {
		l.replay.sent[sentKey(pattern, id)] = true
	}
	if e.Sequence == 0 {
		l.directory.MarkSent(l.link, "", 0, id)
		return
	}
	l.directory.MarkSent(l.link, e.Topic, e.Sequence, id)
	l.turn++
	l.topics[e.Topic] = place{max(l.topics[e.Topic].sequence, e.Sequence), e.Time, l.turn}
	if len(l.topics) > maxSentTopics {
		l.forget()
	}
}

// forget drops the half of the topics that was silent longest. As far as the log
// can tell from then on, what they had was sent.
func (l *sentLog) forget() {
	topics := slices.SortedFunc(maps.Keys(l.topics), func(a, b string) int {
		return cmp.Compare(l.topics[a].turn, l.topics[b].turn)
	})
	for _, topic := range topics[:len(topics)/2] {
		l.raise(l.topics[topic].time)
		delete(l.topics, topic)
	}
	l.markFloor()
}

// now is the time, for caughtUp.
func (l *sentLog) now() time.Time {
	if l == nil {
		return time.Time{}
	}
	return l.clock()
}

// caughtUp says that all there was to send at a time had been sent.
func (l *sentLog) caughtUp(at time.Time) {
	if l == nil {
		return
	}
	l.replay = nil
	l.raise(at.Add(-commitLag))
	if l.floor.Sub(l.marked) >= floorStep {
		l.markFloor()
	}
}

func (l *sentLog) raise(to time.Time) {
	if to.After(l.floor) {
		l.floor = to
	}
}

func (l *sentLog) markFloor() {
	l.marked = l.floor
	l.directory.MarkSince(l.link, l.floor)
}

// endGap ends the record of what the stream was sent: it is kept for the agent's
// next one, or dropped because the agent means to leave. Only the first end counts.
func (a *agentStream) endGap(ctx context.Context, abnormal bool) {
	if a.log == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gapTime)
	defer cancel()
	if err := a.Agents.EndGap(ctx, a.link, abnormal); err != nil {
		a.Options.Logger.WarnContext(ctx, "loom.v1 gap not kept", "agent", a.id, "error", err)
	}
}

func sentKey(pattern, id string) string { return pattern + "\x00" + id }

// shortID stands for an event id of any length.
func shortID(id string) string {
	if len(id) <= events.MaxIDBytes {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}
